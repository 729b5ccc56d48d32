//! The loopback client: requests of the server to itself. They are recorded, authorized, admitted and
//! persisted like the requests of other clients.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use admission_hooks::SessionReport;
use api_object::{DeleteOptions, Status, Tree};
use api_resources::{Resource, Verb};
use audit::{Event, ReceivedRequest, Stage};
use authz::{RequestInfo, User};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::authorize::{Authorized, authorize};
use crate::initializers::wait_for_initializers;
use crate::object_ref::ObjectRef;
use crate::request_record;
use crate::rest::{
    DeleteResult, Query, RequestContext, VersionedObject, WarningsAndHookReports, WriteOptions,
    create, delete, get, update,
};
use crate::route::{ResourceRouteError, Route};
use crate::server_state::ServerState;
use crate::write_begun_flag::WriteBegunFlag;

/// The user name of the server in its own requests.
pub const SERVER_USER: &str = "system:apiserver";

/// The user agent of the server in the audit log.
const USER_AGENT: &str = "portcullis/loops";

/// A loopback request that was authorized.
struct LoopbackRequest {
    authorization_proof: Authorized,
    query: Query,
    write_begun_flag: WriteBegunFlag,
}

/// The audit event of a loopback request. It is written when it is dropped, with 504 if the request was
/// stopped before it had a response, so that a loop that is stopped leaves nothing unrecorded.
struct LoopbackAuditEvent<'h> {
    server: &'h ServerState,
    /// `None` if the audit policy omits the request.
    audit_event: Option<Box<Event>>,
}

impl Drop for LoopbackAuditEvent<'_> {
    fn drop(&mut self) {
        if let Some(event) = &mut self.audit_event {
            if !event.has_response_status() {
                let status = Status::timeout();
                event.set_response_status(status.code, serde_json::to_value(&status).ok().as_ref());
            }
            drop(request_record::write_audit_event(self.server, event, Stage::ResponseComplete));
        }
    }
}

impl ServerState {
    /// Reads an object as the server's own user.
    pub(crate) async fn loopback_get(
        &self,
        object: ObjectRef<'_>,
    ) -> Result<VersionedObject, Status> {
        let (request, mut audit) = self.authorize_loopback(Verb::Get, object).await?;
        let route = audit.audit_failed_step(request.route_loopback_request())?;
        let result = get(&request.new_loopback_context(self, &route)).await;
        audit.audit_loopback_result(200, result, &[])
    }

    /// Creates an object in the collection that the reference names.
    pub(crate) async fn loopback_create(
        &self,
        collection: ObjectRef<'_>,
        tree: Tree,
    ) -> Result<VersionedObject, Status> {
        let (request, mut audit) = self.authorize_loopback(Verb::Create, collection).await?;
        let route = audit.audit_failed_step(request.route_loopback_request())?;
        let ctx = request.new_loopback_context(self, &route);
        let tree = with_type_meta(&route.resource, tree);
        let mut report = WarningsAndHookReports::default();
        let result = match create(&ctx, tree, WriteOptions::default(), &mut report).await {
            Ok(written) => wait_for_initializers(&ctx, written).await,
            Err(status) => Err(status),
        };
        audit.audit_loopback_result(201, result.map(|written| written.object), &report.hook_reports)
    }

    /// Replaces an object, or the subresource that the reference names.
    pub(crate) async fn loopback_update(
        &self,
        object: ObjectRef<'_>,
        tree: Tree,
    ) -> Result<VersionedObject, Status> {
        let (request, mut audit) = self.authorize_loopback(Verb::Update, object).await?;
        let route = audit.audit_failed_step(request.route_loopback_request())?;
        let ctx = request.new_loopback_context(self, &route);
        let tree = with_type_meta(&route.resource, tree);
        let mut report = WarningsAndHookReports::default();
        let result = match update(&ctx, &tree, WriteOptions::default(), &mut report).await {
            Ok(written) => wait_for_initializers(&ctx, written).await,
            Err(status) => Err(status),
        };
        audit.audit_loopback_result(200, result.map(|written| written.object), &report.hook_reports)
    }

    /// Deletes an object as the server's own user.
    pub(crate) async fn loopback_delete(
        &self,
        object: ObjectRef<'_>,
        options: &DeleteOptions,
    ) -> Result<DeleteResult, Status> {
        let (request, mut audit) = self.authorize_loopback(Verb::Delete, object).await?;
        let route = audit.audit_failed_step(request.route_loopback_request())?;
        let mut report = WarningsAndHookReports::default();
        let result =
            delete(&request.new_loopback_context(self, &route), options, &mut report).await;
        audit.audit_loopback_result(200, result, &report.hook_reports)
    }

    /// Writes an audit event for a write that the server makes directly to the store, without admission. `why` is
    /// the reason.
    pub(crate) fn audit_loopback_write(&self, info: &RequestInfo, annotation: String, why: &str) {
        if let Some(mut event) = self.begin_loopback_audit_event(info) {
            event.add_annotation(annotation, why);
            event.set_response_status(200, None);
            drop(request_record::write_audit_event(self, &event, Stage::ResponseComplete));
        }
    }

    async fn authorize_loopback(
        &self,
        verb: Verb,
        object: ObjectRef<'_>,
    ) -> Result<(LoopbackRequest, LoopbackAuditEvent<'_>), Status> {
        let info = object.to_request_info(verb);
        let cluster = self.snapshot_cache.snapshot();
        let user = Arc::clone(&self.loopback_user);
        let mut audit = LoopbackAuditEvent {
            server: self,
            audit_event: self.begin_loopback_audit_event(&info),
        };
        let (authorized, decided) = authorize(cluster, user, info).await;
        let decision = decided.authorizer_decision;
        if let Some(event) = &mut audit.audit_event {
            event.add_decision_annotations(&decision);
        }
        let forbidden =
            |_| Status::internal_error(&format!("the server may not: {}", decision.reason));
        let authorized = audit.audit_failed_step(authorized.map_err(forbidden))?;
        let (query, write_begun_flag) = (Query::default(), WriteBegunFlag::default());
        Ok((LoopbackRequest { authorization_proof: authorized, query, write_begun_flag }, audit))
    }

    fn begin_loopback_audit_event(&self, info: &RequestInfo) -> Option<Box<Event>> {
        let auditor = self.auditor.as_ref()?;
        let received = ReceivedRequest {
            audit_id: &api_object::format_uuid4(self.random_bytes()),
            request_uri: &info.path,
            attributes: info.to_attributes_for_user(Some(&self.loopback_user)),
            source_ips: &[IpAddr::V4(Ipv4Addr::LOCALHOST)],
            user_agent: USER_AGENT,
            at: Timestamp::now(),
        };
        let event = auditor.begin_event(&received).map(Box::new)?;
        // Background loops do not wait for audit backends, because a hanging backend would stop them.
        drop(request_record::write_audit_event(self, &event, Stage::RequestReceived));
        Some(event)
    }
}

impl LoopbackRequest {
    fn route_loopback_request(&self) -> Result<Route<'_>, Status> {
        Route::from_authorized(&self.authorization_proof).map_err(|error| match error {
            ResourceRouteError::Text => Status::unknown_resource(),
            ResourceRouteError::Status(status) => status,
        })
    }

    fn new_loopback_context<'a>(
        &'a self,
        server: &'a ServerState,
        route: &'a Route<'a>,
    ) -> RequestContext<'a> {
        let deadline = Instant::now() + server.api_settings.request_timeout;
        let (query, write_begun_flag) = (&self.query, &self.write_begun_flag);
        RequestContext {
            // The default objects are written without hooks, because hooks may need the server.
            is_exempt_from_hooks: !server.readiness.is_bootstrapped.load(Ordering::Acquire),
            ..RequestContext::new(
                server,
                route,
                query,
                Timestamp::now(),
                deadline,
                write_begun_flag,
            )
        }
    }
}

impl LoopbackAuditEvent<'_> {
    /// Records the status of a step that failed, and passes the result on.
    fn audit_failed_step<T>(&mut self, result: Result<T, Status>) -> Result<T, Status> {
        if let (Some(event), Err(status)) = (&mut self.audit_event, &result) {
            event.set_response_status(status.code, serde_json::to_value(status).ok().as_ref());
        }
        result
    }

    /// Records the result of the request and the reports of its hooks.
    fn audit_loopback_result<T>(
        &mut self,
        code: u16,
        result: Result<T, Status>,
        reports: &[SessionReport],
    ) -> Result<T, Status> {
        if let Some(event) = &mut self.audit_event {
            request_record::add_hook_reports_to_audit_event(event, reports);
            if result.is_ok() {
                event.set_response_status(code, None);
            }
        }
        self.audit_failed_step(result)
    }
}

/// Sets `apiVersion` and `kind`, as the decoder of a request does.
fn with_type_meta(resource: &Resource, mut tree: Tree) -> Tree {
    tree.insert("apiVersion".to_owned(), resource.group_version().to_string().into());
    tree.insert("kind".to_owned(), resource.kind.clone().into());
    tree
}

/// The user of loopback requests. Each process has a new uid.
pub(crate) fn loopback_user(uid: String) -> Arc<User> {
    Arc::new(User {
        name: SERVER_USER.to_owned(),
        uid,
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..User::default()
    })
}
