//! What the server itself says about what enters: the life of namespaces and definitions.

use admission::Operation;
use api_object::{Cause, GroupResource, Status, Tree};
use api_resources::{Origin, Resource};
use store::Store;

use crate::cluster_snapshot::{Namespace, NamespacePhase};
use crate::rest::Call;

/// Namespaces that always exist.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];

impl<S: Store> Call<'_, S> {
    /// Custom objects are made only while their definition stays. The newest picture is asked, for
    /// the definition may have begun to go since the request found its resource.
    pub(crate) fn check_definition(&self, tree: &Tree) -> Result<(), Status> {
        let Resource { group, version, plural, origin: Origin::Custom(begun), .. } = self.resource
        else {
            return Ok(());
        };
        let cluster = self.server.snapshot_cache.snapshot();
        let origin = cluster.registry.resource(group, version, plural).map(|own| &own.origin);
        match origin {
            Some(Origin::Custom(served))
                if !served.is_terminating && served.definition_uid == begun.definition_uid =>
            {
                Ok(())
            }
            Some(Origin::Custom(_) | Origin::BuiltIn(_)) | None => Err(self.undefined(tree)),
        }
    }

    /// The answer to a create whose definition ends or is gone.
    pub(crate) fn undefined(&self, tree: &Tree) -> Status {
        let why = "create not allowed while custom resource definition is terminating";
        Status::forbidden(&self.resource.group_resource(), api_object::name(tree), why)
    }

    /// Things are made only in namespaces that exist and stay.
    pub(super) async fn check_namespace(
        &self,
        operation: Operation,
        tree: &Tree,
    ) -> Result<(), Status> {
        let resource = self.resource.group_resource();
        let name = api_object::name(tree);
        if operation == Operation::Delete
            && resource == GroupResource::new("", "namespaces")
            && IMMORTAL_NAMESPACES.contains(&name)
        {
            return Err(Status::forbidden(&resource, name, "this namespace may not be deleted"));
        }
        let Some(namespace) = self.namespace else { return Ok(()) };
        if operation != Operation::Create || !self.resource.is_namespaced() {
            return Ok(());
        }
        let facts = self.namespace_facts(namespace).await?;
        // The request was authorized for the namespace that was there then.
        let begun = self.authorized.snapshot().namespaces.get(namespace).or(facts.as_ref());
        if let Some(begun) = begun {
            self.admission.namespace_uid.get_or_init(|| begun.uid.clone());
        }
        self.check_namespace_facts(facts.as_ref(), tree)
    }

    /// Whether an object may be made in the namespace of the request, which is in this state.
    ///
    /// # Errors
    /// 404 if it does not exist, 403 if it ends, 409 if it is another one than when the request began.
    pub(crate) fn check_namespace_facts(
        &self,
        facts: Option<&Namespace>,
        tree: &Tree,
    ) -> Result<(), Status> {
        let namespace = self.namespace.unwrap_or_default();
        let (resource, name) = (self.resource.group_resource(), api_object::name(tree));
        let is_usable = |facts: &&Namespace| facts.phase != NamespacePhase::Uninitialized;
        let Some(facts) = facts.filter(is_usable) else {
            return Err(Status::not_found(&GroupResource::new("", "namespaces"), namespace));
        };
        if self.admission.namespace_uid.get().is_some_and(|uid| *uid != facts.uid) {
            let why = format!(
                "namespace {namespace} was deleted and created again while the request was under \
                 way; please try again"
            );
            return Err(Status::conflict(&resource, name, &why));
        }
        match facts.phase {
            NamespacePhase::Active | NamespacePhase::Uninitialized => Ok(()),
            NamespacePhase::Terminating => {
                let why = format!(
                    "unable to create new content in namespace {namespace} because it is being \
                     terminated"
                );
                let mut status = Status::forbidden(&resource, name, &why);
                if let Some(details) = &mut status.details {
                    details.causes.push(Cause {
                        reason: "NamespaceTerminating".to_owned(),
                        message: format!("namespace {namespace} is being terminated"),
                        field: "metadata.namespace".to_owned(),
                    });
                }
                Err(status)
            }
        }
    }

    /// The facts about a namespace. The cluster may be behind another server, so a namespace that is
    /// missing or uninitialized there is looked up once more in the newest state.
    pub(super) async fn namespace_facts(&self, name: &str) -> Result<Option<Namespace>, Status> {
        let snapshot_cache = &self.server.snapshot_cache;
        if let Some(own) = snapshot_cache.snapshot().namespaces.get(name)
            && own.phase != NamespacePhase::Uninitialized
        {
            return Ok(Some(own.clone()));
        }
        let current = self.server.store.current_rev().await;
        let current = current.map_err(|error| self.read_failed("create", &error))?;
        snapshot_cache.wait_for(current).await;
        Ok(snapshot_cache.snapshot().namespaces.get(name).cloned())
    }
}
