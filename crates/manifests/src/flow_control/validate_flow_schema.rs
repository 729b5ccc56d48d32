//! The validation rules of flow schemas, with the messages of Kubernetes.

use field_errors::{FieldErrors, FieldPath, dns1123_label_faults, dns1123_subdomain_faults};
use flow_control::bootstrap_objects::{EXEMPT, mandatory_flow_schemas};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{bad_value_format, wire};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const STATUS: FieldPath<'static> = FieldPath::root("status");

const MATCHING_PRECEDENCE_MAX: i32 = 10_000;

const DISTINGUISHER_METHODS: &[&str] = &["ByNamespace", "ByUser"];
const SUBJECT_KINDS: &[&str] = &["Group", "ServiceAccount", "User"];
const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// The list item that matches every value.
const WILDCARD: &str = "*";

/// Validates a flow schema with its defaults, except for its metadata. A mandatory schema must have its fixed
/// spec.
#[must_use]
pub fn validate_flow_schema(tree: &Map<String, Value>) -> FieldErrors {
    let object = match wire::FlowControlObject::<wire::FlowSchemaSpec>::deserialize(tree) {
        Ok(object) => object,
        Err(error) => return FieldPath::NOWHERE.internal(&error.to_string()).into(),
    };
    let (name, spec) = (&object.metadata.name, &object.spec);
    let mut errors = flow_schema_spec_faults(name, spec);
    let mandatory = mandatory_flow_schemas().into_iter().find(|schema| schema.name == *name);
    if mandatory.is_some_and(|schema| wire::FlowSchemaSpec::from(&schema) != *spec) {
        let detail = format!("spec of '{name}' must equal the fixed value");
        errors.push(SPEC.invalid(bad_value_format::flow_schema_spec_bad_value(spec), &detail));
    }
    add_flow_control_status_faults(&object.status, &mut errors);
    errors
}

/// Validates the status of a flow schema.
#[must_use]
pub fn validate_flow_schema_status(tree: &Map<String, Value>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    match wire::FlowControlObject::<wire::FlowSchemaSpec>::deserialize(tree) {
        Ok(object) => add_flow_control_status_faults(&object.status, &mut errors),
        Err(error) => errors.push(FieldPath::NOWHERE.internal(&error.to_string())),
    }
    errors
}

/// The faults of the conditions, which both kinds have.
pub(super) fn add_flow_control_status_faults(status: &wire::Status, errors: &mut FieldErrors) {
    let at = STATUS.child("conditions");
    let mut known: Vec<&str> = Vec::new();
    for (idx, condition) in status.conditions.iter().enumerate() {
        let at = at.index(idx);
        let condition_type = condition.condition_type.as_str();
        if known.contains(&condition_type) {
            errors.push(at.child("type").duplicate(condition_type));
        } else {
            known.push(condition_type);
        }
        if condition_type.is_empty() {
            errors.push(at.child("type").required(""));
        }
    }
}

pub(super) fn flow_schema_spec_faults(name: &str, spec: &wire::FlowSchemaSpec) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_matching_precedence(name, spec.matching_precedence, &mut errors);
    if let Some(method) = &spec.distinguisher_method
        && !DISTINGUISHER_METHODS.contains(&method.method_type.as_str())
    {
        let at = SPEC.child("distinguisherMethod");
        let value = bad_value_format::distinguisher_method_bad_value(method);
        errors.push(at.child("type").not_supported(value, DISTINGUISHER_METHODS));
    }
    let at = SPEC.child("priorityLevelConfiguration");
    let (at, level) = (at.child("name"), spec.priority_level_configuration.name.as_str());
    if level.is_empty() {
        errors.push(at.required("must reference a priority level"));
    } else {
        push_invalid_value(&at, level, "", dns1123_subdomain_faults(level), &mut errors);
    }
    let at = SPEC.child("rules");
    for (idx, rules) in spec.rules.iter().enumerate() {
        validate_flow_schema_rules(rules, &at.index(idx), &mut errors);
    }
    errors
}

fn validate_matching_precedence(name: &str, precedence: i32, errors: &mut FieldErrors) {
    let at = SPEC.child("matchingPrecedence");
    let mut refuse = |detail: &str| {
        errors.push(at.invalid(bad_value_format::number_bad_value(precedence), detail))
    };
    if precedence <= 0 {
        refuse("must be a positive value");
    }
    if precedence > MATCHING_PRECEDENCE_MAX {
        refuse(&format!("must not be greater than {MATCHING_PRECEDENCE_MAX}"));
    }
    if precedence == 1 && name != EXEMPT {
        refuse("only the schema named 'exempt' may have matchingPrecedence 1");
    }
}

fn validate_flow_schema_rules(
    rules: &wire::PolicyRulesWithSubjects,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let subjects = at.child("subjects");
    if rules.subjects.is_empty() {
        errors.push(subjects.required("subjects must contain at least one value"));
    }
    for (idx, subject) in rules.subjects.iter().enumerate() {
        validate_flow_schema_subject(subject, &subjects.index(idx), errors);
    }
    if rules.resource_rules.is_empty() && rules.non_resource_rules.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(at.required(detail));
    }
    let resource_rules = at.child("resourceRules");
    for (idx, rule) in rules.resource_rules.iter().enumerate() {
        validate_flow_schema_resource_rule(rule, &resource_rules.index(idx), errors);
    }
    let non_resource_rules = at.child("nonResourceRules");
    for (idx, rule) in rules.non_resource_rules.iter().enumerate() {
        validate_flow_schema_non_resource_rule(rule, &non_resource_rules.index(idx), errors);
    }
}

/// Checks that a subject has the member of its kind, and no other one.
fn validate_flow_schema_subject(
    subject: &wire::Subject,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    match subject.kind.as_str() {
        "ServiceAccount" => match &subject.service_account {
            Some(account) => {
                validate_service_account_subject(account, &at.child("serviceAccount"), errors)
            }
            None => require_member(at, "serviceAccount", "ServiceAccount", errors),
        },
        "User" => {
            validate_subject_reference_name(subject.user.as_ref(), at, "user", "User", errors)
        }
        "Group" => {
            validate_subject_reference_name(subject.group.as_ref(), at, "group", "Group", errors)
        }
        kind => return errors.push(at.child("kind").not_supported(kind, SUBJECT_KINDS)),
    }
    // The order is that of Kubernetes.
    for (member, kind, is_set) in [
        ("serviceAccount", "ServiceAccount", subject.service_account.is_some()),
        ("user", "User", subject.user.is_some()),
        ("group", "Group", subject.group.is_some()),
    ] {
        if is_set && subject.kind != kind {
            let detail = format!("{member} is forbidden when subject kind is not '{kind}'");
            errors.push(at.child(member).forbidden(&detail));
        }
    }
}

fn require_member(at: &FieldPath<'_>, member: &str, kind: &str, errors: &mut FieldErrors) {
    let detail = format!("{member} is required when subject kind is '{kind}'");
    errors.push(at.child(member).required(&detail));
}

fn validate_subject_reference_name(
    reference: Option<&wire::NameReference>,
    at: &FieldPath<'_>,
    member: &str,
    kind: &str,
    errors: &mut FieldErrors,
) {
    match reference {
        None => require_member(at, member, kind, errors),
        Some(reference) if reference.name.is_empty() => {
            errors.push(at.child(member).child("name").required(""));
        }
        Some(_) => {}
    }
}

fn validate_service_account_subject(
    account: &wire::ServiceAccountSubject,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (name_path, name) = (at.child("name"), account.name.as_str());
    if name.is_empty() {
        errors.push(name_path.required(""));
    } else if name != WILDCARD {
        push_invalid_value(&name_path, name, "", dns1123_subdomain_faults(name), errors);
    }
    let (at, namespace) = (at.child("namespace"), account.namespace.as_str());
    if namespace.is_empty() {
        errors.push(at.required("must specify namespace for service account"));
    } else {
        push_invalid_value(&at, namespace, "", dns1123_label_faults(namespace), errors);
    }
}

fn validate_flow_schema_resource_rule(
    rule: &wire::ResourcePolicyRule,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_flow_schema_verbs(&rule.verbs, at, errors);
    for (member, list, required, what) in [
        ("apiGroups", &rule.api_groups, "api group", "api groups"),
        ("resources", &rule.resources, "resource", "resources"),
    ] {
        let at = at.child(member);
        if list.is_empty() {
            let detail = format!("resource rules must supply at least one {required}");
            errors.push(at.required(&detail));
        } else {
            refuse_wildcard_among_others(list, &at, what, errors);
        }
    }
    let (at, namespaces) = (at.child("namespaces"), &rule.namespaces);
    if namespaces.is_empty() && !rule.cluster_scope {
        let detail =
            "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(at.required(detail));
    } else if has_wildcard(namespaces) {
        refuse_wildcard_among_others(namespaces, &at, "namespaces", errors);
    } else {
        let intro = "each member of this list must be '*' or a DNS-1123 label; ";
        for (idx, namespace) in namespaces.iter().enumerate() {
            let faults = dns1123_label_faults(namespace);
            push_invalid_value(&at.index(idx), namespace, intro, faults, errors);
        }
    }
}

fn validate_flow_schema_non_resource_rule(
    rule: &wire::NonResourcePolicyRule,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_flow_schema_verbs(&rule.verbs, at, errors);
    let (at, urls) = (at.child("nonResourceURLs"), &rule.non_resource_urls);
    if urls.is_empty() {
        errors.push(at.required("nonResourceURLs must contain at least one value"));
    } else if has_wildcard(urls) {
        refuse_wildcard_among_others(urls, &at, "non-resource URLs", errors);
    } else {
        for (idx, url) in urls.iter().enumerate() {
            if let Some(fault) = url_path_fault(url) {
                errors.push(at.index(idx).invalid(url.as_str(), fault));
            }
        }
    }
}

fn validate_flow_schema_verbs(verbs: &[String], at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = at.child("verbs");
    if verbs.is_empty() {
        errors.push(at.required("verbs must contain at least one value"));
    } else if has_wildcard(verbs) {
        refuse_wildcard_among_others(verbs, &at, "verbs", errors);
    } else if !verbs.iter().all(|verb| VERBS.contains(&verb.as_str())) {
        errors.push(at.not_supported(bad_value_format::text_list_bad_value(verbs), VERBS));
    }
}

/// Returns the rule that a path breaks. A path must begin with a slash and may end with `/*`.
fn url_path_fault(path: &str) -> Option<&'static str> {
    let n_wildcards = path.matches(WILDCARD).count();
    if path.is_empty() {
        Some("must not be empty")
    } else if path == "/" {
        None
    } else if !path.starts_with('/') {
        Some("must start with slash")
    } else if path.contains(' ') {
        Some("must not contain white-space")
    } else if path.contains("//") {
        Some("must not contain double slash")
    } else if n_wildcards > 1 || (n_wildcards == 1 && !path.ends_with("/*")) {
        Some("wildcard can only do suffix matching")
    } else {
        None
    }
}

fn has_wildcard(list: &[String]) -> bool {
    list.iter().any(|item| item == WILDCARD)
}

fn refuse_wildcard_among_others(
    list: &[String],
    at: &FieldPath<'_>,
    what: &str,
    errors: &mut FieldErrors,
) {
    if list.len() > 1 && has_wildcard(list) {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(at.invalid(bad_value_format::text_list_bad_value(list), &detail));
    }
}

fn push_invalid_value(
    at: &FieldPath<'_>,
    value: &str,
    intro: &str,
    faults: Vec<String>,
    errors: &mut FieldErrors,
) {
    errors.extend(faults.into_iter().map(|fault| at.invalid(value, &format!("{intro}{fault}"))));
}
