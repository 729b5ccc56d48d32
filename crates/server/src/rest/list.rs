//! `list`, page by page.

use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::Arc;

use api_object::{ContinueToken, Status};
use store::{At, Item, Key, ListRequest, Prefix, ReadError, Revision};

use crate::decodable_object_cache::EntryOrPlaceholder;
use crate::initializers::{
    had_no_uninitialized_objects, is_stored_uninitialized, snapshot_shows_no_uninitialized_objects,
};
use crate::response_bytes::{ResponseBytesError, ResponseBytesLimit, ResponseBytesReservation};
use crate::rest::get::wait_for_store_revision;
use crate::rest::query::{ListOptions, RequestedRevision};
use crate::rest::{ObjectFilter, RequestContext};
use crate::yield_timer::YieldTimer;

/// The maximum number of objects of one read of the store, so that a long list lets other tasks run in between.
const ROUND_ITEMS_MAX: usize = 10_000;

/// The maximum number of bytes of one read of the store. The bytes of earlier reads are reserved before the next
/// read.
const ROUND_BYTES_MAX: usize = 8 << 20;

/// A page of a list.
#[derive(Debug)]
pub(crate) struct ListPage {
    /// The objects in their stored form, in the order of their keys.
    pub(crate) items: Vec<Item>,
    /// The revision of the whole list.
    pub(crate) revision: Revision,
    /// Empty on the last page.
    pub(crate) continue_token: String,
    /// The number of objects after this page; unknown if a selector filters them.
    pub(crate) n_remaining_objects: Option<u64>,
    /// The names of the objects that cannot be decoded.
    pub(crate) undecodable_object_names: Vec<String>,
    /// The bytes that the objects take while the response waits for its client; `None` for a member of
    /// `system:masters`.
    pub(crate) response_bytes_reservation: Option<ResponseBytesReservation>,
}

const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent \
    list result. You can start a new list without the continue parameter, or use the continue token \
    in this response to retrieve the remainder of the results. Continuing with the provided token \
    results in an inconsistent list - objects that were created, modified, or deleted between the \
    time the first chunk was returned and now may show up in the list.";

/// Reads a page of the objects that match the filter.
pub(crate) async fn list(
    ctx: &RequestContext<'_>,
    filter: &ObjectFilter,
    options: &ListOptions,
) -> Result<ListPage, Status> {
    let prefix = ctx.list_key_prefix()?;
    let (at, from) = match options.continue_token.as_str() {
        "" => {
            (resolve_requested_revision(ctx, options.requested_revision).await?, Bound::Unbounded)
        }
        text => decode_continue_token(&prefix, text)?,
    };
    let is_continued = !options.continue_token.is_empty();
    let refuse = |error: ResponseBytesError| {
        ctx.server.metrics.request_terminations.with_label_values(&["429"]).inc();
        error.to_status()
    };
    let user_for_limits = ctx.user_for_limits();
    if let Some(user) = user_for_limits {
        ctx.server.response_bytes_limit.check_response_bytes_available(user).map_err(refuse)?;
    }
    let limit = &ctx.server.response_bytes_limit;
    let mut reservation = ListBytesReservation {
        response_bytes_limit: limit,
        user: user_for_limits,
        current_reservation: None,
    };
    match read_list_page(
        ctx,
        &prefix,
        filter,
        options.page_limit,
        at,
        from.clone(),
        &mut reservation,
    )
    .await
    {
        Err(ListPageError::Read(ReadError::Compacted { .. })) if is_continued => {
            Err(continue_expired_status(&prefix, &from))
        }
        Err(ListPageError::Read(error)) => Err(ctx.store_read_error_status("list", &error)),
        Err(ListPageError::NoRoom(error)) => Err(refuse(error)),
        Ok(mut listed) => {
            reservation
                .grow_reservation_to(memory_bytes_of_items(&listed.items))
                .map_err(refuse)?;
            listed.response_bytes_reservation = reservation.current_reservation;
            Ok(listed)
        }
    }
}

/// Why a page cannot be read.
#[derive(Debug, thiserror::Error)]
enum ListPageError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    NoRoom(#[from] ResponseBytesError),
}

/// The bytes of the objects of a list that have been read so far. A store that is not in memory copies them, so many
/// lists at once must not be read whole before their bytes count.
struct ListBytesReservation<'a> {
    response_bytes_limit: &'a Arc<ResponseBytesLimit>,
    /// `None` for a member of `system:masters`.
    user: Option<&'a str>,
    current_reservation: Option<ResponseBytesReservation>,
}

impl ListBytesReservation<'_> {
    /// Replaces the reservation by one of this many bytes. The old reservation is released first, because a single
    /// list may exceed the limit if no other response is in flight, and its own bytes must not count as another
    /// response.
    fn grow_reservation_to(&mut self, n_bytes: usize) -> Result<(), ResponseBytesError> {
        if let Some(user) = self.user {
            self.current_reservation = None;
            self.current_reservation = Some(self.response_bytes_limit.reserve(user, n_bytes)?);
        }
        Ok(())
    }
}

/// The memory of these objects if no other component holds references to them.
fn memory_bytes_of_items(items: &Vec<Item>) -> usize {
    let values: usize = items.iter().map(|item| item.entry.value.len()).sum();
    values + items.capacity() * size_of::<Item>()
}

async fn resolve_requested_revision(
    ctx: &RequestContext<'_>,
    state: RequestedRevision,
) -> Result<At, Status> {
    match state {
        RequestedRevision::Newest => Ok(At::Newest),
        RequestedRevision::Any => Ok(At::NotOlderThan(Revision::ZERO)),
        RequestedRevision::NotOlderThan(number) => {
            wait_for_store_revision(ctx, number, "list").await
        }
        RequestedRevision::Exactly(number) => {
            wait_for_store_revision(ctx, number, "list").await?;
            Ok(At::Exactly(Revision::new(number)))
        }
    }
}

/// Reads objects from the store until a page is full or no object is left.
async fn read_list_page(
    ctx: &RequestContext<'_>,
    prefix: &Prefix,
    filter: &ObjectFilter,
    limit: usize,
    mut at: At,
    mut from: Bound<Key>,
    reservation: &mut ListBytesReservation<'_>,
) -> Result<ListPage, ListPageError> {
    let mut items: Vec<Item> = Vec::new();
    let mut placeholders: Vec<String> = Vec::new();
    let mut yield_timer = YieldTimer::default();
    let mut read_size = if limit == 0 { ROUND_ITEMS_MAX } else { limit };
    loop {
        let is_plain = filter.has_no_selectors() && !filter.hides_uninitialized();
        let n_requested = match is_plain && limit > 0 {
            true => limit.saturating_sub(items.len()).min(ROUND_ITEMS_MAX),
            false => read_size.min(ROUND_ITEMS_MAX),
        };
        let request = ListRequest {
            from,
            items_max: NonZeroUsize::new(n_requested),
            page_bytes_max: NonZeroUsize::new(ROUND_BYTES_MAX),
            at,
        };
        let mut page =
            ctx.time_store_request("list", ctx.server.store.list(prefix, request)).await?;
        at = At::Exactly(page.revision);
        let hides = filter.hides_uninitialized()
            && !snapshot_shows_no_uninitialized_objects(ctx, page.revision);
        let last = page.items.last().map(|item| item.key.clone());
        let n_read = page.items.len() as u64;
        let has_room = limit == 0 || items.len() + page.items.len() <= limit;
        if filter.has_no_selectors() && !hides && has_room {
            // In the common case no object is moved.
            for item in &mut page.items {
                let Item { key, entry } = item;
                let placeholder = ctx.server.decodable_object_cache.placeholder_if_undecodable(
                    ctx.resource,
                    key,
                    entry,
                );
                if let Some(placeholder) = placeholder {
                    placeholders.push(object_name_of_key(key).to_owned());
                    *entry = placeholder;
                }
            }
            match items.is_empty() {
                true => items = std::mem::take(&mut page.items),
                false => items.append(&mut page.items),
            }
            if items.len() == limit && page.n_remaining_items > 0 {
                let continue_token = continue_token_after(prefix, items.last(), page.revision);
                return Ok(ListPage {
                    items,
                    revision: page.revision,
                    continue_token,
                    n_remaining_objects: Some(page.n_remaining_items),
                    undecodable_object_names: placeholders,
                    response_bytes_reservation: None,
                });
            }
        }
        for (idx, Item { key, entry }) in page.items.into_iter().enumerate() {
            yield_timer.yield_if_turn_over().await;
            if hides && is_stored_uninitialized(&entry.value) {
                continue;
            }
            let listed =
                ctx.server.decodable_object_cache.entry_or_placeholder(ctx.resource, &key, entry);
            if !matches_filter(ctx, filter, &key, &listed) {
                continue;
            }
            if listed.is_placeholder {
                placeholders.push(object_name_of_key(&key).to_owned());
            }
            items.push(Item { key, entry: listed.entry });
            let n_after = n_read - idx as u64 - 1 + page.n_remaining_items;
            if limit > 0 && items.len() == limit && n_after > 0 {
                let is_counted = filter.has_no_selectors()
                    && (!hides || had_no_uninitialized_objects(ctx, page.revision).await);
                let n_remaining = is_counted.then_some(n_after);
                let continue_token = continue_token_after(prefix, items.last(), page.revision);
                return Ok(ListPage {
                    items,
                    revision: page.revision,
                    continue_token,
                    n_remaining_objects: n_remaining,
                    undecodable_object_names: placeholders,
                    response_bytes_reservation: None,
                });
            }
        }
        match last {
            Some(key) if page.n_remaining_items > 0 => from = Bound::Excluded(key),
            _ => {
                return Ok(ListPage {
                    items,
                    revision: page.revision,
                    continue_token: String::new(),
                    n_remaining_objects: None,
                    undecodable_object_names: placeholders,
                    response_bytes_reservation: None,
                });
            }
        }
        reservation.grow_reservation_to(memory_bytes_of_items(&items))?;
        tokio::task::yield_now().await;
        read_size = read_size.saturating_mul(2).min(ROUND_ITEMS_MAX);
    }
}

fn matches_filter(
    ctx: &RequestContext<'_>,
    filter: &ObjectFilter,
    key: &Key,
    listed: &EntryOrPlaceholder,
) -> bool {
    if filter.has_no_selectors() {
        return true;
    }
    if !filter.may_match_name(object_name_of_key(key)) {
        return false;
    }
    let tree = ctx.decode_entry(&listed.entry);
    tree.is_ok_and(|tree| match listed.is_placeholder {
        true => filter.matches_undecodable_placeholder(ctx.resource, &tree),
        false => filter.matches(ctx.resource, &tree),
    })
}

fn object_name_of_key(key: &Key) -> &str {
    key.rsplit('/').next().unwrap_or_default()
}

fn continue_token_after(prefix: &Prefix, last: Option<&Item>, revision: Revision) -> String {
    let after = last.and_then(|item| item.key.strip_prefix(prefix.as_str())).unwrap_or_default();
    ContinueToken { revision: Some(revision.as_u64()), last_returned_key: after.to_owned() }
        .encode_token()
}

fn decode_continue_token(prefix: &Prefix, text: &str) -> Result<(At, Bound<Key>), Status> {
    let refuse = |why: String| Status::bad_request(format!("invalid continue token: {why}"));
    let token = ContinueToken::decode_token(text).map_err(|error| refuse(error.to_string()))?;
    let key = Key::new(&format!("{prefix}{}", token.last_returned_key));
    let key = key.map_err(|error| refuse(format!("encoded start key {error}")))?;
    let at = token.revision.map_or(At::Newest, |number| At::Exactly(Revision::new(number)));
    Ok((at, Bound::Excluded(key)))
}

fn continue_expired_status(prefix: &Prefix, from: &Bound<Key>) -> Status {
    let mut status = Status::resource_version_expired(CONTINUE_TOO_OLD);
    if let Bound::Excluded(key) = from {
        let after = key.strip_prefix(prefix.as_str()).unwrap_or_default().to_owned();
        status.continue_token =
            ContinueToken { revision: None, last_returned_key: after }.encode_token();
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_are_being_read_count() {
        let limit = Arc::new(ResponseBytesLimit::new(400));
        let reading = |user| ListBytesReservation {
            response_bytes_limit: &limit,
            user: Some(user),
            current_reservation: None,
        };
        let (mut first, mut second) = (reading("jane"), reading("jane"));
        first.grow_reservation_to(60).unwrap();
        second.grow_reservation_to(40).unwrap();
        assert!(
            first.grow_reservation_to(61).is_err(),
            "the bytes of the second list count while it is read"
        );
        drop(first);
        second.grow_reservation_to(100).unwrap();
        // Another user's list is not in the way of this one.
        let mut other = reading("joe");
        other.grow_reservation_to(50).unwrap();
        other.grow_reservation_to(100).unwrap();
        drop((second, other));
        let mut alone = reading("jane");
        for n_bytes in [60, 100] {
            alone.grow_reservation_to(n_bytes).expect("its own bytes are not in its way");
        }
        drop(alone);
        let mut unlimited = ListBytesReservation {
            response_bytes_limit: &limit,
            user: None,
            current_reservation: None,
        };
        unlimited.grow_reservation_to(900).unwrap();
        assert!(unlimited.current_reservation.is_none());
    }
}
