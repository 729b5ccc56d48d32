//! Whom an object waits for, settled on its way through admission (admission §6.3).

use admission::{
    Attributes, CreateDecision, Initializers, InitializersOrigin, Operation, PendingInitializers,
    UpdateDecision, copy_initializers, create_denied_status, decide_create, decide_update,
    normalize_initializers, update_denied_status,
};
use api_object::{GroupResource, Status, Tree};
use authz::{Recorder, Target, Verdict};
use store::Store;

use crate::admit::Write;
use crate::rest::Call;

impl<S: Store> Call<'_, S> {
    /// Settles what an object says about its initializers, before hooks are told of it.
    ///
    /// # Errors
    /// 403 if the caller may not `initialize`, 422 if nobody may do what they want.
    pub(crate) async fn settle_initializers(
        &mut self,
        write: &Write,
        tree: &mut Tree,
        old: Option<&Tree>,
    ) -> Result<(), Status> {
        match write.operation {
            Operation::Create => self.settle_new(write, tree).await,
            Operation::Update => self.settle_changed(write, tree, old).await,
            Operation::Delete | Operation::Connect => Ok(()),
        }
    }

    async fn settle_new(&mut self, write: &Write, tree: &mut Tree) -> Result<(), Status> {
        // Without a state of the configuration the request is nobody's business but the server's.
        let decision = match &self.admission.standing {
            None => CreateDecision::Initialized,
            Some(standing) => {
                let attributes = self.attributes_of(write, api_object::name(tree));
                let user = Some(self.authorized.user().as_ref());
                let attributes = Attributes { object: Some(tree), user, ..attributes };
                let snapshot = &standing.hooks.snapshot;
                decide_create(&self.server.initialization, &attributes, snapshot)
            }
        };
        let initializers = match decision {
            CreateDecision::Initialized => Initializers::default(),
            CreateDecision::Assign(list) => self.assign(list),
            CreateDecision::AssignUnlessPermitted(list) => {
                match self.check_may_initialize(api_object::name(tree), create_denied_status).await
                {
                    Ok(()) => Initializers::default(),
                    Err(denied) if denied.code == 403 => self.assign(list),
                    Err(undecided) => return Err(undecided),
                }
            }
            CreateDecision::NeedsPermission(initializers) => {
                self.check_may_initialize(api_object::name(tree), create_denied_status).await?;
                self.admission.origin = InitializersOrigin::Client;
                initializers
            }
        };
        initializers.write_to(tree);
        Ok(())
    }

    /// The initializers that the configuration names for a new object.
    fn assign(&mut self, list: PendingInitializers) -> Initializers {
        for cycle in &list.cycles {
            let names = cycle.join(", ");
            self.server.log.error("initializers wait for each other", &[("names", &names)]);
        }
        self.admission.origin = InitializersOrigin::Configuration;
        list.into()
    }

    async fn settle_changed(
        &mut self,
        write: &Write,
        tree: &mut Tree,
        old: Option<&Tree>,
    ) -> Result<(), Status> {
        let name = api_object::name(tree).to_owned();
        let attributes = self.attributes_of(write, &name);
        let attributes = Attributes { object: Some(tree), old_object: old, ..attributes };
        let decision = decide_update(&self.server.initialization, &attributes);
        let decision = decision
            .map_err(|errors| Status::invalid(&self.resource.group_kind(), &name, &errors))?;
        match (decision, old) {
            (UpdateDecision::NoInitializers, _) => Initializers::default().write_to(tree),
            (UpdateDecision::KeepStored, Some(old)) => copy_initializers(tree, old),
            (UpdateDecision::KeepStored, None) => {}
            (UpdateDecision::NeedsPermission(initializers), _) => {
                self.check_may_initialize(&name, update_denied_status).await?;
                initializers.write_to(tree);
            }
        }
        Ok(())
    }

    /// Settles what hooks have made of an object. They need no permission, since they are trusted as the
    /// configuration is, but what they say must have its shape.
    ///
    /// # Errors
    /// 500 if it has not.
    pub(crate) fn resettle_initializers(
        &self,
        write: &Write,
        tree: &mut Tree,
        old: Option<&Tree>,
    ) -> Result<(), Status> {
        if write.operation == Operation::Delete {
            return Ok(());
        }
        normalize_initializers(tree).map_err(|error| Status::internal(&error.to_string()))?;
        match old.filter(|_| !write.subresource.is_empty()) {
            Some(old) => copy_initializers(tree, old),
            None if self.server.initialization.is_enabled => {
                Initializers::from_object(tree).write_to(tree)
            }
            None => Initializers::default().write_to(tree),
        }
        Ok(())
    }

    fn attributes_of<'w>(&'w self, write: &'w Write, name: &'w str) -> Attributes<'w> {
        write.attributes(self.resource, self.namespace.unwrap_or_default(), name, &[])
    }

    /// Asks whether the caller may `initialize` an object, on top of what was asked before.
    async fn check_may_initialize(
        &self,
        name: &str,
        denied: fn(&GroupResource, &str, &str) -> Status,
    ) -> Result<(), Status> {
        let target = authz::Resource {
            api_group: &self.resource.group,
            api_version: &self.resource.version,
            namespace: self.namespace.unwrap_or_default(),
            resource: &self.resource.plural,
            name,
            ..authz::Resource::default()
        };
        let attributes = authz::Attributes {
            user: Some(self.authorized.user()),
            verb: "initialize",
            target: Target::Resource(target),
        };
        let chain = self.chain();
        let decision = chain.authorize(&attributes, Recorder::off()).await.decision;
        match (decision.verdict, decision.error) {
            (Verdict::Allow, _) => Ok(()),
            (Verdict::Unavailable(why), _) => Err(Status::undecided(why)),
            (Verdict::Deny | Verdict::NoOpinion, Some(error)) => {
                Err(Status::internal(&error.to_string()))
            }
            (Verdict::Deny | Verdict::NoOpinion, None) => {
                let resource = self.resource.group_resource();
                Err(denied(&resource, name, &decision.reason.to_string()))
            }
        }
    }
}
