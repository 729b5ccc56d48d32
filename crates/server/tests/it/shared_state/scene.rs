//! A server with an attacker, a victim, an authorization webhook and an admission webhook.

use std::path::Path;
use std::time::Duration;

use fake_http::{Answer, Peer, Request, Script};
use http::Method;
use serde_json::{Value, json};
use server::ServerOptions;
use tokio::task::JoinSet;

use crate::admission_hooks::{HookAuthority, VALIDATING, asked, register};
use crate::client::Client;
use crate::cluster::Cluster;
use crate::hooks::{Hooks, abstain, deny, rbac};

/// Everybody's namespace; the one of the attacker is [`OWN`].
const SHARED: &str = "shared";
pub(super) const OWN: &str = "attackers";
pub(super) const SECRETS: &str = "/api/v1/namespaces/shared/secrets";
pub(super) const MAPS: &str = "/api/v1/namespaces/shared/configmaps";

const TOKENS: &str =
    "admin-token,admin,1,system:masters\nmallory-token,mallory,2\nana-token,ana,3\n";

/// How long a webhook takes for what is called `slow`.
const SLOW: Duration = Duration::from_secs(3);

pub(super) struct Scene {
    _cluster: Cluster,
    pub(super) admin: Client,
    pub(super) mallory: Client,
    ana: Client,
    _peers: [Peer; 2],
    _files: Hooks,
}

/// Requests of the attacker that are under way.
#[derive(Default)]
pub(super) struct Attack {
    pub(super) requests: JoinSet<()>,
}

impl Attack {
    /// Lets the requests end, or ends them.
    pub(super) async fn finish(mut self) {
        self.requests.abort_all();
        while self.requests.join_next().await.is_some() {}
    }
}

impl Scene {
    pub(super) async fn start(change: fn(&mut ServerOptions, &Path)) -> Self {
        let files = Hooks::new();
        let guard = files.peer("guard", Script::rule(authorize));
        // The policy lets requests pass if the hook fails, which the attacker tries to cause.
        let open = json!({"failurePolicy": "NoOpinion", "timeout": "10s"});
        let plan = files.plan(&[files.webhook("guard", open), rbac()]);
        let cluster = files.cluster(&plan, change).await;
        let admin = cluster.admin();
        let authority = HookAuthority::new();
        let hook = authority.hook(Script::rule(admit));
        let changes = json!({"failurePolicy": "Ignore", "timeoutSeconds": 10});
        let webhooks = [authority.webhook("guard.x.y", &hook, changes)];
        register(&cluster, VALIDATING, "guard", &webhooks).await;
        for namespace in [SHARED, OWN] {
            let namespace = json!({"metadata": {"name": namespace}});
            admin.post("/api/v1/namespaces", &namespace).await.expect(201);
        }
        bind(&admin, SHARED, "edit", &["mallory", "ana"]).await;
        bind(&admin, OWN, "admin", &["mallory"]).await;
        for name in ["open", "denied"] {
            admin.post(SECRETS, &json!({"metadata": {"name": name}})).await.expect(201);
        }
        let user = |token: &str| cluster.anonymous().with_token(token);
        let (mallory, ana) = (user("mallory-token"), user("ana-token"));
        Self { _cluster: cluster, admin, mallory, ana, _peers: [guard, hook], _files: files }
    }

    /// The response that the victim gets: a code, and the decision of a review.
    pub(super) async fn decisions(&self, round: &str) -> Vec<(String, u16)> {
        let mut decisions = Vec::new();
        let fine = json!({"metadata": {"name": format!("fine-{round}")}}).to_string();
        let forbidden = json!({"metadata": {"name": format!("forbidden-{round}")}}).to_string();
        let deleted = format!("{MAPS}/fine-{round}");
        let elsewhere = "/api/v1/namespaces/kube-system/secrets/x";
        for (what, method, path, body) in [
            ("read", Method::GET, format!("{SECRETS}/open"), ""),
            ("read what the webhook denies", Method::GET, format!("{SECRETS}/denied"), ""),
            ("read what no role allows", Method::GET, elsewhere.to_owned(), ""),
            ("list", Method::GET, MAPS.to_owned(), ""),
            ("create", Method::POST, MAPS.to_owned(), &fine),
            ("create what the hook denies", Method::POST, MAPS.to_owned(), &forbidden),
            ("try what the hook denies", Method::POST, format!("{MAPS}?dryRun=All"), &forbidden),
            ("delete", Method::DELETE, deleted, ""),
        ] {
            let answer = self.ana.send(method, &path, &[], body.to_owned()).await;
            decisions.push((what.to_owned(), answer.code));
        }
        for name in ["open", "denied"] {
            let review = json!({"spec": {"resourceAttributes": {"verb": "get", "version": "v1",
                "resource": "secrets", "namespace": SHARED, "name": name}}});
            let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
            let answer = self.ana.post(path, &review).await;
            let said = match answer.code {
                201 => answer.json()["status"]["allowed"].clone(),
                _ => Value::Null,
            };
            decisions.push((format!("review of {name}: {said}"), answer.code));
        }
        decisions
    }
}

/// Tokens for the users of a scene.
pub(super) fn usual(options: &mut ServerOptions, _: &Path) {
    let tokens = authn::TokenFile::parse("tokens", TOKENS).expect("tokens");
    options.authentication_options.token_file = Some(tokens);
}

/// The authorization webhook: it denies what is called `denied`.
fn authorize(request: &Request) -> Answer {
    let review: Value = serde_json::from_slice(&request.body).expect("a review");
    let name = review["spec"]["resourceAttributes"]["name"].as_str().unwrap_or_default();
    match name.split('-').next().unwrap_or_default() {
        "denied" => deny(),
        "slow" => abstain().delay(SLOW),
        "broken" => Answer::json("{}").status(500),
        _ => abstain(),
    }
}

/// The admission webhook: it denies what is called `forbidden`.
fn admit(request: &Request) -> Answer {
    let name = asked(request)["name"].as_str().unwrap_or_default().to_owned();
    let answer =
        |allowed: bool| crate::admission_hooks::answer(request, &json!({"allowed": allowed}));
    match name.split('-').next().unwrap_or_default() {
        "forbidden" => answer(false),
        "slow" => answer(true).delay(SLOW),
        "broken" => Answer::json("{}").status(500),
        _ => answer(true),
    }
}

async fn bind(admin: &Client, namespace: &str, role: &str, users: &[&str]) {
    let group = "rbac.authorization.k8s.io";
    let subject = |name: &&str| json!({"apiGroup": group, "kind": "User", "name": name});
    let binding = json!({
        "metadata": {"name": role},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": users.iter().map(subject).collect::<Value>(),
    });
    let path = format!("/apis/{group}/v1/namespaces/{namespace}/rolebindings");
    admin.post(&path, &binding).await.expect(201);
}
