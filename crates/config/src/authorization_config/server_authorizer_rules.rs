//! Rules of a server that go beyond the format. They run after the format is valid.

use std::collections::BTreeSet;

use authz_chain::AuthorizerType;
use authz_webhook::ConnectionInfo;
use document::{Fault, Span, SpannedFault, SpannedWarning, ValidationReport, WarningCode};
use field_errors::FieldPath;

use super::load_authorization_configuration::{LoadOptions, ServerRole};
use super::unvalidated_config::{UnvalidatedAuthorizationConfiguration, UnvalidatedAuthorizer};

/// Checks the rules of the server:
///
/// 1. The name of an authorizer other than a webhook is its type in lower case.
/// 2. No built-in type of `required_authorizer_types` is missing. A reload passes the types of the startup
///    configuration.
/// 3. The main server does not reach webhooks through the service account of its pod.
/// 4. The type `ABAC` has a policy file.
pub(super) fn check_server_authorizer_rules(
    configuration: &UnvalidatedAuthorizationConfiguration,
    options: &LoadOptions<'_>,
    required_authorizer_types: &BTreeSet<AuthorizerType>,
) -> Vec<SpannedFault> {
    let authorizers = configuration.authorizers.iter().enumerate();
    let mut faults: Vec<_> =
        authorizers.clone().filter_map(|(idx, entry)| check_authorizer_name(idx, entry)).collect();
    faults.extend(check_required_authorizer_types(configuration, required_authorizer_types));
    if options.role == ServerRole::Main {
        faults.extend(
            authorizers.clone().filter_map(|(idx, entry)| refuse_in_cluster_connection(idx, entry)),
        );
    }
    if !options.has_abac_policy_file {
        faults.extend(
            authorizers.filter_map(|(idx, entry)| refuse_abac_without_policy_file(idx, entry)),
        );
    }
    faults
}

/// Warns of `AlwaysAllow` in the file of the main server. `--authorization-mode AlwaysAllow` turns anonymous
/// authentication off, and a file does not.
pub(super) fn warn_of_anonymous_access(
    configuration: &UnvalidatedAuthorizationConfiguration,
    role: ServerRole,
    report: &mut ValidationReport,
) {
    let authorizers = configuration.authorizers.iter().enumerate();
    let is_open = |entry: &UnvalidatedAuthorizer| {
        AuthorizerType::from_type_name(&entry.kind.value) == Some(AuthorizerType::AlwaysAllow)
    };
    let open = authorizers.filter(|(_, entry)| role == ServerRole::Main && is_open(entry));
    report.warnings.extend(open.map(|(idx, entry)| SpannedWarning {
        code: WarningCode::AnonymousAllowed,
        field: FieldPath::root("authorizers").index(idx).child("type").to_string(),
        message: "AlwaysAllow allows everything to requests without credentials, too".to_owned(),
        span: entry.kind.span.unwrap_or(entry.span),
        hint: Some("start the server with `--anonymous-auth=false`".to_owned()),
    }));
}

fn refuse_abac_without_policy_file(
    idx: usize,
    entry: &UnvalidatedAuthorizer,
) -> Option<SpannedFault> {
    if AuthorizerType::from_type_name(&entry.kind.value) != Some(AuthorizerType::Abac) {
        return None;
    }
    let field = FieldPath::root("authorizers").index(idx).child("type").to_string();
    let message = "type ABAC needs a policy file: set --authorization-policy-file".to_owned();
    let span = entry.kind.span.unwrap_or(entry.span);
    Some(new_server_rule_fault(Fault::Server { field, message }, span))
}

fn check_authorizer_name(idx: usize, entry: &UnvalidatedAuthorizer) -> Option<SpannedFault> {
    let kind = AuthorizerType::from_type_name(&entry.kind.value)?;
    let expected = kind.fixed_authorizer_name()?;
    let name = &entry.name.value;
    if name == expected {
        return None;
    }
    let message =
        format!("expected name {expected} for authorizer {} instead of {name}", kind.name());
    let field = FieldPath::root("authorizers").index(idx).child("name").to_string();
    let span = entry.name.span.unwrap_or(entry.span);
    Some(new_server_rule_fault(Fault::Server { field, message }, span))
}

fn check_required_authorizer_types(
    configuration: &UnvalidatedAuthorizationConfiguration,
    required_authorizer_types: &BTreeSet<AuthorizerType>,
) -> Option<SpannedFault> {
    let present: BTreeSet<_> = configuration
        .authorizers
        .iter()
        .filter_map(|entry| AuthorizerType::from_type_name(&entry.kind.value))
        .collect();
    // The order of the types is that of their names.
    let missing: Vec<_> =
        required_authorizer_types.difference(&present).map(|kind| kind.name()).collect();
    if missing.is_empty() {
        return None;
    }
    let message = format!("missing required types: [{}]", missing.join(" "));
    let fault = Fault::Server { field: "authorizers".to_owned(), message };
    Some(new_server_rule_fault(fault, configuration.authorizers_span))
}

fn refuse_in_cluster_connection(idx: usize, entry: &UnvalidatedAuthorizer) -> Option<SpannedFault> {
    let kind = &entry.webhook.as_ref()?.connection_info.kind;
    if kind.value != ConnectionInfo::InClusterConfig.connection_type_name() {
        return None;
    }
    let at = FieldPath::root("authorizers");
    let at = at.index(idx);
    let at = at.child("connectionInfo");
    let error = at.child("type").invalid(kind.value.as_str(), "not allowed in this server");
    Some(new_server_rule_fault(Fault::Field(error), kind.span.unwrap_or(entry.span)))
}

fn new_server_rule_fault(fault: Fault, span: Span) -> SpannedFault {
    SpannedFault { fault, span, hint: None, expression_issues: Vec::new() }
}
