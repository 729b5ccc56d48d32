//! The authorized request is the one that runs (attack A1): every method, every form of path, every resource.
//!
//! Each request is sent twice: by a user who holds only the verb that the request is classified as, and
//! by one who holds every verb but that one. The first may do what the verb says and nothing else; the
//! second may do nothing. What was done is seen in the objects, not in the answer.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::{Value, json};

use super::rig::NAMESPACE;
use super::samples::{definition, sample};
use super::served::{Served, Target};
use crate::client::{Answer, Client, Session};
use crate::cluster::Cluster;

const VERBS: [&str; 9] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy"];

const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// The forms of a path. `{root}` is the group and version, `{all}` the collection below it, `{own}` an
/// object in it.
const FORMS: [&str; 30] = [
    "{root}/{all}",
    "{root}/{all}/",
    "{root}/{all}?watch=1",
    "{root}/{all}?watch=false&watch=true",
    "{root}/{all}?fieldSelector=metadata.name%3D{own}",
    "{root}/{all}?watch=true&fieldSelector=metadata.name%3D{own}",
    "{root}/{all}/{own}",
    "{root}/{all}/{own}/",
    "{root}/{all}/{own}?watch=1",
    "{root}/{all}/{own}/status",
    "{root}/watch/{all}",
    "{root}/watch/{all}?watch=0",
    "{root}/watch/{all}/{own}",
    "{root}/watch/{all}/{own}?watch=false",
    "{root}/watch/{all}/{own}?fieldSelector=metadata.name%3Dother",
    "{root}/watch/{all}/{own}/status",
    "{root}/watch/watch/{all}/{own}",
    "{root}/Watch/{all}/{own}",
    "{root}/proxy/{all}",
    "{root}/proxy/{all}/{own}",
    "{root}/proxy/watch/{all}/{own}",
    "{root}//{all}/{own}",
    "{root}/{all}//{own}",
    "/{root}/watch//{all}/{own}",
    "{root}/{all}%2F{own}",
    "{root}/watch%2F{all}/{own}",
    "{root}/%77atch/{all}/{own}",
    "{root}/{all}/./{own}",
    "{root}/{all}/x/../{own}",
    "{root}/{all}/%2e%2e/{own}",
];

/// The objects of a resource by name, with what changes when they do.
type Objects = BTreeMap<String, (String, String)>;

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_is_what_was_authorized() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    admin.post("/api/v1/namespaces", &namespace).await.expect(201);
    let widgets = definition("widgets", "Widget", &["v1", "v1beta1"]);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    admin.post(definitions, &widgets).await.expect(201);
    while admin.get("/apis/example.com/v1/widgets").await.code != 200 {
        tokio::task::yield_now().await;
    }
    // The default permissions of all users would hide what these users may not do.
    for name in ["system:basic-user", "system:discovery", "system:public-info-viewer"] {
        let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        admin.delete(&format!("{bindings}/{name}")).await.expect(200);
    }
    for verb in VERBS {
        grant(&admin, &format!("only-{verb}"), &[verb]).await;
        let others: Vec<&str> = VERBS.into_iter().filter(|own| *own != verb).collect();
        grant(&admin, &format!("all-but-{verb}"), &others).await;
    }
    let mut walk = Walk {
        session: admin.session().await,
        admin,
        known: Objects::new(),
        done: BTreeMap::new(),
    };
    let served = Served::discover(&walk.admin).await;
    for own in &served {
        walk.resource(own).await;
    }
    println!("requests that were carried out, by verb: {:?}", walk.done);
    for verb in VERBS.into_iter().filter(|verb| *verb != "proxy") {
        let n_done = walk.done.get(verb).copied().unwrap_or_default();
        assert!(n_done > served.len() / 2, "{verb} was carried out {n_done} times");
    }
    assert_eq!(walk.done.get("proxy"), None);
}

async fn grant(admin: &Client, user: &str, verbs: &[&str]) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{"verbs": verbs, "apiGroups": ["*"], "resources": ["*"]}]);
    let role = json!({"metadata": {"name": user}, "rules": rules});
    admin.post(&format!("{rbac}/clusterroles"), &role).await.expect(201);
    let binding = json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    admin.post(&format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
}

struct Walk {
    admin: Client,
    session: Session,
    /// The objects of the resource as they must be.
    known: Objects,
    /// How often each verb was carried out.
    done: BTreeMap<String, usize>,
}

/// A request, and what it is classified as.
struct Probe {
    method: Method,
    path: String,
    body: String,
    verb: String,
}

impl Walk {
    async fn resource(&mut self, served: &Served) {
        let main = &served.main;
        let (root, all) = split(main);
        let own = main.object_name();
        let mut forms: Vec<String> = FORMS.iter().map(|&form| form.to_owned()).collect();
        for part in &served.parts {
            forms.push(format!("{{root}}/{{all}}/{{own}}/{}", part.part));
            forms.push(format!("{{root}}/watch/{{all}}/{{own}}/{}", part.part));
        }
        self.restore(main).await;
        for form in forms {
            let path = form.replace("{root}", &root).replace("{all}", &all).replace("{own}", own);
            for method in METHODS {
                self.probe(main, method, &path).await;
            }
            // Requests that were refused have changed nothing.
            assert_eq!(self.objects(main).await, self.known, "{path}");
        }
    }

    /// Sends one request as both users.
    async fn probe(&mut self, target: &Target, method: Method, path: &str) {
        let mut path = path.to_owned();
        if method == Method::DELETE {
            // A collection may hold what the server cannot do without.
            path.push_str(if path.contains('?') { "&" } else { "?" });
            path.push_str("labelSelector=coverage%3Dyes");
        }
        let Ok(info) = authz::RequestInfo::new(method.as_str(), &path) else { return };
        let verb = info.verb.into_owned();
        let body = self.body(target, &method).await;
        let probe = Probe { method, path, body, verb };
        let refused = self.send(&format!("all-but-{}", probe.verb), &probe).await;
        assert!(refused.code >= 400, "{probe} by one who lacks {}: {}", probe.verb, refused.code);
        let answer = self.send(&format!("only-{}", probe.verb), &probe).await;
        if answer.code >= 400 {
            return;
        }
        let after = self.objects(target).await;
        probe.check_objects(target, &self.known, &after);
        probe.check_answer(&answer, target);
        *self.done.entry(probe.verb.clone()).or_default() += 1;
        if self.known != after {
            self.restore(target).await;
        }
    }

    async fn body(&mut self, target: &Target, method: &Method) -> String {
        match *method {
            Method::POST => {
                let mut made = sample(target);
                if made["metadata"].is_object() && target.object_name() == "own" {
                    made["metadata"]["name"] = "made".into();
                }
                made.to_string()
            }
            Method::PUT if target.offers("get") => {
                let path = format!("{}/{}", target.collection(), target.object_name());
                let mut own = self.admin_send(Method::GET, &path, "").await.json();
                own["metadata"]["annotations"] = json!({"put": own["metadata"]["resourceVersion"]});
                own.to_string()
            }
            Method::PATCH => {
                let now = jiff::Timestamp::now().to_string();
                json!({"metadata": {"annotations": {"patched": now}}}).to_string()
            }
            _ => String::new(),
        }
    }

    async fn send(&mut self, user: &str, probe: &Probe) -> Answer {
        let mut headers = vec![("impersonate-user", user)];
        if probe.method == Method::PATCH {
            headers.push(("content-type", "application/merge-patch+json"));
        }
        let sent = self.session.first_frame(
            probe.method.clone(),
            &probe.path,
            &headers,
            probe.body.clone(),
        );
        let (answer, is_reusable) = sent.await;
        if !is_reusable || answer.code == 413 {
            self.session = self.admin.session().await;
        }
        answer
    }

    async fn admin_send(&mut self, method: Method, path: &str, body: &str) -> Answer {
        self.session.send(method, path, body.to_owned()).await
    }

    async fn objects(&mut self, target: &Target) -> Objects {
        if !target.offers("list") {
            return Objects::new();
        }
        let path = format!("{}?labelSelector=coverage%3Dyes", target.collection());
        let list = self.admin_send(Method::GET, &path, "").await.expect(200);
        let items = list["items"].as_array().expect("items").iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        items
            .map(|item| {
                let metadata = &item["metadata"];
                (
                    text(&metadata["name"]),
                    (text(&metadata["uid"]), text(&metadata["resourceVersion"])),
                )
            })
            .collect()
    }

    /// Whether the server has written all that it writes into an object.
    async fn is_settled(&mut self, target: &Target, name: &str) -> bool {
        let (condition, status) = match target.plural.as_str() {
            "customresourcedefinitions" => ("Established", "True"),
            "flowschemas" => ("Dangling", "False"),
            _ => return true,
        };
        let path = format!("{}/{name}", target.collection());
        let own = self.admin_send(Method::GET, &path, "").await.json();
        let conditions = own["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|own| own["type"] == condition && own["status"] == status)
    }

    /// Waits for the end of an object that is on its way out, which goes by itself.
    async fn await_end(&mut self, path: &str) {
        while is_terminating(&self.admin_send(Method::GET, path, "").await) {
            crate::polling::pause().await;
        }
    }

    /// Brings the objects of a resource back: one of its own name and one of another.
    async fn restore(&mut self, target: &Target) {
        self.known = Objects::new();
        if !target.offers("get") {
            return;
        }
        let collection = target.collection();
        let own = target.object_name();
        let names = if own == "own" { vec!["own", "other"] } else { vec![own] };
        let gone = format!("{collection}/made?gracePeriodSeconds=0");
        self.admin_send(Method::DELETE, &gone, "").await;
        self.await_end(&format!("{collection}/made")).await;
        for name in names {
            self.await_end(&format!("{collection}/{name}")).await;
            let mut object = sample(target);
            object["metadata"]["name"] = name.into();
            let created = self.admin_send(Method::POST, &collection, &object.to_string()).await;
            assert!(matches!(created.code, 201 | 409), "{target}: {}", created.text());
            while !self.is_settled(target, name).await {
                crate::polling::pause().await;
            }
        }
        self.known = self.objects(target).await;
    }
}

impl std::fmt::Display for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({})", self.method, self.path, self.verb)
    }
}

impl Probe {
    /// Whether the objects changed only as the verb changes them.
    fn check_objects(&self, target: &Target, before: &Objects, after: &Objects) {
        let names = |objects: &Objects| objects.keys().cloned().collect::<BTreeSet<_>>();
        let (old, new) = (names(before), names(after));
        let added: Vec<&String> = new.difference(&old).collect();
        let touched = |name: &&String| before.get(*name) != after.get(*name);
        let touched: Vec<&String> = old.iter().filter(touched).collect();
        let replaced = touched.iter().any(|name| {
            after
                .get(*name)
                .is_some_and(|(uid, _)| Some(uid) != before.get(*name).map(|own| &own.0))
        });
        let removed: Vec<&String> = old.difference(&new).collect();
        let only_own = touched.iter().all(|name| *name == target.object_name());
        let is_right = match self.verb.as_str() {
            "create" => touched.is_empty() && added.iter().all(|name| *name == "made"),
            "update" | "patch" => added.is_empty() && removed.is_empty() && only_own,
            "delete" => added.is_empty() && only_own,
            "deletecollection" => added.is_empty(),
            _ => added.is_empty() && touched.is_empty(),
        };
        assert!(is_right && !replaced, "{self}: added {added:?}, touched {touched:?}");
    }

    /// Whether the answer is one that the verb gives.
    fn check_answer(&self, answer: &Answer, target: &Target) {
        let text = answer.text();
        let first = text.lines().next().unwrap_or_default();
        let json: Value = serde_json::from_str(first).unwrap_or_default();
        let is_event = json["type"].is_string() && json["object"].is_object();
        let is_list = json["items"].is_array();
        let is_right = match self.verb.as_str() {
            "watch" => is_event || text.is_empty(),
            // Custom resources take HEAD, and the answer to it has no body.
            "list" if self.method == Method::HEAD => text.is_empty(),
            "list" | "deletecollection" => is_list,
            "get" | "update" | "patch" | "create" | "delete" => !is_list && !is_event,
            _ => false,
        };
        assert!(is_right, "{self}: {text}");
        if self.verb == "watch" && self.path.contains(&format!("{}?", target.object_name())) {
            let name = &json["object"]["metadata"]["name"];
            assert!(is_event && *name == target.object_name(), "{self}: {text}");
        }
    }
}

fn is_terminating(answer: &Answer) -> bool {
    answer.code == 200 && answer.json()["metadata"]["deletionTimestamp"].is_string()
}

/// The path of the group and version, and that of the collection below it.
fn split(target: &Target) -> (String, String) {
    let collection = target.collection();
    let n_segments = if target.group.is_empty() { 3 } else { 4 };
    let at = collection.match_indices('/').nth(n_segments - 1).expect("a collection").0;
    (collection[..at].to_owned(), collection[at + 1..].to_owned())
}
