//! Looks after waiting objects that nobody follows: those of servers that are gone.
//!
//! 1. At start, and at intervals, an object on which an initializer gave up is deleted, in case the
//!    server that should have done that died.
//! 2. A record of an object that no longer waits, or was never stored, is deleted.

use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use api_resources::Verb;
use store::{At, Delete, Expect, Key, ListRequest, Prefix, ReadError, Store, WriteError};

use super::fail::Failed;
use super::tracker::Job;
use super::visibility::is_hidden;
use super::waiting_objects::{Due, RowState};
use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

/// How often objects of which nothing is known are read.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// How long a server has for what it does about an object before others do it: more than a request may
/// take.
const GRACE: Duration = Duration::from_secs(90);
/// How long to wait before a store that can not be read is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How many objects are read at once.
const PAGE_ITEMS: usize = 500;

/// Sweeps until the task is dropped.
pub(crate) async fn sweep_waiting<S: Store>(server: Arc<ServerState<S>>) {
    while let Err(error) = adopt(&server).await {
        server.log.warn("objects that wait for initializers can not be read", &[("why", &error)]);
        tokio::time::sleep(RETRY).await;
    }
    // Nobody ends what failed before this server began.
    look_at_all(&server, true, Duration::ZERO).await;
    look_at_all(&server, true, Duration::ZERO).await;
    let mut ticks = tokio::time::interval(SWEEP_EVERY);
    loop {
        let with_objects = tokio::select! {
            _ = ticks.tick() => true,
            () = server.snapshot_cache.waiting().settled() => false,
        };
        look_at_all(&server, with_objects, GRACE).await;
    }
}

/// Counts the objects that wait without a record: a program without records stored them.
async fn adopt<S: Store>(server: &ServerState<S>) -> Result<(), ReadError> {
    let paths = Arc::clone(&server.snapshot_cache.snapshot().paths_with_uninitialized);
    for path in paths.iter() {
        let Ok(prefix) = Prefix::new(&format!("{}/{path}/", server.prefix)) else { continue };
        let mut from = Bound::Unbounded;
        loop {
            let limit = NonZeroUsize::new(PAGE_ITEMS);
            let page =
                server.store.list(&prefix, ListRequest { from, limit, at: At::Newest }).await?;
            for item in page.items.iter().filter(|item| is_hidden(&item.entry.value)) {
                server.snapshot_cache.waiting().adopt(&item.key, &item.entry.value);
            }
            match page.items.last() {
                Some(last) if page.remaining > 0 => from = Bound::Excluded(last.key.clone()),
                _ => break,
            }
        }
    }
    Ok(())
}

async fn look_at_all<S: Store>(server: &ServerState<S>, with_objects: bool, grace: Duration) {
    for due in server.snapshot_cache.waiting().due(with_objects) {
        let outcome = match due.state {
            RowState::Settled => drop_record(server, &due).await,
            _ => look_at(server, &due, grace).await,
        };
        if let Err(why) = outcome {
            let why = format!("{why}, it is tried again");
            server.log.warn(
                "an object that waits for initializers can not be looked at",
                &[("key", &due.key), ("why", &why)],
            );
        }
    }
}

async fn look_at<S: Store>(
    server: &ServerState<S>,
    due: &Due,
    grace: Duration,
) -> Result<(), String> {
    let waiting = server.snapshot_cache.waiting();
    let got = server.store.get(&due.key, At::Newest).await.map_err(|error| error.to_string())?;
    waiting.see(&due.key, got.entry.as_ref().map(|entry| &entry.value));
    let Some(entry) = got.entry else {
        return settle_missing(server, due);
    };
    let Ok(tree) = codec::from_stored(&entry.value) else { return Ok(()) };
    if api_object::uid(&tree) != due.uid {
        return settle_missing(server, due);
    }
    if due.state == RowState::Failed && due.age >= grace && super::has_failed(&tree) {
        let cluster = server.snapshot_cache.snapshot();
        let request = cluster.registry.resources().find_map(|resource| {
            let (namespace, name) = api_resources::names(&server.prefix, resource, &due.key)?;
            Some(ObjectRef::of(resource, namespace, name).request(Verb::Delete))
        });
        let failed = Failed::left_behind(due.key.clone(), tree, entry.mod_rev, request);
        server.initialization_tracker.begin(Job::End(Box::new(failed))).await;
    }
    Ok(())
}

/// A write of which the store did not tell the outcome may still turn out to have happened.
fn settle_missing<S: Store>(server: &ServerState<S>, due: &Due) -> Result<(), String> {
    if due.age >= GRACE {
        server.snapshot_cache.waiting().settle(&due.uid);
    }
    Ok(())
}

async fn drop_record<S: Store>(server: &ServerState<S>, due: &Due) -> Result<(), String> {
    let waiting = server.snapshot_cache.waiting();
    if let Some(key) = waiting.record_key(&due.uid) {
        delete_newest(server, &key).await?;
    }
    waiting.forget(&due.uid);
    Ok(())
}

async fn delete_newest<S: Store>(server: &ServerState<S>, key: &Key) -> Result<(), String> {
    let got = server.store.get(key, At::Newest).await.map_err(|error| error.to_string())?;
    let Some(entry) = got.entry else { return Ok(()) };
    let delete = Delete { key: key.clone(), expect: Expect::At(entry.mod_rev), mark: None };
    match server.store.delete(delete).await {
        // Another server was faster: nobody writes a record twice.
        Ok(_) | Err(WriteError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
