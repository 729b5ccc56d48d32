//! The index of policies: which policies may a user or group have for a target?

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;

use authz::{Attributes, User};
use foldhash::fast::RandomState;

use crate::candidate_targets::{CandidateTargets, TargetHash};
use crate::policy::{Policy, Subject};

/// A subject with at most this many targets has them compared one by one; with more, they are searched.
const SCANNED_TARGETS_MAX: usize = 16;

/// The position of a policy in the file order.
pub(crate) type PolicyIdx = u32;

/// The hash of a subject.
type SubjectHash = u64;

/// All policies by the hashes of their subjects and, for each subject, by the hashes of their targets.
///
/// The index compares hashes instead of names, because names lie in many places of memory. A policy that
/// it finds is compared with the request before it counts. The hashes are seeded at random, so nobody can
/// choose names that collide.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    hash_builder: RandomState,
    candidate_targets: CandidateTargets,
    subjects: HashMap<SubjectHash, SubjectEntry, RandomState>,
    /// The targets of all subjects. INVARIANT: those of one subject lie together, in ascending order.
    targets: Box<[TargetEntry]>,
    /// The policies of all subjects. INVARIANT: those of one subject lie together, in file order.
    policies: Box<[PolicyIdx]>,
}

/// The policies of one subject.
#[derive(Debug, Clone, Default)]
struct SubjectEntry {
    /// The positions in [`Index::targets`].
    targets: Range<u32>,
    /// The positions in [`Index::policies`].
    policies: Range<u32>,
    /// The subject is a user that some policies name together with a group.
    has_group_policies: bool,
}

/// The first policies of one subject for one target.
#[derive(Debug, Clone, Copy)]
struct TargetEntry {
    target: TargetHash,
    first: FirstPolicies,
}

/// The first policy that grants reading, and the first that grants writing.
#[derive(Debug, Clone, Copy)]
struct FirstPolicies {
    read: PolicyIdx,
    /// `NO_POLICY` if all policies are read-only.
    write: PolicyIdx,
}

/// INVARIANT on Snapshot: no file has so many policies.
const NO_POLICY: PolicyIdx = PolicyIdx::MAX;

impl Index {
    /// Indexes policies that are given in file order.
    pub(crate) fn new(policies: &[Policy]) -> Self {
        let mut index = Self::default();
        let mut targets = Vec::with_capacity(policies.len() * 2);
        let mut policies_by_subject = Vec::with_capacity(policies.len());
        for (idx, policy) in (0..).zip(policies) {
            let Some(subject) = index.add_subject(policy) else { continue };
            policies_by_subject.push((subject, idx));
            let write = if policy.spec().is_readonly { NO_POLICY } else { idx };
            let first = FirstPolicies { read: idx, write };
            let target_hashes = index.candidate_targets.add(policy.spec());
            targets.extend(target_hashes.map(|target| (subject, TargetEntry { target, first })));
        }
        targets.sort_unstable_by_key(|(subject, entry)| (*subject, entry.target));
        targets.dedup_by(|(next_subject, next), (subject, entry)| {
            let is_same = (*next_subject, next.target) == (*subject, entry.target);
            if is_same {
                entry.first = entry.first.earliest(next.first);
            }
            is_same
        });
        policies_by_subject.sort_unstable();
        index.set_subject_ranges(&targets, |entry, range| entry.targets = range);
        index.set_subject_ranges(&policies_by_subject, |entry, range| entry.policies = range);
        index.targets = targets.into_iter().map(|(_, entry)| entry).collect();
        index.policies = policies_by_subject.into_iter().map(|(_, idx)| idx).collect();
        index
    }

    /// Adds the subject of a policy, unless the policy has none.
    fn add_subject(&mut self, policy: &Policy) -> Option<SubjectHash> {
        let subject = match policy.subject() {
            Subject::Nobody => return None,
            Subject::User(user) => self.user_hash(user),
            Subject::Group(group) => self.group_hash(group),
            Subject::Member { user, group } => {
                let user = self.user_hash(user);
                self.subjects.entry(user).or_default().has_group_policies = true;
                member_hash(user, self.group_hash(group))
            }
        };
        self.subjects.entry(subject).or_default();
        Some(subject)
    }

    /// Tells each subject the range of its values in a list that is sorted by subject.
    fn set_subject_ranges<T>(
        &mut self,
        values: &[(SubjectHash, T)],
        set_range: impl Fn(&mut SubjectEntry, Range<u32>),
    ) {
        let mut start = 0;
        for chunk in values.chunk_by(|(a, _), (b, _)| a == b) {
            // INVARIANT on Snapshot: twice the number of policies fits.
            let end = start + chunk.len() as u32;
            if let Some((subject, _)) = chunk.first()
                && let Some(entry) = self.subjects.get_mut(subject)
            {
                set_range(entry, start..end);
            }
            start = end;
        }
    }

    /// The first policy that may grant the request to the user.
    ///
    /// INVARIANT: no later than the first policy that grants it, so no policy grants the request if there
    /// is none, and if this policy grants it, it is the first. It does not grant the request only if two
    /// names have the same hash.
    pub(crate) fn first_candidate(
        &self,
        user: &User,
        attributes: &Attributes<'_>,
    ) -> Option<PolicyIdx> {
        let is_read_only = attributes.is_read_only();
        let mut first_idx = NO_POLICY;
        self.candidate_targets.for_each_batch(&attributes.target, |targets| {
            self.for_each_subject(user, |entry| {
                let first = self.first_policies_of_subject(entry, targets);
                first_idx = first_idx.min(if is_read_only { first.read } else { first.write });
            });
        });
        (first_idx != NO_POLICY).then_some(first_idx)
    }

    /// All policies whose subject the user may be, in file order.
    pub(crate) fn policies_of_user(&self, user: &User) -> Vec<PolicyIdx> {
        let mut policies = Vec::new();
        self.for_each_subject(user, |entry| {
            policies.extend_from_slice(slice_range(&self.policies, &entry.policies));
        });
        policies.sort_unstable();
        // Authentication may name one group twice.
        policies.dedup();
        policies
    }

    /// Calls `visit` with the entry of the user, of each group of the user, and of the user as a member
    /// of each group.
    #[inline]
    fn for_each_subject<'s>(&'s self, user: &User, mut visit: impl FnMut(&'s SubjectEntry)) {
        let user_hash = self.user_hash(&user.name);
        let user_entry = self.subjects.get(&user_hash);
        user_entry.into_iter().for_each(&mut visit);
        let has_group_policies = user_entry.is_some_and(|entry| entry.has_group_policies);
        for group in &user.groups {
            let group_hash = self.group_hash(group);
            self.subjects.get(&group_hash).into_iter().for_each(&mut visit);
            if has_group_policies {
                let member_hash = member_hash(user_hash, group_hash);
                self.subjects.get(&member_hash).into_iter().for_each(&mut visit);
            }
        }
    }

    /// The first policies of a subject for any of some targets.
    #[inline]
    fn first_policies_of_subject(
        &self,
        subject: &SubjectEntry,
        targets: &[TargetHash],
    ) -> FirstPolicies {
        let entries = slice_range(&self.targets, &subject.targets);
        let mut first = FirstPolicies { read: NO_POLICY, write: NO_POLICY };
        if entries.len() <= SCANNED_TARGETS_MAX {
            for entry in entries.iter().filter(|entry| targets.contains(&entry.target)) {
                first = first.earliest(entry.first);
            }
        } else {
            for target in targets {
                let idx = entries.partition_point(|entry| entry.target < *target);
                if let Some(entry) = entries.get(idx).filter(|entry| entry.target == *target) {
                    first = first.earliest(entry.first);
                }
            }
        }
        first
    }

    fn user_hash(&self, user: &str) -> SubjectHash {
        self.hash_builder.hash_one(Subject::User(user))
    }

    fn group_hash(&self, group: &str) -> SubjectHash {
        self.hash_builder.hash_one(Subject::Group(group))
    }
}

/// The hash of a user as a member of a group.
fn member_hash(user: SubjectHash, group: SubjectHash) -> SubjectHash {
    user.rotate_left(u64::BITS / 2) ^ group
}

impl FirstPolicies {
    fn earliest(self, other: Self) -> Self {
        Self { read: self.read.min(other.read), write: self.write.min(other.write) }
    }
}

fn slice_range<'s, T>(values: &'s [T], range: &Range<u32>) -> &'s [T] {
    values.get(range.start as usize..range.end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests;
