//! From a request to the policies that may grant it, by look-ups alone.

use authz::{Attributes, User};

use crate::hashes::{Hashes, any_member, holding, member};
use crate::sieve::{Combined, Sieves};
use crate::table::Table;
use crate::targets::{Covering, Targets};

mod build;

/// All policies, by the hashes of whom and of what they are for.
///
/// Each policy belongs to one subject and is for one resource and one path, of which one is usually
/// nothing. A request is answered in three steps:
///
/// 1. the targets that cover the request are found;
/// 2. the sieves of these targets hold back almost all subjects that the user is and that hold none
///    of them;
/// 3. for a subject and a target, what is found is not a list but the first policy in file order,
///    once for requests that read and once for those that write.
///
/// What is found is proposed and not decided, since hashes can be equal by accident: see
/// [`Index::proposals`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    hashes: Hashes,
    targets: Targets,
    sieves: Sieves,
    /// By the hash of a subject with a target.
    grants: Table<First>,
    /// By the hash of a subject: where its policies are.
    subjects: Table<Range>,
    /// The policies of all subjects, those of one in file order.
    policies: Box<[PolicyIdx]>,
}

/// A place in the list of policies. INVARIANT on Policies: never `u32::MAX`.
pub(crate) type PolicyIdx = u32;

#[derive(Debug, Clone, Copy)]
struct Range {
    start: u32,
    end: u32,
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
        let covering = self.targets.covering(&self.hashes, &attributes.target);
        let mut sieve = Combined::CLOSED;
        covering.for_each(|target| self.sieves.add(&mut sieve, target.sieve));
        Question { is_read_only: attributes.is_read_only(), covering, sieve }
    }

    /// Policies that may grant the request to the user: by name, by each group, and by name within
    /// each group.
    ///
    /// INVARIANT: if a policy grants it, that policy or an earlier one is proposed. So there is none
    /// if none is proposed, and if the first that is proposed grants it, that is the first of all.
    pub(crate) fn proposals<'a>(
        &'a self,
        user: &'a User,
        question: &'a Question<'_>,
    ) -> impl Iterator<Item = PolicyIdx> {
        let name = self.hashes.user(&user.name);
        let group = |group: &String| self.hashes.group(group);
        let by_name = std::iter::once(name);
        let by_group = user.groups.iter().map(group);
        let single = by_name.chain(by_group).filter(|hash| question.sieve.pass(*hash));
        let single = single.filter_map(|hash| self.first_of(hash, hash, question));
        let is_member = question.sieve.pass(any_member(name));
        let groups: &[String] = if is_member { &user.groups } else { &[] };
        let by_both = groups.iter().map(move |group| member(name, self.hashes.group(group)));
        let double =
            by_both.filter_map(move |hash| self.first_of(hash, any_member(name), question));
        single.chain(double)
    }

    /// The first policy of a subject that may grant the request, where `holder` is the hash by which
    /// sieves let the subject through. They were tried together before, and now one by one.
    fn first_of(&self, subject: u64, holder: u64, question: &Question<'_>) -> Option<PolicyIdx> {
        let mut first = None;
        question.covering.for_each(|target| {
            if self.sieves.pass(target.sieve, holder)
                && let Some(grant) = self.grants.get(holding(subject, target.hash))
            {
                first = first.into_iter().chain(grant.of(question.is_read_only)).min();
            }
        });
        first
    }

    /// Policies whose subject the user may be, in file order: all whose subject the user is, and
    /// others if hashes are equal by accident.
    pub(crate) fn policies_of(&self, user: &User) -> Vec<PolicyIdx> {
        let name = self.hashes.user(&user.name);
        let by_group = user.groups.iter().flat_map(|group| {
            let group = self.hashes.group(group);
            [group, member(name, group)]
        });
        let subjects = std::iter::once(name).chain(by_group);
        let ranges = subjects.filter_map(|subject| self.subjects.get(subject));
        let policies = |range: &Range| self.policies.get(range.start as usize..range.end as usize);
        let mut policies: Vec<_> = ranges.filter_map(policies).flatten().copied().collect();
        policies.sort_unstable();
        // A user may be said to be in one group twice.
        policies.dedup();
        policies
    }
}
