//! Failures of authorization webhooks, by cause.

use std::sync::Arc;
use std::time::Duration;

use authz::UnavailableCause;
use authz_chain::{AuthorizerSlot, ChainMember, SlotAuthorizer};
use authz_webhook::{
    CacheSettings, ConnectionInfo, FailurePolicy, MatchConditions, NoObserver, ResponseFuture,
    ReviewVersion, Timeout, Transport, TransportError, TransportErrorKind, Webhook, WebhookLimits,
    WebhookSettings,
};
use bytes::Bytes;
use fake_http::{Answer as Said, Conduct, Leaf, Script};
use http::Method;
use serde_json::{Value, json};

use super::{Codes, check};
use crate::client::{Answer, Client};
use crate::cluster::Cluster;
use crate::hooks::{Hooks, LONG, abstain, allow, deny};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Everybody may do what the webhook does not deny.
fn everything() -> Value {
    json!({"type": "AlwaysAllow", "name": "alwaysallow"})
}

/// Denies, and does something else to requests that name an object `NAME`.
fn denies_but(said: Said, name: &'static str) -> Script {
    Script::rule(move |request| {
        let body = String::from_utf8_lossy(&request.body);
        if body.contains(&format!("\"name\":\"{name}")) { said.clone() } else { deny() }
    })
}

/// A server whose webhook is asked before everything is allowed.
async fn serve(hooks: &Hooks, webhook: Value) -> Cluster {
    hooks.cluster(&hooks.plan(&[hooks.webhook("w", webhook), everything()]), |_, _| {}).await
}

#[tokio::test(flavor = "multi_thread")]
async fn whose_failure_it_is() {
    let codes = Codes { passed: 200, failed: 500 };
    check(["NoOpinion", "Deny"], &codes, async |cause, policy| match cause {
        "no descriptors" => {
            let fault = TransportError::new(
                TransportErrorKind::Local(UnavailableCause::OutOfResources),
                "too many open files",
            );
            with_transport(Broken::Fault(fault), policy).await
        }
        "lost call" => with_transport(Broken::Lost, policy).await,
        cause => with_peer(cause, policy).await,
    })
    .await;
}

/// The answer to alice, by a webhook that is called over the network.
async fn with_peer(cause: &str, policy: &str) -> Answer {
    let mut hooks = Hooks::new();
    let mut webhook = json!({"failurePolicy": policy, "timeout": "30s"});
    let hang = || Said::misbehave(Conduct::Hang);
    let script = match cause {
        "connection refused" | "TLS" => Script::from(deny()),
        "connection reset" => Script::from(Said::misbehave(Conduct::Reset)),
        "connection closed" => Script::from(Said::misbehave(Conduct::Close)),
        "status 500" => Script::from(deny().status(500)),
        "nonsense" => Script::from(Said::json("nonsense")),
        "timeout of the webhook" => {
            webhook["timeout"] = json!("300ms");
            Script::from(hang())
        }
        "limit of calls" => {
            hooks.guards.in_flight_calls_max = 2;
            denies_but(hang(), "slow")
        }
        "limit of one user" => {
            hooks.guards.in_flight_calls_max = 3;
            denies_but(hang(), "slow")
        }
        "deadline of the request" => Script::from(hang()),
        other => panic!("there is no scene for {other}"),
    };
    // Several attempts take time, and what comes of them is the same.
    hooks.guards.retry_options.attempts_max = 1;
    let peer = match cause {
        "TLS" => {
            let peer = hooks.service(&Leaf::server(&["somebody.else"]), script);
            hooks.kubeconfig("w", &format!("https://{}/", peer.address()));
            peer
        }
        _ => hooks.peer("w", script),
    };
    let cluster = serve(&hooks, webhook).await;
    let slow = async |client: Client, n: usize| {
        tokio::spawn(async move {
            client.begin(Method::GET, &format!("{MAPS}/slow{n}"), &[], "").await
        });
        assert!(peer.wait_requests(n, LONG));
    };
    match cause {
        "connection refused" => peer.stop_listening().unwrap(),
        "limit of calls" => {
            slow(cluster.bob(), 1).await;
            slow(cluster.anonymous(), 2).await;
            // A review of somebody whom no webhook is asked about is limited as well.
            let spec = json!({"user": "alice", "resourceAttributes": {"verb": "get"}});
            let review = cluster.admin().post(REVIEWS, &json!({"spec": spec})).await;
            assert!(review.headers.contains_key("retry-after"), "{review:?}");
            review.expect(429);
        }
        "limit of one user" => {
            slow(cluster.alice(), 1).await;
            slow(cluster.alice(), 2).await;
            cluster.bob().get(MAPS).await.expect(403);
        }
        _ => {}
    }
    match cause {
        "deadline of the request" => cluster.alice().get(&format!("{MAPS}?timeout=200ms")).await,
        _ => cluster.alice().get(MAPS).await,
    }
}

/// Failures that are caused by this server.
enum Broken {
    Fault(TransportError),
    Lost,
}

impl Transport for Broken {
    fn send(&self, _: Bytes, _: Duration) -> ResponseFuture<'_> {
        Box::pin(async move {
            match self {
                Self::Fault(fault) => Err(fault.clone()),
                Self::Lost => panic!("the task of a call ends without an answer"),
            }
        })
    }
}

/// The answer to alice, by a webhook that this server fails to call.
async fn with_transport(broken: Broken, policy: &str) -> Answer {
    let settings = WebhookSettings {
        timeout: Timeout::new(Duration::from_secs(5)).unwrap(),
        authorized_cache_settings: CacheSettings::new(Duration::ZERO, true),
        unauthorized_cache_settings: CacheSettings::new(Duration::ZERO, true),
        subject_access_review_version: ReviewVersion::V1,
        failure_policy: FailurePolicy::from_policy_name(policy).unwrap(),
        connection_info: ConnectionInfo::InClusterConfig,
        match_conditions: MatchConditions::Unversioned,
    };
    let (broken, observe) = (Arc::new(broken), Arc::new(NoObserver));
    let webhook = Webhook::new("w", settings, broken, WebhookLimits::default(), observe);
    let members = [ChainMember::Webhook(Arc::new(webhook)), ChainMember::AlwaysAllow];
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start_by(
        folder,
        |_, _| {},
        |options| {
            options.authorizer_slots =
                members.map(SlotAuthorizer::Fixed).map(AuthorizerSlot::without_observer).into();
        },
    )
    .await;
    cluster.alice().get(MAPS).await
}

/// Attack A3: one user has more watches than the webhook may have calls in flight, and waits for a slow
/// webhook with all of them. What the webhook denies to others stays denied.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_webhook_and_many_watches_open_nothing() {
    let mut hooks = Hooks::new();
    hooks.guards.in_flight_calls_max = 32;
    let script = denies_but(allow().delay(Duration::from_secs(18)), "slow");
    let peer = hooks.peer("w", script);
    let cluster = serve(&hooks, json!({"timeout": "30s"})).await;
    let mut attacks = tokio::task::JoinSet::new();
    for n in 0..40 {
        let bob = cluster.bob();
        attacks.spawn(async move {
            let path = format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Dslow{n}");
            let (parts, _) = bob.begin(Method::GET, &path, &[], "").await;
            (parts.status.as_u16(), parts.headers.contains_key("retry-after"))
        });
    }
    // Those beyond half of the calls are refused at once, and the others hold their places.
    for _ in 0..24 {
        assert_eq!(attacks.join_next().await.unwrap().unwrap(), (429, true));
    }
    assert!(peer.wait_requests(16, LONG));
    for _ in 0..20 {
        cluster.alice().get(&format!("{MAPS}/secret")).await.expect(403);
    }
    assert_eq!(attacks.len(), 16, "the attack goes on");
}

/// Attack A3: one user's slow questions hold connections to the webhook, which permits few requests at a
/// time on one. The question about another user does not wait for them until it is out of time.
#[tokio::test(flavor = "multi_thread")]
async fn slow_questions_of_one_user_do_not_hold_up_those_of_another() {
    const N_SLOW: usize = 40;
    let hooks = Hooks::new();
    let peer = hooks.peer("w", denies_but(Said::misbehave(Conduct::Hang), "slow"));
    let webhook = json!({"failurePolicy": "NoOpinion", "timeout": "20s"});
    let cluster = serve(&hooks, webhook).await;
    let mut attacks = tokio::task::JoinSet::new();
    for n in 0..N_SLOW {
        let bob = cluster.bob();
        attacks.spawn(async move { bob.get(&format!("{MAPS}/slow{n}")).await.code });
    }
    assert!(peer.wait_requests(N_SLOW, LONG));
    for n in 0..3 {
        let began = std::time::Instant::now();
        cluster.alice().get(&format!("{MAPS}/secret{n}")).await.expect(403);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
    assert!(attacks.try_join_next().is_none(), "the attack goes on");
}

/// Attack A3: built-in checks that wait for a slow webhook hold no seats, so more of them than there are seats keep nobody
/// from running.
#[tokio::test(flavor = "multi_thread")]
async fn a3_built_in_checks_that_wait_hold_no_seats() {
    /// More than the seats of ordinary users.
    const N_SLOW: usize = 12;
    let hooks = Hooks::new();
    let peer = hooks.peer(
        "w",
        Script::rule(|request| {
            let body = String::from_utf8_lossy(&request.body);
            let is_slow = body.contains("\"name\":\"slow");
            if is_slow { Said::misbehave(Conduct::Hang) } else { abstain() }
        }),
    );
    let webhook = json!({"failurePolicy": "Deny", "timeout": "30s"});
    let plan = hooks.plan(&[hooks.webhook("w", webhook), everything()]);
    let cluster = hooks.cluster(&plan, |options, _| options.request_limits.seats_max = 58).await;
    let mut attacks = tokio::task::JoinSet::new();
    for n in 0..N_SLOW {
        let bob = cluster.bob();
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": format!("slow-{n}"),
            "uid": "1", "blockOwnerDeletion": true});
        let metadata = json!({"name": format!("owned-{n}"), "ownerReferences": [owner]});
        attacks.spawn(async move { bob.post(MAPS, &json!({"metadata": metadata})).await.code });
    }
    let n_slow = || {
        let requests = peer.requests();
        let bodies = requests.iter().map(|request| String::from_utf8_lossy(&request.body));
        bodies.filter(|body| body.contains("\"name\":\"slow")).count()
    };
    let began = std::time::Instant::now();
    while n_slow() < N_SLOW {
        assert!(began.elapsed() < LONG, "only {} checks wait", n_slow());
        crate::polling::pause().await;
    }
    for n in 0..3 {
        let map = json!({"metadata": {"name": format!("own-{n}")}});
        let created = tokio::time::timeout(LONG, cluster.alice().post(MAPS, &map)).await;
        created.expect("alice goes on").expect(201);
    }
    assert!(attacks.try_join_next().is_none(), "the attack goes on");
}

/// Attack A4: requests of one user make the webhook fail in every way, and then another user asks for
/// what it denies.
#[tokio::test(flavor = "multi_thread")]
async fn failures_for_one_user_open_nothing_to_another() {
    for said in [
        deny().status(500),
        Said::json("nonsense"),
        Said::misbehave(Conduct::Close),
        Said::misbehave(Conduct::Reset),
        Said::misbehave(Conduct::Hang),
    ] {
        for policy in ["NoOpinion", "Deny"] {
            let mut hooks = Hooks::new();
            hooks.guards.retry_options.attempts_max = 1;
            let _peer = hooks.peer("w", denies_but(said.clone(), "bad"));
            let webhook = json!({"failurePolicy": policy, "timeout": "2s"});
            let cluster = serve(&hooks, webhook).await;
            let mut attacks = tokio::task::JoinSet::new();
            for n in 0..20 {
                let bob = cluster.bob();
                attacks.spawn(async move { bob.get(&format!("{MAPS}/bad{n}")).await.code });
            }
            let passed = if policy == "Deny" { 500 } else { 404 };
            assert_eq!(attacks.join_all().await, [passed; 20]);
            cluster.alice().get(MAPS).await.expect(403);
        }
    }
}
