//! What a request is admitted by, and when the store is asked whether that is the newest.
//!
//! A configuration that was acknowledged must be in force for all that comes after it, at every server.
//! A request that hooks or initializers have to do with asks first: nobody is called by an old
//! configuration. Most requests are nobody's business, and asking would cost each of them a round trip.
//! So such a request supposes that this server knows the newest, and its write happens only if the mark
//! of the configuration is still where it was then. If it is not, or if nothing is written in the end,
//! the store is asked, and everything is done once more if there is something newer.

use admission::{Attributes, CreateDecision, Operation, decide_create};
use api_object::{Status, Tree};
use store::{Entry, Expect, Store};

use super::{AdmissionContext, Write};
use crate::rest::{Call, NotWritten};
use crate::standing::{AdmissionSnapshot, is_configuration, refusal};

/// What comes of an attempt to do what a request asks for.
pub(crate) enum Attempt<T> {
    /// The answer.
    Over(Result<T, Status>),
    /// Everything is done once more, with the object as it is now if that is known.
    Again(Option<Option<Entry>>),
}

impl AdmissionContext {
    /// Where the mark must be when the request writes; `None` if that does not matter.
    pub(crate) fn supposed_mark(&self) -> Option<Expect> {
        let standing = self.standing.as_ref().filter(|standing| standing.is_supposed)?;
        Some(standing.mark())
    }

    /// A request need not ask the store if a transaction found the mark where it had to be.
    pub(crate) fn confirm_mark(&mut self, is_held: bool) {
        if let Some(standing) = self.standing.as_mut().filter(|_| is_held) {
            standing.is_supposed = false;
        }
    }
}

impl<S: Store> Call<'_, S> {
    /// Finds what the request is admitted by, before anything is asked about an object.
    ///
    /// # Errors
    /// The configuration is not known well enough.
    pub(super) async fn stand(&mut self, write: &Write, tree: &Tree) -> Result<(), Status> {
        if self.admission.standing.is_none()
            && self.admission.may_suppose
            && !write.is_dry_run
            && !self.is_free()
        {
            self.admission.standing = self.server.suppose();
        }
        // An update that turns into a creation is another matter to hooks.
        let supposed = self.admission.standing.as_ref().filter(|standing| standing.is_supposed);
        if supposed.is_some_and(|standing| self.concerns_anybody(write, tree, standing)) {
            self.admission.standing = None;
        }
        self.stand_firmly(write.operation).await
    }

    /// Asks the store what the request is admitted by, unless that is known.
    ///
    /// # Errors
    /// The configuration is not known well enough.
    pub(crate) async fn stand_firmly(&mut self, operation: Operation) -> Result<(), Status> {
        if self.admission.standing.is_none() && !self.is_free() {
            let asked = self.server.stand(self.admission.deadline).await;
            let asked = asked.map_err(|unconfirmed| {
                if let Some(reason) = unconfirmed.reason() {
                    self.server.admission_metrics.count_config_refusal(reason);
                }
                let has_initializers = self.server.initialization.is_enabled;
                refusal(&unconfirmed, operation, self.resource, has_initializers)
            });
            self.admission.standing = Some(asked?);
        }
        Ok(())
    }

    /// Whether nobody is asked, whatever is configured.
    fn is_free(&self) -> bool {
        self.admission.is_internal || is_configuration(self.resource)
    }

    /// Whether a hook or an initializer has to do with a write, going by its rules.
    fn concerns_anybody(&self, write: &Write, tree: &Tree, standing: &AdmissionSnapshot) -> bool {
        let snapshot = &standing.hooks.snapshot;
        let question = self.question(write, standing);
        let attributes = question.attributes(api_object::name(tree));
        let lists = [snapshot.mutating(), snapshot.validating()];
        if lists.iter().any(|list| !list.match_hooks(&attributes).is_empty()) {
            return true;
        }
        let attributes = Attributes { object: Some(tree), ..attributes };
        let decision = decide_create(&self.server.initialization, &attributes, snapshot);
        !matches!(decision, CreateDecision::Initialized)
    }

    /// What comes of an attempt. It is made again if it depends on something that turns out to be
    /// otherwise: the object, those that it was checked against, or the configuration.
    pub(crate) async fn conclude<T>(
        &mut self,
        outcome: Result<T, NotWritten>,
        operation: Operation,
    ) -> Attempt<T> {
        let result = match outcome {
            Err(NotWritten::Changed(current)) => return Attempt::Again(Some(current)),
            Err(NotWritten::Moved) => {
                self.admission.standing = None;
                self.admission.may_suppose = false;
                return Attempt::Again(None);
            }
            Err(NotWritten::AddressTaken) => return Attempt::Again(None),
            // The store does not answer, and would not say more if it were asked.
            Err(NotWritten::Unknown(status)) => return Attempt::Over(Err(status)),
            Err(NotWritten::Failed(status)) if status.code >= 500 => {
                return Attempt::Over(Err(status));
            }
            Err(NotWritten::Failed(status)) => Err(status),
            Ok(done) => Ok(done),
        };
        let Some(supposed) = self.admission.supposed_mark() else { return Attempt::Over(result) };
        self.admission.standing = None;
        if let Err(status) = self.stand_firmly(operation).await {
            return Attempt::Over(Err(status));
        }
        match self.admission.standing.as_ref().map(AdmissionSnapshot::mark) == Some(supposed) {
            true => Attempt::Over(result),
            false => Attempt::Again(None),
        }
    }
}
