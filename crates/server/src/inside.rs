//! The server as its own client. What it does by itself goes the way of every request: it is
//! authorized, admitted, persisted.

use std::sync::Arc;

use authz::{RequestInfo, User};
use http::Method;
use jiff::Timestamp;
use object::{DeleteOptions, Status, Tree};
use store::Store;

use crate::authorize::authorize;
use crate::gate::Authorized;
use crate::host::Host;
use crate::rest::{Call, Change, Deleted, Query, Shown, WriteOptions};
use crate::route::{NoRoute, Route};

/// Who the server is to itself.
pub const SERVER_USER: &str = "system:apiserver";

/// A request of the server to itself, on its way.
pub(crate) struct Errand {
    authorized: Authorized,
    route: Route,
    query: Query,
}

impl<S: Store> Host<S> {
    /// Begins a request to itself.
    pub(crate) async fn errand(&self, method: Method, path: &str) -> Result<Errand, Status> {
        let info = RequestInfo::new(method.as_str(), path)
            .map_err(|error| Status::internal(&error.to_string()))?;
        let view = self.follower.view();
        let user = Arc::clone(&self.own_user);
        let (authorized, _) = authorize(view, user, info).await.map_err(|refused| {
            Status::internal(&format!("the server may not: {}", refused.1.reason))
        })?;
        let registry = &authorized.view().registry;
        let route = Route::find(registry, &method, authorized.info());
        let route = route.map_err(|no_route| match no_route {
            NoRoute::Text => Status::unknown_resource(),
            NoRoute::Status(status) => status,
        })?;
        Ok(Errand { authorized, route, query: Query::default() })
    }

    /// Reads an object.
    pub(crate) async fn own_get(&self, path: &str) -> Result<Shown, Status> {
        let errand = self.errand(Method::GET, path).await?;
        errand.call(self).get(errand.name()).await
    }

    /// Makes an object.
    pub(crate) async fn own_create(&self, path: &str, tree: Tree) -> Result<Shown, Status> {
        let errand = self.errand(Method::POST, path).await?;
        errand.call(self).create(errand.typed(tree), WriteOptions::default()).await
    }

    /// Replaces an object, or the part of it that the path names.
    pub(crate) async fn own_update(&self, path: &str, tree: Tree) -> Result<Shown, Status> {
        let errand = self.errand(Method::PUT, path).await?;
        let part = errand.route.subresource.as_deref();
        let change = Change::Replace(errand.typed(tree));
        let options = WriteOptions::default();
        let updated = errand.call(self).update(errand.name(), part, &change, options).await?;
        Ok(updated.shown)
    }

    /// Deletes an object.
    pub(crate) async fn own_delete(
        &self,
        path: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let errand = self.errand(Method::DELETE, path).await?;
        errand.call(self).delete(errand.name(), options).await
    }
}

impl Errand {
    fn call<'a, S: Store>(&'a self, host: &'a Host<S>) -> Call<'a, S> {
        Call {
            host,
            authorized: &self.authorized,
            resource: &self.route.resource,
            namespace: self.route.namespace.as_deref(),
            query: &self.query,
            now: Timestamp::now(),
            warnings: Vec::new(),
        }
    }

    /// The object as the decoder of a request would hand it over: it says what it is.
    fn typed(&self, mut tree: Tree) -> Tree {
        let resource = &self.route.resource;
        tree.insert("apiVersion".to_owned(), resource.group_version().to_string().into());
        tree.insert("kind".to_owned(), resource.kind.clone().into());
        tree
    }

    fn name(&self) -> &str {
        self.route.name.as_deref().unwrap_or_default()
    }
}

/// Who the server is to itself; the uid is new with every process.
pub(crate) fn own_user(uid: String) -> Arc<User> {
    Arc::new(User {
        name: SERVER_USER.to_owned(),
        uid,
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..User::default()
    })
}
