//! Generates the lines of a policy file, and requests for them.
//!
//! Most of n lines are for one of n/4 users or n/4 groups, in both versions of the format, for forty
//! resources in n/50 namespaces and for some paths.

use std::collections::HashMap;

use ::authz::User;
use authz_abac::{Policy, PolicySpec};
use serde_json::{Map, Value, json};

use crate::authz::random::Random;
use crate::authz::request_pool::{ALL_USERS_GROUP, RequestTarget};
use crate::authz::vocabulary::{self, PATHS, VERBS};

const V1BETA1: &str = "abac.authorization.kubernetes.io/v1beta1";

/// The numbers of namespaces and users of a file.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    n_namespaces: usize,
    /// The number of users, and of groups.
    pub(crate) n_users: usize,
}

impl Counts {
    pub(crate) fn new(n_lines: usize) -> Self {
        Self { n_namespaces: (n_lines / 50).max(1), n_users: (n_lines / 4).max(1) }
    }

    fn namespace(&self, random: &mut Random) -> String {
        vocabulary::namespace(random.below(self.n_namespaces))
    }

    /// Generates one line of the file.
    pub(crate) fn line(&self, random: &mut Random) -> Value {
        let mut spec = Map::new();
        let user = json!(vocabulary::user(random.below(self.n_users)));
        let group = json!(vocabulary::group(random.below(self.n_users)));
        let who = random.below(100);
        if !(50..90).contains(&who) {
            spec.insert("user".to_owned(), if who == 99 { json!("*") } else { user });
        }
        if (50..99).contains(&who) {
            spec.insert("group".to_owned(), group);
        }
        // Lines for every user are few, because otherwise few requests would be denied.
        if who == 99 || random.percent(50) {
            spec.insert("readonly".to_owned(), json!(true));
        }
        if who != 99 && random.percent(12) {
            spec.insert("nonResourcePath".to_owned(), json!(random.word(&PATHS)));
            return json!({"apiVersion": V1BETA1, "kind": "Policy", "spec": spec});
        }
        let (api_group, resource) = vocabulary::resource(random);
        let is_any = |random: &mut Random| who != 99 && random.percent(10);
        let namespace = if is_any(random) { "*".to_owned() } else { self.namespace(random) };
        let resource = if is_any(random) { "*" } else { resource };
        spec.insert("namespace".to_owned(), json!(namespace));
        spec.insert("resource".to_owned(), json!(resource));
        if random.percent(30) {
            return Value::Object(spec);
        }
        let api_group = if random.percent(40) { "*" } else { api_group };
        spec.insert("apiGroup".to_owned(), json!(api_group));
        json!({"apiVersion": V1BETA1, "kind": "Policy", "spec": spec})
    }
}

/// Generates requests. A request that should be allowed is derived from a line for the user.
pub(crate) struct RequestGenerator<'a> {
    counts: Counts,
    /// The lines of each user and of each group. No user has the name of a group.
    held: HashMap<&'a str, Vec<&'a PolicySpec>>,
}

impl<'a> RequestGenerator<'a> {
    pub(crate) fn new(counts: Counts, policies: &'a [Policy]) -> Self {
        let mut held: HashMap<&str, Vec<&PolicySpec>> = HashMap::new();
        for spec in policies.iter().map(Policy::spec) {
            let holder = if spec.user.is_empty() { &spec.group } else { &spec.user };
            // Requests are not derived from lines for every user, because they would be the majority.
            if holder != ALL_USERS_GROUP {
                held.entry(holder).or_default().push(spec);
            }
        }
        Self { counts, held }
    }

    pub(crate) fn propose(
        &self,
        random: &mut Random,
        user: &User,
        is_allowed: bool,
    ) -> Option<(String, RequestTarget)> {
        let any = PolicySpec {
            namespace: self.counts.namespace(random),
            resource: "*".to_owned(),
            api_group: "*".to_owned(),
            ..PolicySpec::default()
        };
        let path = PolicySpec { non_resource_path: random.word(&PATHS).to_owned(), ..any.clone() };
        let spec = if is_allowed {
            let names: Vec<&String> = std::iter::once(&user.name).chain(&user.groups).collect();
            let holder = random.pick(&names)?;
            random.pick(self.held.get(holder.as_str())?)?
        } else if random.percent(10) {
            &path
        } else {
            &any
        };
        let verbs = if spec.is_readonly { &VERBS[..3] } else { &VERBS };
        let verb = random.word(verbs);
        if !spec.non_resource_path.is_empty() && spec.non_resource_path != "*" {
            let path = vocabulary::covered_path(random, &spec.non_resource_path);
            return Some((verb.to_owned(), RequestTarget::Path(path)));
        }
        let (any_group, any_resource) = vocabulary::resource(random);
        let or = |text: &str, any: &str| if text == "*" { any.to_owned() } else { text.to_owned() };
        let asked = RequestTarget::Resource {
            namespace: or(&spec.namespace, &any.namespace),
            api_group: or(&spec.api_group, any_group),
            resource: or(&spec.resource, any_resource),
            subresource: String::new(),
            name: vocabulary::object_name(random, verb),
        };
        Some((verb.to_owned(), asked))
    }
}
