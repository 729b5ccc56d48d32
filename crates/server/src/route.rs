//! From what a request names to a resource that is served.

use std::sync::Arc;

use authz::RequestInfo;
use http::Method;
use object::Status;
use resources::{Registry, Resource, Verb};

/// What a request is for.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) action: Action,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

/// Why there is no route.
#[derive(Debug)]
pub(crate) enum NoRoute {
    /// 404, as text.
    Text,
    /// As a Status.
    Status(Status),
}

impl Route {
    /// Finds what a request is for.
    pub(crate) fn find(
        registry: &Registry,
        method: &Method,
        info: &RequestInfo,
    ) -> Result<Self, NoRoute> {
        let Some(own) = &info.resource else { return Err(NoRoute::Text) };
        let lacking = || match registry.group(&own.api_group) {
            Some(group) if group.is_built_in => NoRoute::Status(Status::unknown_resource()),
            _ => NoRoute::Text,
        };
        if (info.api_prefix == "api") != own.api_group.is_empty() {
            return Err(NoRoute::Text);
        }
        let resource = registry.resource(&own.api_group, &own.api_version, &own.resource);
        let resource = Arc::clone(resource.ok_or_else(lacking)?);
        let mut parts = own.parts().skip(1);
        let (name, subresource, rest) = (parts.next(), parts.next(), parts.next());
        let is_empty =
            |part: Option<&str>| part.is_some_and(|part| part.is_empty() || part.contains('/'));
        if is_empty(name) || is_empty(subresource) {
            return Err(lacking());
        }
        // A namespace has its own name as its namespace.
        let is_namespace = own.api_group.is_empty() && own.resource == "namespaces";
        let namespace = (!own.namespace.is_empty() && !is_namespace).then(|| own.namespace.clone());
        let has_namespace = namespace.is_some();
        if has_namespace && !resource.is_namespaced() {
            return Err(lacking());
        }
        if let Some(subresource) = subresource
            && (resource.subresource(subresource).is_none() || rest.is_some())
        {
            return Err(match resource.is_custom() {
                true => NoRoute::Status(Status::not_found(
                    &resource.group_resource(),
                    name.unwrap_or_default(),
                )),
                false => NoRoute::Status(Status::unknown_resource()),
            });
        }
        let is_watch = info.verb == "watch";
        let action = match (method, name.is_some()) {
            (&Method::GET, true) => Action::Get,
            (&Method::GET, false) if is_watch => Action::Watch,
            (&Method::GET, false) => Action::List,
            (&Method::POST, _) => Action::Create,
            (&Method::PUT, true) => Action::Update,
            (&Method::PATCH, true) => Action::Patch,
            (&Method::DELETE, true) => Action::Delete,
            (&Method::DELETE, false) => Action::DeleteCollection,
            _ => return Err(NoRoute::Status(Status::method_not_allowed())),
        };
        let route = Self {
            namespace,
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
            action,
            resource,
        };
        match route.is_offered(has_namespace) {
            true => Ok(route),
            false => Err(NoRoute::Status(Status::method_not_allowed())),
        }
    }

    fn is_offered(&self, has_namespace: bool) -> bool {
        let verb = self.action.verb();
        if let Some(subresource) = &self.subresource {
            return (has_namespace || !self.resource.is_namespaced())
                && self
                    .resource
                    .subresource(subresource)
                    .is_some_and(|own| own.verbs.contains(verb));
        }
        // Creating with a name in the path is no such thing.
        if self.action == Action::Create && self.name.is_some() {
            return false;
        }
        let is_across = self.resource.is_namespaced() && !has_namespace;
        if is_across && !matches!(self.action, Action::List | Action::Watch) {
            return false;
        }
        self.resource.offers(verb)
    }
}

impl Action {
    /// Whether something changes.
    pub(crate) fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }

    fn verb(self) -> Verb {
        match self {
            Self::Get => Verb::Get,
            Self::List => Verb::List,
            Self::Watch => Verb::Watch,
            Self::Create => Verb::Create,
            Self::Update => Verb::Update,
            Self::Patch => Verb::Patch,
            Self::Delete => Verb::Delete,
            Self::DeleteCollection => Verb::DeleteCollection,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(method: Method, target: &str) -> Result<Route, NoRoute> {
        let info = RequestInfo::new(method.as_str(), target).unwrap();
        Route::find(&Registry::built_in(), &method, &info)
    }

    #[test]
    fn paths_lead_to_actions() {
        for (method, target, want) in [
            (Method::GET, "/api/v1/configmaps", Action::List),
            (Method::GET, "/api/v1/configmaps?watch=1", Action::Watch),
            (Method::GET, "/api/v1/namespaces/d/configmaps/a?watch=1", Action::Get),
            (
                Method::GET,
                "/api/v1/namespaces/d/configmaps?fieldSelector=metadata.name=a",
                Action::List,
            ),
            (Method::POST, "/api/v1/namespaces/d/configmaps", Action::Create),
            (Method::DELETE, "/api/v1/namespaces/d", Action::Delete),
            (Method::DELETE, "/api/v1/namespaces/d/configmaps/", Action::DeleteCollection),
            (Method::PUT, "/api/v1/namespaces/d/finalize", Action::Update),
            (Method::PATCH, "/apis/rbac.authorization.k8s.io/v1/clusterroles/x", Action::Patch),
        ] {
            assert_eq!(find(method, target).unwrap().action, want, "{target}");
        }
    }

    /// api-server H-010.
    #[test]
    fn methods_that_are_not_offered() {
        for (method, target) in [
            (Method::DELETE, "/api/v1/configmaps"),
            (Method::POST, "/api/v1/configmaps"),
            (Method::PATCH, "/api/v1/namespaces/d/configmaps"),
            (Method::PUT, "/api/v1/namespaces/d/configmaps"),
            (Method::HEAD, "/api/v1/namespaces/d/configmaps/a"),
            (Method::OPTIONS, "/api/v1/namespaces/d/configmaps"),
            (Method::DELETE, "/api/v1/namespaces"),
            (Method::GET, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ] {
            match find(method, target) {
                Err(NoRoute::Status(status)) => assert_eq!(status.code, 405, "{target}"),
                other => panic!("{target}: {other:?}"),
            }
        }
    }

    /// api-server H-008, H-009.
    #[test]
    fn what_is_not_there() {
        for (target, is_text) in [
            ("/apis/nosuch/v1/x", true),
            ("/api/v1/nosuch", false),
            ("/apis/rbac.authorization.k8s.io/v9/roles", false),
            ("/api/v1/namespaces/d/configmaps/a/nosuch", false),
            ("/api/v1/namespaces/d/nodes", false),
        ] {
            let is_found = match find(Method::GET, target) {
                Err(NoRoute::Text) => is_text,
                Err(NoRoute::Status(status)) => !is_text && status.code == 404,
                Ok(_) => false,
            };
            assert!(is_found, "{target}");
        }
    }
}
