use std::time::Duration;

use authz::{SharedText, Target, Verb};
use proptest::prelude::*;

use super::*;

fn question(path: &str) -> Attributes<'_> {
    Attributes { user: None, verb: Verb::GET, target: Target::Path(path) }
}

fn answer(text: &str) -> ReviewStatus {
    let reason = SharedText::from(text.to_owned());
    ReviewStatus { is_allowed: true, is_denied: false, reason, reason_memory_bytes: text.len() }
}

fn insert(cache: &AnswerCache, path: &str, text: &str, expires_at: Instant) -> CacheStoreResult {
    let asked = question(path);
    let key = Arc::new(CacheKey::new(&asked, cache.hash(&asked)));
    cache.insert(key, answer(text), expires_at)
}

/// The cached reason for a request.
fn get(cache: &AnswerCache, path: &str, now: Instant) -> Option<String> {
    let asked = question(path);
    match cache.get(&asked, cache.hash(&asked), now) {
        CacheLookupResult::Hit(status) => Some(status.reason.to_string()),
        CacheLookupResult::Miss | CacheLookupResult::Expired => None,
    }
}

/// The size that the cache reports and the size of its entries.
fn check_books(cache: &AnswerCache) {
    let eviction_order = cache.lock_eviction_order();
    let mut n_entries = 0;
    let mut n_bytes = 0;
    for shard in &cache.cache_shards {
        let shard = shard.read().unwrap();
        n_entries += shard.len();
        n_bytes += shard.values().map(|entry| entry.entry_memory_bytes).sum::<usize>();
    }
    assert_eq!(
        (eviction_order.n_cache_entries, eviction_order.cache_memory_bytes),
        (n_entries, n_bytes)
    );
    assert!(n_entries <= cache.cache_entries_max && n_bytes <= cache.cache_bytes_max);
    assert!(eviction_order.eviction_heap.len() <= 2 * n_entries + HEAP_SLACK);
}

/// One operation on a cache of few entries.
#[derive(Debug, Clone)]
enum Step {
    Get(usize),
    Store(usize),
    /// Stores an answer that has already expired.
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
    /// The cache evicts as a list does that moves each used entry to its end and removes entries from its
    /// front.
    #[test]
    fn the_order_is_exact(steps in prop::collection::vec(step(), 1..200)) {
        const ENTRIES_MAX: usize = 5;
        let cache = AnswerCache::new(ENTRIES_MAX, usize::MAX);
        let now = Instant::now() + Duration::from_secs(100);
        let stale = now - Duration::from_secs(1);
        // Requests with their expiry, the least recently used first.
        let mut model: Vec<(usize, Instant)> = Vec::new();
        for step in steps {
            match step {
                Step::Get(n) => {
                    let at = model.iter().position(|(other, _)| *other == n);
                    let found = at.map(|at| model.remove(at)).filter(|(_, expires_at)| now <= *expires_at);
                    model.extend(found);
                    prop_assert_eq!(get(&cache, &n.to_string(), now).is_some(), found.is_some());
                }
                Step::Store(n) | Step::StoreStale(n) => {
                    let expires_at = if matches!(step, Step::Store(_)) { now } else { stale };
                    model.retain(|(other, _)| *other != n);
                    model.push((n, expires_at));
                    let n_evicted = model.len().saturating_sub(ENTRIES_MAX);
                    model.drain(..n_evicted);
                    let stored = insert(&cache, &n.to_string(), "", expires_at);
                    prop_assert_eq!(stored, CacheStoreResult::Stored { n_evicted });
                }
            }
            prop_assert_eq!(cache.size().n_cache_entries, model.len());
            check_books(&cache);
        }
    }
}

#[test]
fn an_entry_is_good_up_to_and_including_its_end() {
    let cache = AnswerCache::new(8, 1 << 20);
    let end = Instant::now() + Duration::from_secs(10);
    insert(&cache, "/", "kept", end);
    assert_eq!(get(&cache, "/", end).as_deref(), Some("kept"));
    let asked = question("/");
    let after = end + Duration::from_nanos(1);
    assert!(matches!(cache.get(&asked, cache.hash(&asked), after), CacheLookupResult::Expired));
    assert_eq!(cache.size(), CacheSize { n_cache_entries: 0, cache_memory_bytes: 0 });
    assert!(matches!(cache.get(&asked, cache.hash(&asked), after), CacheLookupResult::Miss));
}

#[test]
fn a_later_answer_takes_the_place() {
    let cache = AnswerCache::new(8, 1 << 20);
    let now = Instant::now();
    insert(&cache, "/", "first", now);
    insert(&cache, "/", "second one", now);
    assert_eq!(get(&cache, "/", now).as_deref(), Some("second one"));
    assert_eq!(cache.size().n_cache_entries, 1);
    check_books(&cache);
}

/// L30: requests with the same hash are distinguished by their keys.
#[test]
fn a_hash_alone_is_not_enough() {
    let cache = AnswerCache::new(8, 1 << 20);
    let now = Instant::now();
    let (one, other) = (question("/one"), question("/other"));
    let hash = cache.hash(&one);
    cache.insert(Arc::new(CacheKey::new(&one, hash)), answer("one"), now);
    assert!(matches!(cache.get(&other, hash, now), CacheLookupResult::Miss));
    cache.insert(Arc::new(CacheKey::new(&other, hash)), answer("other"), now);
    assert!(
        matches!(cache.get(&one, hash, now), CacheLookupResult::Miss),
        "the later one took the place"
    );
    assert!(matches!(cache.get(&other, hash, now), CacheLookupResult::Hit(_)));
    check_books(&cache);
}

#[test]
fn bytes_are_bounded() {
    let one = ENTRY_BYTES + CacheKey::new(&question("/1"), 0).key_memory_bytes() + 100;
    let cache = AnswerCache::new(100, 3 * one);
    let now = Instant::now();
    let text = "x".repeat(100);
    for n in 1..=3 {
        assert_eq!(
            insert(&cache, &format!("/{n}"), &text, now),
            CacheStoreResult::Stored { n_evicted: 0 }
        );
    }
    assert_eq!(cache.size(), CacheSize { n_cache_entries: 3, cache_memory_bytes: 3 * one });
    let longer = "x".repeat(101);
    assert_eq!(insert(&cache, "/4", &longer, now), CacheStoreResult::Stored { n_evicted: 2 });
    check_books(&cache);
    let fits = "x".repeat(100 + 2 * one);
    assert_eq!(insert(&cache, "/5", &fits, now), CacheStoreResult::Stored { n_evicted: 2 });
    let exceeds = format!("{fits}x");
    assert_eq!(insert(&cache, "/6", &exceeds, now), CacheStoreResult::TooLarge);
    assert_eq!(cache.size().n_cache_entries, 1);
    assert_eq!(insert(&AnswerCache::new(0, 1 << 20), "/", "", now), CacheStoreResult::TooLarge);
}

/// Expired entries leave no memory in use.
#[test]
fn the_heap_does_not_grow() {
    let cache = AnswerCache::new(1000, 1 << 20);
    let now = Instant::now();
    for n in 0..10_000 {
        let path = format!("/{n}");
        insert(&cache, &path, "", now);
        assert_eq!(get(&cache, &path, now + Duration::from_secs(1)), None);
    }
    check_books(&cache);
    assert_eq!(cache.size().n_cache_entries, 0);
}

#[test]
fn threads_do_not_disturb_each_other() {
    let cache = AnswerCache::new(64, 1 << 20);
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
                            insert(cache, &path, &path, now);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(cache.size().n_cache_entries, 64);
    check_books(&cache);
}
