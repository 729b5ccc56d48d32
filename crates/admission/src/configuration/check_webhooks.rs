//! Validation of `v1` webhooks, in the order in which Kubernetes reports errors.

use std::collections::HashSet;

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use super::check_names::{DuplicateNameChecker, check_qualified_name, go_string_list};
use super::configuration_kind::ConfigurationKind;
use super::ratcheting::UpdateRatchet;
use super::{check_client_config, check_conditions, check_rules, check_selectors};
use crate::hook::ReviewVersion;
use crate::json_members::{read_object, read_string, read_strings};
use crate::match_conditions::ConditionCompiler;
use crate::request_matching::RuleDialect;

// Values are sorted as messages list them.
pub(super) const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
pub(super) const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const TIMEOUT_SECONDS_MAX: i64 = 30;

pub(super) fn check_webhooks(
    kind: ConfigurationKind,
    webhooks: &[&Tree],
    strictness: &UpdateRatchet<'_>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let mut compiler = ConditionCompiler::default();
    let mut seen = DuplicateNameChecker::default();
    for (idx, webhook) in webhooks.iter().enumerate() {
        let at = at.index(idx);
        let name = read_string(webhook, "name").unwrap_or_default();
        check_qualified_name(name, &at.child("name"), errors);
        check_rules::check_rules(webhook, RuleDialect::V1, &at, errors);
        check_supported_value(webhook, "failurePolicy", &FAILURE_POLICIES, &at, errors);
        check_supported_value(webhook, "matchPolicy", &MATCH_POLICIES, &at, errors);
        check_side_effects(webhook, strictness, &at, errors);
        check_timeout(webhook, &at, errors);
        for member in check_selectors::SELECTOR_MEMBERS {
            if let Some(selector) = read_object(webhook, member) {
                let checks_values = strictness.checks_label_values;
                check_selectors::check_selector(selector, checks_values, &at.child(member), errors);
            }
        }
        if kind == ConfigurationKind::Mutating {
            check_supported_value(
                webhook,
                "reinvocationPolicy",
                &REINVOCATION_POLICIES,
                &at,
                errors,
            );
        }
        check_client_config::check_client_config(webhook, &at, errors);
        if strictness.checks_match_conditions {
            check_conditions::check_match_conditions(
                webhook,
                strictness,
                &mut compiler,
                &at,
                errors,
            );
        }
        check_review_versions(webhook, strictness, &at, errors);
        if strictness.requires_unique_names {
            seen.check_unique_name(name, &at.child("name"), errors);
        }
    }
}

/// Checks a member that may be absent but has one of a closed set of values otherwise.
pub(super) fn check_supported_value(
    entry: &Tree,
    member: &str,
    supported: &[&str],
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if let Some(value) = read_string(entry, member)
        && !supported.contains(&value)
    {
        errors.push(at.child(member).not_supported(value, supported));
    }
}

fn check_side_effects(
    webhook: &Tree,
    strictness: &UpdateRatchet<'_>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let allowed: &[&str] =
        if strictness.forbids_side_effects { &NO_SIDE_EFFECTS } else { &SIDE_EFFECTS };
    if read_string(webhook, "sideEffects").is_none() {
        let detail = format!("must specify one of {}", allowed.join(", "));
        errors.push(at.child("sideEffects").required(&detail));
    }
    check_supported_value(webhook, "sideEffects", allowed, at, errors);
}

fn check_timeout(webhook: &Tree, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(seconds) = webhook.get("timeoutSeconds").and_then(Value::as_i64)
        && !(1..=TIMEOUT_SECONDS_MAX).contains(&seconds)
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(at.child("timeoutSeconds").invalid(seconds, detail));
    }
}

fn check_review_versions(
    webhook: &Tree,
    strictness: &UpdateRatchet<'_>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = at.child("admissionReviewVersions");
    let versions = read_strings(webhook, "admissionReviewVersions");
    if versions.is_empty() {
        errors.push(at.required("must specify one of v1, v1beta1"));
        return;
    }
    let mut seen = HashSet::new();
    for (idx, version) in versions.iter().enumerate() {
        let at = at.index(idx);
        if !seen.insert(*version) {
            errors.push(at.invalid(*version, "duplicate version"));
            continue;
        }
        errors.extend(dns1035_faults(version).iter().map(|fault| at.invalid(*version, fault)));
    }
    let is_known = |version: &&str| ReviewVersion::parse_v1_review_version(version).is_some();
    if strictness.requires_known_review_version && !versions.iter().any(is_known) {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(at.invalid(go_string_list(&versions), detail));
    }
}

/// The maximum length of a DNS-1035 label in bytes.
const DNS1035_LABEL_BYTES_MAX: usize = 63;

/// Lists why a text is not a DNS-1035 label.
fn dns1035_faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > DNS1035_LABEL_BYTES_MAX {
        faults.push(format!("must be no more than {DNS1035_LABEL_BYTES_MAX} characters"));
    }
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = text.bytes().all(is_inner)
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
        && text.bytes().next_back().is_some_and(|byte| byte != b'-');
    if !is_label {
        let syntax = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
             start with an alphabetic character, and end with an alphanumeric character (e.g. \
             'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
        faults.push(syntax.to_owned());
    }
    faults
}
