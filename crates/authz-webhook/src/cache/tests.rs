use std::time::Duration;

use authz::{SharedText, Target};
use proptest::prelude::*;

use super::*;

fn question(path: &str) -> Attributes<'_> {
    Attributes { user: None, verb: "get", target: Target::Path(path) }
}

fn answer(text: &str) -> ReviewStatus {
    let reason = SharedText::from(text.to_owned());
    ReviewStatus { is_allowed: true, is_denied: false, reason, n_bytes: text.len() }
}

fn store(cache: &Cache, path: &str, text: &str, expires: Instant) -> StoreResult {
    let asked = question(path);
    let key = Arc::new(CacheKey::new(&asked, cache.hash(&asked)));
    cache.store(key, answer(text), expires)
}

/// The reason that is kept for a question.
fn get(cache: &Cache, path: &str, now: Instant) -> Option<String> {
    let asked = question(path);
    match cache.get(&asked, cache.hash(&asked), now) {
        CacheLookup::Hit(status) => Some(status.reason.to_string()),
        CacheLookup::Miss | CacheLookup::Expired => None,
    }
}

/// What the books say and what is there.
fn check_books(cache: &Cache) {
    let order = cache.lock_order();
    let mut n_entries = 0;
    let mut n_bytes = 0;
    for shard in &cache.shards {
        let shard = shard.read().unwrap();
        n_entries += shard.len();
        n_bytes += shard.values().map(|entry| entry.n_bytes).sum::<usize>();
    }
    assert_eq!((order.n_entries, order.n_bytes), (n_entries, n_bytes));
    assert!(n_entries <= cache.entries_max && n_bytes <= cache.bytes_max);
    assert!(order.heap.len() <= 2 * n_entries + HEAP_SLACK);
}

/// One step on a cache of few entries.
#[derive(Debug, Clone)]
enum Step {
    Get(usize),
    Store(usize),
    /// An answer that is already too old.
    StoreStale(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let n = 0..12_usize;
    prop_oneof![
        n.clone().prop_map(Step::Get),
        n.clone().prop_map(Step::Store),
        n.prop_map(Step::StoreStale),
    ]
}

proptest! {
    /// The cache does what a list does from which the front is taken, to the end of which goes what
    /// is used.
    #[test]
    fn the_order_is_exact(steps in prop::collection::vec(step(), 1..200)) {
        const ENTRIES_MAX: usize = 5;
        let cache = Cache::new(ENTRIES_MAX, usize::MAX);
        let now = Instant::now() + Duration::from_secs(100);
        let stale = now - Duration::from_secs(1);
        // Questions with their expiry, the one unused for longest first.
        let mut model: Vec<(usize, Instant)> = Vec::new();
        for step in steps {
            match step {
                Step::Get(n) => {
                    let at = model.iter().position(|(other, _)| *other == n);
                    let found = at.map(|at| model.remove(at)).filter(|(_, expires)| now <= *expires);
                    model.extend(found);
                    prop_assert_eq!(get(&cache, &n.to_string(), now).is_some(), found.is_some());
                }
                Step::Store(n) | Step::StoreStale(n) => {
                    let expires = if matches!(step, Step::Store(_)) { now } else { stale };
                    model.retain(|(other, _)| *other != n);
                    model.push((n, expires));
                    let n_evicted = model.len().saturating_sub(ENTRIES_MAX);
                    model.drain(..n_evicted);
                    let stored = store(&cache, &n.to_string(), "", expires);
                    prop_assert_eq!(stored, StoreResult::Stored { n_evicted });
                }
            }
            prop_assert_eq!(cache.size().n_entries, model.len());
            check_books(&cache);
        }
    }
}

#[test]
fn an_entry_is_good_up_to_and_including_its_end() {
    let cache = Cache::new(8, 1 << 20);
    let end = Instant::now() + Duration::from_secs(10);
    store(&cache, "/", "kept", end);
    assert_eq!(get(&cache, "/", end).as_deref(), Some("kept"));
    let asked = question("/");
    let after = end + Duration::from_nanos(1);
    assert!(matches!(cache.get(&asked, cache.hash(&asked), after), CacheLookup::Expired));
    assert_eq!(cache.size(), CacheSize { n_entries: 0, n_bytes: 0 });
    assert!(matches!(cache.get(&asked, cache.hash(&asked), after), CacheLookup::Miss));
}

#[test]
fn a_later_answer_takes_the_place() {
    let cache = Cache::new(8, 1 << 20);
    let now = Instant::now();
    store(&cache, "/", "first", now);
    store(&cache, "/", "second one", now);
    assert_eq!(get(&cache, "/", now).as_deref(), Some("second one"));
    assert_eq!(cache.size().n_entries, 1);
    check_books(&cache);
}

/// Questions of one hash are told apart by what they ask.
/// Keys are compared, not only hashed.
#[test]
fn a_hash_alone_is_not_enough() {
    let cache = Cache::new(8, 1 << 20);
    let now = Instant::now();
    let (one, other) = (question("/one"), question("/other"));
    let hash = cache.hash(&one);
    cache.store(Arc::new(CacheKey::new(&one, hash)), answer("one"), now);
    assert!(matches!(cache.get(&other, hash, now), CacheLookup::Miss));
    cache.store(Arc::new(CacheKey::new(&other, hash)), answer("other"), now);
    assert!(
        matches!(cache.get(&one, hash, now), CacheLookup::Miss),
        "the later one took the place"
    );
    assert!(matches!(cache.get(&other, hash, now), CacheLookup::Hit(_)));
    check_books(&cache);
}

#[test]
fn bytes_are_bounded() {
    let one = ENTRY_BYTES + CacheKey::new(&question("/1"), 0).n_bytes() + 100;
    let cache = Cache::new(100, 3 * one);
    let now = Instant::now();
    let text = "x".repeat(100);
    for n in 1..=3 {
        assert_eq!(
            store(&cache, &format!("/{n}"), &text, now),
            StoreResult::Stored { n_evicted: 0 }
        );
    }
    assert_eq!(cache.size(), CacheSize { n_entries: 3, n_bytes: 3 * one });
    let longer = "x".repeat(101);
    assert_eq!(store(&cache, "/4", &longer, now), StoreResult::Stored { n_evicted: 2 });
    check_books(&cache);
    let fits = "x".repeat(100 + 2 * one);
    assert_eq!(store(&cache, "/5", &fits, now), StoreResult::Stored { n_evicted: 2 });
    let exceeds = format!("{fits}x");
    assert_eq!(store(&cache, "/6", &exceeds, now), StoreResult::TooLarge);
    assert_eq!(cache.size().n_entries, 1);
    assert_eq!(store(&Cache::new(0, 1 << 20), "/", "", now), StoreResult::TooLarge);
}

/// Entries that come and expire leave nothing behind.
#[test]
fn the_heap_does_not_grow() {
    let cache = Cache::new(1000, 1 << 20);
    let now = Instant::now();
    for n in 0..10_000 {
        let path = format!("/{n}");
        store(&cache, &path, "", now);
        assert_eq!(get(&cache, &path, now + Duration::from_secs(1)), None);
    }
    check_books(&cache);
    assert_eq!(cache.size().n_entries, 0);
}

#[test]
fn threads_do_not_disturb_each_other() {
    let cache = Cache::new(64, 1 << 20);
    let now = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let cache = &cache;
            scope.spawn(move || {
                for n in 0..5_000 {
                    let path = format!("/{}", (n * (thread + 3)) % 100);
                    match get(cache, &path, now) {
                        Some(reason) => assert_eq!(reason, path),
                        None => {
                            store(cache, &path, &path, now);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(cache.size().n_entries, 64);
    check_books(&cache);
}
