//! Routes an authorized target to a served resource.

use std::sync::Arc;

use api_object::Status;
use api_resources::{Resource, Verb};
use http::Method;

use crate::authorize::Authorized;

/// An authorized request for a resource that is served.
///
/// INVARIANT: every part comes from the [`Authorized`]; the HTTP method does not change it.
#[derive(Clone)]
pub(crate) struct Route<'a> {
    pub(crate) authorized: &'a Authorized,
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
pub(crate) enum RouteError {
    /// 404 as plain text.
    Text,
    /// An error as a Status.
    Status(Status),
}

impl<'a> Route<'a> {
    /// Finds the authorized resource, and checks that it offers the verb for the name and the namespace.
    pub(crate) fn from_authorized(authorized: &'a Authorized) -> Result<Self, RouteError> {
        let registry = &authorized.snapshot().registry;
        let Some(own) = authorized.target() else { return Err(RouteError::Text) };
        let lacking = || match registry.group(&own.api_group) {
            Some(group) if group.is_built_in => RouteError::Status(Status::unknown_resource()),
            _ => RouteError::Text,
        };
        let info = authorized.request_info();
        if (info.api_prefix == "api") != own.api_group.is_empty() || info.verb == "proxy" {
            return Err(RouteError::Text);
        }
        let resource = registry.resource(&own.api_group, &own.api_version, &own.resource);
        let resource = Arc::clone(resource.ok_or_else(lacking)?);
        let mut parts = own.path_segments().skip(1);
        let (name, subresource, rest) = (parts.next(), parts.next(), parts.next());
        let is_empty =
            |part: Option<&str>| part.is_some_and(|part| part.is_empty() || part.contains('/'));
        if is_empty(name) || is_empty(subresource) {
            return Err(lacking());
        }
        // The target of a Namespace has its own name as its namespace.
        let is_namespace = own.api_group.is_empty() && own.resource == "namespaces";
        let is_itself = is_namespace && name == Some(own.namespace.as_str());
        let namespace = Some(own.namespace.as_str()).filter(|own| !own.is_empty() && !is_itself);
        if namespace.is_some() && !resource.is_namespaced() {
            return Err(lacking());
        }
        if let Some(subresource) = subresource
            && (resource.subresource(subresource).is_none()
                || (rest.is_some() && subresource != "proxy"))
        {
            return Err(match resource.is_custom() {
                true => RouteError::Status(Status::not_found(
                    &resource.group_resource(),
                    name.unwrap_or_default(),
                )),
                false => RouteError::Status(Status::unknown_resource()),
            });
        }
        let not_allowed = || RouteError::Status(Status::method_not_allowed());
        let verb = authorized.verb().ok_or_else(not_allowed)?;
        let route = Self { authorized, verb, resource, namespace, name, subresource };
        if route.is_verb_offered() { Ok(route) } else { Err(not_allowed()) }
    }

    fn is_verb_offered(&self) -> bool {
        let is_across = self.resource.is_namespaced() && self.namespace.is_none();
        if let Some(subresource) = self.subresource {
            let subresource = self.resource.subresource(subresource);
            return !is_across && subresource.is_some_and(|own| own.verbs.contains(self.verb));
        }
        let fits_name = match self.verb {
            Verb::Get | Verb::Update | Verb::Patch | Verb::Delete => self.name.is_some(),
            Verb::List | Verb::Create | Verb::DeleteCollection => self.name.is_none(),
            // The old form of a watch of one object has its name in the path.
            Verb::Watch => true,
        };
        let fits_scope = match (self.verb, self.name) {
            (Verb::List | Verb::Watch, None) => true,
            _ => !is_across,
        };
        fits_name && fits_scope && self.resource.supports_verb(self.verb)
    }
}

impl Route<'_> {
    /// The kind of the options of a connection; `None` if the request is none.
    pub(crate) fn connect_options_kind(&self) -> Option<&'static str> {
        self.resource.subresource(self.subresource?)?.connect_options_kind()
    }

    /// Reports whether the request may have this method: that of its verb, or HEAD for what is forwarded.
    pub(crate) fn takes_method(&self, method: &Method) -> bool {
        let is_forwarded =
            self.subresource == Some("proxy") && self.connect_options_kind().is_some();
        http_method(self.verb) == *method || (is_forwarded && *method == Method::HEAD)
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
    use authz::RequestInfo;

    use super::*;
    use crate::admission::ConfiguredHooks;
    use crate::cluster_snapshot::ClusterSnapshot;

    /// The verb, the namespace, the name and the subresource that a request leads to.
    type Found = (Verb, Option<String>, Option<String>, Option<String>);

    /// As a request is handled: the method has to be the one of the verb.
    fn find(sent: Method, target: &str) -> Result<Found, RouteError> {
        let info = RequestInfo::new(sent.as_str(), target).unwrap();
        let node = authz_node::Snapshot::default();
        let cluster =
            ClusterSnapshot::empty(Arc::new([]), node, ConfiguredHooks::empty(Arc::default()))
                .unwrap();
        let authorized = Authorized::for_test(Arc::default(), info, Arc::new(cluster));
        let route = Route::from_authorized(&authorized)?;
        if http_method(route.verb) != sent {
            return Err(RouteError::Status(Status::method_not_allowed()));
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
            (Method::GET, "/api/v1/watch/configmaps/a"),
            (Method::GET, "/api/v1/watch/namespaces/d/pods/a/status"),
            (Method::DELETE, "/api/v1/namespaces"),
            (Method::GET, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ] {
            match find(method, target) {
                Err(RouteError::Status(status)) => assert_eq!(status.code, 405, "{target}"),
                other => panic!("{target}: {other:?}"),
            }
        }
    }

    /// L8: the scope of a path is that of its resource.
    #[test]
    fn what_is_not_there() {
        for (target, is_text) in [
            ("/apis/nosuch/v1/x", true),
            ("/api/v1/proxy/namespaces/d/pods/a", true),
            ("/api/v1/proxy/nodes/a", true),
            ("/api/v1/nosuch", false),
            ("/apis/rbac.authorization.k8s.io/v9/roles", false),
            ("/api/v1/namespaces/d/configmaps/a/nosuch", false),
            ("/api/v1/namespaces/d/nodes", false),
            ("/api/v1/namespaces/d/namespaces", false),
            ("/api/v1/namespaces/d/namespaces?watch=1", false),
            ("/api/v1/namespaces/d/namespaces/e", false),
            ("/api/v1/namespaces/d/namespaces/e/status", false),
            ("/api/v1/watch/namespaces/d/namespaces", false),
            ("/api/v1/watch/namespaces/d/namespaces/e", false),
        ] {
            let is_found = match find(Method::GET, target) {
                Err(RouteError::Text) => is_text,
                Err(RouteError::Status(status)) => !is_text && status.code == 404,
                Ok(_) => false,
            };
            assert!(is_found, "{target}");
        }
    }
}
