//! Interrupted connections to members.
//!
//! A read must return a result or an error within five seconds, because admission depends on fresh reads. After
//! an interruption the store must recover without a restart.

use std::time::Duration;

use etcd_testing::{Line, Member, State, leader};
use store::{At, ExpectedKeyState, ReadError, Revision, Store, Watch};
use store_etcd::{EtcdStore, Options};
use tokio::time::{Instant, sleep, timeout};

use crate::member::{open, open_with, options};
use crate::shorthand::{create, key, put, things};

/// The time after which a read must have returned a result or an error.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// The time after which requests succeed once the connection works again.
const BACK_MAX: Duration = Duration::from_secs(5);

/// Opens a store that connects through these proxies.
async fn open_through(lines: &[Line]) -> EtcdStore {
    let endpoints = lines.iter().map(|line| line.url.clone()).collect();
    open_with(Options { endpoints, ..options(&[]) }).await
}

/// Reads the revision of a key. Panics if neither a result nor an error arrives in time.
async fn read(store: &EtcdStore, name: &str) -> Result<Option<Revision>, ReadError> {
    let got = timeout(ANSWER_MAX, store.get(&key(name), At::Newest)).await;
    let got = got.expect("a read takes longer than five seconds");
    got.map(|got| got.entry.map(|entry| entry.mod_rev))
}

/// Waits until the watch delivers an event of this revision.
async fn wait_for_event(watch: &mut dyn Watch, revision: Revision) {
    let told = async {
        while watch.next().await.unwrap().events.iter().all(|event| event.revision < revision) {}
    };
    timeout(BACK_MAX, told).await.expect("the watch does not tell");
}

/// Reads until a read succeeds.
async fn insist(store: &EtcdStore, name: &str, want: Revision) {
    let began = Instant::now();
    loop {
        if let Ok(found) = read(store, name).await {
            return assert_eq!(found, Some(want), "a stale read");
        }
        assert!(began.elapsed() < BACK_MAX, "reads do not resume");
        // waits for a real process: etcd, which becomes reachable again
        sleep(Duration::from_millis(50)).await;
    }
}

/// The only member is unreachable for a while. Reads fail in time and the watch waits. Afterwards both see what
/// another store has written meanwhile.
async fn interrupt_and_restore(state: State, cut_for: Duration, is_read_meanwhile: bool) {
    let member = Member::alone();
    let elsewhere = open(&[&member]).await;
    let lines = [Line::to(&member)];
    let store = open_through(&lines).await;
    let start = create(&store, "a", "1").await;
    let mut watch = store.watch(things(), start).await.unwrap();

    lines[0].set(state);
    let cut_at = Instant::now();
    let written = elsewhere.put(put("a", "2", ExpectedKeyState::At(start))).await.unwrap();
    while is_read_meanwhile && cut_at.elapsed() < cut_for {
        let got = read(&store, "a").await;
        assert!(got.is_err(), "{got:?} through a cut line");
        // waits for a real process: etcd, which is unreachable for a while
        sleep(Duration::from_millis(500)).await;
    }
    let left = cut_for.saturating_sub(cut_at.elapsed()).max(Duration::from_millis(1));
    let waited = timeout(left, watch.next()).await;
    assert!(waited.is_err(), "the watch waits for the line: {waited:?}");

    lines[0].set(State::Open);
    tokio::join!(insist(&store, "a", written), wait_for_event(&mut *watch, written));
    let last = store.put(put("a", "3", ExpectedKeyState::At(written))).await.unwrap();
    wait_for_event(&mut *watch, last).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_connection_fails_at_once() {
    interrupt_and_restore(State::Closed, Duration::from_secs(3), true).await;
}

/// The interruption lasts longer than a connection, so that connections made meanwhile are lost as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_connection_fails_in_time() {
    interrupt_and_restore(State::Silent, Duration::from_secs(11), true).await;
}

/// No request runs during the interruption, so the first read afterwards uses a connection that is silently
/// lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silently_lost_connection_is_replaced() {
    interrupt_and_restore(State::Silent, Duration::from_secs(1), false).await;
}

/// Any one of three members is unreachable: reads return in time, and the watch delivers concurrent writes in
/// time, even if that member served the watch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_three_members_is_unreachable() {
    let members = Member::three();
    let all: Vec<&Member> = members.iter().collect();
    let elsewhere = open(&all).await;
    let lines = [0, 1, 2].map(|n| Line::to(&members[n]));
    let store = open_through(&lines).await;
    let mut last = create(&store, "a", "0").await;
    let mut watch = store.watch(things(), last).await.unwrap();
    for line in &lines {
        line.set(State::Silent);
        last = elsewhere.put(put("a", "x", ExpectedKeyState::At(last))).await.unwrap();
        for _ in 0..6 {
            assert_eq!(read(&store, "a").await, Ok(Some(last)));
        }
        wait_for_event(&mut *watch, last).await;
        line.set(State::Open);
    }
}

/// Without a majority every request fails within its time limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_without_a_majority_fail_in_time() {
    let mut members = Member::three();
    let store = open(&members.iter().collect::<Vec<_>>()).await;
    let last = create(&store, "a", "1").await;
    let mut watch = store.watch(things(), last).await.unwrap();
    let first = leader(&members);
    let lost = [first, (first + 1) % 3];
    lost.iter().for_each(|n| members[*n].kill());
    for _ in 0..3 {
        let got = read(&store, "a").await;
        assert!(got.is_err(), "{got:?} without a majority");
    }
    members[lost[0]].restart();
    let _ = leader(&members);
    insist(&store, "a", last).await;
    let written = store.put(put("a", "2", ExpectedKeyState::At(last))).await.unwrap();
    wait_for_event(&mut *watch, written).await;
    // The last member stops gracefully, and the other two are a majority.
    members[lost[1]].restart();
    members[lost[1]].wait_until_healthy();
    let stopped = (first + 2) % 3;
    members[stopped].stop();
    insist(&store, "a", written).await;
}
