//! The validation rules of priority levels, with the messages of Kubernetes.

use field_errors::{FieldErrors, FieldPath};
use flow_control::bootstrap_objects::{EXEMPT, mandatory_priority_levels};
use flow_control::{HASH_BITS_MAX, required_entropy_bits};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::validate_flow_schema::add_flow_control_status_faults;
use super::{bad_value_format, wire};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

const LEVEL_TYPES: &[&str] = &["Exempt", "Limited"];
const RESPONSE_TYPES: &[&str] = &["Queue", "Reject"];

const QUEUES_MAX: i32 = 10_000_000;

/// An annotation of another version of the API, which that version turns into a field.
const PRESERVE_ZERO_ANNOTATION: &str =
    "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

/// Validates a priority level with its defaults, except for its metadata. A mandatory level must have its fixed
/// spec.
#[must_use]
pub fn validate_priority_level(tree: &Map<String, Value>) -> FieldErrors {
    let object = match wire::FlowControlObject::<wire::PriorityLevelSpec>::deserialize(tree) {
        Ok(object) => object,
        Err(error) => return FieldPath::NOWHERE.internal(&error.to_string()).into(),
    };
    let mut errors = FieldErrors::new();
    if has_preserve_zero_annotation(tree) {
        let detail = format!("annotation '{PRESERVE_ZERO_ANNOTATION}' is forbidden");
        errors.push(FieldPath::root("metadata").child("annotations").forbidden(&detail));
    }
    let (name, spec) = (&object.metadata.name, &object.spec);
    errors.append(priority_level_value_faults(name, spec));
    validate_mandatory_level_spec(name, spec, &mut errors);
    add_flow_control_status_faults(&object.status, &mut errors);
    errors.append(union_member_faults(spec));
    errors
}

/// Validates the status of a priority level.
#[must_use]
pub fn validate_priority_level_status(tree: &Map<String, Value>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    match wire::FlowControlObject::<wire::PriorityLevelSpec>::deserialize(tree) {
        Ok(object) => add_flow_control_status_faults(&object.status, &mut errors),
        Err(error) => errors.push(FieldPath::NOWHERE.internal(&error.to_string())),
    }
    errors
}

/// The faults of a spec, whether the level is mandatory or not.
pub(super) fn priority_level_spec_faults(
    name: &str,
    spec: &wire::PriorityLevelSpec,
) -> FieldErrors {
    let mut errors = priority_level_value_faults(name, spec);
    errors.append(union_member_faults(spec));
    errors
}

fn has_preserve_zero_annotation(tree: &Map<String, Value>) -> bool {
    let annotations = tree.get("metadata").and_then(|metadata| metadata.get("annotations"));
    annotations.is_some_and(|annotations| annotations.get(PRESERVE_ZERO_ANNOTATION).is_some())
}

/// Checks that a mandatory level has its fixed spec. Only `spec.exempt` of the level `exempt` may
/// differ.
fn validate_mandatory_level_spec(
    name: &str,
    spec: &wire::PriorityLevelSpec,
    errors: &mut FieldErrors,
) {
    let levels = mandatory_priority_levels();
    let Some(level) = levels.iter().find(|own| own.priority_level.name == name) else { return };
    let mut want = wire::PriorityLevelSpec::from(level);
    let mut except = "";
    if name == EXEMPT {
        want.exempt.clone_from(&spec.exempt);
        except = " except the 'spec.exempt' field";
    }
    if want != *spec {
        let detail = format!("spec of '{name}'{except} must equal the fixed value");
        errors.push(SPEC.invalid(bad_value_format::priority_level_spec_bad_value(spec), &detail));
    }
}

/// Finds the invalid values in the spec of a priority level.
fn priority_level_value_faults(name: &str, spec: &wire::PriorityLevelSpec) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (at, level_type) = (SPEC.child("type"), spec.level_type.as_str());
    if (name == EXEMPT) != (level_type == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(at.invalid(level_type, detail));
    }
    match (level_type, &spec.limited, &spec.exempt) {
        ("Exempt", _, Some(exempt)) => {
            let at = SPEC.child("exempt");
            if let Some(shares) = exempt.nominal_concurrency_shares {
                validate_concurrency_shares(shares, &at, &mut errors);
            }
            validate_lendable_percent(exempt.lendable_percent, &at, &mut errors);
        }
        ("Limited", Some(limited), _) => {
            validate_limited_level(limited, &SPEC.child("limited"), &mut errors);
        }
        // `union_member_faults` reports the missing member.
        ("Exempt" | "Limited" | "", _, _) => {}
        (level_type, _, _) => errors.push(at.not_supported(level_type, LEVEL_TYPES)),
    }
    errors
}

fn validate_limited_level(
    limited: &wire::LimitedPriorityLevel,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_concurrency_shares(limited.nominal_concurrency_shares, at, errors);
    let response = &limited.limit_response;
    let response_path = at.child("limitResponse");
    match (response.response_type.as_str(), &response.queuing) {
        ("Queue", Some(queuing)) => {
            validate_queuing(queuing, &response_path.child("queuing"), errors);
        }
        // `union_member_faults` reports the missing member.
        ("Queue" | "Reject" | "", _) => {}
        (response_type, _) => {
            let at = response_path.child("type");
            errors.push(at.not_supported(response_type, RESPONSE_TYPES));
        }
    }
    validate_lendable_percent(limited.lendable_percent, at, errors);
    if let Some(percent) = limited.borrowing_limit_percent.filter(|percent| *percent < 0) {
        let detail = "if specified, must be a non-negative integer";
        errors.push(
            at.child("borrowingLimitPercent")
                .invalid(bad_value_format::number_bad_value(percent), detail),
        );
    }
}

fn validate_concurrency_shares(shares: i32, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    if shares < 0 {
        let at = at.child("nominalConcurrencyShares");
        errors.push(
            at.invalid(
                bad_value_format::number_bad_value(shares),
                "must be a non-negative integer",
            ),
        );
    }
}

fn validate_lendable_percent(percent: Option<i32>, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(percent) = percent.filter(|percent| !(0..=100).contains(percent)) {
        let at = at.child("lendablePercent");
        errors.push(at.invalid(
            bad_value_format::number_bad_value(percent),
            "must be between 0 and 100, inclusive",
        ));
    }
}

fn validate_queuing(
    queuing: &wire::QueuingConfiguration,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let wire::QueuingConfiguration { queues, hand_size, queue_length_limit } = *queuing;
    let mut refuse = |member: &str, value: i32, detail: &str| {
        errors.push(at.child(member).invalid(bad_value_format::number_bad_value(value), detail));
    };
    if queue_length_limit <= 0 {
        refuse("queueLengthLimit", queue_length_limit, "must be positive");
    }
    if queues <= 0 {
        refuse("queues", queues, "must be positive");
    } else if queues > QUEUES_MAX {
        refuse("queues", queues, &format!("must not be greater than {QUEUES_MAX}"));
    }
    if hand_size <= 0 {
        refuse("handSize", hand_size, "must be positive");
    } else if hand_size > queues {
        let detail = format!("should not be greater than queues ({queues})");
        refuse("handSize", hand_size, &detail);
    } else if required_entropy_bits(queues.unsigned_abs(), hand_size.unsigned_abs()) > HASH_BITS_MAX
    {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand_size} should not be \
             greater than {HASH_BITS_MAX}"
        );
        refuse("handSize", hand_size, &detail);
    }
}

/// Returns the faults of members that the type of the level, or of its limit response, requires or
/// forbids. Kubernetes generates these checks and reports them last, without a detail.
fn union_member_faults(spec: &wire::PriorityLevelSpec) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if spec.level_type != "Exempt" && spec.exempt.is_some() {
        errors.push(SPEC.child("exempt").forbidden(""));
    }
    let limited = SPEC.child("limited");
    match (spec.level_type.as_str(), &spec.limited) {
        ("Limited", None) => errors.push(limited.required("")),
        ("Limited", Some(_)) | (_, None) => {}
        (_, Some(_)) => errors.push(limited.forbidden("")),
    }
    if spec.level_type.is_empty() {
        errors.push(SPEC.child("type").required(""));
    }
    if let Some(wire::LimitedPriorityLevel { limit_response, .. }) = &spec.limited {
        let at = limited.child("limitResponse");
        match (limit_response.response_type.as_str(), &limit_response.queuing) {
            ("Queue", None) => errors.push(at.child("queuing").required("")),
            ("Queue", Some(_)) | (_, None) => {}
            (_, Some(_)) => errors.push(at.child("queuing").forbidden("")),
        }
        if limit_response.response_type.is_empty() {
            errors.push(at.child("type").required(""));
        }
    }
    errors
}
