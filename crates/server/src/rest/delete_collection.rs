//! The verb `deletecollection`: deletes the objects that a list returns.

use std::pin::Pin;
use std::task::Poll;

use admission::Operation;
use api_object::{DeleteOptions, Status};
use store::Item;

use crate::admission::confirm_admission_configuration;
use crate::rest::{ListPage, ObjectFilter, RequestContext, WarningsAndHookReports, delete, list};
use crate::write_begun_flag::WriteBegunFlag;

/// Deletes all objects of a page and returns them as they were listed.
///
/// 1. Confirm that the admission configuration is current. If that fails, refuse the whole request.
/// 2. List the objects.
/// 3. Delete them, some at a time. Each deletion uses the admission configuration that is current when it runs, because
///    deleting a large collection takes long.
pub(crate) async fn delete_collection(
    ctx: &RequestContext<'_>,
    filter: &ObjectFilter,
    options: &DeleteOptions,
    report: &mut WarningsAndHookReports,
) -> Result<ListPage, Status> {
    report.admission_config_revision =
        confirm_admission_configuration(ctx, Operation::Delete).await?;
    let page = list(ctx, filter, &ctx.query.delete_collection_list_options()?).await?;
    for items in page.items.chunks(ctx.server.api_settings.delete_collection_workers.max(1)) {
        let deletions =
            items.iter().map(|item| Box::pin(delete_collection_item(ctx, item, options)));
        let mut first_error = None;
        for (result, item_report) in join_all(deletions.collect()).await {
            report.hook_reports.extend(item_report.hook_reports);
            report.admission_config_revision =
                item_report.admission_config_revision.or(report.admission_config_revision);
            match result {
                // Another client deleted the object in the meantime.
                Err(status) if status.is_status_from_this_server() && status.code == 404 => {}
                Err(status) => first_error = first_error.or(Some(status)),
                Ok(()) => {}
            }
        }
        if let Some(status) = first_error {
            return Err(status);
        }
    }
    Ok(page)
}

async fn delete_collection_item(
    ctx: &RequestContext<'_>,
    item: &Item,
    options: &DeleteOptions,
) -> (Result<(), Status>, WarningsAndHookReports) {
    let mut report = WarningsAndHookReports::default();
    let names = api_resources::namespace_and_name_in_key(
        &ctx.server.store_key_prefix,
        ctx.resource,
        &item.key,
    );
    let Some((namespace, name)) = names else {
        return (Err(Status::internal_error("a stored key names no object")), report);
    };
    let Some(member) = ctx.authorization_proof.authorize_collection_member(namespace, name) else {
        let why = "the object is not part of the collection that was authorized";
        return (Err(Status::internal_error(why)), report);
    };
    let write_begun_flag = WriteBegunFlag::default();
    let member_ctx = RequestContext {
        authorization_proof: &member,
        namespace,
        name,
        subresource: None,
        write_begun_flag: &write_begun_flag,
        is_delete_collection_member: true,
        ..*ctx
    };
    let result = delete(&member_ctx, options, &mut report).await.map(drop);
    (result, report)
}

/// Runs futures concurrently and waits for all of them.
async fn join_all<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        let mut is_done = true;
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match Pin::new(future).poll(cx) {
                    Poll::Ready(own) => *output = Some(own),
                    Poll::Pending => is_done = false,
                }
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
