//! Asking one authorizer after the other.

use std::collections::BTreeSet;

use authz::{Attributes, Decision, Event, Failure, Recorder, Rules, User, Verdict};

use crate::configuration::ConfigurationError;
use crate::member::Member;
use crate::superuser;

/// Authorizers in the order in which they are asked, after the one for superusers, which is always
/// the first.
///
/// A chain is a snapshot: when what an authorizer decides from changes, a new chain replaces it.
///
/// INVARIANT: names are unique.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    members: Vec<Member>,
}

/// What a chain answers.
#[derive(Debug, Clone)]
#[must_use = "a decision that nobody looks at protects nothing"]
pub struct Outcome<'c> {
    /// The answer.
    pub decision: Decision,
    /// The name of the authorizer whose answer it is; `None` if all abstained.
    pub decided_by: Option<&'c str>,
}

impl Chain {
    /// A chain of these authorizers. Without any, only superusers are allowed something.
    ///
    /// # Errors
    /// Fails if two bear one name.
    pub fn new(members: Vec<Member>) -> Result<Self, ConfigurationError> {
        let mut names = BTreeSet::new();
        for member in &members {
            if !names.insert(member.name()) {
                return Err(ConfigurationError::RepeatedName(member.name().to_owned()));
            }
        }
        Ok(Self { members })
    }

    /// The authorizers that were configured.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Asks each authorizer in turn.
    ///
    /// 1. The first to allow or deny decides: its answer stands, with its reason and its error, and
    ///    what was said before is dropped.
    /// 2. If all abstain, so does the chain. The reasons that were given are joined, a line each
    ///    that begins with the name of the authorizer, and the errors are merged.
    pub async fn authorize(
        &self,
        attributes: &Attributes<'_>,
        mut recorder: Recorder<'_>,
    ) -> Outcome<'_> {
        let mut silent = Silent::default();
        let decision = superuser::authorize(attributes);
        note(superuser::NAME, &mut recorder).note(|| Event::verdict(&decision));
        if let Some(outcome) = silent.hear(superuser::NAME, decision) {
            return outcome;
        }
        for member in &self.members {
            let mut inner = note(member.name(), &mut recorder);
            let decision = member.authorize(attributes, inner.reborrow()).await;
            inner.note(|| Event::verdict(&decision));
            if let Some(outcome) = silent.hear(member.name(), decision) {
                return outcome;
            }
        }
        Outcome { decision: silent.into_decision(), decided_by: None }
    }

    /// What the user may do in the namespace, as far as it can be listed: the lists of all
    /// authorizers in order, and incomplete if one is. Superusers are not told apart.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Rules {
        let mut all = Rules::default();
        for member in &self.members {
            let rules = member.rules_for(user, namespace);
            all.resource_rules.extend(rules.resource_rules);
            all.non_resource_rules.extend(rules.non_resource_rules);
            all.is_incomplete |= rules.is_incomplete;
            merge(&mut all.error, rules.error);
        }
        all
    }
}

fn note<'r>(name: &str, recorder: &'r mut Recorder<'_>) -> Recorder<'r> {
    recorder.enter(|| Event::new("authorizer").with("name", name))
}

/// What those said who abstained.
#[derive(Default)]
struct Silent {
    reason: String,
    error: Option<Failure>,
}

impl Silent {
    /// The outcome, if this decision decides; otherwise remembers what it says.
    fn hear<'c>(&mut self, name: &'c str, decision: Decision) -> Option<Outcome<'c>> {
        match decision.verdict {
            Verdict::Allow | Verdict::Deny => Some(Outcome { decision, decided_by: Some(name) }),
            Verdict::NoOpinion => {
                if !decision.reason.is_empty() {
                    let separator = if self.reason.is_empty() { "" } else { "\n" };
                    self.reason += &format!("{separator}{name}: {}", decision.reason);
                }
                merge(&mut self.error, decision.error);
                None
            }
        }
    }

    fn into_decision(self) -> Decision {
        Decision { error: self.error, ..Decision::no_opinion(self.reason) }
    }
}

fn merge(into: &mut Option<Failure>, more: Option<Failure>) {
    match (into.as_mut(), more) {
        (Some(into), Some(more)) => into.merge(more),
        (None, more @ Some(_)) => *into = more,
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests;
