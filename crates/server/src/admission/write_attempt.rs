//! One attempt to write an object, and the decision whether its result is final.

use admission::{InitializersOrigin, Operation};
use admission_hooks::HookSession;
use api_object::Status;
use store::Entry;

use super::admission_config_freshness::{
    AdmissionConfigFreshness, AdmissionFreshnessRequirement, MatchingHooksAndInitializers,
    confirm_admission_config_for_write,
};
use crate::rest::{RequestContext, WarningsAndHookReports, WriteFailure};

/// The state of one attempt to write an object. A retry makes a new one.
pub(crate) struct WriteAttempt {
    admission_freshness_requirement: AdmissionFreshnessRequirement,
    /// `None` until [`super::establish_admission_config_freshness`] sets it.
    pub(super) admission_config_freshness: Option<AdmissionConfigFreshness>,
    pub(super) matching_hooks_and_initializers: MatchingHooksAndInitializers,
    /// The session with the hooks; `None` until a hook matches.
    pub(super) hook_session: Option<HookSession>,
    /// The uid of the namespace in which the request began to create an object. Retries keep it.
    pub(super) namespace_uid: Option<String>,
    /// Whether the client or the configuration chose the initializers of a new object.
    pub(super) initializers_origin: InitializersOrigin,
    /// The warnings for the client. Those of a repeated attempt are dropped.
    pub(crate) warnings: Vec<String>,
}

/// The decision about the result of an attempt.
pub(crate) enum FinalOrRetry<T> {
    /// The result of the request.
    Final(Result<T, Status>),
    /// The verb runs this attempt next.
    Retry {
        next: Box<WriteAttempt>,
        /// The stored object as the failed transaction found it; `None` if the verb has to read it.
        current: Option<Option<Entry>>,
    },
}

impl WriteAttempt {
    pub(crate) fn new(requirement: AdmissionFreshnessRequirement) -> Self {
        Self {
            admission_freshness_requirement: requirement,
            admission_config_freshness: None,
            matching_hooks_and_initializers: MatchingHooksAndInitializers::default(),
            hook_session: None,
            namespace_uid: None,
            initializers_origin: InitializersOrigin::Configuration,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn admission_freshness_requirement(&self) -> &AdmissionFreshnessRequirement {
        &self.admission_freshness_requirement
    }

    pub(super) fn set_admission_config_freshness(
        &mut self,
        freshness: AdmissionConfigFreshness,
        matching_hooks_and_initializers: MatchingHooksAndInitializers,
    ) {
        self.admission_config_freshness = Some(freshness);
        self.matching_hooks_and_initializers = matching_hooks_and_initializers;
    }

    /// Records that a transaction of this attempt verified the config revision key.
    pub(crate) fn record_admission_config_verified(&mut self) {
        self.admission_config_freshness = self
            .admission_config_freshness
            .take()
            .map(AdmissionConfigFreshness::into_confirmed_freshness);
    }

    /// Moves the reports of the hooks, and on the last attempt the warnings, into the report of the
    /// request.
    fn move_reports_and_warnings(&mut self, report: &mut WarningsAndHookReports, is_last: bool) {
        report.hook_reports.extend(self.hook_session.take().map(HookSession::into_report));
        let snapshot = self
            .admission_config_freshness
            .as_ref()
            .and_then(AdmissionConfigFreshness::admission_snapshot);
        report.admission_config_revision = snapshot.map(|snapshot| snapshot.revision);
        if is_last {
            report.warnings.append(&mut self.warnings);
        }
    }

    fn into_next_attempt(self, requirement: AdmissionFreshnessRequirement) -> Box<Self> {
        Box::new(Self { namespace_uid: self.namespace_uid, ..Self::new(requirement) })
    }

    /// Ends the only attempt of a request that stores nothing.
    pub(crate) fn report_single_attempt(mut self, report: &mut WarningsAndHookReports) {
        self.move_reports_and_warnings(report, true);
    }

    /// Decides whether the result of an attempt is final:
    ///
    /// 1. If another writer changed the object, or took its cluster IP, retry with the object as it is now.
    /// 2. If the config revision key moved, retry with a confirmed configuration.
    /// 3. If the outcome is unknown, or the server itself failed (5xx), the result is final: another read would not
    ///    help.
    /// 4. If the attempt wrote, or its configuration was confirmed, the result is final.
    /// 5. Otherwise the attempt wrote nothing and only assumed its configuration. Confirm it now. The
    ///    result is final if the config revision is the assumed one; otherwise retry with the confirmed
    ///    configuration.
    pub(crate) async fn conclude_attempt<T>(
        mut self,
        ctx: &RequestContext<'_>,
        operation: Operation,
        result: Result<T, WriteFailure>,
        report: &mut WarningsAndHookReports,
    ) -> FinalOrRetry<T> {
        let result = match result {
            Err(WriteFailure::Conflict(current)) => {
                self.move_reports_and_warnings(report, false);
                let requirement = match self.admission_config_freshness.take() {
                    Some(AdmissionConfigFreshness::Confirmed(snapshot)) => {
                        AdmissionFreshnessRequirement::Reuse(snapshot)
                    }
                    Some(
                        AdmissionConfigFreshness::Assumed(_) | AdmissionConfigFreshness::Exempt,
                    )
                    | None => self.admission_freshness_requirement.clone(),
                };
                return FinalOrRetry::Retry {
                    next: self.into_next_attempt(requirement),
                    current: Some(current),
                };
            }
            Err(WriteFailure::ConfigRevisionMoved) => {
                self.move_reports_and_warnings(report, false);
                let next = self.into_next_attempt(AdmissionFreshnessRequirement::MustConfirm);
                return FinalOrRetry::Retry { next, current: None };
            }
            Err(WriteFailure::AddressTaken) => {
                self.move_reports_and_warnings(report, false);
                let requirement = self.admission_freshness_requirement.clone();
                return FinalOrRetry::Retry {
                    next: self.into_next_attempt(requirement),
                    current: None,
                };
            }
            Err(WriteFailure::OutcomeUnknown(status)) => {
                self.move_reports_and_warnings(report, true);
                return FinalOrRetry::Final(Err(status));
            }
            Err(WriteFailure::Rejected(status)) if status.code >= 500 => {
                self.move_reports_and_warnings(report, true);
                return FinalOrRetry::Final(Err(status));
            }
            Err(WriteFailure::Rejected(status)) => Err(status),
            Ok(done) => Ok(done),
        };
        let assumed = match &self.admission_config_freshness {
            Some(AdmissionConfigFreshness::Assumed(snapshot)) => {
                snapshot.admission_config_revision()
            }
            Some(AdmissionConfigFreshness::Confirmed(_) | AdmissionConfigFreshness::Exempt)
            | None => {
                self.move_reports_and_warnings(report, true);
                return FinalOrRetry::Final(result);
            }
        };
        match confirm_admission_config_for_write(ctx, operation).await {
            Err(status) => {
                self.admission_config_freshness = None;
                self.move_reports_and_warnings(report, true);
                FinalOrRetry::Final(Err(status))
            }
            Ok(confirmed) if confirmed.admission_config_revision() == assumed => {
                self.admission_config_freshness =
                    Some(AdmissionConfigFreshness::Confirmed(confirmed));
                self.move_reports_and_warnings(report, true);
                FinalOrRetry::Final(result)
            }
            Ok(confirmed) => {
                self.move_reports_and_warnings(report, false);
                let next = self.into_next_attempt(AdmissionFreshnessRequirement::Reuse(confirmed));
                FinalOrRetry::Retry { next, current: None }
            }
        }
    }
}
