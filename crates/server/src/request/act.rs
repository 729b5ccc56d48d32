//! What is done to a resource, and what admission leaves behind.

use std::sync::Arc;

use api_object::Status;
use api_resources::Verb;
use http::header::{CONTENT_TYPE, HeaderMap};
use store::Store;

use super::{AuthorizedRequest, Unread};
use crate::admit::AdmissionContext;
use crate::hook_trace;
use crate::initialize::Read;
use crate::record::Record;
use crate::respond::Reply;
use crate::rest::{Call, Change, Deleted, Filter, Shown};
use crate::review;
use crate::route::Route;
use crate::servers::ack_timeout;
use crate::standing::is_configuration;
use crate::undecodable;
use crate::watch_body;

impl<S: Store> AuthorizedRequest<'_, S> {
    /// What admission leaves behind: for the log, for the client, and in headers.
    pub(super) async fn tell_admission(
        &self,
        admission: &mut AdmissionContext,
        record: &mut Record,
        warnings: &mut Vec<String>,
        headers: &mut HeaderMap,
    ) {
        if let Some(standing) = &admission.standing {
            headers.insert(hook_trace::REVISION_HEADER, standing.revision.number().into());
        }
        let all = admission.take_notes();
        if hook_trace::should_send_trace(&self.parts.headers, self.authorized).await
            && let Some(value) = hook_trace::trace_header_value(&all)
        {
            headers.insert(hook_trace::TRACE_HEADER, value);
        }
        record.admission(&all);
        warnings.extend(all.into_iter().flat_map(|notes| notes.warnings));
    }

    /// Does what is asked, and lets who changes the configuration of admission wait for all servers.
    pub(super) async fn act(
        &self,
        route: &Route<'_>,
        call: &mut Call<'_, S>,
        body: &mut Unread,
        record: &mut Record,
    ) -> Result<Reply<S>, Status> {
        let is_waiting = route.verb.is_write() && is_configuration(&route.resource);
        let timeout = if is_waiting { ack_timeout(self.query)? } else { None };
        let reply = self.act_at_once(route, call, body, record).await?;
        if let Some(timeout) = timeout {
            let revision = self.server.mark().await.map_err(|why| Status::internal(&why))?;
            let warning = self.server.wait_for_servers(revision, timeout, self.deadline).await;
            call.warnings.extend(warning);
        }
        Ok(reply)
    }

    async fn act_at_once(
        &self,
        route: &Route<'_>,
        call: &mut Call<'_, S>,
        body: &mut Unread,
        record: &mut Record,
    ) -> Result<Reply<S>, Status> {
        let resource = &route.resource;
        let object = |code: u16, shown: Shown| Reply::Object {
            code,
            resource: Arc::clone(resource),
            tree: shown.into_tree(),
        };
        match route.verb {
            Verb::Get => Ok(match call.read().await? {
                Read::Object(shown) => object(200, shown),
                Read::Accepted(tree) => Reply::Tree { code: 202, tree },
            }),
            Verb::List => {
                let filter = call.filter()?;
                let listed = call.list(&filter).await?;
                call.warnings
                    .extend(undecodable::placeholders_warning(resource, &listed.placeholders));
                Ok(Reply::List { resource: Arc::clone(resource), listed })
            }
            Verb::Watch => {
                let filter = call.filter()?;
                let options = self.query.watch_options()?;
                let ends_at = watch_body::end(self.server, options.timeout_seconds);
                let watcher = call.watch(Arc::clone(resource), filter, options, ends_at).await?;
                Ok(Reply::Watch { watcher: Box::new(watcher) })
            }
            Verb::Create => match route.subresource {
                Some("token") => review::token(call, self, body, record).await,
                Some(_) => Err(Status::method_not_allowed()),
                None if !resource.is_stored() => {
                    review::token_review(self.server, route, self, body, record).await
                }
                None => {
                    let (tree, options) =
                        self.decode(route, call, body, "CreateOptions", record).await?;
                    let created = call.create(tree, options).await?;
                    Ok(object(created.code(), created.shown))
                }
            },
            Verb::Update => {
                let (tree, options) =
                    self.decode(route, call, body, "UpdateOptions", record).await?;
                let change = Change::Replace(tree);
                let updated = call.update(&change, options).await?;
                Ok(object(updated.code, updated.shown))
            }
            Verb::Patch => {
                let patch_type =
                    codec::patch_type(self.header(&CONTENT_TYPE), resource.is_custom())?;
                let bytes = self.collect(body).await?;
                let options = self.query.write_options("PatchOptions")?;
                record.request_patch(&bytes);
                let change = Change::Patch(patch_type, bytes, options.field_validation);
                let updated = call.update(&change, options).await?;
                Ok(object(200, updated.shown))
            }
            Verb::Delete => {
                let options = self.delete_options(body, record).await?;
                match call.delete(&options).await? {
                    Deleted::Begun(shown) => {
                        let is_accepted = options.orphan_dependents == Some(false);
                        Ok(object(if is_accepted { 202 } else { 200 }, shown))
                    }
                    Deleted::Gone(shown) if resource.is_returned_on_delete => {
                        Ok(object(200, shown))
                    }
                    Deleted::Gone(shown) => {
                        Ok(Reply::Tree { code: 200, tree: call.gone(&shown.tree) })
                    }
                }
            }
            Verb::DeleteCollection => {
                let filter = Filter::parse(resource, self.query, call.name)?;
                let options = self.delete_options(body, record).await?;
                let listed = call.delete_collection(&filter, &options).await?;
                Ok(Reply::List { resource: Arc::clone(resource), listed })
            }
        }
    }
}
