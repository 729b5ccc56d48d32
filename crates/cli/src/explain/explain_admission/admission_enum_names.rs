//! The spelling of enum values in admission configurations.

use admission::{FailurePolicy, ReviewVersion, SideEffects};
use admission_hooks::Phase;

pub(super) fn admission_phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Mutating => "mutating",
        Phase::Validating => "validating",
    }
}

pub(super) fn failure_policy_name(policy: FailurePolicy) -> &'static str {
    match policy {
        FailurePolicy::Ignore => "Ignore",
        FailurePolicy::Fail => "Fail",
    }
}

pub(super) fn review_version_name(version: ReviewVersion) -> &'static str {
    match version {
        ReviewVersion::V1alpha1 => "v1alpha1",
        ReviewVersion::V1beta1 => "v1beta1",
        ReviewVersion::V1 => "v1",
    }
}

pub(super) fn side_effects_name(effects: SideEffects) -> &'static str {
    match effects {
        SideEffects::None => "None",
        SideEffects::NoneOnDryRun => "NoneOnDryRun",
        SideEffects::Some => "Some",
        SideEffects::Unknown => "Unknown",
    }
}
