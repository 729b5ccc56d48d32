//! The read-only context of one authorized request for a resource.

use std::time::Instant;

use api_object::{GroupKind, Status, Tree};
use api_resources::{Resource, Verb, kind_of_written_object};
use codec::ExpectedKind;
use http::Response;
use https_server::Body;
use jiff::Timestamp;
use store::{Entry, Key, Prefix, ReadError, Revision};

use crate::authorize::Authorized;
use crate::processor_turns::LONG_WORK_BYTES;
use crate::request_seat::{RequestSeat, WebhookWait};
use crate::respond::hold_reservation_in_body;
use crate::response_bytes::{COUNTED_BYTES_MIN, ResponseBytesError, user_for_limits};
use crate::rest::Query;
use crate::route::Route;
use crate::server_state::ServerState;
use crate::undecodable_objects;
use crate::write_begun_flag::WriteBegunFlag;

/// The request as verbs see it. No step of the request changes it.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub(crate) server: &'a ServerState,
    /// The user, the verb and the target that were authorized, and the snapshot they were authorized by.
    pub(crate) authorization_proof: &'a Authorized,
    pub(crate) resource: &'a Resource,
    /// The authorized namespace; `None` for cluster-scoped resources and for all namespaces.
    pub(crate) namespace: Option<&'a str>,
    /// The authorized name, from the path or from a field selector for one name; may be empty.
    pub(crate) name: &'a str,
    /// The authorized subresource, if the target has one.
    pub(crate) subresource: Option<&'a str>,
    pub(crate) query: &'a Query,
    pub(crate) now: Timestamp,
    /// The time by which the request has to be answered.
    pub(crate) deadline: tokio::time::Instant,
    /// Set when the first write begins. Each object of a deletecollection has its own, because the
    /// deadline may end the collection between two objects.
    pub(crate) write_begun_flag: &'a WriteBegunFlag,
    /// The seat of the request; the server's own requests need none.
    pub(crate) seat: Option<&'a RequestSeat<'a>>,
    /// The server writes its own bootstrap objects, which must not depend on hooks.
    pub(crate) is_exempt_from_hooks: bool,
    /// The object is one of a deletecollection.
    pub(crate) is_delete_collection_member: bool,
}

/// An object and the revision that clients see as its resourceVersion.
#[derive(Debug, Clone)]
pub(crate) struct VersionedObject {
    pub(crate) object_tree: Tree,
    /// `None` if the object is not stored.
    pub(crate) revision: Option<Revision>,
}

impl VersionedObject {
    /// Writes the resourceVersion into the object.
    pub(crate) fn into_tree_with_resource_version(mut self) -> Tree {
        if let Some(revision) = self.revision {
            let metadata = api_object::metadata_mut(&mut self.object_tree);
            metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
        }
        self.object_tree
    }
}

impl<'a> RequestContext<'a> {
    /// The context of a routed request.
    pub(crate) fn new(
        server: &'a ServerState,
        route: &'a Route<'a>,
        query: &'a Query,
        now: Timestamp,
        deadline: tokio::time::Instant,
        write_begun_flag: &'a WriteBegunFlag,
    ) -> Self {
        Self {
            server,
            authorization_proof: route.authorization_proof,
            resource: &route.resource,
            namespace: route.namespace,
            name: route.authorization_proof.target_resource().map_or("", |target| &target.name),
            subresource: route.subresource,
            query,
            now,
            deadline,
            write_begun_flag,
            seat: None,
            is_exempt_from_hooks: false,
            is_delete_collection_member: false,
        }
    }

    /// The same request under another authorization for the same resource, such as the create that an
    /// update turned into.
    pub(crate) fn with_authorization<'b>(&self, authorized: &'b Authorized) -> RequestContext<'b>
    where
        'a: 'b,
    {
        let target = authorized.target_resource();
        let namespace = target.map(|target| target.namespace.as_str());
        RequestContext {
            authorization_proof: authorized,
            namespace: namespace.filter(|_| self.resource.is_namespaced()),
            name: target.map_or("", |target| &target.name),
            ..*self
        }
    }

    /// The user name that limits count the request under; `None` for members of `system:masters`, who are exempt.
    pub(crate) fn user_for_limits(&self) -> Option<&'a str> {
        user_for_limits(self.authorization_proof.user())
    }

    /// Checks before a write that not too many responses wait for the user: the response of a write is not refused.
    ///
    /// # Errors
    /// 429 if too many bytes wait for the user.
    pub(crate) fn check_user_response_bytes(&self) -> Result<(), Status> {
        let Some(user) = self.user_for_limits() else { return Ok(()) };
        match self.server.response_bytes_limit.check_response_bytes_available(user) {
            Err(error @ ResponseBytesError::User { .. }) => {
                self.server.metrics.request_terminations.with_label_values(&["429"]).inc();
                Err(error.to_status())
            }
            // The unread responses of other users do not refuse a write.
            Err(ResponseBytesError::Total { .. }) | Ok(()) => Ok(()),
        }
    }

    /// Counts the bytes of a response until the client has read them. The bytes of a list are already counted.
    ///
    /// # Errors
    /// 429 if the request reads, and too many bytes wait for the user.
    pub(crate) fn count_response_bytes(&self, response: &mut Response<Body>) -> Result<(), Status> {
        let n_bytes = response.body().in_memory_bytes();
        let Some(user) = self.user_for_limits().filter(|_| n_bytes >= COUNTED_BYTES_MIN) else {
            return Ok(());
        };
        let limit = &self.server.response_bytes_limit;
        let counted = match self.authorization_proof.verb() {
            // A list has already counted the bytes of its objects.
            Some(Verb::List | Verb::DeleteCollection | Verb::Watch) => return Ok(()),
            Some(Verb::Get) => limit.reserve(user, n_bytes).map_err(|error| {
                self.server.metrics.request_terminations.with_label_values(&["429"]).inc();
                error.to_status()
            })?,
            Some(Verb::Create | Verb::Update | Verb::Patch | Verb::Delete) | None => {
                limit.count(user, n_bytes)
            }
        };
        hold_reservation_in_body(response, Some(counted));
        Ok(())
    }

    /// The kind of the objects that clients write to the resource or the subresource.
    pub(crate) fn written_kind(&self) -> ExpectedKind<'a> {
        written_kind(self.resource, self.subresource)
    }

    pub(crate) fn group_kind(&self) -> GroupKind {
        self.resource.group_kind()
    }

    /// How long the store keeps an object that no client deletes; `None` for ever.
    pub(crate) fn ttl(&self) -> Option<std::time::Duration> {
        (self.resource.kind == "Event" && !self.resource.is_custom_resource())
            .then_some(self.server.api_settings.event_ttl)
    }

    /// Checks that the request has time for another attempt.
    ///
    /// # Errors
    /// 504 if the deadline has passed.
    pub(crate) fn check_deadline(&self) -> Result<(), Status> {
        if tokio::time::Instant::now() < self.deadline { Ok(()) } else { Err(Status::timeout()) }
    }
}

impl RequestContext<'_> {
    /// The key of an object of the resource in the namespace of the request.
    pub(crate) fn key(&self, name: &str) -> Result<Key, Status> {
        let text = api_resources::object_key(
            &self.server.store_key_prefix,
            self.resource,
            self.namespace,
            name,
        );
        text.and_then(|text| Key::new(&text).ok()).ok_or_else(|| self.not_found_status(name))
    }

    /// The common prefix of the keys of a list.
    pub(crate) fn list_key_prefix(&self) -> Result<Prefix, Status> {
        let text = api_resources::list_key_prefix(
            &self.server.store_key_prefix,
            self.resource,
            self.namespace,
        );
        text.and_then(|text| Prefix::new(&text).ok()).ok_or_else(Status::unknown_resource)
    }

    /// Waits for a request to the store, and reports its duration to the metrics.
    pub(crate) async fn time_store_request<T>(
        &self,
        operation: &'static str,
        request: impl Future<Output = T>,
    ) -> T {
        let started = Instant::now();
        let output = request.await;
        let labels = [operation, &self.resource.plural];
        self.server
            .metrics
            .store_request_durations
            .with_label_values(&labels)
            .observe(started.elapsed().as_secs_f64());
        output
    }

    /// Waits for admission webhooks without a seat, so that slow webhooks do not keep other requests from running.
    ///
    /// # Errors
    /// 429, before the attempt calls its first webhook, if too many requests wait or their objects take too much memory.
    pub(crate) async fn wait_for_admission_webhooks<T>(
        &self,
        wait: WebhookWait,
        calls: impl Future<Output = T>,
    ) -> Result<T, Status> {
        match self.seat {
            Some(seat) => seat.wait_for_admission_webhooks(wait, calls).await,
            None => Ok(calls.await),
        }
    }

    /// Waits for authorizers during a built-in check, without a seat if they do not decide at once.
    ///
    /// # Errors
    /// 429 if they do not decide at once, too many requests wait, and the request has not waited before.
    pub(crate) async fn wait_for_authorizers_of_check<T>(
        &self,
        deciding: impl Future<Output = T>,
    ) -> Result<T, Status> {
        match self.seat {
            Some(seat) => seat.wait_for_authorizers_of_check(deciding).await,
            None => Ok(deciding.await),
        }
    }

    /// Waits for a turn of the user, because the rest of the request occupies a processor for long.
    pub(crate) async fn wait_for_processor_turn(&self) {
        if let Some(seat) = self.seat {
            seat.long_computation_flag.begin_long_computation().await;
        }
    }

    /// Waits for a turn of the user if a stored object is large.
    pub(crate) async fn wait_for_turn_if_large(&self, entry: &Entry) {
        if entry.value.len() > LONG_WORK_BYTES {
            self.wait_for_processor_turn().await;
        }
    }

    /// Gives the seat of the request back before the end of the request.
    pub(crate) fn release_seat(&self) {
        if let Some(seat) = self.seat {
            seat.release();
        }
    }

    pub(crate) fn not_found_status(&self, name: &str) -> Status {
        Status::not_found(&self.resource.group_resource(), name)
    }

    /// Decodes a stored object in the version of the request.
    pub(crate) fn decode_entry(&self, entry: &Entry) -> Result<Tree, Status> {
        decode_stored_entry(self.resource, entry)
    }

    /// Decodes the authorized object, and refuses one of another name or namespace.
    pub(crate) fn decode_authorized_entry(&self, entry: &Entry) -> Result<Tree, Status> {
        let tree = self.decode_entry(entry)?;
        let namespace = self.namespace.unwrap_or_default();
        match api_object::name(&tree) == self.name && api_object::namespace(&tree) == namespace {
            true => Ok(tree),
            false => {
                Err(undecodable_objects::undecodable_status("it is not the one that was asked for"))
            }
        }
    }

    /// The response to a failed read of the store.
    pub(crate) fn store_read_error_status(&self, operation: &str, error: &ReadError) -> Status {
        match error {
            ReadError::Compacted { .. } => Status::resource_version_expired(
                "The resourceVersion for the provided list is too old.",
            ),
            ReadError::Future { requested, current } => {
                Status::too_large_resource_version(requested.as_u64(), current.as_u64())
            }
            ReadError::Unavailable(why) => {
                self.server.log.error("the store cannot be read", &[("why", why)]);
                Status::store_unavailable(&self.resource.group_resource(), operation)
            }
            ReadError::Timeout => Status::timeout(),
        }
    }
}

/// The kind of the objects that clients write to a resource or to a subresource of it.
pub(crate) fn written_kind<'r>(
    resource: &'r Resource,
    subresource: Option<&str>,
) -> ExpectedKind<'r> {
    let subresource = subresource.unwrap_or_default();
    let kind = kind_of_written_object(resource, subresource);
    let has_own_kind = resource.find_subresource(subresource).is_some_and(|own| own.kind.is_some());
    ExpectedKind {
        group: kind.group,
        version: kind.version,
        kind: kind.kind,
        is_custom_resource: resource.is_custom_resource() && !has_own_kind,
    }
}

/// Decodes a stored object in the version of a resource. Versions differ in their name only.
pub(crate) fn decode_stored_entry(resource: &Resource, entry: &Entry) -> Result<Tree, Status> {
    let mut tree: Tree = codec::decode_stored_object(&entry.value)
        .map_err(|error| undecodable_objects::undecodable_status(&error.to_string()))?;
    if resource.is_custom_resource() {
        tree.insert("apiVersion".to_owned(), resource.group_version().to_string().into());
    }
    Ok(tree)
}
