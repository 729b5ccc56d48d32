//! The server as its own client. What it does by itself goes the way of every request: it is
//! recorded, authorized, admitted, persisted.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use admission_hooks::Notes;
use audit::{Event, Received, Stage};
use authz::{RequestInfo, User};
use http::Method;
use jiff::Timestamp;
use object::{DeleteOptions, Status, Tree};
use store::Store;
use tokio::time::Instant;

use crate::admit::Entrance;
use crate::authorize::authorize;
use crate::gate::Authorized;
use crate::host::Host;
use crate::record;
use crate::rest::{Call, Change, Deleted, Query, Shown, WriteOptions};
use crate::route::{NoRoute, Route};

/// Who the server is to itself.
pub const SERVER_USER: &str = "system:apiserver";

/// A request of the server to itself, on its way.
pub(crate) struct Errand {
    authorized: Authorized,
    route: Route,
    query: Query,
    /// `None` if nobody wants to know.
    event: Option<Box<Event>>,
}

/// What the server calls itself in the audit log.
const USER_AGENT: &str = "portcullis/loops";

impl<S: Store> Host<S> {
    /// Begins a request to itself.
    pub(crate) async fn errand(&self, method: Method, path: &str) -> Result<Errand, Status> {
        let info = RequestInfo::new(method.as_str(), path)
            .map_err(|error| Status::internal(&error.to_string()))?;
        let view = self.follower.view();
        let user = Arc::clone(&self.own_user);
        let mut event = self.own_event(&info, path);
        let (authorized, decided) = authorize(view, user, info).await;
        let decision = decided.decision;
        let authorized = authorized
            .map_err(|_| Status::internal(&format!("the server may not: {}", decision.reason)))?;
        let registry = &authorized.view().registry;
        let route = Route::find(registry, &method, authorized.info());
        let route = route.map_err(|no_route| match no_route {
            NoRoute::Text => Status::unknown_resource(),
            NoRoute::Status(status) => status,
        })?;
        if let Some(event) = &mut event {
            event.decided(true, &decision.reason.to_string());
        }
        Ok(Errand { authorized, route, query: Query::default(), event })
    }

    fn own_event(&self, info: &RequestInfo, path: &str) -> Option<Box<Event>> {
        let auditor = self.auditor.as_ref()?;
        let received = Received {
            audit_id: &object::uuid4(self.random()),
            uri: path,
            attributes: info.attributes(Some(&self.own_user)),
            source_ips: &[IpAddr::V4(Ipv4Addr::LOCALHOST)],
            user_agent: USER_AGENT,
            at: Timestamp::now(),
        };
        let event = auditor.begin(&received).map(Box::new)?;
        record::write(self, &event, Stage::RequestReceived);
        Some(event)
    }

    /// Records a write that the server does by itself and that nobody was asked about, and why.
    pub(crate) fn record_own_write(&self, path: &str, annotation: String, why: &str) {
        let Ok(info) = RequestInfo::new(Method::PUT.as_str(), path) else { return };
        if let Some(mut event) = self.own_event(&info, path) {
            event.annotate(annotation, why);
            event.respond(200, None);
            record::write(self, &event, Stage::ResponseComplete);
        }
    }

    /// Reads an object.
    pub(crate) async fn own_get(&self, path: &str) -> Result<Shown, Status> {
        let errand = self.errand(Method::GET, path).await?;
        let result = errand.call(self).get(errand.name()).await;
        errand.finish(self, 200, result, &[])
    }

    /// Makes an object.
    pub(crate) async fn own_create(&self, path: &str, tree: Tree) -> Result<Shown, Status> {
        let errand = self.errand(Method::POST, path).await?;
        let options = WriteOptions::default();
        let mut call = errand.call(self);
        let result = call.create(errand.typed(tree), options).await;
        let notes = call.entrance.take_notes();
        errand.finish(self, 201, result.map(|created| created.shown), &notes)
    }

    /// Replaces an object, or the part of it that the path names.
    pub(crate) async fn own_update(&self, path: &str, tree: Tree) -> Result<Shown, Status> {
        let errand = self.errand(Method::PUT, path).await?;
        let part = errand.route.subresource.as_deref();
        let change = Change::Replace(errand.typed(tree));
        let options = WriteOptions::default();
        let mut call = errand.call(self);
        let result = call.update(errand.name(), part, &change, options).await;
        let notes = call.entrance.take_notes();
        errand.finish(self, 200, result.map(|updated| updated.shown), &notes)
    }

    /// Deletes an object.
    pub(crate) async fn own_delete(
        &self,
        path: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let errand = self.errand(Method::DELETE, path).await?;
        let mut call = errand.call(self);
        let result = call.delete(errand.name(), options).await;
        let notes = call.entrance.take_notes();
        errand.finish(self, 200, result, &notes)
    }
}

impl Errand {
    fn call<'a, S: Store>(&'a self, host: &'a Host<S>) -> Call<'a, S> {
        let mut entrance = Entrance::new(Instant::now() + host.options.request_timeout);
        // What a server can not do without must not depend on hooks, which may need the server.
        entrance.is_internal = !host.readiness.is_bootstrapped.load(Ordering::Acquire);
        Call {
            host,
            authorized: &self.authorized,
            resource: &self.route.resource,
            namespace: self.route.namespace.as_deref(),
            query: &self.query,
            now: Timestamp::now(),
            warnings: Vec::new(),
            entrance,
            is_collection: false,
            expected_mark: None,
        }
    }

    /// The object as the decoder of a request would hand it over: it says what it is.
    fn typed(&self, mut tree: Tree) -> Tree {
        let resource = &self.route.resource;
        tree.insert("apiVersion".to_owned(), resource.group_version().to_string().into());
        tree.insert("kind".to_owned(), resource.kind.clone().into());
        tree
    }

    /// Records what it came to, and what hooks said of it.
    fn finish<S, T>(
        mut self,
        host: &Host<S>,
        code: u16,
        result: Result<T, Status>,
        notes: &[Notes],
    ) -> Result<T, Status> {
        if let Some(event) = &mut self.event {
            record::admitted(event, notes);
            match &result {
                Ok(_) => event.respond(code, None),
                Err(status) => {
                    event.respond(status.code, serde_json::to_value(status).ok().as_ref())
                }
            }
            record::write(host, event, Stage::ResponseComplete);
        }
        result
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
