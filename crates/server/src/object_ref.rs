//! The target of a request of the server to itself.

use std::borrow::Cow;

use api_resources::{Resource, Verb};
use authz::{RequestInfo, ResourceInfo};

/// An object, a subresource, or the collection in which an object is created.
///
/// A name may contain characters that have a meaning in URLs, such as `?`. Therefore the parts of a reference
/// become the target of a request unchanged; the path is only for the audit log.
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
    /// An object of a built-in resource.
    pub(crate) fn new(
        (group, version, resource): (&'a str, &'a str, &'a str),
        namespace: &'a str,
        name: &'a str,
    ) -> Self {
        Self { group, version, resource, namespace, name, subresource: "" }
    }

    /// An object of a resource of the registry.
    pub(crate) fn for_resource(
        resource: &'a Resource,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> Self {
        let kind = (resource.group.as_str(), resource.version.as_str(), resource.plural.as_str());
        Self::new(kind, namespace.unwrap_or_default(), name)
    }

    /// A subresource of the object.
    pub(crate) fn with_subresource(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }

    /// The request for this target.
    pub(crate) fn to_request_info(self, verb: Verb) -> RequestInfo {
        let mut trail = (!self.name.is_empty()).then(|| self.name.to_owned());
        if let Some(trail) = trail.as_mut().filter(|_| !self.subresource.is_empty()) {
            trail.push('/');
            trail.push_str(self.subresource);
        }
        // A namespace has its own name as its namespace.
        let is_namespace = self.group.is_empty() && self.resource == "namespaces";
        RequestInfo {
            path: self.url_path(),
            verb: Cow::Borrowed(verb.name()),
            api_prefix: if self.group.is_empty() { "api" } else { "apis" },
            resource: Some(ResourceInfo {
                api_group: self.group.to_owned(),
                api_version: self.version.to_owned(),
                namespace: if is_namespace { self.name } else { self.namespace }.to_owned(),
                resource: self.resource.to_owned(),
                subresource: self.subresource.to_owned(),
                name: self.name.to_owned(),
                path_after_resource: trail,
                ..ResourceInfo::default()
            }),
            has_rewritten_legacy_segment: false,
        }
    }

    /// The URL path of the target.
    fn url_path(&self) -> String {
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
        segments.fold(String::new(), |path, segment| path + "/" + &escape_url_segment(segment))
    }
}

/// Escapes a name as a segment of a URL path.
fn escape_url_segment(name: &str) -> String {
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

    /// The request of a reference equals the request of its path, whatever the name is.
    #[test]
    fn names_stay_data() {
        for name in ["x", "x?y", "x?dryRun=All", "x#y", "x%2fy", "x%", "a b", "system:x", "é", "+"]
        {
            for reference in [
                ObjectRef::new(CLUSTER_ROLES, "", name),
                ObjectRef::new(SECRETS, "default", name),
                ObjectRef::new(("", "v1", "namespaces"), "", name),
                ObjectRef::new(("", "v1", "namespaces"), "", name).with_subresource("finalize"),
                ObjectRef::new(SECRETS, "default", name).with_subresource("status"),
            ] {
                let own = reference.to_request_info(Verb::Update);
                let sent = RequestInfo::new("PUT", &own.path).unwrap();
                assert_eq!(sent.resource, own.resource, "{}", own.path);
                assert_eq!((sent.verb, sent.api_prefix), (own.verb, own.api_prefix));
                assert_eq!(own.resource.unwrap().name, name);
            }
        }
    }

    #[test]
    fn a_collection_has_no_name() {
        let own = ObjectRef::new(SECRETS, "default", "").to_request_info(Verb::Create);
        let sent = RequestInfo::new("POST", "/api/v1/namespaces/default/secrets").unwrap();
        assert_eq!(own, sent);
    }
}
