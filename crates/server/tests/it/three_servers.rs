//! The freshness of the admission configuration on three servers that share three etcd members.

mod hurried;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use etcd_testing::{Line, Member, State};
use fake_http::{Peer, Script};
use http::Method;
use https_server::DrainPlan;
use serde_json::{Value, json};
use server::{AdmissionConfigSyncMode, AdmissionConfigSyncOptions, Server, ServerOptions};
use store::Prefix;
use store_etcd::EtcdStore;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::admission_hooks::{
    HookAuthority, MUTATING, answer, deny, patch_of, register_with, rule, webhook_configuration,
};
use crate::client::{Answer, Client};
use crate::cluster::{listen, options, read};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const STATUS: &str = "/portcullis/admission/status";

/// A server, and the proxies through which it reaches the members of etcd.
pub(crate) struct Station {
    server: Option<Server>,
    lines: Vec<Line>,
    address: SocketAddr,
    ca: String,
    folder: TempDir,
}

impl Station {
    pub(crate) async fn start(members: &[Member], change: impl FnOnce(&mut ServerOptions)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let lines: Vec<Line> = members.iter().map(Line::to).collect();
        let (pki, listener) = listen(folder.path());
        let address = listener.bound_address();
        let mut options = options(&pki, address);
        options.admission_options.admission_config_sync = AdmissionConfigSyncOptions::default();
        change(&mut options);
        let endpoints = lines.iter().map(|line| line.url.clone()).collect();
        let prefix = Prefix::new("/registry/").expect("a prefix");
        let store = EtcdStore::open(store_etcd::Options::new(endpoints, prefix)).await;
        let server = Server::start(Arc::new(store.expect("a store")), listener, options).await;
        let server = Some(server.expect("a server"));
        Self { server, lines, address, ca: read(&pki.serving_ca_file), folder }
    }

    pub(crate) fn admin(&self) -> Client {
        Client::anonymous(self.address, &self.ca).with_token("admin-token")
    }

    pub(crate) fn set_lines(&self, state: State) {
        self.lines.iter().for_each(|line| line.set(state));
    }

    pub(crate) fn lag(&self, lag: Duration) {
        self.lines.iter().for_each(|line| line.lag(lag));
    }

    pub(crate) async fn status(&self) -> Value {
        self.admin().get(STATUS).await.expect(200)
    }

    pub(crate) async fn stop(mut self) -> TempDir {
        let plan = DrainPlan {
            unready_delay: Duration::ZERO,
            watch_termination_period: Duration::ZERO,
            request_drain_timeout: Duration::from_secs(5),
        };
        self.server.take().expect("a server").stop(plan).await;
        self.folder
    }
}

async fn stations(members: &[Member]) -> [Station; 3] {
    // The first one writes the default policy, so that the others find it.
    let first = Station::start(members, |_| {}).await;
    [first, Station::start(members, |_| {}).await, Station::start(members, |_| {}).await]
}

/// A hook that writes the last segment of its path into objects.
fn stamping(authority: &HookAuthority) -> Peer {
    authority.hook(Script::rule(|request| {
        let path = request.target.split('?').next().unwrap_or_default();
        let generation = path.rsplit('/').next().unwrap_or_default();
        let patch = json!([{"op": "add", "path": "/data/generation", "value": generation}]);
        answer(request, &patch_of(&patch))
    }))
}

/// The configuration after a change: every other one leaves config maps alone, so that requests which
/// concern nobody race with those that concern the hook.
fn change(authority: &HookAuthority, hook: &Peer, number: u64) -> Value {
    let mut next = stamp(authority, hook, number);
    if is_rest(number) {
        next["webhooks"][0]["rules"][0]["resources"] = json!(["secrets"]);
    }
    next
}

fn is_rest(number: u64) -> bool {
    number.is_multiple_of(2)
}

/// The configuration whose hook writes a generation into objects.
fn stamp(authority: &HookAuthority, hook: &Peer, generation: u64) -> Value {
    let url = format!("https://{}/n/{generation}", hook.address());
    let client = json!({"url": url, "caBundle": authority.bundle()});
    let webhook = authority.webhook_at("stamp.x.y", &client, json!({}));
    webhook_configuration(MUTATING, "stamp", &[webhook])
}

fn map(name: &str) -> String {
    json!({"metadata": {"name": name}, "data": {}}).to_string()
}

fn generation(made: &Value) -> u64 {
    made["data"]["generation"].as_str().map_or(0, |text| text.parse().expect("a number"))
}

fn revision(answer: &Answer) -> u64 {
    let header = &answer.headers["portcullis-admission-revision"];
    header.to_str().expect("text").parse().expect("a number")
}

/// How many writes race with changes of the configuration; `cargo xtask race` makes many more.
fn n_writes() -> u64 {
    std::env::var("PORTCULLIS_RACE_WRITES").map_or(1_500, |text| text.parse().expect("a number"))
}

/// A configuration that was acknowledged before a request was sent applies to it,
/// at every server.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_write_is_admitted_by_an_older_configuration() {
    let members = Member::three();
    members.iter().for_each(Member::wait_until_healthy);
    let stations = stations(&members).await;
    let authority = HookAuthority::new();
    let hook = stamping(&authority);
    // Of the last change that was acknowledged: its number and its revision.
    let floor = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    // The last change that was begun.
    let ceiling = Arc::new(AtomicU64::new(1));
    let n_left = Arc::new(AtomicU64::new(n_writes()));
    register_with(&stations[0].admin(), MUTATING, &stamp(&authority, &hook, 1)).await;
    floor.0.store(1, Ordering::SeqCst);
    // The watch of one server lags behind the others.
    stations[2].lag(Duration::from_millis(10));

    let mut writers = JoinSet::new();
    for n in 0..12 {
        let client = stations[n % 3].admin();
        let (floor, n_left) = (Arc::clone(&floor), Arc::clone(&n_left));
        let ceiling = Arc::clone(&ceiling);
        writers.spawn(async move {
            let mut session = client.session().await;
            let (mut n_written, mut n_stamped) = (0_u64, 0_u64);
            // Some callers give the server 1 to 10 ms.
            let is_hurried = n >= 9;
            while n_left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                .is_ok()
            {
                let least = floor.0.load(Ordering::SeqCst);
                let revision_least = floor.1.load(Ordering::SeqCst);
                // One write makes an object, the next changes it, and the third may change nothing.
                let name = format!("w{n}-{}", n_written / 3);
                let timeout = match is_hurried {
                    true => format!("?timeout={}ms", n_written % 10 + 1),
                    false => String::new(),
                };
                let path = format!("{MAPS}/{name}");
                let answer = match n_written % 3 {
                    0 => session.send(Method::POST, &format!("{MAPS}{timeout}"), map(&name)).await,
                    _ => {
                        let next = json!({
                            "metadata": {"name": name},
                            "data": {"again": "yes"},
                        });
                        let path = format!("{path}{timeout}");
                        session.send(Method::PUT, &path, next.to_string()).await
                    }
                };
                let made = if is_hurried && !matches!(answer.code, 200 | 201) {
                    // Whether it was written is not known; if it was, then by a new configuration.
                    assert!(matches!(answer.code, 404 | 504), "{}", answer.text());
                    let stored = session.send(Method::GET, &path, "").await;
                    if n_written % 3 != 0 || stored.code == 404 {
                        n_written += 1;
                        continue;
                    }
                    stored.expect(200)
                } else {
                    assert!(revision(&answer) >= revision_least);
                    answer.expect(if n_written % 3 == 0 { 201 } else { 200 })
                };
                let most = ceiling.load(Ordering::SeqCst);
                let found = generation(&made);
                let is_new = match found {
                    0 => (least..=most).any(is_rest),
                    _ => (least..=most).contains(&found),
                };
                assert!(is_new, "{made} should be of {least} at least and of {most} at most");
                n_written += 1;
                n_stamped += u64::from(found > 0);
            }
            (n_written, n_stamped)
        });
    }
    let path = format!("{MUTATING}/stamp");
    let mut n_changes = 1;
    while n_left.load(Ordering::SeqCst) > 0 {
        let admin = stations[n_changes as usize % 2].admin();
        n_changes += 1;
        ceiling.store(n_changes, Ordering::SeqCst);
        let mut next = change(&authority, &hook, n_changes);
        let current = admin.get(&path).await.expect(200);
        next["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
        let changed = admin.put(&path, &next).await.expect(200);
        let version = changed["metadata"]["resourceVersion"].as_str().expect("a version");
        floor.0.store(n_changes, Ordering::SeqCst);
        floor.1.store(version.parse().expect("a number"), Ordering::SeqCst);
        // The test waits for a real process: writes happen between two changes.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (mut n_written, mut n_stamped) = (0, 0);
    while let Some(done) = writers.join_next().await {
        let (written, stamped) = done.expect("a writer");
        n_written += written;
        n_stamped += stamped;
    }
    println!("{n_written} writes, {n_changes} changes of the configuration, {n_stamped} stamped");
    assert_eq!(n_written, n_writes());
    assert!(n_stamped > 0 && n_stamped < n_written, "{n_stamped}");
    assert!(n_changes > 10);

    // No server calls a deleted hook.
    stations[2].lag(Duration::ZERO);
    for round in 0..5 {
        let admin = stations[round % 3].admin();
        admin.delete(&path).await.expect(200);
        for (n, station) in stations.iter().enumerate() {
            let name = format!("d{round}{n}");
            let made = station.admin().send(Method::POST, MAPS, &[], map(&name)).await;
            assert_eq!(generation(&made.expect(201)), 0);
        }
        let next = stamp(&authority, &hook, 7);
        register_with(&admin, MUTATING, &next).await;
        for (n, station) in stations.iter().enumerate() {
            let name = format!("e{round}{n}");
            let made = station.admin().send(Method::POST, MAPS, &[], map(&name)).await;
            assert_eq!(generation(&made.expect(201)), 7);
        }
    }
    for station in stations {
        station.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_is_cut_off_admits_nothing_and_recovers() {
    let members = Member::three();
    members.iter().for_each(Member::wait_until_healthy);
    let [one, two, three] = stations(&members).await;
    let authority = HookAuthority::new();
    let hook = stamping(&authority);
    register_with(&one.admin(), MUTATING, &stamp(&authority, &hook, 1)).await;
    let made = three.admin().send(Method::POST, MAPS, &[], map("before")).await.expect(201);
    assert_eq!(generation(&made), 1);
    for (round, state) in [State::Silent, State::Closed].into_iter().enumerate() {
        three.set_lines(state);
        let cut = Instant::now();
        // The configuration changes where the third server cannot see it.
        let path = format!("{MUTATING}/stamp");
        let url = format!("https://{}/n/{}", hook.address(), round + 2);
        let patch =
            json!([{"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": url}]);
        one.admin().patch(&path, "json-patch", &patch).await.expect(200);
        // The test waits for a real process: the configuration becomes stale.
        while cut.elapsed() < Duration::from_secs(6) {
            crate::polling::pause().await;
        }
        let refused = three.admin().send(Method::POST, MAPS, &[], map("cut")).await;
        assert_eq!(refused.headers["retry-after"], "1");
        let refused = refused.expect(500);
        assert_eq!(refused["reason"], "LoadingConfiguration");
        assert_eq!(refused["details"]["causes"][0]["reason"], "InitializerConfigurationFailure");
        // A write that matches no hook is refused as well: a new hook might match it.
        let secrets = MAPS.replace("configmaps", "secrets");
        let refused = three.admin().send(Method::POST, &secrets, &[], map("cut")).await;
        assert_eq!(refused.expect(500)["reason"], "LoadingConfiguration");
        let refused = three.admin().delete(&format!("{MAPS}/before")).await;
        // A delete fails as well, either because of the read or because of the configuration.
        assert!(matches!(refused.code, 500 | 503 | 504), "{}", refused.text());
        let ready = three.admin().get("/readyz").await;
        assert_eq!(ready.code, 500);
        assert!(ready.text().contains("[-]admission-config failed"), "{}", ready.text());
        three.admin().get("/livez/ping").await;
        assert_eq!(three.status().await["state"], "stale");
        // Questions about permissions are answered.
        let review = json!({"spec": {"user": "bob", "resourceAttributes": {"verb": "get", "resource": "pods"}}});
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        three.admin().post(reviews, &review).await.expect(201);
        // The others go on.
        let name = format!("meanwhile-{round}");
        let made = two.admin().send(Method::POST, MAPS, &[], map(&name)).await.expect(201);
        assert_eq!(generation(&made), round as u64 + 2);

        three.set_lines(State::Open);
        let healed = Instant::now();
        let made = loop {
            let name = format!("after-{round}");
            let answer = three.admin().send(Method::POST, MAPS, &[], map(&name)).await;
            if answer.code == 201 {
                break answer.json();
            }
            assert!(healed.elapsed() < Duration::from_secs(15), "{}", answer.text());
            crate::polling::pause().await;
        };
        assert_eq!(generation(&made), round as u64 + 2);
        println!("{state:?}: admitted again after {:?}", healed.elapsed());
    }
    for station in [one, two, three] {
        station.stop().await;
    }
}

/// The configuration is polled at intervals.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn polling_sees_changes_within_its_interval() {
    let members = [Member::alone()];
    members.iter().for_each(Member::wait_until_healthy);
    let poll = |options: &mut ServerOptions| {
        options.admission_options.admission_config_sync = AdmissionConfigSyncOptions {
            admission_config_sync_mode: AdmissionConfigSyncMode::Poll,
            admission_config_poll_interval: Duration::from_millis(200),
            admission_config_staleness_max: Duration::from_secs(1),
            ..AdmissionConfigSyncOptions::default()
        };
    };
    let writer = Station::start(&members, poll).await;
    let other = Station::start(&members, poll).await;
    assert_eq!(other.status().await["mode"], "poll");
    let authority = HookAuthority::new();
    let hook = authority.hook(deny("no"));
    let webhook = authority.webhook("v.x.y", &hook, json!({}));
    let configuration = webhook_configuration(crate::admission_hooks::VALIDATING, "v", &[webhook]);
    let path = crate::admission_hooks::VALIDATING;
    register_with(&writer.admin(), path, &configuration).await;
    let acknowledged = Instant::now();
    // The test waits for a real process: the other server polls every 200 ms.
    tokio::time::sleep(Duration::from_millis(500)).await;
    other.admin().send(Method::POST, MAPS, &[], map("a")).await.expect(403);
    assert!(acknowledged.elapsed() < Duration::from_secs(10));
    writer.admin().delete(&format!("{path}/v")).await.expect(200);
    // The test waits for a real process: the other server polls every 200 ms.
    tokio::time::sleep(Duration::from_millis(500)).await;
    other.admin().send(Method::POST, MAPS, &[], map("a")).await.expect(201);
    other.set_lines(State::Silent);
    // The test waits for a real process: the configuration becomes stale.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let refused = other.admin().send(Method::POST, MAPS, &[], map("b")).await.expect(500);
    assert_eq!(refused["reason"], "LoadingConfiguration");
    other.set_lines(State::Open);
    let healed = Instant::now();
    while other.admin().send(Method::POST, MAPS, &[], map("b")).await.code != 201 {
        assert!(healed.elapsed() < Duration::from_secs(15));
        crate::polling::pause().await;
    }
    for station in [writer, other] {
        station.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_writes_a_configuration_may_wait_for_all_servers() {
    let members = [Member::alone()];
    members.iter().for_each(Member::wait_until_healthy);
    let quick = Station::start(&members, |_| {}).await;
    // It reads the configuration once in ten seconds: a live server that lags.
    let slow = Station::start(&members, |options| {
        options.admission_options.admission_config_sync = AdmissionConfigSyncOptions {
            admission_config_sync_mode: AdmissionConfigSyncMode::Poll,
            admission_config_poll_interval: Duration::from_secs(10),
            admission_config_staleness_max: Duration::from_secs(30),
            ..AdmissionConfigSyncOptions::default()
        };
    })
    .await;
    let authority = HookAuthority::new();
    let hook = stamping(&authority);
    // Both servers have written a heartbeat.
    let begun = Instant::now();
    while quick.status().await["servers"].as_array().map(Vec::len) != Some(2) {
        assert!(begun.elapsed() < Duration::from_secs(10));
        crate::polling::pause().await;
    }
    let lagging = slow.status().await["serverId"].as_str().expect("an id").to_owned();
    let path = format!("{MUTATING}?ackTimeout=2s");
    let begun = Instant::now();
    let answer = quick.admin().post(&path, &stamp(&authority, &hook, 1)).await;
    assert!(begun.elapsed() >= Duration::from_millis(1900));
    let warning = answer.headers["warning"].to_str().expect("text").to_owned();
    let version = answer.expect(201)["metadata"]["resourceVersion"].clone();
    let want = format!(
        "299 - \"configuration stored at revision {} but not yet observed by: {lagging}\"",
        version.as_str().expect("a version")
    );
    assert_eq!(warning, want);
    let bad = quick.admin().delete(&format!("{MUTATING}/stamp?ackTimeout=soon")).await;
    bad.expect(400);
    quick.admin().get(&format!("{MUTATING}/stamp")).await.expect(200);

    // A server that is gone is not waited for, once it has been gone for a while.
    slow.stop().await;
    let begun = Instant::now();
    let answer = quick.admin().delete(&format!("{MUTATING}/stamp?ackTimeout=20s")).await;
    assert!(answer.headers.get("warning").is_none(), "{:?}", answer.headers);
    answer.expect(200);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());

    // A server that starts later reads the current state.
    register_with(&quick.admin(), MUTATING, &stamp(&authority, &hook, 5)).await;
    let late = Station::start(&members, |_| {}).await;
    let made = late.admin().send(Method::POST, MAPS, &[], map("late")).await.expect(201);
    assert_eq!(generation(&made), 5);
    for station in [quick, late] {
        station.stop().await;
    }
}

/// A hook that was acknowledged may repair an object that would be refused, even if the
/// server has not heard of the hook when the request arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_refused_by_an_older_configuration() {
    let members = [Member::alone()];
    members.iter().for_each(Member::wait_until_healthy);
    let quick = Station::start(&members, |_| {}).await;
    let slow = Station::start(&members, |_| {}).await;
    let authority = HookAuthority::new();
    let hook = authority.hook(Script::rule(|request| {
        answer(request, &patch_of(&json!([{"op": "replace", "path": "/data", "value": {}}])))
    }));
    let broken = json!({"metadata": {"name": "broken"}, "data": {"not a key!": ""}}).to_string();
    slow.lag(Duration::from_millis(100));
    for round in 0..3 {
        slow.admin().send(Method::POST, MAPS, &[], broken.clone()).await.expect(422);
        let rules = json!({"rules": [rule(&["CREATE"], "", "configmaps")]});
        let webhook = authority.webhook("repair.x.y", &hook, rules);
        let configuration = webhook_configuration(MUTATING, "repair", &[webhook]);
        register_with(&quick.admin(), MUTATING, &configuration).await;
        let made = slow.admin().send(Method::POST, MAPS, &[], broken.clone()).await.expect(201);
        assert_eq!(made["data"], json!({}), "in round {round}");
        slow.admin().delete(&format!("{MAPS}/broken")).await.expect(200);
        quick.admin().delete(&format!("{MUTATING}/repair")).await.expect(200);
    }
    for station in [quick, slow] {
        station.stop().await;
    }
}
