//! One request on its way through the hooks.

use std::time::Duration;

use admission::{Attributes, AuthorizerDecisions, Snapshot};
use api_object::Tree;
use authz::Authorizer;
use tokio::time::Instant;

use crate::connections::Connections;
use crate::kinds::Kinds;
use crate::observe::Observe;
use crate::record::{Notepad, Notes};
use crate::refusal::Refusal;
use crate::reinvocation::Reinvocation;
use crate::time::{CALL_TIME_MAX, Time};
use crate::{mutate, validate};

/// What one request needs to ask hooks.
#[derive(Clone, Copy)]
pub struct HookRequest<'a> {
    /// What is to be admitted.
    pub attributes: Attributes<'a>,
    /// The hooks.
    pub snapshot: &'a Snapshot,
    /// The ways to the hooks of that snapshot.
    pub connections: &'a Connections,
    /// The stored namespace of the request, if there is one. It counts only if
    /// [`HookRequest::needs_namespace`].
    pub namespace: Option<&'a Tree>,
    /// Answers what match conditions ask; without one, a condition that asks fails.
    pub authorizer: Option<&'a dyn Authorizer>,
    /// Converts objects and gives them their defaults.
    pub kinds: &'a dyn Kinds,
    /// Is told what becomes of calls.
    pub observe: &'a dyn Observe,
}

impl HookRequest<'_> {
    /// Whether some hook looks at the labels of the stored namespace, so that it is worth fetching.
    #[must_use]
    pub fn needs_namespace(&self) -> bool {
        let lists = [self.snapshot.mutating(), self.snapshot.validating()];
        let mut found = lists.into_iter().flat_map(|list| list.match_hooks(&self.attributes));
        found.any(|found| found.hook.needs_stored_namespace(&self.attributes))
    }
}

/// One request on its way through the hooks: its time, and what is remembered between phases.
#[derive(Debug)]
pub struct HookSession {
    time: Time,
    reinvocation: Reinvocation,
    notepad: Notepad,
    /// The same question is asked once, so that all hooks and rounds hear the same answer.
    decisions: AuthorizerDecisions,
}

/// What hooks make of a request. Either way there are [`Notes`].
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// It may go on.
    Allowed {
        /// The object as the hooks have left it; `None` if the operation has none.
        object: Option<Tree>,
        /// What the hooks leave behind.
        notes: Notes,
    },
    /// It may not.
    Refused {
        /// Why.
        refusal: Refusal,
        /// When.
        phase: crate::Phase,
        /// What the hooks leave behind.
        notes: Notes,
    },
}

impl HookSession {
    /// A request that must be done by the deadline.
    #[must_use]
    pub fn new(deadline: Instant) -> Self {
        Self {
            time: Time { deadline, call_max: CALL_TIME_MAX },
            reinvocation: Reinvocation::default(),
            notepad: Notepad::default(),
            decisions: AuthorizerDecisions::default(),
        }
    }

    /// The same with another limit for what a single call may take.
    #[must_use]
    pub fn call_time(self, limit: Duration) -> Self {
        Self { time: Time { call_max: limit, ..self.time }, ..self }
    }

    /// Asks the mutating hooks, one after the other, and gives the object as they leave it. Called a
    /// second time if [`HookSession::needs_another_round`], after the built-in mutators were.
    ///
    /// `object` stands for that of the attributes.
    ///
    /// # Errors
    /// [`Refusal`] if one denies the request, or must have a say and has none.
    pub async fn mutate(
        &mut self,
        asking: &HookRequest<'_>,
        object: Option<Tree>,
    ) -> Result<Option<Tree>, Refusal> {
        if self.reinvocation.needs_another_round() {
            self.reinvocation.begin_second_round(object.as_ref());
        }
        let Self { time, reinvocation, notepad, decisions } = self;
        mutate::run(asking, object, *time, reinvocation, notepad, decisions).await
    }

    /// Whether the mutating phase, built-in mutators included, must run once more.
    #[must_use]
    pub fn needs_another_round(&self) -> bool {
        self.reinvocation.needs_another_round()
    }

    /// Asks the validating hooks, all at once, about the object of the attributes.
    ///
    /// # Errors
    /// [`Refusal`] by the first in the list that denies the request, or must have a say and has
    /// none.
    pub async fn validate(&mut self, asking: &HookRequest<'_>) -> Result<(), Refusal> {
        validate::run(asking, self.time, &mut self.notepad, &mut self.decisions).await
    }

    /// What the hooks leave behind.
    #[must_use]
    pub fn into_notes(self) -> Notes {
        self.notepad.into_notes()
    }
}

/// Takes a request through all hooks, where there is nothing in between: no built-in mutators and no
/// validation of the object.
pub async fn admit(mut passage: HookSession, asking: &HookRequest<'_>) -> Admission {
    let mut object = asking.attributes.object.cloned();
    loop {
        match passage.mutate(asking, object).await {
            Ok(mutated) => object = mutated,
            Err(refusal) => {
                let phase = crate::Phase::Mutating;
                return Admission::Refused { refusal, phase, notes: passage.into_notes() };
            }
        }
        if !passage.needs_another_round() {
            break;
        }
    }
    let attributes = Attributes { object: object.as_ref(), ..asking.attributes };
    let asking = HookRequest { attributes, ..*asking };
    match passage.validate(&asking).await {
        Ok(()) => Admission::Allowed { object, notes: passage.into_notes() },
        Err(refusal) => {
            let phase = crate::Phase::Validating;
            Admission::Refused { refusal, phase, notes: passage.into_notes() }
        }
    }
}
