//! Webhooks of flags and of files, and what a reload does with them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use authz::{UnavailableCause, Verdict};
use authz_chain::AuthorizerType;
use authz_reload::{
    AuthorizationModes, AuthorizationPlan, DEFAULT_AUTHORIZED_TTL_NS, FileCheckResult, Generation,
    StartError, WebhookFlags,
};
use fake_http::Peer;
use https_client::{AddressPolicy, HostPort, ResolveError, ServiceName, ServiceResolver};

use crate::hook::{RunningHook, answer, ask};
use crate::stage::{Stage, header, names, webhook_entry, with_webhook};

fn flags(file: &str) -> AuthorizationPlan {
    AuthorizationPlan::Modes(AuthorizationModes {
        modes: vec![AuthorizerType::Node, AuthorizerType::Webhook, AuthorizerType::Rbac],
        are_modes_explicit: true,
        abac_policy_file: None,
        webhook_flags: Some(WebhookFlags {
            webhook_config_file: PathBuf::from(file),
            version: "v1beta1".to_owned(),
            authorized_ttl_ns: DEFAULT_AUTHORIZED_TTL_NS,
            unauthorized_ttl_ns: 0,
        }),
    })
}

fn start(stage: &Stage, file: &str) -> Result<Generation, StartError> {
    stage.builder().build_first_generation(&flags(file))
}

#[tokio::test]
async fn a_kubeconfig_of_flags_is_one_webhook() {
    let stage = Stage::new();
    let allow = r#"{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview",
        "status":{"allowed":true}}"#;
    let hook = RunningHook::start_with(&stage, "w", vec![fake_http::Answer::json(allow)]);
    let generation = start(&stage, "w.kubeconfig").unwrap();
    assert_eq!(names(&generation), "node,default,rbac");
    assert_eq!(ask(&generation, "ana").await, Verdict::Allow);
    let request = hook.peer.requests().remove(0);
    assert_eq!(request.target, "/authorize?timeout=30s");
    assert_eq!(request.header("authorization"), Some("Bearer hush-one"));
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["apiVersion"], "authorization.k8s.io/v1beta1");
    assert_eq!(body["spec"]["group"], serde_json::json!(["readers"]));
}

/// A service resolver that knows one service.
struct Registry(std::net::SocketAddr);

impl ServiceResolver for Registry {
    fn resolve_service(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        match service.to_string().as_str() {
            "some-service.some-namespace.svc" => {
                Ok(HostPort { host: self.0.ip().to_string(), port: self.0.port() })
            }
            other => Err(ResolveError(format!("service {other} not found"))),
        }
    }
}

fn hook_file(hooks: &[(&str, &str)]) -> String {
    let mut text = "apiVersion: kubeapiserverauthorization.config.k8s.io/v1alpha1\n\
        kind: ExternalAuthorizationHookConfiguration\nexternalAuthorizationHooks:\n"
        .to_owned();
    for (name, service) in hooks {
        text += &format!(
            "- name: {name}\n  clientConfig:\n    serverCaFile: w.ca\n    service: {{name: \
             {service}, namespace: some-namespace}}\n"
        );
    }
    text
}

#[tokio::test]
async fn hooks_of_flags_are_webhooks_of_their_own_name() {
    let mut stage = Stage::new();
    let hook = RunningHook::start(&stage, "w");
    stage.resolver = Some(Arc::new(Registry(hook.peer.address())));
    hook.peer.replace(vec![fake_http::Answer::json(r#"{"status":{"allowed":true}}"#)]).unwrap();
    stage.write("hooks", &hook_file(&[("b", "some-service"), ("a", "other")]));
    let generation = start(&stage, "hooks").unwrap();
    assert_eq!(names(&generation), "node,b,a,rbac");
    let endpoints: Vec<&str> = generation
        .configured_webhooks
        .iter()
        .map(|hook| hook.endpoint_url_without_secrets.as_str())
        .collect();
    assert_eq!(
        endpoints,
        ["https://some-service.some-namespace.svc/", "https://other.some-namespace.svc/"]
    );
    assert_eq!(ask(&generation, "ana").await, Verdict::Allow);
    let request = hook.peer.requests().remove(0);
    assert_eq!(request.target, "/?timeout=30s");
    let server_name = request.tls.unwrap().server_name;
    assert_eq!(server_name.as_deref(), Some("some-service.some-namespace.svc"));
}

/// A service whose endpoints change.
#[derive(Default)]
struct MovingService {
    ready: Mutex<Vec<std::net::SocketAddr>>,
}

impl MovingService {
    fn set_ready(&self, addresses: &[std::net::SocketAddr]) {
        *self.ready.lock().unwrap() = addresses.to_vec();
    }
}

impl ServiceResolver for MovingService {
    fn resolve_service(&self, _: &ServiceName) -> Result<HostPort, ResolveError> {
        let ready = self.ready.lock().unwrap();
        let first =
            ready.first().ok_or_else(|| ResolveError("no endpoints available".to_owned()))?;
        Ok(HostPort { host: first.ip().to_string(), port: first.port() })
    }

    fn is_current_endpoint(&self, _: &ServiceName, address: &HostPort) -> bool {
        self.ready.lock().unwrap().iter().any(|own| own.port() == address.port)
    }
}

/// An endpoint that turns unready gets no further call, although a connection to it is idle. The call that is running
/// there ends, and then the connection does.
#[tokio::test(flavor = "multi_thread")]
async fn unready_endpoints_lose_their_connections() {
    let mut stage = Stage::new();
    let allow = || fake_http::Answer::json(r#"{"status":{"allowed":true}}"#);
    // The second call takes its time.
    let slow = vec![allow(), allow().delay(std::time::Duration::from_millis(500)), allow()];
    let one = RunningHook::start_with(&stage, "w", slow);
    let two = Peer::start_tls(vec![allow()], &one.tls).unwrap();
    let service = Arc::new(MovingService::default());
    stage.resolver = Some(Arc::clone(&service) as _);
    stage.write("hooks", &hook_file(&[("b", "some-service")]));
    let generation = Arc::new(start(&stage, "hooks").unwrap());
    service.set_ready(&[one.peer.address()]);
    assert_eq!(ask(&generation, "ana").await, Verdict::Allow);
    assert_eq!((one.peer.n_accepted(), one.peer.n_open()), (1, 1));
    let running = {
        let generation = Arc::clone(&generation);
        tokio::spawn(async move { ask(&generation, "bob").await })
    };
    assert!(one.peer.wait_requests(2, std::time::Duration::from_secs(10)));
    service.set_ready(&[two.address()]);
    assert_eq!(ask(&generation, "eve").await, Verdict::Allow);
    assert_eq!(two.n_requests(), 1, "the new endpoint is asked");
    assert_eq!(running.await.unwrap(), Verdict::Allow, "the running call ends");
    assert!(one.peer.wait_idle(std::time::Duration::from_secs(10)), "its connection is closed");
    assert_eq!((one.peer.n_accepted(), one.peer.n_requests()), (1, 2));
    // Without a ready endpoint the pooled connection of the last one is not used either.
    service.set_ready(&[]);
    assert_eq!(ask(&generation, "dan").await, Verdict::NoOpinion);
    assert_eq!(two.n_requests(), 1);
}

/// A19: others than the operator write the endpoints of a service, so these lead to loopback only if that is
/// permitted; no failure policy lets a request pass. The operator's own URL may lead there.
#[tokio::test]
async fn a19_endpoints_of_services_are_checked() {
    let mut stage = Stage::new();
    let hook = RunningHook::start(&stage, "w");
    hook.peer.replace(vec![fake_http::Answer::json(r#"{"status":{"allowed":true}}"#)]).unwrap();
    stage.resolver = Some(Arc::new(Registry(hook.peer.address())));
    stage.write("hooks", &hook_file(&[("b", "some-service")]));
    for (file, allows_loopback, verdict) in [
        ("hooks", true, Verdict::Allow),
        ("hooks", false, Verdict::Unavailable(UnavailableCause::OutOfResources)),
        ("w.kubeconfig", false, Verdict::Allow),
    ] {
        let mut builder = stage.builder();
        builder.connection_limits.address_policy = AddressPolicy { allows_loopback };
        let generation = builder.build_first_generation(&flags(file)).unwrap();
        assert_eq!(ask(&generation, "ana").await, verdict, "{file} {allows_loopback}");
    }
    assert_eq!(hook.peer.n_requests(), 2);
}

#[tokio::test]
async fn a_connection_leads_to_exactly_one_hook() {
    let stage = Stage::new();
    let _hook = RunningHook::start(&stage, "w");
    stage.write("hooks", &hook_file(&[("b", "some-service")]));
    stage.write("config", &with_webhook("guard", &stage.path("hooks")));
    assert_eq!(names(&stage.start("config").unwrap()), "guard,rbac");
    stage.write("hooks", &hook_file(&[("b", "some-service"), ("a", "other")]));
    let error = stage.start("config").unwrap_err().to_string();
    assert_eq!(
        error,
        "invalid authorization config: webhook guard: expected exactly one external authorization \
         hook, got 2"
    );
}

#[test]
fn a_hook_file_of_an_unknown_version_is_not_taken_for_a_kubeconfig() {
    let stage = Stage::new();
    let text = hook_file(&[("b", "some-service")]).replace("v1alpha1", "v9");
    stage.write("hooks", &text);
    let error = start(&stage, "hooks").unwrap_err();
    assert!(error.to_string().contains("v9"), "{error}");
    assert!(!error.to_string().contains("KUBERNETES_MASTER"), "{error}");
}

/// L30: answers do not outlive the configuration that they belong to.
#[tokio::test]
async fn a_reload_calls_the_new_webhook_and_not_the_old() {
    let stage = Stage::new();
    let (old, new) = (RunningHook::start(&stage, "old"), RunningHook::start(&stage, "new"));
    stage.write("config", &with_webhook("w", &old.path(&stage)));
    let reloader = stage.start_unwatched("config");
    assert_eq!(ask(&reloader.generation(), "ana").await, Verdict::Allow);
    stage.write("config", &with_webhook("w", &new.path(&stage)));
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Applied(2));
    assert_eq!(ask(&reloader.generation(), "ana").await, Verdict::Allow);
    assert_eq!((old.peer.requests().len(), new.peer.requests().len()), (1, 1));
}

/// Unlike Kubernetes: a webhook whose configuration did not change keeps its cached answers.
#[tokio::test]
async fn an_unchanged_webhook_keeps_its_answers() {
    let stage = Stage::new();
    let (one, two) = (RunningHook::start(&stage, "one"), RunningHook::start(&stage, "two"));
    let first = webhook_entry(&header(), "one", &one.path(&stage));
    stage.write("config", &first);
    let reloader = stage.start_unwatched("config");
    let before = reloader.generation();
    assert_eq!(ask(&before, "ana").await, Verdict::Allow);
    stage.write("config", &webhook_entry(&first, "two", &two.path(&stage)));
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Applied(2));
    let after = reloader.generation();
    assert!(Arc::ptr_eq(&before.configured_webhooks[0], &after.configured_webhooks[0]));
    assert_eq!(ask(&after, "ana").await, Verdict::Allow);
    assert_eq!(one.peer.requests().len(), 1);

    // Another setting makes it another webhook.
    stage.write("config", &first.replace("timeout: 3s", "timeout: 4s"));
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Applied(3));
    assert_eq!(ask(&reloader.generation(), "ana").await, Verdict::Allow);
    let requests = one.peer.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].target, "/authorize?timeout=4s");
}

#[tokio::test]
async fn a_request_ends_with_the_generation_it_began_with() {
    let stage = Stage::new();
    let slow = vec![answer(true).delay(std::time::Duration::from_millis(300))];
    let old = RunningHook::start_with(&stage, "old", slow);
    let new = RunningHook::start_with(&stage, "new", vec![answer(false)]);
    stage.write("config", &with_webhook("w", &old.path(&stage)));
    let reloader = stage.start_unwatched("config");
    let begun = reloader.generation();
    let in_flight = tokio::spawn(async move { ask(&begun, "ana").await });
    let peer = tokio::task::spawn_blocking(move || {
        assert!(old.peer.wait_requests(1, std::time::Duration::from_secs(10)));
        old
    });
    let old = peer.await.unwrap();
    stage.write("config", &with_webhook("w", &new.path(&stage)));
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Applied(2));
    assert_eq!(ask(&reloader.generation(), "ana").await, Verdict::NoOpinion);
    assert_eq!(in_flight.await.unwrap(), Verdict::Allow);
    assert_eq!(old.peer.requests().len(), 1);
}

#[tokio::test]
async fn a_kubeconfig_that_is_repaired_is_used() {
    let stage = Stage::new();
    let (old, new) = (RunningHook::start(&stage, "old"), RunningHook::start(&stage, "new"));
    stage.write("config", &with_webhook("w", &old.path(&stage)));
    let reloader = stage.start_watching("config");
    stage.write("new.kubeconfig", "clusters: []\n");
    stage.write("config", &with_webhook("w", &new.path(&stage)));
    let observed = stage.wait_until("the check failed", |observed| observed.failures() == 1).await;
    let log = observed.log.last().unwrap();
    assert!(log.contains("no configuration has been provided"), "{log}");
    // Nothing but the kubeconfig changes, and that is heard of.
    new.write_kubeconfig(&stage);
    stage.wait_until("the check succeeded", |observed| observed.successes() == 1).await;
    assert_eq!(ask(&reloader.generation(), "ana").await, Verdict::Allow);
    assert_eq!(new.peer.requests().len(), 1);
    assert_eq!(stage.observed().failures(), 1);
}

#[tokio::test]
async fn a_kubeconfig_that_appears_is_used() {
    let stage = Stage::new();
    let (old, new) = (RunningHook::start(&stage, "old"), RunningHook::start(&stage, "new"));
    stage.write("config", &with_webhook("w", &old.path(&stage)));
    let _reloader = stage.start_watching("config");
    std::fs::create_dir(stage.path("later")).unwrap();
    let missing = stage.path("later/kubeconfig");
    stage.write("config", &with_webhook("w", &missing));
    let observed =
        stage.wait_until("missing kubeconfig", |observed| observed.failures() == 1).await;
    assert!(observed.log.last().unwrap().contains("config:14:23: "), "{:?}", observed.log);
    let text = new.kubeconfig().replace("new.", "../new.");
    stage.write("later/kubeconfig", &text);
    stage.wait_until("kubeconfig appears", |observed| observed.successes() == 1).await;
}

#[tokio::test]
async fn every_file_behind_a_webhook_is_followed() {
    let stage = Stage::new();
    let hook = RunningHook::start(&stage, "w");
    stage.write("config", &with_webhook("w", &hook.path(&stage)));
    let reloader = stage.start_watching("config");
    let files = reloader.status().files;
    for name in ["/config", "/w.ca", "/w.kubeconfig", "/w.token"] {
        assert!(files.iter().any(|file| file.ends_with(name)), "{name}: {files:?}");
    }
    assert_eq!(ask(&reloader.generation(), "ana").await, Verdict::Allow);
    stage.rename("w.token", "hush-two");
    stage.wait_until("new token", |observed| observed.successes() == 1).await;
    assert_eq!(ask(&reloader.generation(), "ana").await, Verdict::Allow);
    let tokens: Vec<_> = hook
        .peer
        .requests()
        .iter()
        .map(|it| it.header("authorization").map(str::to_owned))
        .collect();
    let want = ["Bearer hush-one", "Bearer hush-two"].map(|token| Some(token.to_owned()));
    assert_eq!(tokens, want, "a webhook with another token is another one");
    stage.write("w.ca", "no certificate");
    let observed =
        stage.wait_until("unusable authority", |observed| observed.failures() == 1).await;
    assert!(
        observed.log.last().unwrap().contains("unable to load root certificates"),
        "{observed:?}"
    );
}

#[tokio::test]
async fn the_status_tells_everything_but_secrets() {
    let stage = Stage::new();
    let hook = RunningHook::start(&stage, "w");
    stage.write("config", &with_webhook("w", &hook.path(&stage)));
    let reloader = stage.start_unwatched("config");
    assert_eq!(ask(&reloader.generation(), "ana").await, Verdict::Allow);
    let status = serde_json::to_value(reloader.status()).unwrap();
    assert_eq!(status["source"], "file");
    assert_eq!(status["file"], stage.path("config").display().to_string());
    assert_eq!(status["generation"], 1);
    let webhook = &status["authorizers"][0]["webhook"];
    assert_eq!(webhook["endpoint"], format!("https://{}/authorize", hook.peer.address()));
    assert_eq!(webhook["inFlight"], 0);
    assert_eq!(webhook["cacheEntries"], 1);
    assert!(webhook["lastSuccess"].as_str().unwrap().ends_with('Z'), "{webhook}");
    assert_eq!(status["authorizers"][1], serde_json::json!({"type": "RBAC", "name": "rbac"}));
    assert!(!status.to_string().contains("hush"), "{status}");
    let shown =
        format!("{:?} {:?}", reloader.generation(), reloader.generation().configured_webhooks);
    assert!(!shown.contains("hush"), "{shown}");
}
