//! Does some binding grant the request?

use std::fmt;
use std::sync::Arc;

use authz::{Attributes, Decision, Event, Reason, ReasonSource, Recorder, User};

use crate::near_miss;
use crate::policy::{Binding, PolicyRule, Role, RoleRef, Subject};
use crate::question::Question;
use crate::search::search;
use crate::snapshot::{LookupError, Snapshot};
use crate::visit::Visit;

/// What makes a request allowed. Displays as Kubernetes' description of it:
/// `ClusterRoleBinding "b" of ClusterRole "r" to User "ana"`.
#[derive(Debug, Clone, Copy)]
pub struct Grant<'a> {
    /// The binding.
    pub binding: &'a Arc<Binding>,
    /// Which of its subjects, from 0.
    pub subject_idx: usize,
    /// The role that the binding grants.
    pub role: &'a Role,
    /// Which of its rules, from 0.
    pub rule_idx: usize,
}

/// The outcome of looking for a grant.
#[derive(Debug, Clone, Copy)]
pub enum Search<'a> {
    /// This one.
    Found(Grant<'a>),
    /// None.
    Nothing {
        /// Some binding of the asker refers to a role that can not be found, and might have
        /// granted the request.
        has_broken_bindings: bool,
    },
}

impl Snapshot {
    /// Answers a request. Never denies: what no binding grants is left to the next authorizer.
    ///
    /// Allowing allocates nothing unless the recorder is on.
    pub fn authorize(&self, attributes: &Attributes<'_>, mut recorder: Recorder<'_>) -> Decision {
        match self.find_grant(attributes, &mut recorder) {
            Search::Found(Grant { binding, subject_idx, .. }) => {
                Decision::allow(Reason::told_by(Arc::<Binding>::clone(binding), subject_idx))
            }
            Search::Nothing { has_broken_bindings: false } => Decision::no_opinion(""),
            Search::Nothing { has_broken_bindings: true } => {
                Decision::no_opinion(format!("RBAC: {}", self.broken_bindings(attributes)))
            }
        }
    }

    /// Looks for the grant that decides.
    ///
    /// 1. Only bindings that name the user or a group of the user are looked at.
    /// 2. Those of the cluster come before those of the request's namespace, and within each of
    ///    the two the first by name that grants the request decides.
    /// 3. In that binding, the first subject that means the user is the one that is named.
    ///
    /// A binding whose role can not be found grants nothing.
    pub fn find_grant<'a>(
        &'a self,
        attributes: &Attributes<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Search<'a> {
        let Some(user) = attributes.user else {
            return Search::Nothing { has_broken_bindings: false };
        };
        if !recorder.is_on()
            && let Some(question) = Question::new(&self.hashes, attributes)
            && let Some(found) = search(self, &question, user, namespace_of(attributes))
        {
            return found;
        }
        self.visit_for_grant(attributes, user, recorder)
    }

    /// Visits one binding after the other, for those who want to know what happens.
    fn visit_for_grant<'a>(
        &'a self,
        attributes: &Attributes<'_>,
        user: &User,
        recorder: &mut Recorder<'_>,
    ) -> Search<'a> {
        let mut has_broken_bindings = false;
        for visit in self.visits(user, namespace_of(attributes)) {
            let Visit { binding, subject_idx, role } = visit;
            let Some(compiled) = role else {
                has_broken_bindings = true;
                recorder.note(|| broken_event(binding, subject_idx));
                continue;
            };
            if let Some(rule_idx) = compiled.allows(attributes) {
                let grant = Grant { binding, subject_idx, role: &compiled.role, rule_idx };
                recorder.note(|| grant_event(&grant));
                return Search::Found(grant);
            }
            recorder.note(|| binding_event(binding, subject_idx).with("allows", false));
        }
        if recorder.is_on() {
            near_miss::note(self, user, attributes, recorder);
        }
        Search::Nothing { has_broken_bindings }
    }

    fn broken_bindings(&self, attributes: &Attributes<'_>) -> String {
        let visits = attributes.user.map(|user| self.visits(user, namespace_of(attributes)));
        let broken = visits.into_iter().flatten().filter(|visit| visit.role.is_none());
        let errors = broken.map(|visit| LookupError::of(visit.binding).to_string());
        field::aggregate(&errors.collect::<Vec<_>>())
    }

    /// The bindings that apply to a user in a namespace, in the order in which they are visited.
    pub(crate) fn held_by(&self, user: &User, namespace: &str) -> Vec<&Binding> {
        self.visits(user, namespace).into_iter().map(|visit| visit.binding.as_ref()).collect()
    }
}

/// The namespace in which bindings apply to a request; none for paths.
pub(crate) fn namespace_of<'a>(attributes: &Attributes<'a>) -> &'a str {
    attributes.resource().map_or("", |resource| resource.namespace)
}

pub(crate) fn binding_event(binding: &Binding, subject_idx: usize) -> Event {
    let mut event = Event::new("binding").with("name", binding.name());
    if !binding.namespace().is_empty() {
        event = event.with("namespace", binding.namespace());
    }
    let event = event.with("role", format!("{} {}", binding.role_ref.kind, binding.role_ref.name));
    match binding.subjects.get(subject_idx) {
        Some(subject) => event.with("subject", describe_subject(subject, binding.namespace())),
        None => event,
    }
}

fn broken_event(binding: &Binding, subject_idx: usize) -> Event {
    let event = binding_event(binding, subject_idx).with("allows", false);
    event.with("error", LookupError::of(binding).to_string())
}

fn grant_event(grant: &Grant<'_>) -> Event {
    let event = binding_event(grant.binding, grant.subject_idx).with("allows", true);
    let event = event.with("ruleIndex", grant.rule_idx);
    match grant.rule() {
        Some(rule) => event.with("rule", rule.to_string()),
        None => event,
    }
}

impl<'a> Grant<'a> {
    /// The rule that allows the request.
    pub fn rule(&self) -> Option<&'a PolicyRule> {
        self.role.rules.get(self.rule_idx)
    }

    /// The subject that means the user.
    pub fn subject(&self) -> Option<&'a Subject> {
        self.binding.subjects.get(self.subject_idx)
    }
}

impl fmt::Display for Grant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self.binding, self.subject_idx, f)
    }
}

/// The reason why a binding allows something: it does, to the subject of this number.
impl ReasonSource for Binding {
    fn tell(&self, number: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RBAC: allowed by ")?;
        describe(self, number, f)
    }
}

fn describe(binding: &Binding, subject_idx: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (name, namespace) = (binding.name(), binding.namespace());
    match namespace {
        "" => write!(f, "ClusterRoleBinding {}", gotext::quote(name))?,
        namespace => {
            write!(f, "RoleBinding {}", gotext::quote(&format!("{name}/{namespace}")))?;
        }
    }
    let RoleRef { kind, name, .. } = &binding.role_ref;
    write!(f, " of {kind} {} to ", gotext::quote(name))?;
    match binding.subjects.get(subject_idx) {
        Some(subject) => f.write_str(&describe_subject(subject, namespace)),
        None => Ok(()),
    }
}

/// A subject of a binding in `namespace` in Kubernetes' words.
pub(crate) fn describe_subject(subject: &Subject, namespace: &str) -> String {
    let name = match subject.kind.as_str() {
        "ServiceAccount" => format!("{}/{}", subject.name, subject.namespace_in(namespace)),
        _ => subject.name.clone(),
    };
    format!("{} {}", subject.kind, gotext::quote(&name))
}
