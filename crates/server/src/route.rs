//! Routes an authorized target to a served resource.

use std::sync::Arc;

use api_object::Status;
use api_resources::{Resource, Verb};
use authz::RequestInfo;
use field_errors::{FieldErrors, FieldPath};
use http::Method;

use crate::authorize::Authorized;

/// An authorized request for a resource that is served.
///
/// INVARIANT: every part comes from the [`Authorized`]; the HTTP method does not change it.
#[derive(Clone)]
pub(crate) struct Route<'a> {
    pub(crate) authorization_proof: &'a Authorized,
    pub(crate) verb: Verb,
    pub(crate) resource: Arc<Resource>,
    /// `None` for cluster-scoped resources and for requests across all namespaces.
    pub(crate) namespace: Option<&'a str>,
    /// The name in the path.
    pub(crate) name: Option<&'a str>,
    pub(crate) subresource: Option<&'a str>,
}

/// Why a target has no route.
#[derive(Debug)]
pub(crate) enum ResourceRouteError {
    /// 404 as plain text.
    Text,
    /// An error as a Status.
    Status(Status),
}

impl<'a> Route<'a> {
    /// Finds the authorized resource, and checks that it offers the verb for the name and the namespace.
    pub(crate) fn from_authorized(authorized: &'a Authorized) -> Result<Self, ResourceRouteError> {
        let registry = &authorized.authorization_snapshot().resource_registry;
        let Some(own) = authorized.target_resource() else { return Err(ResourceRouteError::Text) };
        let lacking = || match registry.group(&own.api_group) {
            Some(group) if group.is_built_in => {
                ResourceRouteError::Status(Status::unknown_resource())
            }
            _ => ResourceRouteError::Text,
        };
        let info = authorized.request_info();
        if (info.api_prefix == "api") != own.api_group.is_empty() || begins_with_two_slashes(info) {
            return Err(ResourceRouteError::Text);
        }
        let resource = registry.resource(&own.api_group, &own.api_version, &own.resource);
        let resource = Arc::clone(resource.ok_or_else(lacking)?);
        // No built-in resource serves the old paths `/api/v1/proxy/...`.
        if info.verb == "proxy" && !resource.is_custom_resource() {
            return Err(lacking());
        }
        let mut parts = own.path_segments_from_resource().skip(1);
        let (name, subresource, rest) = (parts.next(), parts.next(), parts.next());
        let is_empty =
            |part: Option<&str>| part.is_some_and(|part| part.is_empty() || part.contains('/'));
        if is_empty(name) || is_empty(subresource) {
            return Err(lacking());
        }
        // The target of a Namespace has its own name as its namespace.
        let in_namespace = NamespaceInPath::of(info);
        let is_namespace = own.api_group.is_empty() && own.resource == "namespaces";
        let is_itself = is_namespace && in_namespace == NamespaceInPath::Absent;
        let namespace = Some(own.namespace.as_str()).filter(|own| !own.is_empty() && !is_itself);
        // A built-in resource without namespaces has no path with a namespace, not even with an empty one.
        let is_in_empty_namespace =
            in_namespace == NamespaceInPath::Empty && !resource.is_custom_resource();
        if (namespace.is_some() || is_in_empty_namespace) && !resource.is_namespaced() {
            return Err(lacking());
        }
        if let Some(subresource) = subresource
            && (resource.find_subresource(subresource).is_none()
                || (rest.is_some() && subresource != "proxy"))
        {
            return Err(match resource.is_custom_resource() {
                true if resource.is_namespaced() && namespace.is_none() => ResourceRouteError::Text,
                true => ResourceRouteError::Status(Status::not_found(
                    &resource.group_resource(),
                    name.unwrap_or_default(),
                )),
                false => ResourceRouteError::Status(Status::unknown_resource()),
            });
        }
        let verb = authorized.verb();
        let is_across_namespaces = resource.is_namespaced() && namespace.is_none();
        let place =
            RequestedResourcePath { resource: &resource, is_across_namespaces, name, subresource };
        match verb {
            Some(verb) if place.offers_verb(verb) => Ok(Self {
                authorization_proof: authorized,
                verb,
                resource,
                namespace,
                name,
                subresource,
            }),
            _ => Err(place.refuse_verb(info, verb, in_namespace)),
        }
    }

    /// Whether the method of a request is that of its verb. HEAD stands for GET where a request is forwarded, and for custom
    /// resources, as in Kubernetes.
    pub(crate) fn accepts_method(&self, method: &Method) -> bool {
        let is_forwarded =
            self.subresource == Some("proxy") && self.connect_options_kind().is_some();
        let is_read = matches!(self.verb, Verb::Get | Verb::List);
        let is_head_of_get =
            method == Method::HEAD && is_read && self.resource.is_custom_resource();
        http_method(self.verb) == method
            || is_head_of_get
            || (is_forwarded && method == Method::HEAD)
    }
}

/// Reports whether a path begins with `//`. Such a path is not found, because proxies that match paths by their beginning
/// would not recognize it.
pub(crate) fn begins_with_two_slashes(info: &RequestInfo) -> bool {
    info.path.starts_with("//")
}

/// Reports whether a path has the old form of a watch, `/api/v1/watch/...`.
fn is_legacy_watch_path(info: &RequestInfo) -> bool {
    let n_prefix_segments = if info.api_prefix == "api" { 2 } else { 3 };
    info.path.trim_matches('/').split('/').nth(n_prefix_segments) == Some("watch")
}

/// The namespace in the path of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamespaceInPath {
    /// The path has no namespace, or it is the path of a Namespace.
    Absent,
    /// The path has `namespaces//`.
    Empty,
    Named,
}

impl NamespaceInPath {
    fn of(info: &RequestInfo) -> Self {
        let n_prefix_segments = if info.api_prefix == "api" { 2 } else { 3 };
        let segments = info.path.trim_matches('/').split('/').skip(n_prefix_segments);
        let mut segments = segments.peekable();
        if segments.next_if_eq(&"watch").is_none() {
            segments.next_if_eq(&"proxy");
        }
        let (first, name, inner) = (segments.next(), segments.next(), segments.next());
        match (first, name, inner) {
            (Some("namespaces" | "ns"), Some(_), None | Some("status" | "finalize")) => {
                Self::Absent
            }
            (Some("namespaces" | "ns"), Some(""), Some(_)) => Self::Empty,
            (Some("namespaces" | "ns"), Some(_), Some(_)) => Self::Named,
            _ => Self::Absent,
        }
    }
}

/// The resource, name and subresource that a request path names.
struct RequestedResourcePath<'p> {
    resource: &'p Resource,
    /// Whether the path spans all namespaces: the resource is namespaced and the path names no namespace.
    is_across_namespaces: bool,
    name: Option<&'p str>,
    subresource: Option<&'p str>,
}

impl RequestedResourcePath<'_> {
    fn offers_verb(&self, verb: Verb) -> bool {
        if let Some(subresource) = self.subresource {
            let subresource = self.resource.find_subresource(subresource);
            return !self.is_across_namespaces
                && subresource.is_some_and(|own| own.verbs.contains(verb));
        }
        let fits_name = match verb {
            Verb::Get | Verb::Update | Verb::Patch | Verb::Delete => self.name.is_some(),
            Verb::List | Verb::Create | Verb::DeleteCollection => self.name.is_none(),
            // The deprecated `watch/` paths may name a single object.
            Verb::Watch => true,
        };
        let fits_scope = match (verb, self.name) {
            (Verb::List | Verb::Watch, None) => true,
            _ => !self.is_across_namespaces,
        };
        fits_name && fits_scope && self.resource.supports_verb(verb)
    }

    /// Returns the error for a verb that the path does not support: 404 if it supports no verb at all, otherwise
    /// 405.
    fn refuse_verb(
        &self,
        info: &RequestInfo,
        verb: Option<Verb>,
        in_namespace: NamespaceInPath,
    ) -> ResourceRouteError {
        if self.resource.is_custom_resource() {
            return self.refuse_custom_resource_verb(info, verb);
        }
        if in_namespace == NamespaceInPath::Empty && self.is_across_namespaces {
            let named = RequestedResourcePath { is_across_namespaces: false, ..*self };
            return ResourceRouteError::Status(
                match verb.filter(|verb| named.offers_verb(*verb)) {
                    None => return named.refuse_verb(info, verb, NamespaceInPath::Named),
                    Some(Verb::Create) if self.name.is_none() => {
                        let mut errors = FieldErrors::new();
                        errors.push(FieldPath::root("metadata").child("namespace").required(""));
                        Status::invalid_object(&self.resource.group_kind(), "", &errors)
                    }
                    Some(_) => Status::bad_request("Namespace parameter required."),
                },
            );
        }
        // A path that begins with `watch` supports only that verb.
        let is_watch_path = verb == Some(Verb::Watch) && is_legacy_watch_path(info);
        let is_any_offered = Verb::ALL
            .into_iter()
            .any(|offered| (!is_watch_path || offered == Verb::Watch) && self.offers_verb(offered));
        ResourceRouteError::Status(match is_any_offered {
            true => Status::method_not_allowed(),
            false => Status::unknown_resource(),
        })
    }

    fn refuse_custom_resource_verb(
        &self,
        info: &RequestInfo,
        verb: Option<Verb>,
    ) -> ResourceRouteError {
        let is_listing = matches!(verb, Some(Verb::List | Verb::Watch));
        if self.is_across_namespaces && (!is_listing || self.name.is_some()) {
            return ResourceRouteError::Text;
        }
        ResourceRouteError::Status(match verb {
            Some(Verb::Update | Verb::Patch) if self.name.is_none() => {
                Status::bad_request("name must be provided")
            }
            _ => Status::method_not_supported(&self.resource.group_resource(), &info.verb),
        })
    }
}

impl Route<'_> {
    /// The kind of the options of a connection; `None` if the request is none.
    pub(crate) fn connect_options_kind(&self) -> Option<&'static str> {
        self.resource.find_subresource(self.subresource?)?.connect_options_kind()
    }
}

/// The HTTP method of a verb.
pub(crate) fn http_method(verb: Verb) -> Method {
    match verb {
        Verb::Get | Verb::List | Verb::Watch => Method::GET,
        Verb::Create => Method::POST,
        Verb::Update => Method::PUT,
        Verb::Patch => Method::PATCH,
        Verb::Delete | Verb::DeleteCollection => Method::DELETE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::ConfiguredHooks;
    use crate::cluster_snapshot::ClusterSnapshot;

    /// The verb, the namespace, the name and the subresource that a request leads to.
    type Found = (Verb, Option<String>, Option<String>, Option<String>);

    /// As a request is handled: the method has to be the one of the verb.
    fn find(sent: Method, target: &str) -> Result<Found, ResourceRouteError> {
        let info = RequestInfo::new(sent.as_str(), target).unwrap();
        let node = authz_node::Snapshot::default();
        let cluster = ClusterSnapshot::of_empty_store(
            Arc::new([]),
            node,
            ConfiguredHooks::without_hooks(Arc::default()),
        )
        .unwrap();
        let authorized = Authorized::for_test(Arc::default(), info, Arc::new(cluster));
        let route = Route::from_authorized(&authorized)?;
        if http_method(route.verb) != sent {
            return Err(ResourceRouteError::Status(Status::method_not_allowed()));
        }
        let text = |part: Option<&str>| part.map(str::to_owned);
        Ok((route.verb, text(route.namespace), text(route.name), text(route.subresource)))
    }

    #[test]
    fn paths_lead_to_verbs() {
        for (method, target, want) in [
            (Method::GET, "/api/v1/configmaps", Verb::List),
            (Method::GET, "/api/v1/configmaps?watch=1", Verb::Watch),
            (Method::GET, "/api/v1/namespaces/d/configmaps/a?watch=1", Verb::Get),
            (Method::GET, "/api/v1/watch/configmaps", Verb::Watch),
            (Method::GET, "/api/v1/watch/namespaces/d/configmaps/a", Verb::Watch),
            (Method::GET, "/api/v1/watch/namespaces/d/configmaps/a?watch=0", Verb::Watch),
            (Method::GET, "/api/v1/watch/namespaces/d", Verb::Watch),
            (
                Method::GET,
                "/api/v1/namespaces/d/configmaps?fieldSelector=metadata.name=a",
                Verb::List,
            ),
            (Method::POST, "/api/v1/namespaces/d/configmaps", Verb::Create),
            (Method::DELETE, "/api/v1/namespaces/d", Verb::Delete),
            (Method::DELETE, "/api/v1/namespaces/d/configmaps/", Verb::DeleteCollection),
            (Method::PUT, "/api/v1/namespaces/d/finalize", Verb::Update),
            (Method::PATCH, "/apis/rbac.authorization.k8s.io/v1/clusterroles/x", Verb::Patch),
        ] {
            assert_eq!(find(method, target).unwrap().0, want, "{target}");
        }
    }

    #[test]
    fn methods_that_are_not_offered() {
        for (method, target) in [
            (Method::DELETE, "/api/v1/configmaps"),
            (Method::POST, "/api/v1/configmaps"),
            (Method::PATCH, "/api/v1/namespaces/d/configmaps"),
            (Method::PUT, "/api/v1/namespaces/d/configmaps"),
            (Method::HEAD, "/api/v1/namespaces/d/configmaps/a"),
            (Method::OPTIONS, "/api/v1/namespaces/d/configmaps"),
            (Method::DELETE, "/api/v1/watch/namespaces/d/configmaps/a"),
            (Method::PUT, "/api/v1/watch/namespaces/d/configmaps/a"),
            (Method::PATCH, "/api/v1/watch/namespaces/d/configmaps/a"),
            (Method::POST, "/api/v1/watch/namespaces/d/configmaps"),
            (Method::DELETE, "/api/v1/watch/namespaces/d/configmaps"),
            (Method::HEAD, "/api/v1/watch/namespaces/d/configmaps"),
            (Method::DELETE, "/api/v1/namespaces"),
            (Method::GET, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ] {
            match find(method, target) {
                Err(ResourceRouteError::Status(status)) => assert_eq!(status.code, 405, "{target}"),
                other => panic!("{target}: {other:?}"),
            }
        }
    }

    #[test]
    fn an_empty_namespace_is_not_one() {
        for (method, target, code) in [
            (Method::GET, "/api/v1/namespaces//configmaps/a", 400),
            (Method::PUT, "/api/v1/namespaces//configmaps/a", 400),
            (Method::PATCH, "/api/v1/namespaces//configmaps/a", 400),
            (Method::DELETE, "/api/v1/namespaces//configmaps/a", 400),
            (Method::DELETE, "/api/v1/namespaces//configmaps", 400),
            (Method::POST, "/api/v1/namespaces//configmaps", 422),
            (Method::PUT, "/api/v1/namespaces//configmaps", 405),
            (Method::PATCH, "/api/v1/namespaces//configmaps", 405),
            (Method::OPTIONS, "/api/v1/namespaces//configmaps/a", 405),
            (Method::POST, "/api/v1/namespaces//configmaps/a", 405),
            (
                Method::PUT,
                "/apis/authorization.k8s.io/v1/namespaces//localsubjectaccessreviews/a",
                404,
            ),
        ] {
            match find(method, target) {
                Err(ResourceRouteError::Status(status)) => {
                    assert_eq!(status.code, code, "{target}")
                }
                other => panic!("{target}: {other:?}"),
            }
        }
        let (verb, namespace, ..) = find(Method::GET, "/api/v1/namespaces//configmaps").unwrap();
        assert_eq!((verb, namespace), (Verb::List, None));
    }

    /// L8: the scope of a path is that of its resource.
    #[test]
    fn what_is_not_there() {
        for (target, is_text) in [
            ("/apis/nosuch/v1/x", true),
            ("/apis/nosuch/v1/proxy/x/a", true),
            ("/api/v1/proxy/namespaces/d/pods/a", false),
            ("/api/v1/proxy/nodes/a", false),
            ("/apis/rbac.authorization.k8s.io/v9/proxy/roles", false),
            ("/api/v1/nosuch", false),
            ("/apis/rbac.authorization.k8s.io/v9/roles", false),
            ("/api/v1/namespaces/d/configmaps/a/nosuch", false),
            ("/api/v1/namespaces/d/nodes", false),
            ("/api/v1/namespaces//nodes", false),
            ("/api/v1/namespaces//nodes?watch=1", false),
            ("/api/v1/namespaces//nodes/a", false),
            ("/api/v1/namespaces//namespaces", false),
            ("/api/v1/namespaces//namespaces/a", false),
            ("/apis/rbac.authorization.k8s.io/v1/namespaces//clusterroles", false),
            ("/api/v1/namespaces/d/namespaces", false),
            ("/api/v1/namespaces/d/namespaces?watch=1", false),
            ("/api/v1/namespaces/d/namespaces/e", false),
            ("/api/v1/namespaces/d/namespaces/e/status", false),
            ("/api/v1/watch/namespaces/d/namespaces", false),
            ("/api/v1/watch/namespaces/d/namespaces/e", false),
            ("/api/v1/namespaces/d/namespaces/d", false),
            ("/api/v1/namespaces/d/namespaces/d/status", false),
            ("/api/v1/watch/namespaces/d/namespaces/d", false),
            ("//api/v1/namespaces/d/configmaps/a", true),
            ("/api/v1/configmaps/a", false),
            ("/api/v1/pods/a/status", false),
            ("/api/v1/watch/configmaps/a", false),
            ("/api/v1/watch/namespaces/d/pods/a/status", false),
            ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/a", false),
            ("/apis/authorization.k8s.io/v1/watch/selfsubjectaccessreviews", false),
            ("/apis/authorization.k8s.io/v1/localsubjectaccessreviews", false),
        ] {
            let is_found = match find(Method::GET, target) {
                Err(ResourceRouteError::Text) => is_text,
                Err(ResourceRouteError::Status(status)) => !is_text && status.code == 404,
                Ok(_) => false,
            };
            assert!(is_found, "{target}");
        }
    }
}
