//! `list`, page by page.

use std::num::NonZeroUsize;
use std::ops::Bound;

use api_object::{ContinueToken, Status};
use store::{At, Item, Key, ListRequest, Prefix, ReadError, Revision, Store};

use crate::decodable_versions::ListedEntry;
use crate::initialize::is_hidden;
use crate::rest::query::WantedState;
use crate::rest::{Call, Filter};

/// How many objects are read at once where most may turn out not to be wanted.
const ROUND_ITEMS_MAX: usize = 10_000;

/// A page.
#[derive(Debug)]
pub(crate) struct Listed {
    /// As they are stored, in the order of their keys.
    pub(crate) items: Vec<Item>,
    /// The state that the whole list shows.
    pub(crate) revision: Revision,
    /// Empty on the last page.
    pub(crate) continue_token: String,
    /// How many come after; not known where a selector decides.
    pub(crate) remaining: Option<u64>,
    /// The names of those that can not be decoded.
    pub(crate) placeholders: Vec<String>,
}

const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent \
    list result. You can start a new list without the continue parameter, or use the continue token \
    in this response to retrieve the remainder of the results. Continuing with the provided token \
    results in an inconsistent list - objects that were created, modified, or deleted between the \
    time the first chunk was returned and now may show up in the list.";

impl<S: Store> Call<'_, S> {
    /// A page of what the filter lets through.
    pub(crate) async fn list(&self, filter: &Filter) -> Result<Listed, Status> {
        let options = self.query.list_options()?;
        let prefix = self.key_prefix()?;
        let (at, from) = match options.continue_token.as_str() {
            "" => (self.wanted_state(options.state).await?, Bound::Unbounded),
            text => start_of_page(&prefix, text)?,
        };
        let is_continued = !options.continue_token.is_empty();
        match self.page(&prefix, filter, options.limit, at, from.clone()).await {
            Err(ReadError::Compacted { .. }) if is_continued => {
                Err(continue_expired(&prefix, &from))
            }
            Err(error) => Err(self.read_failed("list", &error)),
            Ok(listed) => Ok(listed),
        }
    }

    async fn wanted_state(&self, state: WantedState) -> Result<At, Status> {
        match state {
            WantedState::Newest => Ok(At::Newest),
            WantedState::Any => Ok(At::NotOlderThan(Revision::ZERO)),
            WantedState::NotOlderThan(number) => self.not_older_than(number, "list").await,
            WantedState::Exactly(number) => {
                self.not_older_than(number, "list").await?;
                Ok(At::Exactly(Revision::new(number)))
            }
        }
    }

    /// Reads rounds of objects until a page is full or nothing is left.
    async fn page(
        &self,
        prefix: &Prefix,
        filter: &Filter,
        limit: usize,
        mut at: At,
        mut from: Bound<Key>,
    ) -> Result<Listed, ReadError> {
        let mut items: Vec<Item> = Vec::new();
        let mut placeholders: Vec<String> = Vec::new();
        let mut round = limit;
        loop {
            let is_plain = filter.is_open() && !filter.hides_uninitialized();
            let wanted = if is_plain { limit.saturating_sub(items.len()) } else { round };
            let request = ListRequest { from, limit: NonZeroUsize::new(wanted), at };
            let page = self.timed("list", self.server.store.list(prefix, request)).await?;
            at = At::Exactly(page.revision);
            let hides = filter.hides_uninitialized() && !self.hides_nothing(page.revision);
            let last = page.items.last().map(|item| item.key.clone());
            let n_read = page.items.len() as u64;
            for (idx, Item { key, entry }) in page.items.into_iter().enumerate() {
                if hides && is_hidden(&entry.value) {
                    continue;
                }
                let sighted =
                    self.server.decodable_versions.or_placeholder(self.resource, &key, entry);
                if !self.is_wanted(filter, &key, &sighted) {
                    continue;
                }
                if sighted.is_placeholder {
                    placeholders.push(last_segment(&key).to_owned());
                }
                items.push(Item { key, entry: sighted.entry });
                let n_after = n_read - idx as u64 - 1 + page.remaining;
                if limit > 0 && items.len() == limit && n_after > 0 {
                    let is_counted = filter.is_open()
                        && (!hides || self.surely_hides_nothing(page.revision).await);
                    let remaining = is_counted.then_some(n_after);
                    let continue_token = token(prefix, items.last(), page.revision);
                    return Ok(Listed {
                        items,
                        revision: page.revision,
                        continue_token,
                        remaining,
                        placeholders,
                    });
                }
            }
            match last {
                Some(key) if page.remaining > 0 => from = Bound::Excluded(key),
                _ => {
                    let (revision, continue_token) = (page.revision, String::new());
                    let remaining = None;
                    return Ok(Listed { items, revision, continue_token, remaining, placeholders });
                }
            }
            round = round.saturating_mul(2).min(ROUND_ITEMS_MAX);
        }
    }

    fn is_wanted(&self, filter: &Filter, key: &Key, sighted: &ListedEntry) -> bool {
        if filter.is_open() {
            return true;
        }
        if !filter.may_match(last_segment(key)) {
            return false;
        }
        let tree = self.parse(&sighted.entry);
        tree.is_ok_and(|tree| match sighted.is_placeholder {
            true => filter.matches_placeholder(self.resource, &tree),
            false => filter.matches(self.resource, &tree),
        })
    }
}

fn last_segment(key: &Key) -> &str {
    key.rsplit('/').next().unwrap_or_default()
}

fn token(prefix: &Prefix, last: Option<&Item>, revision: Revision) -> String {
    let after = last.and_then(|item| item.key.strip_prefix(prefix.as_str())).unwrap_or_default();
    ContinueToken { revision: Some(revision.number()), after: after.to_owned() }.encode()
}

fn start_of_page(prefix: &Prefix, text: &str) -> Result<(At, Bound<Key>), Status> {
    let refuse = |why: String| Status::bad_request(format!("invalid continue token: {why}"));
    let token = ContinueToken::decode(text).map_err(|error| refuse(error.to_string()))?;
    let key = Key::new(&format!("{prefix}{}", token.after));
    let key = key.map_err(|error| refuse(format!("encoded start key {error}")))?;
    let at = token.revision.map_or(At::Newest, |number| At::Exactly(Revision::new(number)));
    Ok((at, Bound::Excluded(key)))
}

fn continue_expired(prefix: &Prefix, from: &Bound<Key>) -> Status {
    let mut status = Status::expired(CONTINUE_TOO_OLD);
    if let Bound::Excluded(key) = from {
        let after = key.strip_prefix(prefix.as_str()).unwrap_or_default().to_owned();
        status.continue_token = ContinueToken { revision: None, after }.encode();
    }
    status
}
