#![expect(clippy::expect_used, reason = "a benchmark that fails says so by panicking")]
//! Measures the speed and the memory of the embedded store.
//!
//! `cargo bench -p store-embedded` measures; `cargo test` runs the same once with small numbers.

use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use store::{At, ExpectedKeyState, Key, ListRequest, Prefix, Put, Revision, Store};
use store_embedded::{EmbeddedStore, Options, SyncMode};
use tempfile::TempDir;

/// The size of a run.
struct Scale {
    n_keys: usize,
    n_gets: usize,
    n_serial: usize,
    n_writers: usize,
    n_writes_per_writer: usize,
    n_watches: usize,
    n_watched: usize,
}

const MEASURE: Scale = Scale {
    n_keys: 100_000,
    n_gets: 1_000_000,
    n_serial: 2_000,
    n_writers: 64,
    n_writes_per_writer: 2_000,
    n_watches: 1_000,
    n_watched: 200,
};

const SMALL: Scale = Scale {
    n_keys: 2_000,
    n_gets: 1_000,
    n_serial: 10,
    n_writers: 8,
    n_writes_per_writer: 10,
    n_watches: 10,
    n_watched: 5,
};

const VALUE_BYTES: usize = 1024;

fn main() {
    let scale = if std::env::args().any(|arg| arg == "--bench") { MEASURE } else { SMALL };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be built").block_on(measure(&scale));
}

async fn measure(scale: &Scale) {
    let directory = TempDir::new().expect("a directory can be made");
    let lazy = SyncMode::Interval(Duration::from_millis(100));
    let before = resident_bytes();
    let store = open(directory.path(), lazy);
    fill(&store, scale.n_keys).await;
    // Counts the memory of the objects, not of the history of their creation.
    let current = store.current_rev().await.expect("open");
    store.compact(current).await.expect("compacts");
    let per_object = resident_bytes().saturating_sub(before) / scale.n_keys as u64;
    println!("memory per object of {VALUE_BYTES} bytes: {per_object} bytes");

    gets(&store, scale).await;
    lists(&store, scale).await;
    drop(store);
    let began = Instant::now();
    let store = open(directory.path(), SyncMode::Always);
    println!("open with {} keys: {:?}", scale.n_keys, began.elapsed());
    disk(directory.path(), scale);
    writes(store, scale).await;

    let directory = TempDir::new().expect("a directory can be made");
    watches(open(directory.path(), SyncMode::Always), scale).await;
}

fn open(directory: &Path, sync_mode: SyncMode) -> EmbeddedStore {
    EmbeddedStore::open(directory, Options { sync_mode, ..Options::default() }).expect("opens")
}

fn key(n: usize) -> Key {
    let text = format!("/registry/configmaps/team-{:03}/settings-{n:07}", n % 100);
    Key::new(&text).expect("a key")
}

fn all() -> Prefix {
    Prefix::new("/registry/configmaps/").expect("a prefix")
}

fn create(key: Key) -> Put {
    let value = Bytes::from(vec![b'x'; VALUE_BYTES]);
    Put {
        key,
        value,
        expected_state: ExpectedKeyState::Absent,
        ttl: None,
        key_group_revision_action: None,
    }
}

async fn fill(store: &EmbeddedStore, n_keys: usize) {
    for n in 0..n_keys {
        store.put(create(key(n))).await.expect("puts");
    }
}

/// Reads all keys in random order, which is bound by memory latency, and a few keys repeatedly.
async fn gets(store: &EmbeddedStore, scale: &Scale) {
    for (name, n_keys) in [("any of all", scale.n_keys), ("one of 1000", 1000)] {
        let keys: Vec<Key> = (0..n_keys).map(|n| key(n * 7919 % scale.n_keys)).collect();
        let began = on_cpu();
        for n in 0..scale.n_gets {
            let got = store.get(&keys[n % keys.len()], At::Newest).await;
            black_box(got).expect("gets").entry.expect("is there");
        }
        println!("get, {name}: {:?}", (on_cpu() - began) / scale.n_gets as u32);
    }
}

async fn lists(store: &EmbeddedStore, scale: &Scale) {
    let time = async |name: &str, request: ListRequest| {
        let began = on_cpu();
        const ROUNDS: u32 = 50;
        for _ in 0..ROUNDS {
            black_box(store.list(&all(), request.clone()).await).expect("lists");
        }
        println!("list, {name}: {:?}", (on_cpu() - began) / ROUNDS);
    };
    let limit = NonZeroUsize::new(scale.n_keys / 10);
    let newest = store.current_rev().await.expect("open");
    let whole = ListRequest::default();
    time("all keys", whole.clone()).await;
    time("a tenth", ListRequest { items_max: limit, ..whole.clone() }).await;
    let from = Bound::Excluded(key(scale.n_keys / 2));
    let limit = NonZeroUsize::new(500);
    time("500 from the middle", ListRequest { from: from.clone(), items_max: limit, ..whole })
        .await;
    for n in 0..1000 {
        store.put(create(key(scale.n_keys + n))).await.expect("puts");
    }
    let past =
        ListRequest { from, items_max: limit, page_bytes_max: None, at: At::Exactly(newest) };
    time("500 from the middle, 1000 revisions ago", past).await;
}

/// Measures the time in which the disk alone makes the bytes of one put durable.
fn disk(directory: &Path, scale: &Scale) {
    let mut file = fs::File::create(directory.join("floor")).expect("a file can be made");
    let began = Instant::now();
    for _ in 0..scale.n_serial {
        file.write_all(&[b'x'; VALUE_BYTES]).expect("writes");
        file.sync_data().expect("syncs");
    }
    println!("append and sync alone: {:?}", began.elapsed() / scale.n_serial as u32);
}

async fn writes(store: EmbeddedStore, scale: &Scale) {
    let began = Instant::now();
    for n in 0..scale.n_serial {
        store.put(create(key(1_000_000 + n))).await.expect("puts");
    }
    println!("durable put, one writer: {:?}", began.elapsed() / scale.n_serial as u32);
    let store = Arc::new(store);
    let began = Instant::now();
    let mut writers = Vec::new();
    for writer in 0..scale.n_writers {
        let (store, n_writes) = (store.clone(), scale.n_writes_per_writer);
        writers.push(tokio::spawn(async move {
            for n in 0..n_writes {
                store.put(create(key(2_000_000 + writer * 10_000 + n))).await.expect("puts");
            }
        }));
    }
    for writer in writers {
        writer.await.expect("writes");
    }
    let n_writes = scale.n_writers * scale.n_writes_per_writer;
    let per_second = n_writes as f64 / began.elapsed().as_secs_f64();
    println!("durable puts, {} writers: {per_second:.0} per second", scale.n_writers);
}

/// Measures the time from the start of a put until the last of many watches has its event.
async fn watches(store: EmbeddedStore, scale: &Scale) {
    let start = store.current_rev().await.expect("open");
    let end = Revision::new(start.as_u64() + scale.n_watched as u64);
    let (done, mut finished) = tokio::sync::mpsc::channel(scale.n_watches);
    for _ in 0..scale.n_watches {
        let mut watch = store.watch(all(), start).await.expect("watches");
        let done = done.clone();
        tokio::spawn(async move {
            let mut complete_through = start;
            while complete_through < end {
                complete_through = watch.next().await.expect("tells").complete_through_revision;
                done.send(()).await.expect("is heard");
            }
        });
    }
    let began = Instant::now();
    for n in 0..scale.n_watched {
        store.put(create(key(n))).await.expect("puts");
        for _ in 0..scale.n_watches {
            finished.recv().await.expect("all tell");
        }
    }
    let mean = began.elapsed() / scale.n_watched as u32;
    println!("durable put to the last of {} watches: {mean:?}", scale.n_watches);
}

/// The CPU time of this thread, which other programs disturb less than the time of day. Falls back to the time of
/// day where the operating system does not report it.
fn on_cpu() -> Duration {
    let spent = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = spent.and_then(|spent| spent.split(' ').next()?.parse().ok());
    ns.map_or_else(
        || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        Duration::from_nanos,
    )
}

/// The memory of this process as the operating system reports it; zero where it does not.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
