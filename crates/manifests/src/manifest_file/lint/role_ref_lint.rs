//! Warnings about bindings to roles that do not exist.

use std::collections::{BTreeMap, BTreeSet};

use authz::Namespace;
use authz_rbac::Binding;
use document::{Warning, WarningCode};

use super::super::{AuthorizerObject, ManifestObject, WARNINGS_MAX};
use crate::rbac::{self, bootstrap_policy};

/// The maximum number of names that are compared with all others to suggest the intended one.
const HINTS_MAX: usize = 50;

/// Finds bindings to roles that are not among the objects. With `bootstrap` the default roles of
/// Kubernetes exist as well. Returns at most [`WARNINGS_MAX`] warnings.
///
/// The caller must pass all objects. Otherwise a role that could not be read would count as missing.
pub fn lint_role_references(objects: &[ManifestObject], bootstrap: bool) -> Vec<Warning> {
    if objects.iter().all(|found| found.role_name_location.is_none()) {
        return Vec::new();
    }
    let defaults = match bootstrap {
        true => bootstrap_policy().map(|policy| policy.roles).unwrap_or_default(),
        false => Vec::new(),
    };
    let mut roles = KnownRoles::default();
    let found = objects.iter().filter_map(|found| match &found.authorizer_object {
        AuthorizerObject::Rbac(rbac::RbacObject::Role(role)) => Some(role),
        AuthorizerObject::Rbac(rbac::RbacObject::Binding(_)) | AuthorizerObject::Node(_) => None,
    });
    for role in found.chain(&defaults) {
        let names = roles.role_names_by_namespace.entry(role.namespace()).or_default();
        names.insert(&role.metadata.name);
    }
    let mut hints = BTreeMap::new();
    let mut warnings = Vec::new();
    for found in objects {
        let (AuthorizerObject::Rbac(rbac::RbacObject::Binding(binding)), Some(reference)) =
            (&found.authorizer_object, &found.role_name_location)
        else {
            continue;
        };
        let (namespace, name) = referenced_role(binding);
        if roles.contains_role(namespace, name) {
            continue;
        }
        if warnings.len() == WARNINGS_MAX {
            break;
        }
        let hint = match hints.get(&(namespace, name)) {
            Some(hint) => Option::clone(hint),
            None if hints.len() < HINTS_MAX => {
                let hint = roles.suggest_role(binding);
                hints.insert((namespace, name), hint.clone());
                hint
            }
            None => None,
        };
        warnings.push(Warning {
            code: WarningCode::MissingRole,
            field: reference.field.clone(),
            message: missing_role_message(binding),
            file_name: found.file_name.to_string(),
            position: reference.position,
            hint,
        });
    }
    warnings
}

fn missing_role_message(binding: &Binding) -> String {
    let (namespace, name) = referenced_role(binding);
    let kind = &binding.role_ref.kind;
    match namespace.name() {
        None => format!("there is no {kind} `{name}`, so the binding grants nothing"),
        Some(namespace) => format!(
            "there is no {kind} `{name}` in namespace `{namespace}`, so the binding grants nothing"
        ),
    }
}

/// Namespace and name of the role that a binding grants.
fn referenced_role(binding: &Binding) -> (Namespace<'_>, &str) {
    let is_role = binding.role_ref.kind == "Role";
    let namespace = if is_role { binding.namespace() } else { Namespace::CLUSTER_SCOPE };
    (namespace, &binding.role_ref.name)
}

/// The names of all roles.
#[derive(Default)]
struct KnownRoles<'r> {
    /// Role names by namespace. Cluster roles have the cluster scope.
    role_names_by_namespace: BTreeMap<Namespace<'r>, BTreeSet<&'r str>>,
}

impl KnownRoles<'_> {
    fn contains_role(&self, namespace: Namespace<'_>, name: &str) -> bool {
        self.role_names_by_namespace.get(&namespace).is_some_and(|names| names.contains(name))
    }

    /// Suggests the role that was probably intended.
    fn suggest_role(&self, binding: &Binding) -> Option<String> {
        let (namespace, name) = referenced_role(binding);
        let own = binding.namespace();
        if namespace.is_cluster_scope() && !own.is_cluster_scope() && self.contains_role(own, name)
        {
            return Some("there is a Role of this name: write `kind: Role`".to_owned());
        }
        if !namespace.is_cluster_scope() && self.contains_role(Namespace::CLUSTER_SCOPE, name) {
            return Some(
                "there is a ClusterRole of this name: write `kind: ClusterRole`".to_owned(),
            );
        }
        if !namespace.is_cluster_scope()
            && let Some((other, _)) =
                self.role_names_by_namespace.iter().find(|(_, names)| names.contains(name))
        {
            return Some(format!(
                "there is one in namespace `{}`, but a binding grants roles of its own only",
                other.as_str()
            ));
        }
        // The comparison is quadratic in the length, so names of a very different length are
        // excluded first.
        let near = |other: &&&str| other.len().abs_diff(name.len()) <= other.len().div_ceil(4);
        let candidates = self
            .role_names_by_namespace
            .get(&namespace)
            .into_iter()
            .flatten()
            .filter(near)
            .copied();
        let nearest = field_errors::nearest_word(name, candidates)?;
        Some(format!("did you mean `{nearest}`?"))
    }
}
