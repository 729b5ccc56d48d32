//! Which object a request of the server to itself is for.

use std::borrow::Cow;

use api_resources::{Resource, Verb};
use authz::{RequestInfo, ResourceInfo};

/// One object, a part of it, or the collection in which an object is created, by value.
///
/// A name may contain what a URL gives a meaning to, such as `?`. Therefore the parts of a reference
/// become the target of a request as they are; the path is written for the audit log only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectRef<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    namespace: &'a str,
    name: &'a str,
    subresource: &'a str,
}

impl<'a> ObjectRef<'a> {
    /// An object of a resource that is always served.
    pub(crate) fn built_in(
        (group, version, resource): (&'a str, &'a str, &'a str),
        namespace: &'a str,
        name: &'a str,
    ) -> Self {
        Self { group, version, resource, namespace, name, subresource: "" }
    }

    /// An object of a resource of the registry.
    pub(crate) fn of(resource: &'a Resource, namespace: Option<&'a str>, name: &'a str) -> Self {
        let kind = (resource.group.as_str(), resource.version.as_str(), resource.plural.as_str());
        Self::built_in(kind, namespace.unwrap_or_default(), name)
    }

    /// A part of the object.
    pub(crate) fn part(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }

    /// The request for it.
    pub(crate) fn request(&self, verb: Verb) -> RequestInfo {
        let mut trail = (!self.name.is_empty()).then(|| self.name.to_owned());
        if let Some(trail) = trail.as_mut().filter(|_| !self.subresource.is_empty()) {
            trail.push('/');
            trail.push_str(self.subresource);
        }
        // A namespace has its own name as its namespace.
        let is_namespace = self.group.is_empty() && self.resource == "namespaces";
        RequestInfo {
            path: self.path(),
            verb: Cow::Borrowed(verb.name()),
            api_prefix: if self.group.is_empty() { "api" } else { "apis" },
            resource: Some(ResourceInfo {
                api_group: self.group.to_owned(),
                api_version: self.version.to_owned(),
                namespace: if is_namespace { self.name } else { self.namespace }.to_owned(),
                resource: self.resource.to_owned(),
                subresource: self.subresource.to_owned(),
                name: self.name.to_owned(),
                trail,
                ..ResourceInfo::default()
            }),
            is_legacy_path: false,
        }
    }

    /// The path under which clients find it.
    fn path(&self) -> String {
        let root: &[&str] = match self.group {
            "" => &["api", self.version],
            group => &["apis", group, self.version],
        };
        let namespace: &[&str] = match self.namespace {
            "" => &[],
            namespace => &["namespaces", namespace],
        };
        let own = [self.resource, self.name, self.subresource];
        let segments = root.iter().chain(namespace).chain(&own).filter(|own| !own.is_empty());
        segments.fold(String::new(), |path, segment| path + "/" + &escape(segment))
    }
}

/// A name as a segment of a path.
fn escape(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER_ROLES: (&str, &str, &str) = (authz_rbac::GROUP, "v1", "clusterroles");
    const SECRETS: (&str, &str, &str) = ("", "v1", "secrets");

    /// A request by value and the request for its path agree, whatever the name is.
    #[test]
    fn names_stay_data() {
        for name in ["x", "x?y", "x?dryRun=All", "x#y", "x%2fy", "x%", "a b", "system:x", "é", "+"]
        {
            for reference in [
                ObjectRef::built_in(CLUSTER_ROLES, "", name),
                ObjectRef::built_in(SECRETS, "default", name),
                ObjectRef::built_in(("", "v1", "namespaces"), "", name),
                ObjectRef::built_in(("", "v1", "namespaces"), "", name).part("finalize"),
                ObjectRef::built_in(SECRETS, "default", name).part("status"),
            ] {
                let own = reference.request(Verb::Update);
                let sent = RequestInfo::new("PUT", &own.path).unwrap();
                assert_eq!(sent.resource, own.resource, "{}", own.path);
                assert_eq!((sent.verb, sent.api_prefix), (own.verb, own.api_prefix));
                assert_eq!(own.resource.unwrap().name, name);
            }
        }
    }

    #[test]
    fn a_collection_has_no_name() {
        let own = ObjectRef::built_in(SECRETS, "default", "").request(Verb::Create);
        let sent = RequestInfo::new("POST", "/api/v1/namespaces/default/secrets").unwrap();
        assert_eq!(own, sent);
    }
}
