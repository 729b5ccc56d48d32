//! The table for admission: cause by kind of hook by failure policy.
//!
//! A lack of descriptors, a server that stops, and a fault of its own have rows in the tests of the
//! crate `admission-hooks`: they concern the whole process.

use std::time::Duration;

use fake_http::{Answer, Body, Conduct, Leaf, Peer, Script};
use http::Method;
use serde_json::{Value, json};
use server::ServerOptions;

use crate::admission_hooks::{
    HookAuthority, MUTATING, VALIDATING, answering, register_with, rule, webhook_configuration,
};
use crate::client::{Answer as Reply, Client};
use crate::cluster::Cluster;
use crate::hooks::LONG;

pub(super) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const EXTERNAL: &str =
    "/apis/admissionregistration.k8s.io/v1alpha1/externaladmissionhookconfigurations";
const POLICIES: [&str; 2] = ["Fail", "Ignore"];
/// All users of the tests may do everything, so that hooks alone refuse them.
const TOKENS: &str = "admin-token,admin,1,system:masters\nmallory-token,mallory,2,system:masters\n\
                      bob-token,bob,3,system:masters\nvictim-token,victim,4,system:masters\n";

/// A server with hooks, and users that know nothing of each other.
pub(super) struct Scene {
    cluster: Cluster,
    pub(super) admin: Client,
    authority: HookAuthority,
}

impl Scene {
    pub(super) async fn start(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster::start_by(
            folder,
            |_, _| {},
            |options| {
                let tokens = authn::TokenFile::parse("tokens", TOKENS).unwrap();
                options.authentication_options.token_file = Some(tokens);
                change(options);
            },
        );
        let cluster = cluster.await;
        Self { admin: cluster.admin(), cluster, authority: HookAuthority::new() }
    }

    pub(super) fn user(&self, name: &str) -> Client {
        self.cluster.anonymous().with_token(&format!("{name}-token"))
    }

    /// A hook that is found by its address and by the name of a service.
    pub(super) fn hook(&self, script: impl Into<Script>) -> Peer {
        self.authority.service(&Leaf::server(&["127.0.0.1", "hook.hooks.svc"]), script)
    }

    /// An entry of a configuration of `v1`.
    pub(super) fn webhook(&self, name: &str, peer: &Peer, policy: &str, seconds: u64) -> Value {
        let changes = json!({"failurePolicy": policy, "timeoutSeconds": seconds,
            "rules": [rule(&["CREATE"], "", "configmaps")]});
        self.authority.webhook(name, peer, changes)
    }

    /// Makes these the only hooks.
    pub(super) async fn configure(&self, kind: &str, webhooks: &[Value]) {
        self.clear().await;
        register_with(&self.admin, kind, &webhook_configuration(kind, "c", webhooks)).await;
    }

    /// Makes one peer the only hook.
    pub(super) async fn ask(&self, kind: &str, name: &str, peer: &Peer, policy: &str) {
        if kind != EXTERNAL {
            return self.configure(kind, &[self.webhook(name, peer, policy, 30)]).await;
        }
        self.clear().await;
        let port = peer.address().port();
        let slice = json!({
            "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
            "addressType": "IPv4", "ports": [{"name": "p", "port": port}],
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": true}}],
        });
        let service = json!({"metadata": {"name": "hook"},
            "spec": {"ports": [{"name": "p", "port": 443}]}});
        let hook = json!({
            "name": name,
            "clientConfig": {"service": {"namespace": "hooks", "name": "hook"},
                "caBundle": self.authority.bundle()},
            "rules": [{"verbs": ["CREATE"], "apiGroups": [""], "apiVersions": ["*"],
                "resources": ["configmaps"]}],
        });
        let hooks = json!({"metadata": {"name": "c"}, "externalAdmissionHooks": [hook]});
        let namespaced = |path: &str| format!("/{path}/namespaces/hooks");
        for (path, object) in [
            (format!("{}/services", namespaced("api/v1")), service),
            (format!("{}/endpointslices", namespaced("apis/discovery.k8s.io/v1")), slice),
            (EXTERNAL.to_owned(), hooks),
        ] {
            self.admin.post(&path, &object).await.expect(201);
        }
        // A new configuration of that version ignores failures, whatever it says.
        let policy = json!([{"op": "add", "path": "/externalAdmissionHooks/0/failurePolicy",
            "value": policy}]);
        self.admin.patch(&format!("{EXTERNAL}/c"), "json-patch", &policy).await.expect(200);
    }

    async fn clear(&self) {
        let namespace = json!({"metadata": {"name": "hooks"}});
        self.admin.post("/api/v1/namespaces", &namespace).await;
        for path in [
            &format!("{MUTATING}/c"),
            &format!("{VALIDATING}/c"),
            &format!("{EXTERNAL}/c"),
            "/api/v1/namespaces/hooks/services/hook",
            "/apis/discovery.k8s.io/v1/namespaces/hooks/endpointslices/hook-1",
        ] {
            self.admin.delete(path).await;
        }
    }

    /// Whether a metric has this series with the value 1.
    async fn has_series(&self, series: &str) -> bool {
        let text = self.admin.get("/metrics").await.text();
        text.lines().any(|line| line.strip_prefix(series) == Some(" 1"))
    }
}

pub(super) fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "b"}})
}

pub(super) async fn create(user: &Client, query: &str, object: &Value) -> Reply {
    user.post(&format!("{MAPS}?{query}"), object).await
}

/// The hook fails in some way, and this is the name of the failure in the metrics.
fn far_causes() -> Vec<(&'static str, Script, &'static str)> {
    let conduct = |conduct| Script::from(Answer::misbehave(conduct));
    let long = Answer::json("").body(Body::Filler(5 << 20));
    vec![
        ("nobody listens", conduct(Conduct::Refuse), "connect"),
        ("it resets the connection", conduct(Conduct::Reset), "connection_lost"),
        ("it closes the connection", conduct(Conduct::Close), "connection_lost"),
        ("it speaks no HTTP", conduct(Conduct::Raw("nonsense\n".into())), "connection_lost"),
        ("it answers half", conduct(Conduct::Truncate), "connection_lost"),
        ("it answers 500", Answer::json("{}").status(500).into(), "http_status"),
        ("it answers 429", Answer::json("{}").status(429).into(), "http_status"),
        ("it answers with nonsense", Answer::json("nonsense").into(), "bad_answer"),
        ("it answers another review", Answer::json("{\"kind\":1}").into(), "bad_answer"),
        ("its answer is too long", long.into(), "bad_answer"),
        ("its own time-out has passed", conduct(Conduct::Hang), "timeout"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failure_policy_decides_about_the_far_side() {
    // Hooks of v1alpha1 have no time-out of their own but this.
    let second = Duration::from_secs(1);
    let scene = Scene::start(|options| options.admission_options.hook_call_time_max = second).await;
    let stranger = HookAuthority::new().hook(answering(json!({"allowed": true})));
    let mut rows: Vec<_> = far_causes()
        .into_iter()
        .map(|(cause, script, label)| (cause, scene.hook(script), label))
        .collect();
    rows.push(("its certificate is a stranger's", stranger, "tls"));
    for (idx, (cause, peer, label)) in rows.iter().enumerate() {
        for (kind, phase) in
            [(MUTATING, "admit"), (VALIDATING, "validating"), (EXTERNAL, "validating")]
        {
            for (policy, code) in POLICIES.into_iter().zip([500, 201]) {
                let name = format!("h{idx}.x.y");
                scene.ask(kind, &name, peer, policy).await;
                let reply =
                    create(&scene.admin, "", &json!({"metadata": {"generateName": "m"}})).await;
                assert_eq!(reply.code, code, "{cause}, {kind}, {policy}: {}", reply.text());
                let labels = format!("cause=\"{label}\",name=\"{name}\",type=\"{phase}\"");
                let series = format!("portcullis_admission_webhook_failed_open_total{{{labels}}}");
                let is_open = scene.has_series(&series).await;
                assert_eq!(is_open, code == 201, "{cause}, {kind}, {policy}: {series}");
            }
        }
    }
}

/// A failure of this server: the script of the hook, the users who hold its call slots, the query
/// and the object of the request, and the response with either policy.
struct Own {
    cause: &'static str,
    script: Script,
    busy: &'static [&'static str],
    query: &'static str,
    n_bytes: usize,
    code: u16,
}

/// A hook has four call slots in this test, of which one user gets two.
fn own_causes() -> Vec<Own> {
    let hang = || Script::from(Answer::misbehave(Conduct::Hang));
    let endless = Answer::json("").body(Body::Endless);
    let own =
        |cause, query, code| Own { cause, script: hang(), busy: &[], query, n_bytes: 1, code };
    let busy = |cause, busy| Own { busy, ..own(cause, "timeout=9s", 429) };
    vec![
        own("the deadline of the request", "timeout=200ms", 504),
        own("the deadline of a dry run", "dryRun=All&timeout=15ms", 504),
        busy("the limit of the user", &["victim", "victim"]),
        busy("the limit of the hook", &["mallory", "mallory", "bob", "bob"]),
        Own { script: endless.into(), n_bytes: 1 << 20, ..own("a long object", "", 503) },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_failure_policy_decides_about_this_side() {
    let scene =
        Scene::start(|options| options.admission_options.hook_calls_in_flight_max = 4).await;
    let victim = scene.user("victim");
    for Own { cause, script, busy, query, n_bytes, code } in own_causes() {
        let peer = scene.hook(script);
        let mut object = map("m");
        object["data"]["a"] = "<".repeat(n_bytes).into();
        // Hooks of v1alpha1 are never asked about a dry run, which they refuse.
        let kinds = if query.contains("dryRun") { 2 } else { 3 };
        for kind in [MUTATING, VALIDATING, EXTERNAL].into_iter().take(kinds) {
            for policy in POLICIES {
                scene.ask(kind, "h.x.y", &peer, policy).await;
                peer.take_requests();
                let mut holders = Vec::new();
                for (n, user) in busy.iter().enumerate() {
                    let (user, path) = (scene.user(user), format!("{MAPS}?timeout=20s"));
                    let object = map(&format!("held-{n}")).to_string();
                    let mut session = user.session().await;
                    holders.push(tokio::spawn(async move {
                        session.send(Method::POST, &path, object).await
                    }));
                    assert!(peer.wait_requests(n + 1, LONG), "{cause}, {kind}");
                }
                let reply = create(&victim, query, &object).await;
                let text = format!("{cause}, {kind}, {policy}: {}", reply.text());
                assert_eq!(reply.code, code, "{text}");
                let retry = reply.headers.get("retry-after").map(|own| own.to_str().unwrap());
                assert_eq!(retry, (code != 504).then_some("1"), "{text}");
                // Requests that hold slots end with the response of the hook.
                peer.close_connections().unwrap();
                for holder in holders {
                    holder.await.unwrap();
                }
            }
        }
    }
}
