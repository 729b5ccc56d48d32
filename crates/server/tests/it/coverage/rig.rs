//! A server with an authorizer and hooks that remember what they are asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use fake_http::{Peer, Request, Script};
use serde_json::{Value, json};
use store::Store;

use super::Attempt;
use super::samples::definition;
use super::served::Target;
use crate::admission_hooks::{HookAuthority, MUTATING, VALIDATING, answer, asked, register, rule};
use crate::client::{Answer, Client};
use crate::cluster::Cluster;
use crate::hooks::{Hooks, abstain, allow, deny, rbac};

/// Where objects of namespaces are written.
pub(super) const NAMESPACE: &str = "coverage";

/// The path of a pod of this name.
pub(super) fn pod_path(name: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}")
}

/// The response of hooks to requests of alice. They allow the requests of other users.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Allow,
    MutatingDenies,
    ValidatingDenies,
}

pub(super) struct Rig {
    cluster: Cluster,
    pub(super) admin: Client,
    pub(super) alice: Client,
    is_allowed: Arc<AtomicBool>,
    mood: Arc<AtomicU8>,
    authorizer: Peer,
    mutating: Peer,
    validating: Peer,
    _files: Hooks,
}

impl Rig {
    pub(super) async fn start() -> Self {
        let files = Hooks::new();
        let is_allowed = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&is_allowed);
        let authorizer = files.peer(
            "recorder",
            Script::rule(move |request| {
                match (spec(request)["user"] == "alice", own.load(Ordering::SeqCst)) {
                    (true, true) => allow(),
                    (true, false) => deny(),
                    (false, _) => abstain(),
                }
            }),
        );
        let uncached = json!({"cacheAuthorizedRequests": false, "cacheUnauthorizedRequests": false,
            "authorizedTTL": "1s", "unauthorizedTTL": "1s"});
        let plan = files.plan(&[files.webhook("recorder", uncached), rbac()]);
        let cluster = files.cluster(&plan, |_, _| {}).await;
        let admin = cluster.admin();
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        admin.post("/api/v1/namespaces", &namespace).await.expect(201);
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let mut widgets = definition("widgets", "Widget", &["v1", "v1beta1"]);
        let scale =
            json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
        for version in 0..2 {
            widgets["spec"]["versions"][version]["subresources"]["scale"] = scale.clone();
        }
        admin.post(definitions, &widgets).await.expect(201);

        let mood = Arc::new(AtomicU8::new(Mood::Allow as u8));
        let authority = HookAuthority::new();
        let hook = |denies: Mood| {
            let mood = Arc::clone(&mood);
            authority.hook(Script::rule(move |request| {
                let is_alice = asked(request)["userInfo"]["username"] == "alice";
                let is_denied = is_alice && mood.load(Ordering::SeqCst) == denies as u8;
                let status = json!({"code": 403, "message": "not alice"});
                answer(request, &json!({"allowed": !is_denied, "status": status}))
            }))
        };
        let (mutating, validating) = (hook(Mood::MutatingDenies), hook(Mood::ValidatingDenies));
        let rules = json!({"rules": [rule(&["*"], "*", "*/*")]});
        let webhooks = [authority.webhook("m.x.y", &mutating, rules.clone())];
        register(&cluster, MUTATING, "m", &webhooks).await;
        let webhooks = [authority.webhook("v.x.y", &validating, rules)];
        register(&cluster, VALIDATING, "v", &webhooks).await;
        let alice = cluster.alice();
        let rig = Self {
            cluster,
            admin,
            alice,
            is_allowed,
            mood,
            authorizer,
            mutating,
            validating,
            _files: files,
        };
        rig.established("widgets.example.com").await;
        rig.aggregated().await;
        rig
    }

    /// Creates a pod, for a Binding of it.
    pub(super) async fn add_pod(&self, name: &str) {
        let pod = json!({"metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
        self.admin.post(&path, &pod).await.expect(201);
    }

    /// Waits until the server has stored the rules of aggregated roles.
    async fn aggregated(&self) {
        for (role, parts) in [
            ("view", ["system:aggregate-to-view"].as_slice()),
            ("edit", &["view", "system:aggregate-to-edit"]),
            ("admin", &["edit", "system:aggregate-to-admin"]),
        ] {
            for part in parts {
                let wanted = self.rules(part).await;
                assert!(!wanted.is_empty(), "{part}");
                let mut n_tries = 0;
                loop {
                    let found = self.rules(role).await;
                    if wanted.iter().all(|rule| found.contains(rule)) {
                        break;
                    }
                    n_tries += 1;
                    assert!(n_tries < 2000, "{role} has not the rules of {part}");
                    crate::polling::pause().await;
                }
            }
        }
    }

    async fn rules(&self, role: &str) -> Vec<Value> {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}");
        let rules = self.admin.get(&path).await.expect(200)["rules"].clone();
        rules.as_array().cloned().unwrap_or_default()
    }

    pub(super) fn set(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::SeqCst);
    }

    pub(super) fn allow_alice(&self, is_allowed: bool) {
        self.is_allowed.store(is_allowed, Ordering::SeqCst);
    }

    pub(super) async fn revision(&self) -> u64 {
        self.cluster.store.current_rev().await.expect("a revision").as_u64()
    }

    pub(super) async fn send(&self, attempt: &Attempt<'_>) -> Answer {
        let headers = [("content-type", attempt.content_type)];
        let body = attempt.body.to_string();
        self.alice.send(attempt.method.clone(), &attempt.path, &headers, body).await
    }

    /// The requests of alice that the mutating and the validating hook received since the last
    /// call.
    pub(super) fn told(&self) -> [Vec<Value>; 2] {
        [&self.mutating, &self.validating].map(|hook| {
            let told = hook.take_requests().iter().map(asked).collect::<Vec<_>>().into_iter();
            told.filter(|told| told["userInfo"]["username"] == "alice").collect()
        })
    }

    /// The authorizer's requests about alice since the last call.
    pub(super) fn questions(&self) -> Vec<Value> {
        let specs = self.authorizer.take_requests().iter().map(spec).collect::<Vec<_>>();
        let own = specs.into_iter().filter(|spec| spec["user"] == "alice");
        let question = |spec: Value| {
            let mut question = spec["resourceAttributes"].clone();
            // Selectors are not compared.
            question.as_object_mut().expect("a resource").shift_remove("labelSelector");
            question
        };
        own.map(question).collect()
    }

    pub(super) fn forget(&self) {
        self.told();
        self.questions();
    }

    /// Waits until the loops of the server have processed a new object.
    pub(super) async fn settled(&self, target: &Target) {
        match target.plural.as_str() {
            "customresourcedefinitions" => self.established(target.object_name()).await,
            "flowschemas" => {
                let path = format!("{}/{}", target.collection(), target.object_name());
                self.has_condition(&path, "Dangling", "False").await;
            }
            _ => {}
        }
    }

    async fn established(&self, name: &str) {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        self.has_condition(&path, "Established", "True").await;
    }

    async fn has_condition(&self, path: &str, condition: &str, status: &str) {
        for _ in 0..2000 {
            let conditions = self.admin.get(path).await.expect(200)["status"]["conditions"].clone();
            let is_met = |it: &Value| it["type"] == condition && it["status"] == status;
            if conditions.as_array().is_some_and(|list| list.iter().any(is_met)) {
                return;
            }
            crate::polling::pause().await;
        }
        panic!("{path} is never {condition}: {status}");
    }

    /// Waits until an object is deleted. Namespaces and definitions take longer.
    pub(super) async fn gone(&self, path: &str) {
        for _ in 0..2000 {
            if self.admin.get(path).await.code == 404 {
                return;
            }
            crate::polling::pause().await;
        }
        panic!("{path} stays");
    }
}

/// The attributes that an authorizer receives.
fn spec(request: &Request) -> Value {
    let review: Value = serde_json::from_slice(&request.body).expect("a review");
    review["spec"].clone()
}
