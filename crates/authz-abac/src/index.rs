//! From a request to the first policy that grants it, by look-ups alone.

use std::hash::{BuildHasher, Hasher};

use authz::{Attributes, User};
use foldhash::fast::RandomState;

use crate::sieve::{Combined, Sieves};
use crate::targets::{Covering, Map, Target, TargetIdx, Targets};

mod build;

/// All policies, by whom and by what they are for.
///
/// Each policy belongs to one subject and is for one resource and one path, of which one is usually
/// nothing. A request is answered in three steps:
///
/// 1. the targets that cover the request are found;
/// 2. the sieves of these targets hold back almost all subjects that the user is and that hold none
///    of them;
/// 3. for a subject and a target, what is found is not a list but the first policy in file order,
///    once for requests that read and once for those that write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    targets: Targets,
    sieves: Sieves,
    hashes: Hashes,
    users: Map<Box<str>, UserEntry>,
    groups: Map<Box<str>, SubjectIdx>,
    grants: Map<(SubjectIdx, TargetIdx), First>,
    /// The policies of all subjects, those of one in file order.
    policies: Box<[PolicyIdx]>,
    /// INVARIANT: the policies of subject N lie between end N - 1 and end N.
    ends: Box<[u32]>,
}

/// A place in the list of policies. INVARIANT on Policies: never `u32::MAX`.
pub(crate) type PolicyIdx = u32;

/// A number for each subject.
type SubjectIdx = u32;

#[derive(Debug, Clone, Default)]
struct UserEntry {
    /// Policies for the user as such.
    alone: Option<SubjectIdx>,
    /// Policies for the user as a member of a group. INVARIANT: sorted by group.
    in_groups: Vec<(Box<str>, SubjectIdx)>,
}

/// Policies for other subjects than the one who asks.
pub(crate) struct OfOthers {
    pub(crate) users: Vec<PolicyIdx>,
    pub(crate) groups: Vec<PolicyIdx>,
}

/// The first of several policies that grants reading, and the first that grants writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct First {
    read: PolicyIdx,
    /// `NONE` if all of them are read-only.
    write: PolicyIdx,
}

const NONE: PolicyIdx = u32::MAX;

impl First {
    fn new(idx: PolicyIdx, is_readonly: bool) -> Self {
        Self { read: idx, write: if is_readonly { NONE } else { idx } }
    }

    fn or_earlier(self, other: Self) -> Self {
        Self { read: self.read.min(other.read), write: self.write.min(other.write) }
    }

    fn of(self, is_read_only: bool) -> Option<PolicyIdx> {
        let idx = if is_read_only { self.read } else { self.write };
        (idx != NONE).then_some(idx)
    }
}

/// A request in the terms of the index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'i> {
    is_read_only: bool,
    covering: Covering<'i>,
    sieve: Combined<'i>,
}

impl Index {
    pub(crate) fn question(&self, attributes: &Attributes<'_>) -> Question<'_> {
        let covering = self.targets.covering(&attributes.target);
        let mut sieve = Combined::CLOSED;
        covering.for_each(|target| self.sieves.add(&mut sieve, target.sieve));
        Question { is_read_only: attributes.is_read_only(), covering, sieve }
    }

    /// Policies that grant the request to the user: for each subject that the user is, the first in
    /// file order.
    pub(crate) fn granting<'a>(
        &'a self,
        user: &'a User,
        question: &'a Question<'_>,
    ) -> impl Iterator<Item = PolicyIdx> {
        let hash = self.hashes.of_user(&user.name);
        let by_name = question.sieve.pass(hash).then(|| self.subjects_by_name(user));
        let by_name = by_name.into_iter().flatten();
        let by_name = by_name.filter_map(move |subject| self.first_of(subject, question));
        let by_group = user.groups.iter().filter_map(|group| {
            let hash = self.hashes.of_group(group);
            if !question.sieve.pass(hash) {
                return None;
            }
            self.first_of_group(group, hash, question)
        });
        by_name.chain(by_group)
    }

    /// All policies whose subject the user is, in file order.
    pub(crate) fn policies_of(&self, user: &User) -> Vec<PolicyIdx> {
        let by_group = user.groups.iter().filter_map(|group| self.groups.get(group.as_str()));
        let subjects = self.subjects_by_name(user).chain(by_group.copied());
        let mut policies: Vec<_> =
            subjects.flat_map(|subject| self.policies_for(subject)).copied().collect();
        policies.sort_unstable();
        // A user may be said to be in one group twice.
        policies.dedup();
        policies
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

    /// The subjects that a user is by name, and by name within each group.
    fn subjects_by_name<'a>(&'a self, user: &'a User) -> impl Iterator<Item = SubjectIdx> {
        let entry = self.users.get(user.name.as_str());
        let by_both = entry.filter(|entry| !entry.in_groups.is_empty()).into_iter();
        let by_both = by_both
            .flat_map(|entry| user.groups.iter().filter_map(move |group| entry.in_group(group)));
        entry.and_then(|entry| entry.alone).into_iter().chain(by_both)
    }

    /// Tries the sieves one by one before anything is looked up. Rarely called, since they were
    /// tried together before.
    #[cold]
    fn first_of_group(&self, group: &str, hash: u64, question: &Question<'_>) -> Option<PolicyIdx> {
        let mut subject = None;
        let mut first = None;
        question.covering.for_each(|target| {
            if self.sieves.pass(target.sieve, hash) {
                let subject = *subject.get_or_insert_with(|| self.groups.get(group).copied());
                let granted = subject.and_then(|subject| self.grant(subject, target, question));
                first = first.into_iter().chain(granted).min();
            }
        });
        first
    }

    fn first_of(&self, subject: SubjectIdx, question: &Question<'_>) -> Option<PolicyIdx> {
        let mut first = None;
        question.covering.for_each(|target| {
            first = first.into_iter().chain(self.grant(subject, target, question)).min();
        });
        first
    }

    fn grant(
        &self,
        subject: SubjectIdx,
        target: Target,
        question: &Question<'_>,
    ) -> Option<PolicyIdx> {
        self.grants.get(&(subject, target.idx))?.of(question.is_read_only)
    }

    fn policies_for(&self, subject: SubjectIdx) -> &[PolicyIdx] {
        let end = |subject: Option<usize>| self.ends.get(subject?).map(|end| *end as usize);
        let subject = subject as usize;
        let start = end(subject.checked_sub(1)).unwrap_or_default();
        end(Some(subject)).and_then(|end| self.policies.get(start..end)).unwrap_or_default()
    }
}

impl UserEntry {
    fn in_group(&self, group: &str) -> Option<SubjectIdx> {
        let at = self.in_groups.binary_search_by(|(own, _)| (**own).cmp(group)).ok()?;
        self.in_groups.get(at).map(|(_, subject)| *subject)
    }
}

/// Seeds of the hashes that sieves know names by. A user and a group of the same name differ.
#[derive(Debug, Clone, Default)]
struct Hashes {
    users: RandomState,
    groups: RandomState,
}

impl Hashes {
    fn of_user(&self, name: &str) -> u64 {
        of_text(&self.users, name)
    }

    fn of_group(&self, name: &str) -> u64 {
        of_text(&self.groups, name)
    }
}

/// The hash of a text by itself, which needs no mark at its end.
fn of_text(state: &RandomState, text: &str) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write(text.as_bytes());
    hasher.finish()
}
