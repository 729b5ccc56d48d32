//! Why a write is refused when its configuration cannot be confirmed.

use std::sync::Arc;

use admission::Operation;
use api_object::{Details, Status, StatusCause};
use api_resources::Resource;
use metrics::StaleConfigRefusal;

/// Why the configuration cannot be confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FreshnessError {
    /// The store has not responded since the start of the server.
    Pending,
    /// The last confirmation is too old; the text says why there is no newer one.
    Stale(Arc<str>),
    /// The store has a newer configuration than the local snapshot.
    Behind,
    /// The deadline of the request passed first.
    DeadlineExceeded,
}

impl FreshnessError {
    /// The reason in the metrics; `None` if the client chose the deadline.
    pub(super) fn refusal_metric_reason(&self) -> Option<StaleConfigRefusal> {
        match self {
            Self::Pending => Some(StaleConfigRefusal::Pending),
            Self::Stale(_) => Some(StaleConfigRefusal::Stale),
            Self::Behind => Some(StaleConfigRefusal::Behind),
            Self::DeadlineExceeded => None,
        }
    }

    fn freshness_error_message(&self) -> &str {
        match self {
            Self::Pending => "configuration is not ready",
            Self::Stale(why) => why,
            Self::Behind => "the server has not caught up with the store",
            Self::DeadlineExceeded => "the time of the request is up",
        }
    }
}

/// The response to a write whose configuration cannot be confirmed.
pub(super) fn admission_config_not_fresh_status(
    not_fresh: &FreshnessError,
    operation: Operation,
    resource: &Resource,
    has_initializers: bool,
) -> Status {
    if *not_fresh == FreshnessError::DeadlineExceeded {
        return Status::timeout();
    }
    let why = not_fresh.freshness_error_message();
    let is_initializers = operation == Operation::Create && has_initializers;
    let (message, kind, explanation) = match (not_fresh, is_initializers) {
        (FreshnessError::Pending, true) => (
            format!("Waiting for initialization configuration to load: {why}"),
            "InitializerConfigurationPending",
            "The configuration of initializers is still being loaded, and until then nothing can \
             be created. Try again.",
        ),
        (_, true) => (
            format!("Unable to refresh the initializer configuration: {why}"),
            "InitializerConfigurationFailure",
            "The configuration of initializers could not be refreshed, and until it is nothing \
             can be created.",
        ),
        (_, false) => (
            format!("Unable to refresh the ExternalAdmissionHook configuration: {why}"),
            "ExternalAdmissionHookConfigurationFailure",
            "The configuration of admission hooks could not be refreshed, and until it is \
             nothing can be created, updated, deleted or connected to.",
        ),
    };
    let cause = StatusCause {
        reason: kind.to_owned(),
        message: explanation.to_owned(),
        field: String::new(),
    };
    let details = Details {
        name: operation.name().to_owned(),
        group: resource.group.clone(),
        kind: resource.plural.clone(),
        causes: vec![cause],
        retry_after_seconds: 1,
        ..Details::default()
    };
    Status {
        reason: "LoadingConfiguration".into(),
        message,
        details: Some(Box::new(details)),
        ..Status::internal_error("")
    }
}
