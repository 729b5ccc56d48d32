//! From a request to the first policy that grants it, by look-ups alone.

use std::collections::HashMap;

use authz::{Attributes, Target, User};
use foldhash::fast::RandomState;

use crate::policy::{ANY, Policy, Subject, prefix_of};
use crate::prefixes::Prefixes;

/// All policies, by whom and by what they are for.
///
/// Each policy belongs to one subject. Under its subject it is found by the exact values of its
/// parts, so a request looks up its own values and `*` in their place, but only in the combinations
/// that the subject has. What is found is not a list but the first policy in file order, once for
/// requests that read and once for those that write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    users: Map<Box<str>, UserEntry>,
    groups: Map<Box<str>, SubjectIdx>,
    subjects: Vec<SubjectEntry>,
    /// For each subject: bit N is set if some policy has `*` exactly in the parts that are bits of
    /// N. Apart from the subjects, so that a decision touches little memory.
    combinations: Vec<u8>,
    /// A number for every value of a part of a target.
    symbols: Map<Box<str>, Symbol>,
    resources: Map<ResourceKey, First>,
    /// Paths that do not end in `*`.
    paths: Map<PathKey, First>,
}

/// A user in many groups is looked up as often, so the hash is a fast one. It is seeded at random.
type Map<K, V> = HashMap<K, V, RandomState>;

/// A place in the list of policies. INVARIANT on Policies: never `u32::MAX`.
pub(crate) type PolicyIdx = u32;

type SubjectIdx = u32;
type Symbol = u32;

/// The symbol of `*`.
const ANY_SYMBOL: Symbol = 0;

#[derive(Debug, Clone, Default)]
struct UserEntry {
    /// Policies for the user as such.
    alone: Option<SubjectIdx>,
    /// Policies for the user as a member of a group. INVARIANT: sorted by group.
    in_groups: Vec<(Box<str>, SubjectIdx)>,
}

#[derive(Debug, Clone, Default)]
struct SubjectEntry {
    /// In file order.
    policies: Vec<PolicyIdx>,
    prefixes: Prefixes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ResourceKey {
    subject: SubjectIdx,
    /// Namespace, resource, API group.
    parts: [Symbol; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PathKey {
    subject: SubjectIdx,
    path: Symbol,
}

/// The first of several policies that grants reading, and the first that grants writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct First {
    read: PolicyIdx,
    /// `NONE` if all of them are read-only.
    write: PolicyIdx,
}

const NONE: PolicyIdx = u32::MAX;

impl First {
    pub(crate) fn new(idx: PolicyIdx, is_readonly: bool) -> Self {
        Self { read: idx, write: if is_readonly { NONE } else { idx } }
    }

    pub(crate) fn or_earlier(self, other: Self) -> Self {
        Self { read: self.read.min(other.read), write: self.write.min(other.write) }
    }

    pub(crate) fn of(self, is_read_only: bool) -> Option<PolicyIdx> {
        let idx = if is_read_only { self.read } else { self.write };
        (idx != NONE).then_some(idx)
    }
}

/// A request in the terms of the index. A value that no policy has is `None`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    is_read_only: bool,
    wanted: Wanted<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Wanted<'a> {
    Resource([Option<Symbol>; 3]),
    Path { exact: Option<Symbol>, path: &'a str },
}

impl Index {
    pub(crate) fn new(policies: &[Policy]) -> Self {
        let mut builder = Builder::default();
        builder.symbol(ANY);
        for (policy, idx) in policies.iter().zip(0..NONE) {
            builder.add(policy, idx);
        }
        builder.finish()
    }

    /// The first policy in file order that grants the request to the user.
    pub(crate) fn first_match(
        &self,
        user: &User,
        attributes: &Attributes<'_>,
    ) -> Option<PolicyIdx> {
        let question = self.question(attributes);
        self.subjects_of(user).filter_map(|subject| self.first_of(subject, &question)).min()
    }

    /// All policies whose subject the user is, in file order.
    pub(crate) fn policies_of(&self, user: &User) -> Vec<PolicyIdx> {
        let entries = self.subjects_of(user).filter_map(|subject| self.subject(subject));
        let mut policies: Vec<_> =
            entries.flat_map(|entry| entry.policies.iter().copied()).collect();
        policies.sort_unstable();
        // A user may be said to be in one group twice.
        policies.dedup();
        policies
    }

    pub(crate) fn question<'a>(&self, attributes: &Attributes<'a>) -> Question<'a> {
        let symbol = |text: &str| self.symbols.get(text).copied();
        let wanted = match &attributes.target {
            Target::Resource(resource) => Wanted::Resource([
                symbol(resource.namespace),
                symbol(resource.resource),
                symbol(resource.api_group),
            ]),
            Target::Path(path) => Wanted::Path { exact: symbol(path), path },
        };
        Question { is_read_only: attributes.is_read_only(), wanted }
    }

    /// The first policy for each user and for each group of a near name that would grant the
    /// request. Looks at the names of all subjects, so it is for explanations only.
    pub(crate) fn first_of_others(
        &self,
        question: &Question<'_>,
        is_near_user: &dyn Fn(&str) -> bool,
        is_near_group: &dyn Fn(&str) -> bool,
    ) -> OfOthers {
        let users = self.users.iter().filter(|(name, _)| is_near_user(name));
        let groups = self.groups.iter().filter(|(name, _)| is_near_group(name));
        OfOthers {
            users: users.filter_map(|(_, entry)| self.first_of(entry.alone?, question)).collect(),
            groups: groups.filter_map(|(_, subject)| self.first_of(*subject, question)).collect(),
        }
    }

    /// The first policies that would grant the request to the user as a member of groups that the
    /// user is not in.
    pub(crate) fn first_of_other_groups(
        &self,
        user: &User,
        question: &Question<'_>,
    ) -> Vec<PolicyIdx> {
        let in_groups = self.users.get(user.name.as_str()).map(|entry| entry.in_groups.iter());
        in_groups
            .into_iter()
            .flatten()
            .filter(|(group, _)| !user.is_in_group(group))
            .filter_map(|(_, subject)| self.first_of(*subject, question))
            .collect()
    }

    /// The subjects that a user is: by name, by each group, and by name within each group.
    fn subjects_of<'a>(&'a self, user: &'a User) -> impl Iterator<Item = SubjectIdx> + 'a {
        let entry = self.users.get(user.name.as_str());
        let by_groups = user.groups.iter().flat_map(move |group| {
            let by_both = entry.and_then(|entry| entry.in_group(group));
            [self.groups.get(group.as_str()).copied(), by_both]
        });
        std::iter::once(entry.and_then(|entry| entry.alone)).chain(by_groups).flatten()
    }

    fn first_of(&self, subject: SubjectIdx, question: &Question<'_>) -> Option<PolicyIdx> {
        let first = match question.wanted {
            Wanted::Resource(parts) => self.first_for_resource(subject, parts),
            Wanted::Path { exact, path } => {
                let exact = exact.and_then(|path| self.paths.get(&PathKey { subject, path }));
                earlier(exact.copied(), self.subject(subject)?.prefixes.first(path))
            }
        };
        first?.of(question.is_read_only)
    }

    fn first_for_resource(&self, subject: SubjectIdx, parts: [Option<Symbol>; 3]) -> Option<First> {
        let combinations = *self.combinations.get(usize::try_from(subject).ok()?)?;
        (0..8u8)
            .filter(|combination| combinations & (1 << combination) != 0)
            .filter_map(|combination| {
                let part = |at: usize, symbol: Option<Symbol>| {
                    if combination & (1 << at) != 0 { Some(ANY_SYMBOL) } else { symbol }
                };
                let [namespace, resource, api_group] = parts;
                let parts = [part(0, namespace)?, part(1, resource)?, part(2, api_group)?];
                self.resources.get(&ResourceKey { subject, parts }).copied()
            })
            .reduce(First::or_earlier)
    }

    fn subject(&self, subject: SubjectIdx) -> Option<&SubjectEntry> {
        self.subjects.get(usize::try_from(subject).ok()?)
    }
}

/// Policies for other subjects than the one who asks.
pub(crate) struct OfOthers {
    pub(crate) users: Vec<PolicyIdx>,
    pub(crate) groups: Vec<PolicyIdx>,
}

impl UserEntry {
    fn in_group(&self, group: &str) -> Option<SubjectIdx> {
        let at = self.in_groups.binary_search_by(|(own, _)| (**own).cmp(group)).ok()?;
        self.in_groups.get(at).map(|(_, subject)| *subject)
    }
}

fn earlier(a: Option<First>, b: Option<First>) -> Option<First> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.or_earlier(b)),
        (one, None) | (None, one) => one,
    }
}

/// An index to which policies are added in file order.
#[derive(Default)]
struct Builder {
    index: Index,
    /// The prefixes of each subject.
    prefixes: Vec<Vec<(Box<str>, First)>>,
}

impl Builder {
    fn add(&mut self, policy: &Policy, idx: PolicyIdx) {
        let Some(subject) = self.subject_for(policy) else { return };
        let spec = policy.spec();
        let first = First::new(idx, spec.is_readonly);
        let parts =
            [&spec.namespace, &spec.resource, &spec.api_group].map(|part| self.symbol(part));
        let combination = (0..3).filter(|at| parts.get(*at) == Some(&ANY_SYMBOL)).map(|at| 1 << at);
        let combination: u8 = combination.sum();
        let key = ResourceKey { subject, parts };
        let known = self.index.resources.entry(key).or_insert(first);
        *known = known.or_earlier(first);

        let place = usize::try_from(subject).unwrap_or(usize::MAX);
        if let Some(entry) = self.index.subjects.get_mut(place) {
            entry.policies.push(idx);
        }
        if let Some(combinations) = self.index.combinations.get_mut(place) {
            *combinations |= 1 << combination;
        }
        match prefix_of(&spec.non_resource_path) {
            Some(prefix) => {
                if let Some(prefixes) = self.prefixes.get_mut(place) {
                    prefixes.push((prefix.into(), first));
                }
            }
            None => {
                let path = self.symbol(&spec.non_resource_path);
                let known = self.index.paths.entry(PathKey { subject, path }).or_insert(first);
                *known = known.or_earlier(first);
            }
        }
    }

    /// The place of the subject of a policy, made when it is first seen.
    fn subject_for(&mut self, policy: &Policy) -> Option<SubjectIdx> {
        let next = u32::try_from(self.index.subjects.len()).ok()?;
        let subject = match policy.subject() {
            Subject::Nobody => return None,
            Subject::User(user) => *self.user(user).alone.get_or_insert(next),
            Subject::Group(group) => *self.index.groups.entry(group.into()).or_insert(next),
            Subject::Member { user, group } => {
                let in_groups = &mut self.user(user).in_groups;
                match in_groups.binary_search_by(|(own, _)| (**own).cmp(group)) {
                    Ok(at) => in_groups.get(at).map(|(_, subject)| *subject)?,
                    Err(at) => {
                        in_groups.insert(at, (group.into(), next));
                        next
                    }
                }
            }
        };
        if subject == next {
            self.index.subjects.push(SubjectEntry::default());
            self.index.combinations.push(0);
            self.prefixes.push(Vec::new());
        }
        Some(subject)
    }

    fn user(&mut self, name: &str) -> &mut UserEntry {
        self.index.users.entry(name.into()).or_default()
    }

    fn symbol(&mut self, text: &str) -> Symbol {
        if let Some(known) = self.index.symbols.get(text) {
            return *known;
        }
        // INVARIANT on Policies: at four texts a policy, there are fewer than a u32 can count.
        let next = u32::try_from(self.index.symbols.len()).unwrap_or(u32::MAX);
        self.index.symbols.insert(text.into(), next);
        next
    }

    fn finish(mut self) -> Index {
        for (entry, prefixes) in self.index.subjects.iter_mut().zip(self.prefixes) {
            entry.prefixes = Prefixes::new(prefixes);
            entry.policies.shrink_to_fit();
        }
        self.index
    }
}
