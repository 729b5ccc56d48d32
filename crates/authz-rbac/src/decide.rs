//! Does some binding grant the request?

use std::fmt;

use authz::{Attributes, Decision, Event, Recorder, User};

use crate::near_miss;
use crate::policy::{Binding, PolicyRule, Role, Subject};
use crate::sequence::Sequence;
use crate::snapshot::{Held, Snapshot};

/// What makes a request allowed. Displays as Kubernetes' description of it:
/// `ClusterRoleBinding "b" of ClusterRole "r" to User "ana"`.
#[derive(Debug, Clone, Copy)]
pub struct Grant<'a> {
    /// The binding.
    pub binding: &'a Binding,
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
    pub fn authorize(&self, attributes: &Attributes<'_>, mut recorder: Recorder<'_>) -> Decision {
        match self.find_grant(attributes, &mut recorder) {
            Search::Found(grant) => Decision::allow(format!("RBAC: allowed by {grant}")),
            Search::Nothing { has_broken_bindings: false } => Decision::no_opinion(""),
            Search::Nothing { has_broken_bindings: true } => {
                Decision::no_opinion(format!("RBAC: {}", self.broken_bindings(attributes)))
            }
        }
    }

    /// Looks for the grant that decides, without allocating unless the recorder is on.
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
        let namespace = namespace_of(attributes);
        let mut search = Best { snapshot: self, attributes, has_broken_bindings: false };
        let (mut in_cluster, mut in_namespace) = (None, None);
        for holdings in self.holdings_of(user) {
            in_cluster = search.better(in_cluster, &holdings.cluster, recorder);
            if in_cluster.is_none()
                && !namespace.is_empty()
                && let Some(held) = holdings.namespaces.get(namespace)
            {
                in_namespace = search.better(in_namespace, held, recorder);
            }
        }
        match in_cluster.or(in_namespace) {
            Some(grant) => {
                recorder.note(|| grant_event(&grant));
                Search::Found(grant)
            }
            None => {
                if recorder.is_on() {
                    near_miss::note(self, user, attributes, recorder);
                }
                Search::Nothing { has_broken_bindings: search.has_broken_bindings }
            }
        }
    }

    fn broken_bindings(&self, attributes: &Attributes<'_>) -> String {
        let held = attributes.user.map(|user| self.held_by(user, namespace_of(attributes)));
        let errors = held.into_iter().flatten().filter_map(|held| self.role_of(held).err());
        field::aggregate(&errors.map(|error| error.to_string()).collect::<Vec<_>>())
    }

    /// The bindings that apply to a user in a namespace, in the order in which they are visited.
    pub(crate) fn held_by(&self, user: &User, namespace: &str) -> Vec<&Binding> {
        let mut visits = self.held_in(user, "");
        if !namespace.is_empty() {
            visits.extend(self.held_in(user, namespace));
        }
        visits
    }

    fn held_in(&self, user: &User, namespace: &str) -> Vec<&Binding> {
        let lists = self.holdings_of(user).filter_map(|holdings| holdings.held(namespace));
        let mut held: Vec<&Binding> =
            lists.flat_map(|list| list.iter().map(|held| held.binding.as_ref())).collect();
        held.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        held.dedup_by(|a, b| a.name() == b.name());
        held
    }
}

/// The namespace in which bindings apply to a request; none for paths.
pub(crate) fn namespace_of<'a>(attributes: &Attributes<'a>) -> &'a str {
    attributes.resource().map_or("", |resource| resource.namespace)
}

struct Best<'s, 'q> {
    snapshot: &'s Snapshot,
    attributes: &'q Attributes<'q>,
    has_broken_bindings: bool,
}

impl<'s> Best<'s, '_> {
    /// The better of `best` and what the list has: the one whose binding has the lesser name.
    fn better(
        &mut self,
        best: Option<Grant<'s>>,
        list: &'s Sequence<Held>,
        recorder: &mut Recorder<'_>,
    ) -> Option<Grant<'s>> {
        for Held { binding, subject_idx } in list.iter() {
            let subject_idx = *subject_idx;
            if let Some(best) = best {
                // The binding is known to grant the request if it is the same one.
                if binding.name() == best.binding.name() {
                    return Some(Grant { subject_idx: best.subject_idx.min(subject_idx), ..best });
                }
                if binding.name() > best.binding.name() {
                    return Some(best);
                }
            }
            match self.snapshot.find_role_of(binding) {
                Some(role) => {
                    let rule_idx = role.rules.iter().position(|rule| rule.allows(self.attributes));
                    if let Some(rule_idx) = rule_idx {
                        return Some(Grant { binding, subject_idx, role, rule_idx });
                    }
                    recorder.note(|| binding_event(binding, subject_idx).with("allows", false));
                }
                None => {
                    self.has_broken_bindings = true;
                    recorder.note(|| broken_event(self.snapshot, binding, subject_idx));
                }
            }
        }
        best
    }
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

fn broken_event(snapshot: &Snapshot, binding: &Binding, subject_idx: usize) -> Event {
    let event = binding_event(binding, subject_idx).with("allows", false);
    match snapshot.role_of(binding) {
        Ok(_) => event,
        Err(error) => event.with("error", error.to_string()),
    }
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
        let Binding { role_ref, .. } = self.binding;
        let (name, namespace) = (self.binding.name(), self.binding.namespace());
        match namespace {
            "" => write!(f, "ClusterRoleBinding {}", gotext::quote(name))?,
            namespace => {
                write!(f, "RoleBinding {}", gotext::quote(&format!("{name}/{namespace}")))?;
            }
        }
        write!(f, " of {} {} to ", role_ref.kind, gotext::quote(&role_ref.name))?;
        match self.subject() {
            Some(subject) => f.write_str(&describe_subject(subject, namespace)),
            None => Ok(()),
        }
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
