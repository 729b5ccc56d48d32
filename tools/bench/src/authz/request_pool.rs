//! Questions, and those who ask them.

use std::hint::black_box;

use ::authz::{Attributes, Resource, Target, User};
use serde_json::{Value, json};

use crate::authz::random::Random;

/// The group that everybody is in.
pub(crate) const EVERYBODY: &str = "system:authenticated";

/// How often a question of a wanted answer is sought before the data is said to have none.
const TRIES_MAX: usize = 100_000;

/// One question, and how it is answered.
pub(crate) struct Question {
    /// A place in the list of askers.
    pub(crate) asker: usize,
    pub(crate) verb: String,
    pub(crate) asked: Asked,
    pub(crate) is_allowed: bool,
}

/// What is asked for.
pub(crate) enum Asked {
    Resource {
        namespace: String,
        api_group: String,
        resource: String,
        subresource: String,
        name: String,
    },
    Path(String),
}

/// Many questions in random order.
pub(crate) struct Pool {
    pub(crate) askers: Vec<User>,
    pub(crate) questions: Vec<Question>,
}

impl Question {
    fn attributes<'a>(&'a self, user: Option<&'a User>) -> Attributes<'a> {
        let target = match &self.asked {
            Asked::Path(path) => Target::Path(path),
            Asked::Resource { namespace, api_group, resource, subresource, name } => {
                Target::Resource(Resource {
                    namespace,
                    api_group,
                    resource,
                    subresource,
                    name,
                    ..Resource::default()
                })
            }
        };
        Attributes { user, verb: &self.verb, target }
    }

    fn to_json(&self) -> Value {
        let Self { asker, verb, is_allowed, .. } = self;
        match &self.asked {
            Asked::Path(path) => {
                json!({"asker": asker, "verb": verb, "path": path, "allow": is_allowed})
            }
            Asked::Resource { namespace, api_group, resource, subresource, name } => json!({
                "asker": asker, "verb": verb, "namespace": namespace, "apiGroup": api_group,
                "resource": resource, "subresource": subresource, "name": name,
                "allow": is_allowed,
            }),
        }
    }
}

impl Pool {
    /// Questions of these askers, of which every second one is allowed.
    ///
    /// `propose` makes up a question of an asker that is likely to be allowed, or likely not, and
    /// may give up; `decide` tells whether it is.
    ///
    /// # Errors
    /// Fails if no question of the wanted answer turns up.
    pub(crate) fn balanced(
        askers: Vec<User>,
        n_questions: usize,
        random: &mut Random,
        mut propose: impl FnMut(&mut Random, &User, bool) -> Option<(String, Asked)>,
        decide: impl Fn(&Attributes<'_>) -> bool,
    ) -> anyhow::Result<Self> {
        let mut questions = Vec::with_capacity(n_questions);
        let mut n_tries = 0;
        while questions.len() < n_questions {
            n_tries += 1;
            let is_allowed = questions.len() % 2 == 0;
            anyhow::ensure!(n_tries < TRIES_MAX, "no question that is allowed: {is_allowed}");
            let asker = random.below(askers.len());
            let Some(user) = askers.get(asker) else { continue };
            let Some((verb, asked)) = propose(random, user, is_allowed) else { continue };
            let question = Question { asker, verb, asked, is_allowed };
            if decide(&question.attributes(Some(user))) == is_allowed {
                questions.push(question);
                n_tries = 0;
            }
        }
        random.shuffle(&mut questions);
        Ok(Self { askers, questions })
    }

    /// What is asked, and whether it is allowed, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Attributes<'_>, bool)> {
        self.questions.iter().map(|question| {
            (question.attributes(self.askers.get(question.asker)), question.is_allowed)
        })
    }

    /// Takes in some questions of another pool, with their askers.
    pub(crate) fn absorb(&mut self, other: Self, n_questions: usize) {
        let offset = self.askers.len();
        self.askers.extend(other.askers);
        let more = other.questions.into_iter().take(n_questions);
        self.questions.extend(more.map(|own| Question { asker: own.asker + offset, ..own }));
    }

    /// One JSON object per asker.
    pub(crate) fn askers_json(&self) -> impl Iterator<Item = Value> {
        self.askers.iter().map(|user| json!({"name": user.name, "groups": user.groups}))
    }

    /// One JSON object per question.
    pub(crate) fn questions_json(&self) -> impl Iterator<Item = Value> {
        self.questions.iter().map(Question::to_json)
    }
}

/// Reads the whole question, so that it is in the cache when it is asked. A server has just read a
/// request when it decides about it; what it decides from it has not.
pub(crate) fn touch(attributes: &Attributes<'_>) {
    let sum = |text: &str| text.bytes().map(usize::from).sum::<usize>();
    let user = attributes.user.map_or(0, |user| {
        sum(&user.name) + user.groups.iter().map(|group| sum(group)).sum::<usize>()
    });
    let target = match &attributes.target {
        Target::Path(path) => sum(path),
        Target::Resource(own) => {
            [own.namespace, own.api_group, own.resource, own.subresource, own.name]
                .iter()
                .map(|text| sum(text))
                .sum()
        }
    };
    black_box(user + target + sum(attributes.verb));
}

/// Askers of these names, each in `n_groups` groups: the one of everybody, and others that are drawn
/// by number.
pub(crate) fn askers(
    names: impl Iterator<Item = String>,
    n_groups: usize,
    n_known_groups: usize,
    random: &mut Random,
) -> Vec<User> {
    let n_drawn = n_groups.saturating_sub(1);
    // Where fewer groups are known than are drawn, some are in no policy.
    let limit = n_known_groups.max(n_drawn + n_drawn / 4);
    names
        .map(|name| {
            let drawn = random.distinct(n_drawn, limit);
            let mut groups: Vec<String> =
                drawn.into_iter().map(crate::authz::vocabulary::group).collect();
            groups.push(EVERYBODY.to_owned());
            User { name, groups, ..User::default() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn propose(random: &mut Random, user: &User, _: bool) -> Option<(String, Asked)> {
        let path = format!("/{}", random.below(100));
        (user.name != "silent").then(|| ("get".to_owned(), Asked::Path(path)))
    }

    #[test]
    fn every_second_question_is_allowed_and_the_others_are_not() {
        let mut random = Random::new(1);
        let names = ["ana", "silent", "bob"].map(str::to_owned).into_iter();
        let askers = askers(names, 3, 1, &mut random);
        assert_eq!(askers[0].groups.len(), 3);
        let is_short = |attributes: &Attributes<'_>| attributes.path().len() == 2;
        let pool = Pool::balanced(askers, 10, &mut random, propose, is_short).unwrap();
        assert_eq!(pool.questions.len(), 10);
        assert_eq!(pool.iter().filter(|(_, is_allowed)| *is_allowed).count(), 5);
        for (attributes, is_allowed) in pool.iter() {
            assert_eq!(is_short(&attributes), is_allowed);
            assert_ne!(attributes.user.map(|user| user.name.as_str()), Some("silent"));
        }
        assert_eq!(pool.questions_json().count(), 10);
    }

    #[test]
    fn an_answer_that_nobody_gets_is_an_error() {
        let mut random = Random::new(1);
        let askers = askers(["ana".to_owned()].into_iter(), 1, 0, &mut random);
        let error = Pool::balanced(askers, 2, &mut random, propose, |_| true).err().unwrap();
        assert_eq!(error.to_string(), "no question that is allowed: false");
    }
}
