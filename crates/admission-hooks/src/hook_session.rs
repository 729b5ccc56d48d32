//! The state of one write while its hooks are called.

use std::time::Duration;

use admission::{Attributes, AuthorizerDecisions, HookMatch, MatchedHooks};
use api_object::Tree;
use authz::Authorizer;
use concurrency_limit::LongComputationFlag;
use tokio::time::Instant;

use crate::call_timeout::{CALL_TIME_MAX, SessionDeadline};
use crate::hook_connections::HookConnections;
use crate::hook_observer::{HookObserver, Phase};
use crate::hook_refusal::HookRefusal;
use crate::object_converter::ObjectConverter;
use crate::reinvocation::ReinvocationState;
use crate::session_report::{SessionReport, SessionReportBuilder};
use crate::{mutating_hooks, validating_hooks};

/// Everything that a session needs to call hooks about one write.
#[derive(Clone, Copy)]
pub struct HookRequest<'a> {
    /// The write that hooks review.
    pub attributes: Attributes<'a>,
    /// The hooks whose rules match these attributes. One value serves both phases and all rounds of a write:
    /// rules match on the operation, the resource, the subresource and the scope, which no mutating hook can
    /// change. The session evaluates label selectors and match conditions when it is about to call a hook,
    /// because they depend on the object.
    pub matched_hooks: &'a MatchedHooks,
    /// The connections to the hooks of the snapshot in which these were matched.
    pub hook_connections: &'a HookConnections,
    /// The stored namespace of the request, if there is one. Hooks see it only if
    /// [`HookRequest::needs_stored_namespace`].
    pub namespace: Option<&'a Tree>,
    /// Decides `authorizer` checks of match conditions. Without one, a condition with such a check fails.
    pub authorizer: Option<&'a dyn Authorizer>,
    /// Converts objects between versions and applies their defaults.
    pub object_converter: &'a dyn ObjectConverter,
    /// Receives a report of each call.
    pub hook_observer: &'a dyn HookObserver,
    /// A flag that tells the caller to wait for a CPU slot, because the write evaluates match conditions that take
    /// long.
    pub long_computation_flag: Option<&'a LongComputationFlag>,
}

impl HookRequest<'_> {
    /// Whether a matched hook of the phase selects by the labels of the stored namespace, so that the
    /// caller has to look the namespace up.
    #[must_use]
    pub fn needs_stored_namespace(&self, phase: Phase) -> bool {
        let needs = |found: HookMatch<'_, '_>| found.hook.needs_stored_namespace(&self.attributes);
        match phase {
            Phase::Mutating => self.matched_hooks.mutating_hooks(&self.attributes).any(needs),
            Phase::Validating => self.matched_hooks.validating_hooks(&self.attributes).any(needs),
        }
    }
}

/// The state of one write between its calls of hooks: its deadline, the hooks to call again, and the
/// report.
#[derive(Debug)]
pub struct HookSession {
    deadline: SessionDeadline,
    reinvocation_state: ReinvocationState,
    report_builder: SessionReportBuilder,
    /// Each distinct `authorizer` check is decided once, so that all hooks and rounds get the same answer.
    authorizer_decisions: AuthorizerDecisions,
}

impl HookSession {
    /// Creates a session for a request that has to end by the deadline.
    #[must_use]
    pub fn new(deadline: Instant) -> Self {
        Self {
            deadline: SessionDeadline { at: deadline, call_duration_max: CALL_TIME_MAX },
            reinvocation_state: ReinvocationState::default(),
            report_builder: SessionReportBuilder::default(),
            authorizer_decisions: AuthorizerDecisions::default(),
        }
    }

    /// Replaces the limit on the duration of a single call.
    #[must_use]
    pub fn with_call_duration_max(self, call_time_max: Duration) -> Self {
        Self {
            deadline: SessionDeadline { call_duration_max: call_time_max, ..self.deadline },
            ..self
        }
    }

    /// Calls the mutating hooks one after the other and returns the object as they leave it. The caller
    /// calls this a second time if [`HookSession::needs_another_round`], after the built-in mutators ran
    /// again.
    ///
    /// `object` takes the place of the object of the attributes.
    ///
    /// # Errors
    /// [`HookRefusal`] if a hook denies the request, or if a hook that must not be skipped could not be called.
    pub async fn call_mutating_hooks(
        &mut self,
        request: &HookRequest<'_>,
        object: Option<Tree>,
    ) -> Result<Option<Tree>, HookRefusal> {
        if self.reinvocation_state.needs_another_round() {
            self.reinvocation_state.begin_second_round(object.as_ref());
        }
        let Self {
            deadline,
            reinvocation_state: reinvocation,
            report_builder: report,
            authorizer_decisions: decisions,
        } = self;
        mutating_hooks::run_mutating_round(
            request,
            object,
            *deadline,
            reinvocation,
            report,
            decisions,
        )
        .await
    }

    /// Whether the mutating phase, built-in mutators included, must run once more.
    #[must_use]
    pub fn needs_another_round(&self) -> bool {
        self.reinvocation_state.needs_another_round()
    }

    /// Calls the validating hooks, all at once, about the object of the attributes.
    ///
    /// # Errors
    /// [`HookRefusal`] by the first hook in the list that denies the request, or that must not be skipped and
    /// could not be called.
    pub async fn validate(&mut self, request: &HookRequest<'_>) -> Result<(), HookRefusal> {
        validating_hooks::call_validating_hooks(
            request,
            self.deadline,
            &mut self.report_builder,
            &mut self.authorizer_decisions,
        )
        .await
    }

    /// Ends the session and returns its warnings, audit annotations and hook events.
    #[must_use]
    pub fn into_report(self) -> SessionReport {
        self.report_builder.build()
    }
}
