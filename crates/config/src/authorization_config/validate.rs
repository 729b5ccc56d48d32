//! The rules that hold in every server, and the conversion that passing them is.
//!
//! The numbers are those of the specification's table. All rules are looked at and all faults
//! reported, in the order of the file and then of the table.

use std::collections::BTreeSet;
use std::path::Path;

use authz_chain::{Authorizer, AuthorizerName, AuthorizerType, Webhook};
use authz_webhook::ConditionCompiler;
use document::Report;
use document::hint::suggestion;
use field_errors::FieldPath;

use super::probe::FileState;
use super::webhook::convert_webhook;
use super::wire;

/// What validation depends on besides the file.
pub(super) struct Rules<'a> {
    pub(super) known_types: BTreeSet<&'a str>,
    pub(super) repeatable_types: BTreeSet<&'a str>,
    pub(super) probe: &'a dyn Fn(&Path) -> FileState,
    /// The gate that match conditions were once behind is open.
    pub(super) allows_match_conditions: bool,
}

/// Converts the authorizers. One that breaks a rule is left out and has a fault in the report. A
/// type that the rules know and the chain does not is left out too.
pub(super) fn convert(
    configuration: &wire::Configuration,
    rules: &Rules<'_>,
    report: &mut Report,
) -> Vec<Authorizer> {
    let at = FieldPath::root("authorizers");
    if configuration.authorizers.is_empty() {
        // V1
        let error = at.required("at least one authorization mode must be defined");
        report.missing(error, configuration.authorizers_span);
    }
    let mut seen = Seen::default();
    let entries = configuration.authorizers.iter().enumerate();
    entries
        .filter_map(|(idx, entry)| {
            convert_authorizer(&at.index(idx), entry, rules, &mut seen, report)
        })
        .collect()
}

/// What entries leave behind for later ones.
#[derive(Default)]
struct Seen<'w> {
    types: BTreeSet<&'w str>,
    names: BTreeSet<&'w str>,
    compiler: ConditionCompiler,
}

fn convert_authorizer<'w>(
    at: &FieldPath<'_>,
    entry: &'w wire::Authorizer,
    rules: &Rules<'_>,
    seen: &mut Seen<'w>,
    report: &mut Report,
) -> Option<Authorizer> {
    let kind = entry.kind.value.as_str();
    let at_type = at.child("type");
    if kind.is_empty() {
        report.fault(at_type.required(""), &entry.kind, entry.span); // V2
        return None;
    }
    if !rules.known_types.contains(kind) {
        // V3
        let known: Vec<&str> = rules.known_types.iter().copied().collect();
        let error = at_type.not_supported(kind, &known);
        report.fault_with_hint(error, &entry.kind, entry.span, suggestion(kind, &known));
        return None;
    }
    if !seen.types.insert(kind) && !rules.repeatable_types.contains(kind) {
        report.fault(at_type.duplicate(kind), &entry.kind, entry.span); // V4
        return None;
    }

    let name = convert_name(at, entry, seen, report);
    let kind = AuthorizerType::from_name(kind);
    if kind == Some(AuthorizerType::Webhook) {
        let Some(webhook) = &entry.webhook else {
            let error = at.child("webhook").required("required when type=Webhook"); // V8
            report.missing(error, entry.span);
            return None;
        };
        let settings = convert_webhook(at, webhook, rules, &mut seen.compiler, report);
        return Some(Authorizer::Webhook(Box::new(Webhook { name: name?, settings: settings? })));
    }
    if let Some(webhook) = &entry.webhook {
        // V9
        let error =
            at.child("webhook").invalid("non-null", "may only be specified when type=Webhook");
        report.missing(error, webhook.span);
    }
    Authorizer::built_in(kind?)
}

/// Rules V5 to V7.
fn convert_name<'w>(
    at: &FieldPath<'_>,
    entry: &'w wire::Authorizer,
    seen: &mut Seen<'w>,
    report: &mut Report,
) -> Option<AuthorizerName> {
    let at = at.child("name");
    let name = entry.name.value.as_str();
    let is_new = seen.names.insert(name);
    if name.is_empty() {
        report.fault(at.required(""), &entry.name, entry.span);
        return None;
    }
    if !is_new {
        report.fault(at.duplicate(name), &entry.name, entry.span);
        return None;
    }
    match AuthorizerName::new(name) {
        Ok(name) => Some(name),
        Err(error) => {
            let tidy = name.to_lowercase().replace(['_', ' '], "-");
            let hint =
                AuthorizerName::new(&tidy).ok().map(|name| format!("did you mean `{name}`?"));
            let error = at.invalid(name, &error.to_string());
            report.fault_with_hint(error, &entry.name, entry.span, hint);
            None
        }
    }
}
