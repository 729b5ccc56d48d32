//! Objects that wait at one server and are seen from another.

use std::time::Duration;

use etcd_testing::{Member, State};
use serde_json::{Value, json};
use server::{AdmissionConfigSyncOptions, Clock};

use super::scene::{INITIALIZERS, MAPS, asleep, configuration, entry, map, next, pending, seen};
use crate::client::Client;
use crate::three_servers::Station;

/// A store for both.
fn member() -> Member {
    let member = Member::alone();
    member.wait_until_healthy();
    member
}

/// A server whose clock began so much later than time did.
async fn station(members: &[Member], later: Duration) -> (Station, Clock) {
    let clock = Clock::new_manual_clock(jiff::Timestamp::now() + later);
    let own = clock.clone();
    let station = Station::start(members, |options| {
        options.admission_options.clock = own;
        options.admission_options.admission_config_sync = AdmissionConfigSyncOptions {
            admission_config_staleness_max: Duration::from_secs(2),
            ..AdmissionConfigSyncOptions::default()
        };
    });
    (station.await, clock)
}

async fn register(admin: &Client) {
    let entries = json!([entry("a.x.y", json!({})), entry("b.x.y", json!({}))]);
    admin.post(INITIALIZERS, &configuration("a", entries)).await.expect(201);
}

async fn act(admin: &Client, initializer: &str) -> Value {
    let pending = json!([{"$patch": "delete", "name": initializer}]);
    let patch = json!({"metadata": {"initializers": {"pending": pending}}});
    admin.patch(&format!("{MAPS}/m"), "strategic-merge-patch", &patch).await.expect(200)
}

/// Both servers show the same state, and an initializer may use either server.
#[tokio::test(flavor = "multi_thread")]
async fn initializers_act_at_any_server() {
    let members = [member()];
    let (one, clock) = station(&members, Duration::ZERO).await;
    let (two, _) = station(&members, Duration::ZERO).await;
    register(&two.admin()).await;
    let path = format!("{MAPS}?watch=1");
    let mut all =
        two.admin().watch(&format!("{path}&includeUninitialized=1&labelSelector=x")).await;
    let mut default = two.admin().watch(&format!("{path}&labelSelector=x")).await;
    let creator = tokio::spawn({
        let admin = one.admin();
        async move {
            let mut body = map("m");
            body["metadata"]["labels"] = json!({"x": "y"});
            admin.post(MAPS, &body).await
        }
    });
    assert_eq!(next(&mut all).await, seen("ADDED", "m", &["a.x.y", "b.x.y"]));
    let page = two.admin().get(&format!("{MAPS}?labelSelector=x")).await.expect(200);
    assert_eq!(page["items"], json!([]));
    asleep(&clock, 5.0, 1).await;
    clock.advance_time(Duration::from_secs(1));
    assert_eq!(pending(&act(&two.admin(), "a.x.y").await), Some(vec!["b.x.y"]));
    asleep(&clock, 6.0, 1).await;
    assert!(!creator.is_finished());
    act(&two.admin(), "b.x.y").await;
    assert_eq!(pending(&creator.await.unwrap().expect(201)), None);
    assert_eq!(next(&mut default).await, seen("ADDED", "m", &[]));
}

/// The server that waited for the initializer is gone.
#[tokio::test(flavor = "multi_thread")]
async fn another_server_repairs() {
    let members = [member()];
    let (one, _) = station(&members, Duration::ZERO).await;
    let (two, clock) = station(&members, Duration::from_secs(600)).await;
    register(&one.admin()).await;
    let path = format!("{MAPS}?includeUninitialized=1");
    one.admin().post(&path, &map("m")).await.expect(202);
    one.stop().await;
    let path = format!("{MAPS}/m");
    let left = two.admin().get(&path).await.expect(200);
    assert_eq!(pending(&left), Some(vec!["a.x.y", "b.x.y"]));
    clock.advance_time(Duration::from_secs(60));
    let repaired = two.admin().get(&path).await.expect(200);
    assert_eq!(pending(&repaired), Some(vec!["b.x.y"]));
}

/// A server that is cut off removes no initializer until its configuration is fresh again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_cut_off_waits() {
    let members = [member()];
    let (one, clock) = station(&members, Duration::ZERO).await;
    let (two, _) = station(&members, Duration::ZERO).await;
    register(&two.admin()).await;
    let path = format!("{MAPS}?includeUninitialized=1");
    one.admin().post(&path, &map("m")).await.expect(202);
    asleep(&clock, 5.0, 1).await;
    one.set_lines(State::Closed);
    while one.status().await["state"] != "stale" {}
    clock.advance_time(Duration::from_secs(5));
    asleep(&clock, 6.0, 1).await;
    let kept = two.admin().get(&format!("{MAPS}/m")).await.expect(200);
    assert_eq!(pending(&kept), Some(vec!["a.x.y", "b.x.y"]));
    one.set_lines(State::Open);
    while one.status().await["state"] != "ready" {}
    clock.advance_time(Duration::from_secs(1));
    asleep(&clock, 11.0, 1).await;
    let next = two.admin().get(&format!("{MAPS}/m")).await.expect(200);
    assert_eq!(pending(&next), Some(vec!["b.x.y"]));
}
