//! Executes the verb of a routed request.

use std::sync::Arc;

use api_object::Status;
use api_resources::Verb;
use bytes::Bytes;
use codec::EndpointKind;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};

use super::AuthorizedRequest;
use crate::access_and_token_reviews;
use crate::admission::{is_admission_configuration, parse_config_ack_timeout};
use crate::error_status::IntoStatus;
use crate::initializers::{
    GetResult, get_with_initializer_repair, uninitialized_visibility_filter, wait_for_initializers,
};
use crate::pod_subresource_actions;
use crate::request_record::RequestRecord;
use crate::respond::Reply;
use crate::rest::{
    DeleteResult, ObjectFilter, PatchRequest, RequestContext, SCALE, VersionedObject,
    WarningsAndHookReports, WriteResult, answer_connect_request, create, delete, delete_collection,
    deletion_success_status, list, patch, read_scale, update, watch,
};
use crate::route::Route;
use crate::undecodable_objects;
use crate::watch_body;

impl AuthorizedRequest<'_> {
    /// Executes the verb.
    ///
    /// The future of a write is many times larger than that of a read, and a future is moved with all of its memory. So
    /// writes have a future of their own on the heap, and reads do not pay for it.
    pub(super) async fn execute(
        &self,
        ctx: &RequestContext<'_>,
        route: &Route<'_>,
        body: Bytes,
        record: &mut RequestRecord,
        report: &mut WarningsAndHookReports,
    ) -> Result<Reply, Status> {
        let resource = &route.resource;
        if let Some(options_kind) = route.connect_options_kind() {
            return Err(Box::pin(answer_connect_request(ctx, options_kind, report)).await);
        }
        match route.verb {
            Verb::Get => {
                let accepts_whole_objects = self.accepts_whole_objects();
                let is_scale = route.subresource == Some(SCALE);
                let read =
                    get_with_initializer_repair(ctx, accepts_whole_objects && !is_scale).await?;
                if !accepts_whole_objects {
                    codec::negotiate_response_format(
                        &self.requested_response_format(),
                        EndpointKind::Object,
                    )
                    .map_err(IntoStatus::into_status)?;
                }
                Ok(match read {
                    GetResult::Object(shown) if is_scale => {
                        object_reply(route, 200, read_scale(ctx, shown)?)
                    }
                    GetResult::Object(shown) => object_reply(route, 200, shown),
                    GetResult::Json(json) => Reply::Json { code: 200, json },
                    GetResult::Accepted(tree) => Reply::Tree { code: 202, tree },
                })
            }
            Verb::List => {
                let options = self.query.parse_list_options()?;
                let filter = uninitialized_visibility_filter(ctx)?;
                let page = Box::pin(list(ctx, &filter, &options)).await?;
                report.warnings.extend(undecodable_objects::undecodable_objects_warning(
                    resource,
                    &page.undecodable_object_names,
                ));
                Ok(Reply::List { resource: Arc::clone(resource), page })
            }
            Verb::Watch => {
                let options = self.query.parse_watch_options()?;
                let filter = uninitialized_visibility_filter(ctx)?;
                let ends_at =
                    watch_body::watch_end_time(self.server, options.watch_timeout_seconds);
                let watching = watch(ctx, Arc::clone(resource), filter, options, ends_at);
                let watcher = Box::pin(watching).await?;
                Ok(Reply::Watch { watcher: Box::new(watcher) })
            }
            Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => {
                Box::pin(self.execute_write(ctx, route, body, record, report)).await
            }
        }
    }

    /// Executes a verb that writes. The writer of an admission configuration can wait until all servers observe it.
    async fn execute_write(
        &self,
        ctx: &RequestContext<'_>,
        route: &Route<'_>,
        body: Bytes,
        record: &mut RequestRecord,
        report: &mut WarningsAndHookReports,
    ) -> Result<Reply, Status> {
        ctx.check_user_response_bytes()?;
        let can_wait = is_admission_configuration(&route.resource);
        if can_wait {
            // Match conditions may take long to compile.
            ctx.wait_for_processor_turn().await;
        }
        let ack_timeout = if can_wait { parse_config_ack_timeout(self.query)? } else { None };
        let reply = self.execute_write_verb(ctx, route, body, record, report).await?;
        if let Some(timeout) = ack_timeout {
            ctx.release_seat();
            let revision = self.server.read_admission_config_revision().await?;
            let warning = self
                .server
                .wait_until_servers_observe_config(revision, timeout, self.deadline)
                .await;
            report.warnings.extend(warning);
        }
        Ok(reply)
    }

    async fn execute_write_verb(
        &self,
        ctx: &RequestContext<'_>,
        route: &Route<'_>,
        body: Bytes,
        record: &mut RequestRecord,
        report: &mut WarningsAndHookReports,
    ) -> Result<Reply, Status> {
        let resource = &route.resource;
        let object = |code: u16, shown: VersionedObject| object_reply(route, code, shown);
        match route.verb {
            // INVARIANT: `execute` has executed the verbs that read.
            Verb::Get | Verb::List | Verb::Watch => Err(Status::method_not_allowed()),
            Verb::Create => match route.subresource {
                Some("token") => {
                    access_and_token_reviews::issue_token(ctx, self, &body, record, report).await
                }
                Some("binding") => {
                    pod_subresource_actions::bind_pod(ctx, self, &body, record, report).await
                }
                Some("eviction") => {
                    pod_subresource_actions::evict_pod(ctx, self, &body, record, report).await
                }
                Some(_) => Err(Status::method_not_allowed()),
                None if !resource.is_stored() && resource.kind == "Binding" => {
                    pod_subresource_actions::bind_pod(ctx, self, &body, record, report).await
                }
                None if !resource.is_stored() => {
                    access_and_token_reviews::answer_token_review(
                        self.server,
                        route,
                        self,
                        &body,
                        record,
                    )
                    .await
                }
                None => {
                    let (tree, options) =
                        self.decode_object(route, &body, "CreateOptions", record, report)?;
                    drop(body);
                    let written = create(ctx, tree, options, report).await?;
                    let written = release_seat_and_await_initializers(ctx, written).await?;
                    Ok(object(written.code, written.object))
                }
            },
            Verb::Update => {
                let (tree, options) =
                    self.decode_object(route, &body, "UpdateOptions", record, report)?;
                drop(body);
                let written = update(ctx, &tree, options, report).await?;
                let written = release_seat_and_await_initializers(ctx, written).await?;
                Ok(object(written.code, written.object))
            }
            Verb::Patch => {
                let patch_type = codec::patch_type_of_content_type(
                    self.request_header(&CONTENT_TYPE),
                    resource.is_custom_resource(),
                )
                .map_err(IntoStatus::into_status)?;
                let options = self.query.parse_write_options("PatchOptions")?;
                record.record_request_patch(&body);
                let field_validation = options.field_validation;
                let request = PatchRequest { patch_type, body, field_validation };
                let written = patch(ctx, &request, options, report).await?;
                Ok(object(written.code, written.object))
            }
            Verb::Delete => {
                let options = self.decode_delete_options(&body, record)?;
                let warning =
                    api_resources::unspecified_job_pods_deletion_warning(resource, &options);
                report.warnings.extend(warning.map(str::to_owned));
                match delete(ctx, &options, report).await? {
                    DeleteResult::Terminating(shown) => {
                        let is_accepted = options.orphan_dependents == Some(false);
                        Ok(object(if is_accepted { 202 } else { 200 }, shown))
                    }
                    DeleteResult::Removed(shown) if resource.returns_object_on_delete => {
                        Ok(object(200, shown))
                    }
                    DeleteResult::Removed(shown) => Ok(Reply::Tree {
                        code: 200,
                        tree: deletion_success_status(resource, &shown.object_tree),
                    }),
                }
            }
            Verb::DeleteCollection => {
                self.query.delete_collection_list_options()?;
                let filter = ObjectFilter::parse(resource, self.query, ctx.name)?;
                let options = self.decode_delete_options(&body, record)?;
                options.check_delete_collection_options()?;
                let warning =
                    api_resources::unspecified_job_pods_deletion_warning(resource, &options);
                report.warnings.extend(warning.map(str::to_owned));
                let page = delete_collection(ctx, &filter, &options, report).await?;
                Ok(Reply::List { resource: Arc::clone(resource), page })
            }
        }
    }
}

impl AuthorizedRequest<'_> {
    /// Whether the client asks for no other form of an object, such as a table: those are asked for with the
    /// parameter `as` of a media type. Some other headers that contain these letters count too, which costs only time.
    fn accepts_whole_objects(&self) -> bool {
        let has_as =
            |accepted: &HeaderValue| accepted.as_bytes().windows(2).any(|two| two == b"as");
        !self.request_parts.headers.get_all(ACCEPT).iter().any(has_as)
    }
}

/// The reply with an object of the resource of the request, or with its Scale.
fn object_reply(route: &Route<'_>, code: u16, shown: VersionedObject) -> Reply {
    let resource = match route.subresource {
        Some(SCALE) => api_resources::scale_resource(),
        _ => Arc::clone(&route.resource),
    };
    Reply::Object { code, resource, tree: shown.into_tree_with_resource_version() }
}

/// Waits for the initializers of a written object. The request gives its seat back before, so that it does not keep the
/// initializers from running.
async fn release_seat_and_await_initializers(
    ctx: &RequestContext<'_>,
    written: WriteResult,
) -> Result<WriteResult, Status> {
    if written.object_initialization_wait.is_some() {
        ctx.release_seat();
    }
    wait_for_initializers(ctx, written).await
}
