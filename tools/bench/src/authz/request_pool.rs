//! Generates requests and the users who make them.

use std::hint::black_box;

use ::authz::{Attributes, Namespace, Resource, Target, User, Verb};
use serde_json::{Value, json};

use crate::authz::random::Random;

/// The group that contains every user.
pub(crate) const ALL_USERS_GROUP: &str = "system:authenticated";

/// How many requests are generated in search of one with the wanted decision, before the data is considered
/// to have none.
const TRIES_MAX: usize = 100_000;

/// One request and its expected decision.
pub(crate) struct GeneratedRequest {
    /// The index of the user in the list of users.
    pub(crate) user_idx: usize,
    pub(crate) verb: String,
    pub(crate) target: RequestTarget,
    pub(crate) is_allowed: bool,
}

/// The resource or the path of a request.
pub(crate) enum RequestTarget {
    Resource {
        namespace: String,
        api_group: String,
        resource: String,
        subresource: String,
        name: String,
    },
    Path(String),
}

/// Many requests in random order.
pub(crate) struct RequestPool {
    pub(crate) users: Vec<User>,
    pub(crate) requests: Vec<GeneratedRequest>,
}

impl GeneratedRequest {
    fn attributes<'a>(&'a self, user: Option<&'a User>) -> Attributes<'a> {
        let target = match &self.target {
            RequestTarget::Path(path) => Target::Path(path),
            RequestTarget::Resource { namespace, api_group, resource, subresource, name } => {
                Target::Resource(Resource {
                    namespace: Namespace::new(namespace),
                    api_group,
                    resource,
                    subresource,
                    name,
                    ..Resource::default()
                })
            }
        };
        Attributes { user, verb: Verb::new(&self.verb), target }
    }

    fn to_json(&self) -> Value {
        let Self { user_idx, verb, is_allowed, .. } = self;
        match &self.target {
            RequestTarget::Path(path) => {
                json!({"asker": user_idx, "verb": verb, "path": path, "allow": is_allowed})
            }
            RequestTarget::Resource { namespace, api_group, resource, subresource, name } => {
                json!({
                    "asker": user_idx, "verb": verb, "namespace": namespace, "apiGroup": api_group,
                    "resource": resource, "subresource": subresource, "name": name,
                    "allow": is_allowed,
                })
            }
        }
    }
}

impl RequestPool {
    /// Generates requests of these users; every second one is allowed.
    ///
    /// `propose` generates a request of a user that is likely to be allowed, or likely to be denied, or
    /// returns `None`. `decide` returns whether the request is allowed.
    ///
    /// # Errors
    /// No request with the wanted decision is found.
    pub(crate) fn generate_balanced(
        users: Vec<User>,
        n_requests: usize,
        random: &mut Random,
        mut propose: impl FnMut(&mut Random, &User, bool) -> Option<(String, RequestTarget)>,
        decide: impl Fn(&Attributes<'_>) -> bool,
    ) -> anyhow::Result<Self> {
        let mut requests = Vec::with_capacity(n_requests);
        let mut n_tries = 0;
        while requests.len() < n_requests {
            n_tries += 1;
            let is_allowed = requests.len() % 2 == 0;
            anyhow::ensure!(n_tries < TRIES_MAX, "no question that is allowed: {is_allowed}");
            let user_idx = random.below(users.len());
            let Some(user) = users.get(user_idx) else { continue };
            let Some((verb, target)) = propose(random, user, is_allowed) else { continue };
            let request = GeneratedRequest { user_idx, verb, target, is_allowed };
            if decide(&request.attributes(Some(user))) == is_allowed {
                requests.push(request);
                n_tries = 0;
            }
        }
        random.shuffle(&mut requests);
        Ok(Self { users, requests })
    }

    /// The attributes of each request in order, and whether it is allowed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Attributes<'_>, bool)> {
        self.requests.iter().map(|request| {
            (request.attributes(self.users.get(request.user_idx)), request.is_allowed)
        })
    }

    /// Adds some requests of another pool, with their users.
    pub(crate) fn add_from(&mut self, other: Self, n_requests: usize) {
        let offset = self.users.len();
        self.users.extend(other.users);
        let more = other.requests.into_iter().take(n_requests);
        self.requests
            .extend(more.map(|own| GeneratedRequest { user_idx: own.user_idx + offset, ..own }));
    }

    /// One JSON object for each user.
    pub(crate) fn users_json(&self) -> impl Iterator<Item = Value> {
        self.users.iter().map(|user| json!({"name": user.name, "groups": user.groups}))
    }

    /// One JSON object for each request.
    pub(crate) fn requests_json(&self) -> impl Iterator<Item = Value> {
        self.requests.iter().map(GeneratedRequest::to_json)
    }
}

/// Reads the whole request, so that it is in the processor cache before the decision. A server has just read
/// its request too, but not the policy.
pub(crate) fn preload(attributes: &Attributes<'_>) {
    let sum = |text: &str| text.bytes().map(usize::from).sum::<usize>();
    let user = attributes.user.map_or(0, |user| {
        sum(&user.name) + user.groups.iter().map(|group| sum(group)).sum::<usize>()
    });
    let target = match &attributes.target {
        Target::Path(path) => sum(path),
        Target::Resource(own) => {
            [own.namespace.as_str(), own.api_group, own.resource, own.subresource, own.name]
                .iter()
                .map(|text| sum(text))
                .sum()
        }
    };
    black_box(user + target + sum(attributes.verb.as_str()));
}

/// Users with these names, each in `n_groups` groups: the group of every user, and others by random numbers.
pub(crate) fn generate_users(
    names: impl Iterator<Item = String>,
    n_groups: usize,
    n_known_groups: usize,
    random: &mut Random,
) -> Vec<User> {
    let n_drawn = n_groups.saturating_sub(1);
    // If there are fewer known groups than a user needs, some groups are in no policy.
    let limit = n_known_groups.max(n_drawn + n_drawn / 4);
    names
        .map(|name| {
            let drawn = random.distinct(n_drawn, limit);
            let mut groups: Vec<String> =
                drawn.into_iter().map(crate::authz::vocabulary::group).collect();
            groups.push(ALL_USERS_GROUP.to_owned());
            User { name, groups, ..User::default() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn propose(random: &mut Random, user: &User, _: bool) -> Option<(String, RequestTarget)> {
        let path = format!("/{}", random.below(100));
        (user.name != "silent").then(|| ("get".to_owned(), RequestTarget::Path(path)))
    }

    #[test]
    fn every_second_question_is_allowed_and_the_others_are_not() {
        let mut random = Random::new(1);
        let names = ["ana", "silent", "bob"].map(str::to_owned).into_iter();
        let users = generate_users(names, 3, 1, &mut random);
        assert_eq!(users[0].groups.len(), 3);
        let is_short = |attributes: &Attributes<'_>| attributes.path().len() == 2;
        let pool =
            RequestPool::generate_balanced(users, 10, &mut random, propose, is_short).unwrap();
        assert_eq!(pool.requests.len(), 10);
        assert_eq!(pool.iter().filter(|(_, is_allowed)| *is_allowed).count(), 5);
        for (attributes, is_allowed) in pool.iter() {
            assert_eq!(is_short(&attributes), is_allowed);
            assert_ne!(attributes.user.map(|user| user.name.as_str()), Some("silent"));
        }
        assert_eq!(pool.requests_json().count(), 10);
    }

    #[test]
    fn an_answer_that_nobody_gets_is_an_error() {
        let mut random = Random::new(1);
        let users = generate_users(["ana".to_owned()].into_iter(), 1, 0, &mut random);
        let error =
            RequestPool::generate_balanced(users, 2, &mut random, propose, |_| true).err().unwrap();
        assert_eq!(error.to_string(), "no question that is allowed: false");
    }
}
