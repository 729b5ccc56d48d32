//! The server as its own client. What it does by itself goes the way of every request: it is
//! recorded, authorized, admitted, persisted.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use admission_hooks::SessionReport;
use api_object::{DeleteOptions, Status, Tree};
use api_resources::{Resource, Verb};
use audit::{Event, Received, Stage};
use authz::{RequestInfo, User};
use jiff::Timestamp;
use store::Store;
use tokio::time::Instant;

use crate::authorize::{Authorized, authorize};
use crate::initialize::wait_for_initializers;
use crate::object_ref::ObjectRef;
use crate::record;
use crate::rest::{
    DeleteResult, Query, RequestContext, RequestReport, VersionedObject, WriteOptions, create,
    delete, get, update,
};
use crate::route::{Route, RouteError};
use crate::server_state::ServerState;
use crate::write_progress::WriteProgress;

/// Who the server is to itself.
pub const SERVER_USER: &str = "system:apiserver";

/// A request of the server to itself that was authorized.
struct OwnRequest<'h, S> {
    authorized: Authorized,
    query: Query,
    write_progress: WriteProgress,
    event: OwnEvent<'h, S>,
}

/// The event of a request of the server to itself. It is written when it is dropped, with 504 for the
/// outcome if nobody knows it, so that a loop that is stopped leaves nothing unrecorded.
struct OwnEvent<'h, S> {
    server: &'h ServerState<S>,
    /// `None` if the audit policy leaves it out.
    event: Option<Box<Event>>,
}

impl<S> Drop for OwnEvent<'_, S> {
    fn drop(&mut self) {
        if let Some(event) = &mut self.event {
            if !event.has_response() {
                let status = Status::timeout();
                event.respond(status.code, serde_json::to_value(&status).ok().as_ref());
            }
            record::write_audit_event(self.server, event, Stage::ResponseComplete);
        }
    }
}

/// What the server calls itself in the audit log.
const USER_AGENT: &str = "portcullis/loops";

impl<S: Store> ServerState<S> {
    /// Authorizes a request to itself.
    async fn authorize_own(
        &self,
        verb: Verb,
        of: ObjectRef<'_>,
    ) -> Result<OwnRequest<'_, S>, Status> {
        let info = of.to_request(verb);
        let cluster = self.snapshot_cache.snapshot();
        let user = Arc::clone(&self.own_user);
        let mut event = OwnEvent { server: self, event: self.own_event(&info) };
        let (authorized, decided) = authorize(cluster, user, info).await;
        let decision = decided.decision;
        let authorized = authorized.map_err(|_| {
            let status = Status::internal(&format!("the server may not: {}", decision.reason));
            event.fail(&status);
            status
        })?;
        if let Some(event) = &mut event.event {
            event.decided(true, &decision.reason.to_string());
        }
        let (query, write_progress) = (Query::default(), WriteProgress::default());
        Ok(OwnRequest { authorized, query, write_progress, event })
    }

    fn own_event(&self, info: &RequestInfo) -> Option<Box<Event>> {
        let auditor = self.auditor.as_ref()?;
        let received = Received {
            audit_id: &api_object::uuid4(self.random()),
            uri: &info.path,
            attributes: info.attributes(Some(&self.own_user)),
            source_ips: &[IpAddr::V4(Ipv4Addr::LOCALHOST)],
            user_agent: USER_AGENT,
            at: Timestamp::now(),
        };
        let event = auditor.begin(&received).map(Box::new)?;
        record::write_audit_event(self, &event, Stage::RequestReceived);
        Some(event)
    }

    /// Records a write that the server does by itself and that nobody was asked about, and why.
    pub(crate) fn record_own_write(&self, info: &RequestInfo, annotation: String, why: &str) {
        if let Some(mut event) = self.own_event(info) {
            event.annotate(annotation, why);
            event.respond(200, None);
            record::write_audit_event(self, &event, Stage::ResponseComplete);
        }
    }

    /// Reads an object.
    pub(crate) async fn own_get(&self, of: ObjectRef<'_>) -> Result<VersionedObject, Status> {
        let own = self.authorize_own(Verb::Get, of).await?;
        let result = match own.route() {
            Ok(route) => get(&own.context(self, &route)).await,
            Err(status) => Err(status),
        };
        own.finish(200, result, &[])
    }

    /// Creates an object in the collection that the reference names.
    pub(crate) async fn own_create(
        &self,
        of: ObjectRef<'_>,
        tree: Tree,
    ) -> Result<VersionedObject, Status> {
        let own = self.authorize_own(Verb::Create, of).await?;
        let mut report = RequestReport::default();
        let result = match own.route() {
            Ok(route) => {
                let ctx = own.context(self, &route);
                let tree = typed(&route.resource, tree);
                match create(&ctx, tree, WriteOptions::default(), &mut report).await {
                    Ok(written) => wait_for_initializers(&ctx, written).await,
                    Err(status) => Err(status),
                }
            }
            Err(status) => Err(status),
        };
        own.finish(201, result.map(|written| written.shown), &report.hook_reports)
    }

    /// Replaces an object, or the part of it that the reference names.
    pub(crate) async fn own_update(
        &self,
        of: ObjectRef<'_>,
        tree: Tree,
    ) -> Result<VersionedObject, Status> {
        let own = self.authorize_own(Verb::Update, of).await?;
        let mut report = RequestReport::default();
        let result = match own.route() {
            Ok(route) => {
                let ctx = own.context(self, &route);
                let tree = typed(&route.resource, tree);
                match update(&ctx, &tree, WriteOptions::default(), &mut report).await {
                    Ok(written) => wait_for_initializers(&ctx, written).await,
                    Err(status) => Err(status),
                }
            }
            Err(status) => Err(status),
        };
        own.finish(200, result.map(|written| written.shown), &report.hook_reports)
    }

    /// Deletes an object.
    pub(crate) async fn own_delete(
        &self,
        of: ObjectRef<'_>,
        options: &DeleteOptions,
    ) -> Result<DeleteResult, Status> {
        let own = self.authorize_own(Verb::Delete, of).await?;
        let mut report = RequestReport::default();
        let result = match own.route() {
            Ok(route) => delete(&own.context(self, &route), options, &mut report).await,
            Err(status) => Err(status),
        };
        own.finish(200, result, &report.hook_reports)
    }
}

impl<S> OwnEvent<'_, S> {
    fn fail(&mut self, status: &Status) {
        if let Some(event) = &mut self.event {
            event.respond(status.code, serde_json::to_value(status).ok().as_ref());
        }
    }
}

impl<S: Store> OwnRequest<'_, S> {
    fn route(&self) -> Result<Route<'_>, Status> {
        Route::for_authorized(&self.authorized).map_err(|no_route| match no_route {
            RouteError::Text => Status::unknown_resource(),
            RouteError::Status(status) => status,
        })
    }

    fn context<'a>(
        &'a self,
        server: &'a ServerState<S>,
        route: &'a Route<'a>,
    ) -> RequestContext<'a, S> {
        let deadline = Instant::now() + server.options.request_timeout;
        let (query, write_progress) = (&self.query, &self.write_progress);
        RequestContext {
            // Bootstrap writes must not depend on hooks, which may need the server.
            is_exempt_from_hooks: !server.readiness.is_bootstrapped.load(Ordering::Acquire),
            ..RequestContext::new(server, route, query, Timestamp::now(), deadline, write_progress)
        }
    }

    /// Records what it came to, and what hooks said of it.
    fn finish<T>(
        mut self,
        code: u16,
        result: Result<T, Status>,
        reports: &[SessionReport],
    ) -> Result<T, Status> {
        if let Some(event) = &mut self.event.event {
            record::annotate_hook_reports(event, reports);
            if result.is_ok() {
                event.respond(code, None);
            }
        }
        if let Err(status) = &result {
            self.event.fail(status);
        }
        result
    }
}

/// The object as the decoder of a request would hand it over: it says what it is.
fn typed(resource: &Resource, mut tree: Tree) -> Tree {
    tree.insert("apiVersion".to_owned(), resource.group_version().to_string().into());
    tree.insert("kind".to_owned(), resource.kind.clone().into());
    tree
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
