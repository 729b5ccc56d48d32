//! What an object says it is.

use authz_rbac::GROUP;
use document::decode::{At, Problem};
use document::hint::{listed, suggestion};
use document::{Fault, Finding, Node, Span, Value};
use field_errors::{BadValue, FieldError};

use super::kept::{Keep, Keeps};
use crate::abac;
use crate::node_object::NODE_KINDS;
use crate::rbac::{API_VERSION, Kind};

/// The API group of configuration files such as `AuthorizationConfiguration`.
const CONFIGURATION_GROUP: &str = "apiserver.config.k8s.io";

/// The kinds of roles and bindings.
const RBAC_KINDS: [&str; 4] = ["ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"];

/// What is done with an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Identity {
    Rbac(Kind),
    /// The node authorizer may learn from it.
    Node {
        is_namespaced: bool,
    },
    /// The caller wants it.
    Kept,
    /// Its items are objects.
    List {
        /// What an item is that does not say so.
        item: Option<TypeMeta>,
    },
    /// It is passed over.
    Other,
}

/// The two fields that tell.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct TypeMeta {
    pub(super) api_version: String,
    pub(super) kind: String,
}

/// Finds out what an object is. What it does not say is taken from `inherited`.
///
/// A kind that no authorizer knows is no fault, since manifests hold all sorts of objects. But what
/// looks like a role or a binding and is none is one: to pass it over would lose a grant silently.
pub(super) fn identify(
    node: &Node,
    inherited: Option<&TypeMeta>,
    at: &At<'_>,
    keeps: Keeps<'_>,
) -> Result<(Identity, TypeMeta), Box<Finding>> {
    let Value::Object(_) = &node.value else {
        let message = format!("an object is expected here, this is {}", named(&node.value));
        return Err(finding(at.indexed(), message, node.span, None));
    };
    let kind = text(node, "kind", inherited.map(|meta| &meta.kind), at)?;
    let api_version = text(node, "apiVersion", inherited.map(|meta| &meta.api_version), at)?;
    let identity = classify(&api_version, &kind, keeps).map_err(|mistake| {
        let span = member(node, mistake.field).map_or(node.span, |value| value.span);
        let path = at.child(mistake.field).indexed();
        finding(path, mistake.message, span, Some(mistake.hint))
    })?;
    Ok((identity, TypeMeta { api_version, kind }))
}

/// One of the two fields. Of several of that name the last counts; that is a fault for which
/// others look.
fn text(
    node: &Node,
    name: &str,
    inherited: Option<&String>,
    at: &At<'_>,
) -> Result<String, Box<Finding>> {
    let path = || at.child(name).indexed();
    match member(node, name).map(|value| (&value.value, value.span)) {
        Some((Value::Text(text), _)) if !text.as_str().is_empty() => Ok(text.as_str().to_owned()),
        Some((
            value @ (Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Object(_)),
            span,
        )) => {
            let message = format!("`{name}` must be a string, this is {}", named(value));
            Err(finding(path(), message, span, None))
        }
        Some((Value::Null | Value::Text(_), _)) | None => match inherited {
            Some(inherited) => Ok(inherited.clone()),
            None => {
                let (kind, value) = (field_errors::FieldErrorKind::Required, BadValue::Omitted);
                let error = FieldError { path: path(), kind, value, detail: String::new() };
                let hint = near_key(node, name)
                    .map_or_else(|| missing(name), |key| format!("write `{name}`, not `{key}`"));
                let (fault, hint) = (Fault::Field(error), Some(hint));
                Err(Box::new(Finding { fault, span: node.span, hint, notes: Vec::new() }))
            }
        },
    }
}

fn missing(name: &str) -> String {
    match name {
        "kind" => "every object says what it is: add `kind`".to_owned(),
        _ => format!("every object says its version: add `apiVersion`, such as `{API_VERSION}`"),
    }
}

/// A key that was probably meant to be `name`.
fn near_key<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    let Value::Object(entries) = &node.value else { return None };
    let mut keys = entries.iter().map(|entry| entry.key.as_str());
    keys.find(|key| *key != name && field_errors::nearest(key, [name]).is_some())
}

pub(super) fn member<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let Value::Object(entries) = &node.value else { return None };
    entries.iter().rev().find(|entry| entry.key == name).map(|entry| &entry.value)
}

/// Why something can not be what it says.
struct Mistake {
    field: &'static str,
    message: String,
    hint: String,
}

fn classify(api_version: &str, kind: &str, keeps: Keeps<'_>) -> Result<Identity, Mistake> {
    let (group, version) = match api_version.split_once('/') {
        None => ("", api_version),
        Some((_, version)) if version.contains('/') => {
            return Err(Mistake {
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
        Err(Mistake { field, message, hint })
    };
    let item_kind = kind.strip_suffix("List").unwrap_or(kind);
    match keeps(api_version, item_kind) {
        Keep::Whole if item_kind == kind => return Ok(Identity::Kept),
        Keep::Whole if !item_kind.is_empty() => return Ok(list_of(api_version, item_kind)),
        Keep::Mistaken { field, hint } => return unknown(field, hint),
        Keep::Whole | Keep::No => {}
    }
    if group == GROUP {
        return match Kind::of(api_version, item_kind) {
            Some(known) if item_kind == kind => Ok(Identity::Rbac(known)),
            Some(_) => Ok(list_of(api_version, item_kind)),
            None if version != "v1" => unknown("apiVersion", format!("use `{API_VERSION}`")),
            None => unknown("kind", rbac_kind_hint(kind)),
        };
    }
    if RBAC_KINDS.contains(&item_kind) && is_rbac_group_misspelled(group, version) {
        return unknown("apiVersion", format!("use `{API_VERSION}`"));
    }
    match (group, kind) {
        ("", "List") if version == "v1" => return Ok(Identity::List { item: None }),
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
            Identity::Node { is_namespaced: *is_namespaced }
        }
        Some(_) => list_of(api_version, item_kind),
        None => Identity::Other,
    })
}

fn list_of(api_version: &str, kind: &str) -> Identity {
    let item = TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() };
    Identity::List { item: Some(item) }
}

/// Whether a role or a binding has the version of another API by mistake. Other groups may well
/// have kinds of these names.
fn is_rbac_group_misspelled(group: &str, version: &str) -> bool {
    match group {
        "" => version.starts_with('v') || field_errors::nearest(version, [GROUP]).is_some(),
        group => field_errors::nearest(group, [GROUP]).is_some(),
    }
}

fn rbac_kind_hint(kind: &str) -> String {
    suggestion(kind, &RBAC_KINDS).unwrap_or_else(|| format!("use one of {}", listed(&RBAC_KINDS)))
}

fn named(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::Text(_) => "a string",
        Value::List(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn finding(path: String, message: String, span: Span, hint: Option<String>) -> Box<Finding> {
    Box::new(Problem { path, message, span, hint }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_and_what_is_passed_over() {
        let list = |api_version: &str, kind: &str| list_of(api_version, kind);
        for (api_version, kind, want) in [
            (API_VERSION, "Role", Identity::Rbac(Kind::Role)),
            (API_VERSION, "ClusterRoleBinding", Identity::Rbac(Kind::ClusterRoleBinding)),
            (API_VERSION, "RoleList", list(API_VERSION, "Role")),
            ("v1", "List", Identity::List { item: None }),
            ("v1", "Pod", Identity::Node { is_namespaced: true }),
            ("v1", "PodList", list("v1", "Pod")),
            ("storage.k8s.io/v1", "VolumeAttachment", Identity::Node { is_namespaced: false }),
            ("resource.k8s.io/v1beta1", "ResourceSlice", Identity::Node { is_namespaced: false }),
            ("v1", "ConfigMap", Identity::Other),
            ("apps/v1", "Pod", Identity::Other),
            ("apps/v1", "DeploymentList", Identity::Other),
            ("authorization.openshift.io/v1", "RoleBinding", Identity::Other),
            ("iam.example.com/v1", "Role", Identity::Other),
        ] {
            let found = classify(api_version, kind, &|_, _| Keep::No);
            assert_eq!(found.map_err(|mistake| mistake.message), Ok(want), "{api_version} {kind}");
        }
    }

    #[test]
    fn what_is_hardly_meant_is_refused() {
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
            let mistake = classify(api_version, kind, &|_, _| Keep::No).unwrap_err();
            assert_eq!((mistake.field, mistake.hint.as_str()), (field, hint), "{api_version}");
        }
    }
    #[test]
    fn the_caller_keeps_what_it_wants() {
        let keeps = |api_version: &str, kind: &str| match (api_version, kind) {
            (_, "Pod" | "Widget") => Keep::Whole,
            ("example.com/v2", _) => Keep::Mistaken { field: "apiVersion", hint: "v1".to_owned() },
            _ => Keep::No,
        };
        for (api_version, kind, want) in [
            ("v1", "Pod", Ok(Identity::Kept)),
            ("v1", "PodList", Ok(list_of("v1", "Pod"))),
            ("v1", "List", Ok(Identity::List { item: None })),
            ("example.com/v1", "Widget", Ok(Identity::Kept)),
            ("example.com/v1", "Gadget", Ok(Identity::Other)),
            ("example.com/v2", "Gadget", Err("apiVersion")),
        ] {
            let found = classify(api_version, kind, &keeps);
            assert_eq!(found.map_err(|mistake| mistake.field), want, "{api_version} {kind}");
        }
        // A list of everything is still a list.
        let all = classify("v1", "List", &|_, _| Keep::Whole);
        assert_eq!(all.ok(), Some(Identity::List { item: None }));
    }
}
