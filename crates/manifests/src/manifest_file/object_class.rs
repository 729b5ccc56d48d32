//! Classifies an object by its `apiVersion` and `kind`.

use authz_rbac::GROUP;
use document::hint::{did_you_mean, join_in_backticks};
use document::{DecodeProblem, Fault, Node, NodePath, Span, SpannedFault, Value};
use field_errors::{BadValue, FieldError};

use super::unstructured_object::{KindHandler, KindHandling};
use crate::abac;
use crate::node_authorizer_object::NODE_KINDS;
use crate::rbac::{API_VERSION, Kind};

/// The API group of configuration files such as `AuthorizationConfiguration`.
const CONFIGURATION_GROUP: &str = "apiserver.config.k8s.io";

/// The kinds of roles and bindings.
const RBAC_KINDS: [&str; 4] = ["ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"];

/// The way in which the reader handles an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ObjectClass {
    Rbac(Kind),
    /// The node authorizer may use the object.
    Node {
        is_namespaced: bool,
    },
    /// The caller asked for the whole object.
    Whole,
    /// A list whose items are objects.
    List {
        /// The kind of an item that declares none.
        item: Option<TypeMeta>,
    },
    /// The reader only counts the object.
    Other,
}

/// The two fields that identify the kind of an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct TypeMeta {
    pub(super) api_version: String,
    pub(super) kind: String,
}

/// Classifies an object. Fields that it does not declare come from `inherited`.
///
/// Manifests hold all sorts of objects, so a kind that no authorizer uses is not a fault. An object that resembles
/// a role or a binding but has the wrong kind or version is a fault, because ignoring it would silently lose a
/// grant.
pub(super) fn classify_object(
    node: &Node,
    inherited: Option<&TypeMeta>,
    at: &NodePath<'_>,
    kind_handler: KindHandler<'_>,
) -> Result<(ObjectClass, TypeMeta), Box<SpannedFault>> {
    let Value::Object(_) = &node.value else {
        let message =
            format!("an object is expected here, this is {}", node.value.value_kind_with_article());
        return Err(new_decode_fault(at.path_with_indices(), message, node.span, None));
    };
    let kind = read_type_field(node, "kind", inherited.map(|meta| &meta.kind), at)?;
    let api_version =
        read_type_field(node, "apiVersion", inherited.map(|meta| &meta.api_version), at)?;
    let identity = classify_kind(&api_version, &kind, kind_handler).map_err(|mistake| {
        let span = last_member(node, mistake.field).map_or(node.span, |value| value.span);
        let path = at.child_path(mistake.field).path_with_indices();
        new_decode_fault(path, mistake.message, span, Some(mistake.hint))
    })?;
    Ok((identity, TypeMeta { api_version, kind }))
}

/// Reports whether a document is something else than an object of Kubernetes, such as the values or the `Chart.yaml`
/// of a Helm chart, a dashboard or a workflow. A document that only lacks or misspells one of its type fields is an
/// object with a fault.
pub(super) fn is_not_kubernetes_object(node: &Node) -> bool {
    let entries = match &node.value {
        Value::Object(entries) => entries,
        // A list of objects without `kind: List` is a mistake.
        Value::List(items) => return items.iter().all(|item| last_member(item, "kind").is_none()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => return true,
    };
    let has = |name: &str| entries.iter().any(|entry| entry.key.eq_ignore_ascii_case(name));
    if has("kind") || has("metadata") {
        return false;
    }
    let is_chart = has("name") && has("version");
    is_chart || !has("apiVersion") && find_similar_key(node, "apiVersion").is_none()
}

/// Reads `apiVersion` or `kind`. Of several fields of that name the last counts; other code reports the
/// duplicate.
fn read_type_field(
    node: &Node,
    name: &str,
    inherited: Option<&String>,
    at: &NodePath<'_>,
) -> Result<String, Box<SpannedFault>> {
    let path = || at.child_path(name).path_with_indices();
    match last_member(node, name).map(|value| (&value.value, value.span)) {
        Some((Value::Text(text), _)) if !text.as_str().is_empty() => Ok(text.as_str().to_owned()),
        Some((
            value @ (Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Object(_)),
            span,
        )) => {
            let message =
                format!("`{name}` must be a string, this is {}", value.value_kind_with_article());
            Err(new_decode_fault(path(), message, span, None))
        }
        Some((Value::Null | Value::Text(_), _)) | None => match inherited {
            Some(inherited) => Ok(inherited.clone()),
            None => {
                let (kind, value) = (field_errors::FieldErrorKind::Required, BadValue::Omitted);
                let error = FieldError { path: path(), kind, value, detail: String::new() };
                let hint = find_similar_key(node, name).map_or_else(
                    || hint_for_missing_field(name),
                    |key| format!("write `{name}`, not `{key}`"),
                );
                let (fault, hint) = (Fault::Field(error), Some(hint));
                Err(Box::new(SpannedFault {
                    fault,
                    span: node.span,
                    hint,
                    expression_issues: Vec::new(),
                }))
            }
        },
    }
}

fn hint_for_missing_field(name: &str) -> String {
    match name {
        "kind" => "every object says what it is: add `kind`".to_owned(),
        _ => format!("every object says its version: add `apiVersion`, such as `{API_VERSION}`"),
    }
}

/// Finds a key that is similar to `name`.
fn find_similar_key<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    let Value::Object(entries) = &node.value else { return None };
    let mut keys = entries.iter().map(|entry| entry.key.as_str());
    keys.find(|key| *key != name && field_errors::nearest_word(key, [name]).is_some())
}

pub(super) fn last_member<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let Value::Object(entries) = &node.value else { return None };
    entries.iter().rev().find(|entry| entry.key == name).map(|entry| &entry.value)
}

/// The reason why an object cannot have its declared kind.
struct KindError {
    field: &'static str,
    message: String,
    hint: String,
}

fn classify_kind(
    api_version: &str,
    kind: &str,
    kind_handler: KindHandler<'_>,
) -> Result<ObjectClass, KindError> {
    let (group, version) = match api_version.split_once('/') {
        None => ("", api_version),
        Some((_, version)) if version.contains('/') => {
            return Err(KindError {
                field: "apiVersion",
                message: format!("unexpected GroupVersion string: {api_version}"),
                hint: "write `<group>/<version>`".to_owned(),
            });
        }
        Some(parts) => parts,
    };
    let unknown = |field, hint| {
        let (kind, version) = (go_compat::quote(kind), go_compat::quote(api_version));
        let message = format!("no kind {kind} is registered for version {version}");
        Err(KindError { field, message, hint })
    };
    let item_kind = kind.strip_suffix("List").unwrap_or(kind);
    match kind_handler(api_version, item_kind) {
        KindHandling::KeepUnstructured if item_kind == kind => return Ok(ObjectClass::Whole),
        KindHandling::KeepUnstructured if !item_kind.is_empty() => {
            return Ok(classify_list(api_version, item_kind));
        }
        KindHandling::Refuse { field, hint } => return unknown(field, hint),
        KindHandling::KeepUnstructured | KindHandling::Standard => {}
    }
    if group == GROUP {
        return match Kind::from_api_version_and_kind(api_version, item_kind) {
            Some(known) if item_kind == kind => Ok(ObjectClass::Rbac(known)),
            Some(_) => Ok(classify_list(api_version, item_kind)),
            None if version != "v1" => unknown("apiVersion", format!("use `{API_VERSION}`")),
            None => unknown("kind", hint_for_rbac_kind(kind)),
        };
    }
    if RBAC_KINDS.contains(&item_kind) && is_rbac_group_misspelled(group, version) {
        return unknown("apiVersion", format!("use `{API_VERSION}`"));
    }
    match (group, kind) {
        ("", "List") if version == "v1" => return Ok(ObjectClass::List { item: None }),
        (_, "List") => return unknown("apiVersion", "use `v1`".to_owned()),
        (CONFIGURATION_GROUP, _) => {
            return unknown("kind", "this is a configuration file and no object".to_owned());
        }
        (abac::GROUP, _) => {
            return unknown("kind", "ABAC policies have a file of their own".to_owned());
        }
        _ => {}
    }
    let known = NODE_KINDS.iter().find(|(of, name, _)| *of == group && *name == item_kind);
    Ok(match known {
        Some((_, _, is_namespaced)) if item_kind == kind => {
            ObjectClass::Node { is_namespaced: *is_namespaced }
        }
        Some(_) => classify_list(api_version, item_kind),
        None => ObjectClass::Other,
    })
}

fn classify_list(api_version: &str, kind: &str) -> ObjectClass {
    let item = TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() };
    ObjectClass::List { item: Some(item) }
}

/// Reports whether a role or a binding has the version of another API by mistake. Other groups may
/// have kinds of these names.
fn is_rbac_group_misspelled(group: &str, version: &str) -> bool {
    match group {
        "" => version.starts_with('v') || field_errors::nearest_word(version, [GROUP]).is_some(),
        group => field_errors::nearest_word(group, [GROUP]).is_some(),
    }
}

fn hint_for_rbac_kind(kind: &str) -> String {
    did_you_mean(kind, &RBAC_KINDS)
        .unwrap_or_else(|| format!("use one of {}", join_in_backticks(&RBAC_KINDS)))
}

fn new_decode_fault(
    path: String,
    message: String,
    span: Span,
    hint: Option<String>,
) -> Box<SpannedFault> {
    Box::new(DecodeProblem::new(path, message, span).with_hint(hint).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_used_or_ignored() {
        let list = |api_version: &str, kind: &str| classify_list(api_version, kind);
        for (api_version, kind, want) in [
            (API_VERSION, "Role", ObjectClass::Rbac(Kind::Role)),
            (API_VERSION, "ClusterRoleBinding", ObjectClass::Rbac(Kind::ClusterRoleBinding)),
            (API_VERSION, "RoleList", list(API_VERSION, "Role")),
            ("v1", "List", ObjectClass::List { item: None }),
            ("v1", "Pod", ObjectClass::Node { is_namespaced: true }),
            ("v1", "PodList", list("v1", "Pod")),
            ("storage.k8s.io/v1", "VolumeAttachment", ObjectClass::Node { is_namespaced: false }),
            (
                "resource.k8s.io/v1beta1",
                "ResourceSlice",
                ObjectClass::Node { is_namespaced: false },
            ),
            ("v1", "ConfigMap", ObjectClass::Other),
            ("apps/v1", "Pod", ObjectClass::Other),
            ("apps/v1", "DeploymentList", ObjectClass::Other),
            ("authorization.openshift.io/v1", "RoleBinding", ObjectClass::Other),
            ("iam.example.com/v1", "Role", ObjectClass::Other),
        ] {
            let found = classify_kind(api_version, kind, &|_, _| KindHandling::Standard);
            assert_eq!(found.map_err(|mistake| mistake.message), Ok(want), "{api_version} {kind}");
        }
    }

    #[test]
    fn likely_mistakes_are_refused() {
        let rbac = "use `rbac.authorization.k8s.io/v1`";
        for (api_version, kind, field, hint) in [
            ("rbac.authorization.k8s.io/v1beta1", "Role", "apiVersion", rbac),
            ("rbac.authorization.k8s.io/v1alpha1", "RoleList", "apiVersion", rbac),
            ("rbac.authorization.k8s.io", "Role", "apiVersion", rbac),
            ("rbac.authorisation.k8s.io/v1", "RoleBinding", "apiVersion", rbac),
            ("v1", "ClusterRole", "apiVersion", rbac),
            (API_VERSION, "Rolebinding", "kind", "did you mean `RoleBinding`?"),
            (
                API_VERSION,
                "Subject",
                "kind",
                "use one of `ClusterRole`, `Role`, `ClusterRoleBinding`, `RoleBinding`",
            ),
            ("v2", "List", "apiVersion", "use `v1`"),
            ("a/b/c", "Role", "apiVersion", "write `<group>/<version>`"),
            (
                "apiserver.config.k8s.io/v1",
                "AuthorizationConfiguration",
                "kind",
                "this is a configuration file and no object",
            ),
        ] {
            let mistake =
                classify_kind(api_version, kind, &|_, _| KindHandling::Standard).unwrap_err();
            assert_eq!((mistake.field, mistake.hint.as_str()), (field, hint), "{api_version}");
        }
    }
    #[test]
    fn the_caller_chooses_kinds_to_keep() {
        let kind_handler = |api_version: &str, kind: &str| match (api_version, kind) {
            (_, "Pod" | "Widget") => KindHandling::KeepUnstructured,
            ("example.com/v2", _) => {
                KindHandling::Refuse { field: "apiVersion", hint: "v1".to_owned() }
            }
            _ => KindHandling::Standard,
        };
        for (api_version, kind, want) in [
            ("v1", "Pod", Ok(ObjectClass::Whole)),
            ("v1", "PodList", Ok(classify_list("v1", "Pod"))),
            ("v1", "List", Ok(ObjectClass::List { item: None })),
            ("example.com/v1", "Widget", Ok(ObjectClass::Whole)),
            ("example.com/v1", "Gadget", Ok(ObjectClass::Other)),
            ("example.com/v2", "Gadget", Err("apiVersion")),
        ] {
            let found = classify_kind(api_version, kind, &kind_handler);
            assert_eq!(found.map_err(|mistake| mistake.field), want, "{api_version} {kind}");
        }
        // A `List` whose items declare their own kinds is a list too.
        let all = classify_kind("v1", "List", &|_, _| KindHandling::KeepUnstructured);
        assert_eq!(all.ok(), Some(ObjectClass::List { item: None }));
    }
}
