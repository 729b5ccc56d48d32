//! Does some binding grant the request?

use std::fmt;
use std::sync::Arc;

use authz::{
    Attributes, Decision, Event, RbacBindings, RbacGrant, RbacSubject, Reason, Recorder, User,
};

use crate::bound::BindingSlot;
use crate::near_miss;
use crate::policy::{Binding, PolicyRule, Role, Subject};
use crate::question::Question;
use crate::search::search;
use crate::slab::Leaf;
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

/// What is found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    Granted(Granted),
    Nothing { has_broken_bindings: bool },
}

/// A binding and one of its subjects, by their numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Granted {
    pub(crate) number: u32,
    pub(crate) subject_idx: usize,
}

/// Bindings that lie side by side.
type Neighbours = Leaf<BindingSlot>;

impl Snapshot {
    /// Answers a request. Never denies: what no binding grants is left to the next authorizer.
    ///
    /// Allowing allocates nothing unless the recorder is on.
    pub fn authorize(&self, attributes: &Attributes<'_>, mut recorder: Recorder<'_>) -> Decision {
        match self.find(attributes, &mut recorder) {
            Outcome::Granted(granted) => Decision::allow(self.reason(granted)),
            Outcome::Nothing { has_broken_bindings: false } => Decision::no_opinion(""),
            Outcome::Nothing { has_broken_bindings: true } => {
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
        match self.find(attributes, recorder) {
            Outcome::Granted(granted) => match self.grant(granted, attributes) {
                Some(grant) => Search::Found(grant),
                None => Search::Nothing { has_broken_bindings: false },
            },
            Outcome::Nothing { has_broken_bindings } => Search::Nothing { has_broken_bindings },
        }
    }

    fn find(&self, attributes: &Attributes<'_>, recorder: &mut Recorder<'_>) -> Outcome {
        let Some(user) = attributes.user else {
            return Outcome::Nothing { has_broken_bindings: false };
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
    fn visit_for_grant(
        &self,
        attributes: &Attributes<'_>,
        user: &User,
        recorder: &mut Recorder<'_>,
    ) -> Outcome {
        let mut has_broken_bindings = false;
        for visit in self.visits(user, namespace_of(attributes)) {
            let Visit { number, binding, subject_idx, role } = visit;
            let Some(compiled) = role else {
                has_broken_bindings = true;
                recorder.note(|| broken_event(binding, subject_idx));
                continue;
            };
            if let Some(rule_idx) = compiled.allows(attributes) {
                let grant = Grant { binding, subject_idx, role: &compiled.role, rule_idx };
                recorder.note(|| grant_event(&grant));
                return Outcome::Granted(Granted { number, subject_idx });
            }
            recorder.note(|| binding_event(binding, subject_idx).with("allows", false));
        }
        if recorder.is_on() {
            near_miss::note(self, user, attributes, recorder);
        }
        Outcome::Nothing { has_broken_bindings }
    }

    fn grant(&self, granted: Granted, attributes: &Attributes<'_>) -> Option<Grant<'_>> {
        let Granted { number, subject_idx } = granted;
        let slot = self.bindings.get(number)?;
        let compiled = self.roles.get(slot.role)?.compiled.as_ref()?;
        let rule_idx = compiled.allows(attributes)?;
        Some(Grant { binding: &slot.binding, subject_idx, role: &compiled.role, rule_idx })
    }

    /// The reason is told by all bindings that lie beside this one: to hold on to these touches a
    /// counter that they share, and that is more often at hand than one of its own would be.
    fn reason(&self, granted: Granted) -> Reason {
        let Granted { number, subject_idx } = granted;
        let leaf = self.bindings.leaf(number);
        leaf.map_or_else(Reason::default, |leaf| {
            let number = subject_idx * Neighbours::LEN + number as usize % Neighbours::LEN;
            Reason::RbacGrant { bindings: Arc::<Neighbours>::clone(leaf), number }
        })
    }

    fn broken_bindings(&self, attributes: &Attributes<'_>) -> String {
        let visits = attributes.user.map(|user| self.visits(user, namespace_of(attributes)));
        let broken = visits.into_iter().flatten().filter(|visit| visit.role.is_none());
        let errors = broken.map(|visit| LookupError::of(visit.binding).to_string());
        field_errors::aggregate(&errors.collect::<Vec<_>>())
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
        describe_grant(self.binding, self.subject_idx).fmt(f)
    }
}

/// The number of a grant is the position of the subject, times how many bindings a leaf holds, plus the
/// position of the binding in the leaf.
impl RbacBindings for Neighbours {
    fn grant(&self, number: usize) -> Option<RbacGrant<'_>> {
        let slot = self.get(number % Self::LEN)?;
        Some(describe_grant(&slot.binding, number / Self::LEN))
    }
}

fn describe_grant(binding: &Binding, subject_idx: usize) -> RbacGrant<'_> {
    let namespace = binding.namespace();
    RbacGrant {
        binding_namespace: namespace,
        binding_name: binding.name(),
        role_kind: &binding.role_ref.kind,
        role_name: &binding.role_ref.name,
        subject: binding.subjects.get(subject_idx).map(|subject| described(subject, namespace)),
        rule_idx: None,
    }
}

fn described<'a>(subject: &'a Subject, binding_namespace: &'a str) -> RbacSubject<'a> {
    let namespace = subject.namespace_in(binding_namespace);
    RbacSubject { kind: &subject.kind, name: &subject.name, namespace }
}

/// A subject of a binding in `namespace` in Kubernetes' words.
pub(crate) fn describe_subject(subject: &Subject, namespace: &str) -> String {
    described(subject, namespace).to_string()
}
