//! What may enter: the two steps of admission.
//!
//! The first may change the object: initializers are assigned, the server's own rules are asked, and
//! then the mutating hooks, all of it a second time if a hook changed what others have seen. The
//! second may only refuse. One state of the configuration holds for a request in both, see
//! [`AdmissionSnapshot`].

mod attributes;
mod built_in;
mod escalation;
mod guards;
mod kinds;
mod owner_references;
mod stand;

use std::sync::OnceLock;
use std::time::Instant as Clock;

use admission::{Attributes, EquivalentResource, InitializersOrigin, Operation};
use admission_hooks::{HookRequest, HookSession, Kinds, Notes, Phase};
use api_object::{Status, Tree};
use api_resources::{Resource, equivalents};
use authz::User;
use https_server::InFlightPermit;
use metrics::AdmissionMetrics;
use store::Store;
use tokio::time::Instant;

use self::kinds::Served;
use crate::authorize::AskChain;
use crate::cluster_snapshot::Namespace;
use crate::gate::Admitted;
use crate::rest::{Call, Shown};
use crate::standing::AdmissionSnapshot;
use crate::write_progress::WriteProgress;

pub(crate) use self::attributes::Write;
pub(crate) use self::stand::Attempt;

/// A request on its way through admission.
pub(crate) struct AdmissionContext {
    /// When it must be done.
    pub(crate) deadline: Instant,
    /// The server's own doing, which nobody is asked about.
    pub(crate) is_internal: bool,
    /// What it is admitted by; found when the first object comes.
    pub(crate) standing: Option<AdmissionSnapshot>,
    /// The store makes sure of what it is admitted by when it is written.
    pub(crate) may_suppose: bool,
    /// Who chose the initializers of a new object.
    pub(crate) origin: InitializersOrigin,
    /// The uid of the namespace in which the request began to create an object.
    pub(crate) namespace_uid: OnceLock<String>,
    /// The room that the request takes while it is worked on.
    pub(crate) permit: Option<InFlightPermit>,
    /// Set when the first write begins. Each object of a deletecollection has its own, because the
    /// deadline may end the collection between two objects.
    pub(crate) write_progress: WriteProgress,
    passage: Option<HookSession>,
    notes: Vec<Notes>,
}

impl AdmissionContext {
    pub(crate) fn new(deadline: Instant) -> Self {
        Self {
            deadline,
            is_internal: false,
            standing: None,
            may_suppose: false,
            origin: InitializersOrigin::Configuration,
            namespace_uid: OnceLock::new(),
            permit: None,
            write_progress: WriteProgress::default(),
            passage: None,
            notes: Vec::new(),
        }
    }

    /// For another object of the same request, which is admitted by the configuration of its own
    /// moment: a collection may take long to delete.
    pub(crate) fn beside(&self) -> Self {
        Self { is_internal: self.is_internal, ..Self::new(self.deadline) }
    }

    /// What hooks have left behind so far. Attempts that came to nothing have their say, too.
    pub(crate) fn take_notes(&mut self) -> Vec<Notes> {
        self.notes.extend(self.passage.take().map(HookSession::into_notes));
        std::mem::take(&mut self.notes)
    }

    pub(crate) fn add_notes(&mut self, notes: Vec<Notes>) {
        self.notes.extend(notes);
    }
}

impl<'a, S: Store> Call<'a, S> {
    /// The first step, which may change the object. The tree of a deletion is what goes.
    pub(crate) async fn admit_mutating(
        &mut self,
        write: &Write,
        tree: Tree,
        old: Option<&Tree>,
    ) -> Result<Tree, Status> {
        let begun = Clock::now();
        let outcome = self.mutate(write, tree, old).await;
        let metrics = &self.server.admission_metrics;
        metrics.record_phase(Phase::Mutating, write.operation, begun.elapsed(), outcome.is_err());
        outcome
    }

    async fn mutate(
        &mut self,
        write: &Write,
        mut tree: Tree,
        old: Option<&Tree>,
    ) -> Result<Tree, Status> {
        self.stand(write, &tree).await?;
        self.check_namespace(write.operation, &tree).await?;
        self.settle_initializers(write, &mut tree, old).await?;
        let notes = self.admission.take_notes();
        self.admission.add_notes(notes);
        let Some(standing) = self.admission.standing.clone() else { return Ok(tree) };
        let is_deletion = write.operation == Operation::Delete;
        let list = standing.hooks.snapshot.mutating();
        if list.hooks().is_empty() {
            return Ok(tree);
        }
        let mut question = self.question(write, &standing);
        question.kinds.old = old;
        // Hooks are told the name that the request has, which none of them changes.
        let name = api_object::name(&tree).to_owned();
        if list.match_hooks(&question.attributes(&name)).is_empty() {
            return Ok(tree);
        }
        if !is_deletion {
            tree = question.kinds.settle(tree, &question.attributes("").kind).map_err(bad_shape)?;
        }
        let stored = old;
        let former = if is_deletion { Some(&tree) } else { old };
        let old = former.map(|former| self.as_read(former, write));
        let object = (!is_deletion).then_some(&tree);
        question.find_namespace(self, &name, object, old.as_ref()).await?;
        let begun = Clock::now();
        let mut passage = self.passage();
        let asking = question.asking(&name, None, old.as_ref());
        let outcome = self.run_rounds(&asking, &mut passage, tree).await;
        self.admission.passage = Some(passage);
        let (metrics, name) = (&self.server.admission_metrics, "MutatingAdmissionWebhook");
        let is_refused = outcome.is_err();
        let took = begun.elapsed();
        metrics.record_controller(name, Phase::Mutating, write.operation, took, is_refused);
        let mut tree = outcome?;
        self.resettle_initializers(write, &mut tree, stored)?;
        Ok(tree)
    }

    /// Asks the mutating hooks, and again if one has changed what others have seen.
    async fn run_rounds(
        &self,
        asking: &HookRequest<'_>,
        passage: &mut HookSession,
        mut tree: Tree,
    ) -> Result<Tree, Status> {
        let operation = asking.attributes.operation;
        loop {
            let object = (operation != Operation::Delete).then(|| std::mem::take(&mut tree));
            if let Some(next) = passage.mutate(asking, object).await? {
                tree = next;
            }
            if !passage.needs_another_round() {
                return Ok(tree);
            }
            self.check_namespace(operation, &tree).await?;
        }
    }

    /// The second step, which may only refuse. The tree of a deletion is what goes.
    pub(crate) async fn admit_validating(
        &mut self,
        write: &Write,
        tree: Tree,
        old: Option<&Tree>,
    ) -> Result<Admitted, Status> {
        let begun = Clock::now();
        let outcome = self.validate(write, &tree, old).await;
        let metrics = &self.server.admission_metrics;
        metrics.record_phase(Phase::Validating, write.operation, begun.elapsed(), outcome.is_err());
        outcome.map(|()| Admitted::new(tree))
    }

    async fn validate(
        &mut self,
        write: &Write,
        tree: &Tree,
        old: Option<&Tree>,
    ) -> Result<(), Status> {
        self.stand_firmly(write.operation).await?;
        if write.operation == Operation::Create && write.subresource.is_empty() {
            self.check_definition(tree)?;
        }
        let Some(standing) = self.admission.standing.clone() else { return Ok(()) };
        let list = standing.hooks.snapshot.validating();
        if list.hooks().is_empty() {
            return Ok(());
        }
        let name = api_object::name(tree);
        let mut question = self.question(write, &standing);
        if list.match_hooks(&question.attributes(name)).is_empty() {
            return Ok(());
        }
        let seen = self.as_read(tree, write);
        let former = old.map(|old| self.as_read(old, write));
        let (object, old) = match write.operation {
            Operation::Delete => (None, Some(&seen)),
            _ => (Some(&seen), former.as_ref()),
        };
        question.find_namespace(self, name, object, old).await?;
        let begun = Clock::now();
        let mut passage = self.admission.passage.take().unwrap_or_else(|| self.passage());
        let outcome = passage.validate(&question.asking(name, object, old)).await;
        self.admission.passage = Some(passage);
        let (metrics, name) = (&self.server.admission_metrics, "ValidatingAdmissionWebhook");
        let took = begun.elapsed();
        metrics.record_controller(name, Phase::Validating, write.operation, took, outcome.is_err());
        Ok(outcome?)
    }

    /// The way of this request through the hooks.
    fn passage(&self) -> HookSession {
        HookSession::new(self.admission.deadline).call_time(self.server.call_time_max)
    }

    /// An object as clients read it: with the version that it has in the store.
    fn as_read(&self, tree: &Tree, write: &Write) -> Tree {
        Shown { tree: tree.clone(), revision: write.revision }.into_tree()
    }

    fn question<'q>(&self, write: &'q Write, standing: &'q AdmissionSnapshot) -> Question<'q>
    where
        'a: 'q,
    {
        let registry = &standing.cluster.registry;
        Question {
            write,
            standing,
            resource: self.resource,
            namespace: self.namespace.unwrap_or_default(),
            equivalents: equivalents(registry, self.resource, &write.subresource),
            kinds: Served {
                registry,
                operation: write.operation,
                resource: self.resource,
                subresource: &write.subresource,
                user: self.authorized.user(),
                old: None,
            },
            observe: self.server.admission_metrics.as_ref(),
            user: self.authorized.user(),
            chain: AskChain(self.chain()),
            facts: None,
        }
    }
}

/// What hooks are asked.
struct Question<'q> {
    write: &'q Write,
    standing: &'q AdmissionSnapshot,
    resource: &'q Resource,
    namespace: &'q str,
    equivalents: Vec<EquivalentResource<'q>>,
    kinds: Served<'q>,
    observe: &'q AdmissionMetrics,
    user: &'q User,
    /// Answers what match conditions ask.
    chain: AskChain,
    /// The namespace, if somebody looks at its labels.
    facts: Option<Namespace>,
}

impl Question<'_> {
    fn attributes<'a>(&'a self, name: &'a str) -> Attributes<'a> {
        let Self { write, resource, namespace, equivalents, user, .. } = self;
        let attributes = write.attributes(resource, namespace, name, equivalents);
        Attributes { user: Some(user), ..attributes }
    }

    fn asking<'a>(
        &'a self,
        name: &'a str,
        object: Option<&'a Tree>,
        old_object: Option<&'a Tree>,
    ) -> HookRequest<'a> {
        HookRequest {
            attributes: Attributes { object, old_object, ..self.attributes(name) },
            snapshot: &self.standing.hooks.snapshot,
            connections: &self.standing.hooks.connections,
            namespace: self.facts.as_ref().map(|facts| facts.name_and_labels.as_ref()),
            authorizer: Some(&self.chain),
            kinds: &self.kinds,
            observe: self.observe,
        }
    }

    /// Looks up the namespace if some hook looks at its labels.
    async fn find_namespace<S: Store>(
        &mut self,
        call: &Call<'_, S>,
        name: &str,
        object: Option<&Tree>,
        old: Option<&Tree>,
    ) -> Result<(), Status> {
        let namespace = {
            let asking = self.asking(name, object, old);
            asking.needs_namespace().then(|| asking.attributes.namespace.to_owned())
        };
        if let Some(namespace) = namespace {
            self.facts = call.namespace_facts(&namespace).await?;
        }
        Ok(())
    }
}

fn bad_shape(why: String) -> Status {
    Status::bad_request(why)
}
