//! Rules of a server that go beyond the format. They are looked at once the format is right.

use std::collections::BTreeSet;

use authz_chain::AuthorizerType;
use authz_webhook::Connection;
use document::{Fault, Finding, Span};
use field_errors::FieldPath;

use super::load::Role;
use super::wire::{Authorizer, Configuration};

/// Rules S1 to S3.
///
/// * S1: an authorizer other than a webhook bears its type in lower case.
/// * S2: no built-in type of `required_types` is missing. A reload passes those of the start.
/// * S3: the main server does not reach webhooks through the service account of its pod.
pub(super) fn check(
    configuration: &Configuration,
    role: Role,
    required_types: &BTreeSet<AuthorizerType>,
) -> Vec<Finding> {
    let authorizers = configuration.authorizers.iter().enumerate();
    let mut findings: Vec<_> =
        authorizers.clone().filter_map(|(idx, entry)| check_name(idx, entry)).collect();
    findings.extend(check_types(configuration, required_types));
    if role == Role::Main {
        findings.extend(authorizers.filter_map(|(idx, entry)| check_connection(idx, entry)));
    }
    findings
}

fn check_name(idx: usize, entry: &Authorizer) -> Option<Finding> {
    let kind = AuthorizerType::from_name(&entry.kind.value)?;
    let expected = kind.required_authorizer_name()?;
    let name = &entry.name.value;
    if name == expected {
        return None;
    }
    let message =
        format!("expected name {expected} for authorizer {} instead of {name}", kind.name());
    let field = FieldPath::root("authorizers").index(idx).child("name").to_string();
    let span = entry.name.span.unwrap_or(entry.span);
    Some(finding(Fault::Server { field, message }, span))
}

fn check_types(
    configuration: &Configuration,
    required_types: &BTreeSet<AuthorizerType>,
) -> Option<Finding> {
    let present: BTreeSet<_> = configuration
        .authorizers
        .iter()
        .filter_map(|entry| AuthorizerType::from_name(&entry.kind.value))
        .collect();
    // The order of the types is that of their names.
    let missing: Vec<_> = required_types.difference(&present).map(|kind| kind.name()).collect();
    if missing.is_empty() {
        return None;
    }
    let message = format!("missing required types: [{}]", missing.join(" "));
    let fault = Fault::Server { field: "authorizers".to_owned(), message };
    Some(finding(fault, configuration.authorizers_span))
}

fn check_connection(idx: usize, entry: &Authorizer) -> Option<Finding> {
    let kind = &entry.webhook.as_ref()?.connection_info.kind;
    if kind.value != Connection::InClusterConfig.type_name() {
        return None;
    }
    let at = FieldPath::root("authorizers");
    let at = at.index(idx);
    let at = at.child("connectionInfo");
    let error = at.child("type").invalid(kind.value.as_str(), "not allowed in this server");
    Some(finding(Fault::Field(error), kind.span.unwrap_or(entry.span)))
}

fn finding(fault: Fault, span: Span) -> Finding {
    Finding { fault, span, hint: None, notes: Vec::new() }
}
