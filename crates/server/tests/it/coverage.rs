//! Nothing is written without permission, and nothing without asking hooks.
//!
//! The walk is over what the server says that it serves, so that a resource that is added later is
//! in it. Each way to write is tried four times: without permission, with a validating hook that
//! denies, with a mutating one that denies, and with everybody's consent.

mod path_verbs;
mod rig;
pub(crate) mod samples;
pub(crate) mod served;

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use self::rig::{Mood, Rig};
use self::samples::{action, sample};
use self::served::{Served, Target};

/// The group and resource of each kind that no hook is called for: admission configurations and reviews.
const EXEMPT: [(&str, &str); 17] = [
    ("admissionregistration.k8s.io", "externaladmissionhookconfigurations"),
    ("admissionregistration.k8s.io", "initializerconfigurations"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    // Reviews that only this server has.
    ("authorization.portcullis.io", "localresourceaccessreviews"),
    ("authorization.portcullis.io", "resourceaccessreviews"),
    ("authorization.portcullis.io", "subjectaccessexplanations"),
];

/// Says which state of the configuration a write was admitted by.
const REVISION: &str = "portcullis-admission-revision";

/// The value for hooks that were not called.
const NOBODY: [Vec<Value>; 2] = [Vec::new(), Vec::new()];

/// A request that writes, and what everybody must be told of it.
struct Attempt<'t> {
    target: &'t Target,
    /// The verb that authorizers receive.
    verb: &'static str,
    /// The operation that hooks receive.
    operation: &'static str,
    method: Method,
    path: String,
    content_type: &'static str,
    body: Value,
    /// The name that authorizers are told.
    name: &'t str,
    /// The name that hooks are told.
    told_name: &'t str,
}

/// Every verb of every resource and subresource.
/// L11: subresources are no way around hooks.
#[tokio::test(flavor = "multi_thread")]
async fn every_write_is_authorized_and_admitted() {
    let rig = Rig::start().await;
    let all = Served::discover(&rig.admin).await;
    let mut walked = BTreeSet::new();
    for served in &all {
        let n_attempts = walk(&rig, served).await;
        println!("{}: {n_attempts} ways to write", served.main);
        walked.insert((served.main.group.clone(), served.main.plural.clone()));
    }
    for (group, plural) in EXEMPT {
        assert!(walked.contains(&(group.to_owned(), plural.to_owned())), "{plural} is not served");
    }
    assert!(walked.len() > 60, "{} resources", walked.len());
    assert!(all.iter().any(|own| own.main.version == "v1beta1" && own.main.plural == "widgets"));
}

/// Tries everything with one resource, and returns how many ways there are to write.
async fn walk(rig: &Rig, served: &Served) -> usize {
    let Served { main, parts } = served;
    let name = main.object_name();
    let own = format!("{}/{name}", main.collection());
    let mut n_attempts = 0;
    if main.offers("create") {
        let body = sample(main);
        let is_binding = main.plural == "bindings";
        if is_binding {
            rig.add_pod(name).await;
        }
        rig.attempt(&main.attempt("create", "CREATE", Method::POST, main.collection(), body)).await;
        n_attempts += 1;
        if is_binding {
            rig.admin.delete(&rig::pod_path(name)).await.expect(200);
        }
    }
    if !main.offers("get") {
        assert_eq!(main.verbs, ["create"], "{main}");
        return n_attempts;
    }
    rig.settled(main).await;
    reads(rig, served).await;
    for target in parts.iter().filter(|part| part.is_connection()) {
        n_attempts += rig.connect(target, &format!("{own}/{}", target.part)).await;
    }
    for target in std::iter::once(main).chain(parts).filter(|own| !own.is_connection()) {
        let path =
            if target.part.is_empty() { own.clone() } else { format!("{own}/{}", target.part) };
        if target.offers("update") {
            let is_scale = target.part == "scale";
            let body = rig.admin.get(if is_scale { &path } else { &own }).await.expect(200);
            rig.attempt(&target.attempt("update", "UPDATE", Method::PUT, path.clone(), body)).await;
            n_attempts += 1;
        }
        if target.offers("patch") {
            let body = match target.part.as_str() {
                "scale" => json!({"spec": {"replicas": 3}}),
                part => json!({"metadata": {"annotations": {"by": part}}}),
            };
            rig.attempt(&target.attempt("patch", "UPDATE", Method::PATCH, path.clone(), body))
                .await;
            n_attempts += 1;
        }
        if !target.part.is_empty() && target.offers("create") {
            let body = action(target);
            rig.attempt(&target.attempt("create", "CREATE", Method::POST, path.clone(), body))
                .await;
            n_attempts += 1;
            if target.part == "eviction" {
                rig.admin.post(&main.collection(), &sample(main)).await.expect(201);
            }
        }
        rig.settled(main).await;
        let known =
            ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
        assert!(target.verbs.iter().all(|verb| known.contains(&verb.as_str())), "{target}");
    }
    if main.offers("delete") {
        rig.attempt(&main.attempt("delete", "DELETE", Method::DELETE, own.clone(), json!({})))
            .await;
        rig.gone(&own).await;
        n_attempts += 1;
    }
    if main.offers("update") {
        n_attempts += usize::from(rig.put_new(main, &own).await);
    }
    if main.offers("deletecollection") {
        rig.admin.post(&main.collection(), &sample(main)).await.expect(201);
        rig.settled(main).await;
        let path = format!("{}?labelSelector=coverage%3Dyes", main.collection());
        let body = json!({});
        rig.attempt(&main.attempt("deletecollection", "DELETE", Method::DELETE, path, body)).await;
        rig.gone(&own).await;
        n_attempts += 1;
    }
    n_attempts
}

/// Reads are checked by the authorizers and call no hook.
async fn reads(rig: &Rig, served: &Served) {
    rig.set(Mood::Allow);
    rig.allow_alice(true);
    rig.forget();
    let main = &served.main;
    let own = format!("{}/{}", main.collection(), main.object_name());
    rig.alice.get(&own).await.expect(200);
    rig.alice.get(&main.collection()).await.expect(200);
    drop(rig.alice.watch(&format!("{}?watch=1&timeoutSeconds=1", main.collection())).await);
    let parts = served.parts.iter().filter(|part| part.offers("get") && !part.is_connection());
    for part in parts {
        rig.alice.get(&format!("{own}/{}", part.part)).await.expect(200);
    }
    assert_eq!(rig.told(), NOBODY, "{main}");
}

impl Rig {
    /// Tries a write four times, or twice if it is exempt from hooks.
    async fn attempt(&self, attempt: &Attempt<'_>) {
        let target = attempt.target;
        let what = format!("{} {target}", attempt.verb);
        self.forget();
        let before = self.revision().await;

        // (a) Without permission only the authorizer receives a request.
        self.allow_alice(false);
        self.set(Mood::Allow);
        let refused = self.send(attempt).await;
        assert_eq!(refused.code, 403, "{what}: {}", refused.text());
        assert!(refused.text().contains("alice"), "{what}: {}", refused.text());
        assert_eq!(self.questions(), [attempt.question()], "{what}");
        assert_eq!(self.told(), NOBODY, "{what}");
        assert_eq!(self.revision().await, before, "{what}");
        assert!(refused.headers.get(REVISION).is_none(), "{what}");
        self.allow_alice(true);

        if EXEMPT.contains(&(target.group.as_str(), target.plural.as_str())) {
            self.set(Mood::MutatingDenies);
            let answer = self.send(attempt).await;
            assert!(matches!(answer.code, 200 | 201), "{what}: {}", answer.text());
            assert_eq!(self.told(), NOBODY, "{what} is exempt");
            assert!(answer.headers.get(REVISION).is_none(), "{what} does not wait for anything");
            assert_eq!(self.questions().first(), Some(&attempt.question()), "{what}");
            return;
        }

        // (b) If a hook denies the request, nothing is stored.
        for (mood, name, n_validating) in
            [(Mood::ValidatingDenies, "v.x.y", 1), (Mood::MutatingDenies, "m.x.y", 0)]
        {
            self.set(mood);
            let answer = self.send(attempt).await;
            assert_eq!(answer.code, 403, "{what}: {}", answer.text());
            let want = format!("admission webhook \"{name}\" denied the request: not alice");
            assert_eq!(answer.json()["message"], want, "{what}");
            let [mutating, validating] = self.told();
            assert_eq!((mutating.len(), validating.len()), (1, n_validating), "{what}");
            for told in mutating.iter().chain(&validating) {
                attempt.check(told);
            }
            assert_eq!(self.revision().await, before, "{what}");
        }

        // If the authorizer and the hooks allow the request, it succeeds.
        self.set(Mood::Allow);
        let answer = self.send(attempt).await;
        assert!(matches!(answer.code, 200..=202), "{what}: {}", answer.text());
        assert!(answer.headers.get(REVISION).is_some(), "{what}");
        for told in self.told() {
            assert_eq!(told.len(), 1, "{what}");
            attempt.check(&told[0]);
        }
    }
}

impl Rig {
    /// Tries to connect by every verb of a subresource, and returns how many there are. Nobody can be
    /// connected, so that the last answer is 503.
    async fn connect(&self, target: &Target, path: &str) -> usize {
        for verb in &target.verbs {
            let (verb, method) = match verb.as_str() {
                "create" => ("create", Method::POST),
                "delete" => ("delete", Method::DELETE),
                "get" => ("get", Method::GET),
                "patch" => ("patch", Method::PATCH),
                _ => ("update", Method::PUT),
            };
            let attempt = target.attempt(verb, "CONNECT", method, path.to_owned(), json!({}));
            let what = format!("{verb} {target}");
            self.forget();
            let before = self.revision().await;
            self.allow_alice(false);
            self.set(Mood::Allow);
            let refused = self.send(&attempt).await;
            assert_eq!(refused.code, 403, "{what}: {}", refused.text());
            assert_eq!(self.questions(), [attempt.question()], "{what}");
            assert_eq!(self.told(), NOBODY, "{what}");
            self.allow_alice(true);
            for (mood, code) in
                [(Mood::ValidatingDenies, 403), (Mood::MutatingDenies, 403), (Mood::Allow, 503)]
            {
                self.set(mood);
                let answer = self.send(&attempt).await;
                assert_eq!(answer.code, code, "{what}: {}", answer.text());
                assert!(answer.headers.get(REVISION).is_some(), "{what}");
                let told = self.told();
                assert_eq!(told[0].len(), 1, "{what}");
                told.iter().flatten().for_each(|told| attempt.check(told));
                let verbs: Vec<Value> =
                    self.questions().iter().map(|own| own["verb"].clone()).collect();
                // A stream by GET needs the verb `create` as well.
                let is_both = verb == "get" && target.part != "proxy";
                let want: &[&str] = if is_both { &["get", "create"] } else { &[verb] };
                assert_eq!(verbs, want, "{what}");
            }
            assert_eq!(self.revision().await, before, "{what}");
        }
        target.verbs.len()
    }

    /// Replaces what does not exist, which is a creation where it is possible at all, and returns
    /// whether it is.
    async fn put_new(&self, main: &Target, path: &str) -> bool {
        if EXEMPT.contains(&(main.group.as_str(), main.plural.as_str())) {
            return false;
        }
        let attempt = main.attempt("create", "CREATE", Method::PUT, path.to_owned(), sample(main));
        self.allow_alice(true);
        self.forget();
        let before = self.revision().await;
        self.set(Mood::ValidatingDenies);
        let answer = self.send(&attempt).await;
        let told = self.told();
        let is_made = answer.code != 404;
        if is_made {
            let verbs: Vec<Value> =
                self.questions().iter().map(|own| own["verb"].clone()).collect();
            assert!(verbs.starts_with(&["update".into(), "create".into()]), "{main}: {verbs:?}");
            assert_eq!(answer.code, 403, "{main}: {}", answer.text());
            assert_eq!((told[0].len(), told[1].len()), (1, 1), "{main}");
            told.iter().flatten().for_each(|told| attempt.check(told));
        } else {
            assert_eq!(told, NOBODY, "{main}");
        }
        assert_eq!(self.revision().await, before, "{main}");
        is_made
    }
}

impl Attempt<'_> {
    /// The attributes that the authorizer receives.
    fn question(&self) -> Value {
        let Target { group, version, plural, part, .. } = self.target;
        let mut question = json!({"verb": self.verb, "version": version, "resource": plural});
        let namespace = self.target.told_namespace();
        let namespace =
            if self.name.is_empty() && namespace != rig::NAMESPACE { "" } else { namespace };
        for (member, value) in [
            ("group", group.as_str()),
            ("subresource", part),
            ("name", self.name),
            ("namespace", namespace),
        ] {
            if !value.is_empty() {
                question[member] = value.into();
            }
        }
        question
    }

    /// The attributes that hooks receive.
    #[track_caller]
    fn check(&self, told: &Value) {
        let target = self.target;
        let Target { group, version, plural, part, .. } = target;
        let what = format!("{} {target}: {told}", self.verb);
        let text = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        assert_eq!(told["operation"], self.operation, "{what}");
        let resource = json!({"group": group, "version": version, "resource": plural});
        for member in ["resource", "requestResource"] {
            assert_eq!(told[member], resource, "{what}");
        }
        for member in ["kind", "requestKind"] {
            assert_eq!(told[member], target.kind, "{what}");
        }
        for member in ["subResource", "requestSubResource"] {
            assert_eq!(told[member], text(part), "{what}");
        }
        assert_eq!(told["name"], text(self.told_name), "{what}");
        assert_eq!(told["namespace"], text(target.told_namespace()), "{what}");
        assert_eq!(told["userInfo"]["username"], "alice", "{what}");
        assert_eq!(told["dryRun"], false, "{what}");
        if self.operation == "CONNECT" {
            assert_eq!(told["options"], Value::Null, "{what}");
            assert_eq!(told["object"]["kind"], target.kind["kind"], "{what}");
            assert_eq!(told["object"]["apiVersion"], "v1", "{what}");
            assert_eq!(told["object"]["metadata"], Value::Null, "{what}");
            assert_eq!(told["oldObject"], Value::Null, "{what}");
            return;
        }
        let options = match self.operation {
            "CREATE" => "CreateOptions",
            "UPDATE" => "UpdateOptions",
            _ => "DeleteOptions",
        };
        assert_eq!(told["options"]["kind"], options, "{what}");
        let name = target.object_name();
        let kind = &target.kind;
        for (member, is_there) in
            [("object", self.operation != "DELETE"), ("oldObject", self.operation != "CREATE")]
        {
            let object = &told[member];
            assert_eq!(object.is_object(), is_there, "{what}");
            if is_there && kind["kind"] != "TokenRequest" {
                assert_eq!(object["metadata"]["name"], name, "{what}");
                assert_eq!(object["kind"], kind["kind"], "{what}");
                let version = kind["version"].as_str().unwrap();
                assert!(object["apiVersion"].as_str().unwrap().ends_with(version), "{what}");
            }
        }
    }
}
