//! The keys of objects in the store.
//!
//! The layout is that of Kubernetes: `<prefix>/<path of the resource>/[<namespace>/]<name>`.

use crate::custom_resources::CustomResourceDefinition;
use crate::resource::Resource;

/// The default prefix of all keys.
pub const DEFAULT_PREFIX: &str = "/registry";

/// Room for the slashes of a key and for most names.
const NAME_BYTES: usize = 48;

/// The key of one object. Returns `None` if no such object can exist: the resource is not stored, the
/// namespace does not fit the scope, or a name is not a path segment.
#[must_use]
pub fn object_key(
    prefix: &str,
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
) -> Option<String> {
    if resource.is_namespaced() != namespace.is_some() || !is_path_segment(name) {
        return None;
    }
    let mut key = self::list_key_prefix(prefix, resource, namespace)?;
    key.push_str(name);
    Some(key)
}

/// The common prefix of the keys of a list: of one namespace, or of all. It ends in `/`, so that
/// resources with a longer name do not match. `None` as for [`object_key`].
#[must_use]
pub fn list_key_prefix(
    prefix: &str,
    resource: &Resource,
    namespace: Option<&str>,
) -> Option<String> {
    let path = resource.storage_path.as_deref()?;
    let namespace = match namespace {
        None => "",
        Some(namespace) if resource.is_namespaced() && is_path_segment(namespace) => namespace,
        Some(_) => return None,
    };
    let mut key = String::with_capacity(prefix.len() + path.len() + namespace.len() + NAME_BYTES);
    key.extend([prefix, "/", path, "/"]);
    if !namespace.is_empty() {
        key.extend([namespace, "/"]);
    }
    Some(key)
}

/// The common prefix of the keys of all objects of a definition, whatever version it serves and
/// whichever scope it had. `None` if that prefix belongs to a built-in resource.
#[must_use]
pub fn definition_key_prefix(
    prefix: &str,
    definition: &CustomResourceDefinition,
) -> Option<String> {
    definition.storage_path().map(|path| format!("{prefix}/{path}/"))
}

/// The names in a key below the prefix of its resource: `namespace/name` or `name`.
///
/// INVARIANT: this is the inverse of [`object_key`].
#[must_use]
pub fn namespace_and_name_in_key<'k>(
    prefix: &str,
    resource: &Resource,
    key: &'k str,
) -> Option<(Option<&'k str>, &'k str)> {
    let rest = key.strip_prefix(prefix)?.strip_prefix('/')?;
    let rest = rest.strip_prefix(resource.storage_path.as_deref()?)?.strip_prefix('/')?;
    let (namespace, name) = match resource.is_namespaced() {
        true => rest.split_once('/').map(|(namespace, name)| (Some(namespace), name))?,
        false => (None, rest),
    };
    (is_path_segment(name) && namespace.is_none_or(is_path_segment)).then_some((namespace, name))
}

/// The tenant to which the store charges a key: its namespace, or the prefix of its resource if it
/// has none. A prefix ends in `/`, which no namespace does. A Namespace object counts for itself.
///
/// The first segment below the prefix is a group if it contains a dot: resource names have none,
/// and the groups of custom resources always do. So a namespace is never mistaken for a resource of
/// the same name.
#[must_use]
pub fn tenant_of_key<'k>(prefix: &str, key: &'k str) -> &'k str {
    let rest = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/'));
    let segments: Vec<&str> = rest.into_iter().flat_map(|rest| rest.split('/')).collect();
    let namespace = match segments.as_slice() {
        // The server uses these keys for its own records.
        ["ranges" | "portcullis" | "uninitialized" | "waitingobjects", ..] => None,
        ["namespaces", namespace] => Some(*namespace),
        [first, _, _] if first.contains('.') => None,
        [first, _, namespace, _] if first.contains('.') => Some(*namespace),
        ["services", _, namespace, _] | [_, namespace, _] => Some(*namespace),
        _ => None,
    };
    let resource = || key.rfind('/').and_then(|at| key.get(..=at)).unwrap_or(key);
    namespace.unwrap_or_else(resource)
}

pub(crate) fn is_path_segment(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn resource(group: &str, plural: &str) -> Resource {
        let registry = Registry::with_built_in_resources();
        registry.resource(group, "v1", plural).expect("served").as_ref().clone()
    }

    #[test]
    fn keys_are_where_kubernetes_has_them() {
        for (group, plural, namespace, want) in [
            ("", "configmaps", Some("d"), "/registry/configmaps/d/x"),
            ("", "namespaces", None, "/registry/namespaces/x"),
            ("", "nodes", None, "/registry/minions/x"),
            ("", "services", Some("d"), "/registry/services/specs/d/x"),
            ("", "endpoints", Some("d"), "/registry/services/endpoints/d/x"),
            ("", "replicationcontrollers", Some("d"), "/registry/controllers/d/x"),
            ("networking.k8s.io", "ingresses", Some("d"), "/registry/ingress/d/x"),
            ("rbac.authorization.k8s.io", "roles", Some("d"), "/registry/roles/d/x"),
            ("rbac.authorization.k8s.io", "clusterroles", None, "/registry/clusterroles/x"),
            ("coordination.k8s.io", "leases", Some("d"), "/registry/leases/d/x"),
            ("apps", "deployments", Some("d"), "/registry/deployments/d/x"),
            (
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                None,
                "/registry/apiextensions.k8s.io/customresourcedefinitions/x",
            ),
        ] {
            let resource = resource(group, plural);
            let key = object_key(DEFAULT_PREFIX, &resource, namespace, "x").expect("a key");
            assert_eq!(key, want);
            assert_eq!(
                namespace_and_name_in_key(DEFAULT_PREFIX, &resource, &key),
                Some((namespace, "x"))
            );
        }
    }

    #[test]
    fn lists_end_in_a_slash() {
        let maps = resource("", "configmaps");
        assert_eq!(list_key_prefix("/p", &maps, None).as_deref(), Some("/p/configmaps/"));
        assert_eq!(list_key_prefix("/p", &maps, Some("d")).as_deref(), Some("/p/configmaps/d/"));
        assert_eq!(list_key_prefix("/p", &resource("", "nodes"), Some("d")), None);
    }

    #[test]
    fn every_key_has_a_share() {
        for resource in Registry::with_built_in_resources().stored_resources() {
            let namespace = resource.is_namespaced().then_some("team-a");
            let key = object_key(DEFAULT_PREFIX, resource, namespace, "x").expect("a key");
            let own = list_key_prefix(DEFAULT_PREFIX, resource, None).expect("a prefix");
            let want = match resource.kind.as_str() {
                "Namespace" => "x",
                _ => namespace.unwrap_or(&own),
            };
            assert_eq!(tenant_of_key(DEFAULT_PREFIX, &key), want, "{key}");
        }
        for (key, want) in [
            ("/registry/configmaps/team-a/x", "team-a"),
            ("/registry/services/specs/team-a/x", "team-a"),
            ("/registry/example.com/widgets/team-a/x", "team-a"),
            // A namespace of that name must not stand in the way of the resource.
            ("/registry/configmaps/minions/x", "minions"),
            ("/registry/minions/x", "/registry/minions/"),
            ("/registry/namespaces/x", "x"),
            ("/registry/example.com/widgets/x", "/registry/example.com/widgets/"),
            ("/registry/ranges/serviceips/10.0.0.1", "/registry/ranges/serviceips/"),
            ("/other/x", "/other/"),
        ] {
            assert_eq!(tenant_of_key("/registry", key), want, "{key}");
        }
    }

    /// L9: keys are made of names that are whole segments.
    #[test]
    fn what_is_no_segment_is_no_key() {
        let maps = resource("", "configmaps");
        for name in ["", ".", "..", "a/b"] {
            assert_eq!(object_key("/p", &maps, Some("d"), name), None, "{name}");
            assert_eq!(object_key("/p", &maps, Some(name), "x"), None, "{name}");
        }
        assert_eq!(object_key("/p", &maps, None, "x"), None);
        assert_eq!(object_key("/p", &resource("", "nodes"), Some("d"), "x"), None);
        let reviews = resource("authorization.k8s.io", "subjectaccessreviews");
        assert_eq!(object_key("/p", &reviews, None, "x"), None);
        assert_eq!(namespace_and_name_in_key("/p", &maps, "/p/configmaps/only"), None);
        assert_eq!(namespace_and_name_in_key("/p", &maps, "/q/configmaps/d/x"), None);
    }
}
