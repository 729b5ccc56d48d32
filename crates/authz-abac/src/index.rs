//! The index of policies: which policies may a user or group have for a target?

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;

use authz::{Attributes, User};
use foldhash::fast::RandomState;

use crate::candidate_targets::{CandidateTargetFinder, TargetHash};
use crate::policy::{Policy, Subject};

/// A target with at most this many subjects has them compared one by one; with more, they are looked up.
const SCANNED_SUBJECTS_MAX: usize = 8;

/// The number of subjects of a user that are looked up together.
const SUBJECTS_BATCH: usize = 64;

/// The number of groups in a batch of subjects. The first two are the user.
const GROUPS_BATCH: usize = SUBJECTS_BATCH - 2;

/// The position of a policy in the file order.
pub(crate) type PolicyIdx = u32;

/// The hash of a subject.
type SubjectHash = u64;

/// All policies by the hashes of their targets and, for each target, by the hashes of their subjects.
///
/// At most 8 targets cover a resource request, so a decision looks up 8 targets, and for each of them the
/// user and the groups of the user.
///
/// The index compares hashes instead of names, because names lie in many places of memory. A policy that it finds
/// is compared with the request before it counts. The hashes are seeded at random, so an attacker cannot choose
/// names that collide.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    hash_builder: RandomState,
    candidate_target_finder: CandidateTargetFinder,
    subjects_by_target: HashMap<TargetHash, TargetSubjects, RandomState>,
    /// The positions in [`Index::policies`] of the policies of each subject.
    policy_ranges_by_subject: HashMap<SubjectHash, Range<u32>, RandomState>,
    /// The policies of all subjects. INVARIANT: those of one subject lie together, in file order.
    policy_idxs_grouped_by_subject: Box<[PolicyIdx]>,
}

/// The subjects that have policies for one target.
#[derive(Debug, Clone)]
enum TargetSubjects {
    Few(Box<[(SubjectHash, FirstReadAndWritePolicies)]>),
    Many(HashMap<SubjectHash, FirstReadAndWritePolicies, RandomState>),
}

/// The first policy that grants reading, and the first that grants writing.
#[derive(Debug, Clone, Copy)]
struct FirstReadAndWritePolicies {
    read: PolicyIdx,
    /// `NO_POLICY` if all policies are read-only.
    write: PolicyIdx,
}

/// The index that stands for "no policy". INVARIANT on Snapshot: no file has so many policies.
const NO_POLICY: PolicyIdx = PolicyIdx::MAX;

impl Index {
    /// Indexes policies that are given in file order.
    pub(crate) fn new(policies: &[Policy]) -> Self {
        let mut index = Self::default();
        let mut entries = Vec::with_capacity(policies.len() * 2);
        let mut policies_by_subject = Vec::with_capacity(policies.len());
        for (idx, policy) in (0..).zip(policies) {
            let (subject, member_marker) = match policy.subject() {
                Subject::Nobody => continue,
                Subject::User(user) => (index.user_hash(user), None),
                Subject::Group(group) => (index.group_hash(group), None),
                Subject::Member { user, group } => {
                    let user = index.user_hash(user);
                    (
                        group_member_hash(user, index.group_hash(group)),
                        Some(any_group_member_hash(user)),
                    )
                }
            };
            policies_by_subject.push((subject, idx));
            let write = if policy.spec().is_readonly { NO_POLICY } else { idx };
            for target in index.candidate_target_finder.add_policy_targets(policy.spec()) {
                entries.push((target, subject, FirstReadAndWritePolicies { read: idx, write }));
                entries.extend(
                    member_marker.map(|hash| (target, hash, FirstReadAndWritePolicies::NONE)),
                );
            }
        }
        entries.sort_unstable_by_key(|(target, subject, _)| (*target, *subject));
        entries.dedup_by(|(next_target, next_subject, next), (target, subject, first)| {
            let is_same = (*next_target, *next_subject) == (*target, *subject);
            if is_same {
                *first = first.merge_earliest_policies(*next);
            }
            is_same
        });
        for chunk in entries.chunk_by(|(a, ..), (b, ..)| a == b) {
            let subjects = chunk.iter().map(|(_, subject, first)| (*subject, *first));
            let subjects = if chunk.len() <= SCANNED_SUBJECTS_MAX {
                TargetSubjects::Few(subjects.collect())
            } else {
                TargetSubjects::Many(subjects.collect())
            };
            index.subjects_by_target.extend(chunk.first().map(|(target, ..)| (*target, subjects)));
        }
        index.index_policies_by_subject(policies_by_subject);
        index
    }

    fn index_policies_by_subject(&mut self, mut policies: Vec<(SubjectHash, PolicyIdx)>) {
        policies.sort_unstable();
        let mut start = 0;
        for chunk in policies.chunk_by(|(a, _), (b, _)| a == b) {
            // INVARIANT on Snapshot: the number of policies fits.
            let end = start + chunk.len() as u32;
            self.policy_ranges_by_subject
                .extend(chunk.first().map(|(subject, _)| (*subject, start..end)));
            start = end;
        }
        self.policy_idxs_grouped_by_subject = policies.into_iter().map(|(_, idx)| idx).collect();
    }

    /// The first policy that may grant the request to the user.
    ///
    /// INVARIANT: no earlier policy grants the request. So if the result is `None`, no policy grants it, and if
    /// the returned policy grants it, that policy is the first. The returned policy fails to grant the request
    /// only if two names have the same hash.
    pub(crate) fn first_candidate_policy(
        &self,
        user: &User,
        attributes: &Attributes<'_>,
    ) -> Option<PolicyIdx> {
        let user_hash = self.user_hash(&user.name);
        let mut first = FirstReadAndWritePolicies::NONE;
        let mut subjects = [user_hash; SUBJECTS_BATCH];
        subjects[1] = any_group_member_hash(user_hash);
        let (mut groups, mut rest) = split_off_group_batch(&user.groups);
        loop {
            for (subject, group) in subjects.iter_mut().skip(2).zip(groups) {
                *subject = self.group_hash(group);
            }
            let subjects = subjects.get(..2 + groups.len()).unwrap_or_default();
            self.candidate_target_finder.for_each_candidate_target(&attributes.target, |target| {
                if let Some(target) = self.subjects_by_target.get(&target) {
                    first =
                        first.merge_earliest_policies(target.first_policies_of_subjects(subjects));
                }
            });
            if rest.is_empty() {
                break;
            }
            (groups, rest) = split_off_group_batch(rest);
        }
        let first_idx = if attributes.is_read_only() { first.read } else { first.write };
        (first_idx != NO_POLICY).then_some(first_idx)
    }

    /// All policies whose subject may match the user, in file order. Two names with the same hash make it include
    /// others.
    pub(crate) fn policies_of_user(&self, user: &User) -> Vec<PolicyIdx> {
        let user_hash = self.user_hash(&user.name);
        let groups = user.groups.iter().map(|group| self.group_hash(group));
        let group_subjects = groups.flat_map(|group| [group, group_member_hash(user_hash, group)]);
        let subjects = std::iter::once(user_hash).chain(group_subjects);
        let ranges = subjects.filter_map(|subject| self.policy_ranges_by_subject.get(&subject));
        let policies = ranges.filter_map(|range| {
            self.policy_idxs_grouped_by_subject.get(range.start as usize..range.end as usize)
        });
        let mut policies: Vec<PolicyIdx> = policies.flatten().copied().collect();
        policies.sort_unstable();
        // Authentication may name one group twice.
        policies.dedup();
        policies
    }

    fn user_hash(&self, user: &str) -> SubjectHash {
        self.hash_builder.hash_one(Subject::User(user))
    }

    fn group_hash(&self, group: &str) -> SubjectHash {
        self.hash_builder.hash_one(Subject::Group(group))
    }
}

impl TargetSubjects {
    /// The first policies for any of these subjects: a user, the user as a member of some group, and the groups of
    /// the user.
    #[inline]
    fn first_policies_of_subjects(&self, subjects: &[SubjectHash]) -> FirstReadAndWritePolicies {
        let mut first = FirstReadAndWritePolicies::NONE;
        match self {
            Self::Few(entries) => {
                for (_, policies) in entries.iter().filter(|(hash, _)| subjects.contains(hash)) {
                    first = first.merge_earliest_policies(*policies);
                }
            }
            Self::Many(entries) => {
                for policies in subjects.iter().filter_map(|subject| entries.get(subject)) {
                    first = first.merge_earliest_policies(*policies);
                }
            }
        }
        if let [user, any_member, groups @ ..] = subjects
            && self.get(*any_member).is_some()
        {
            for policies in
                groups.iter().filter_map(|group| self.get(group_member_hash(*user, *group)))
            {
                first = first.merge_earliest_policies(policies);
            }
        }
        first
    }

    fn get(&self, subject: SubjectHash) -> Option<FirstReadAndWritePolicies> {
        match self {
            Self::Few(entries) => {
                entries.iter().find(|(hash, _)| *hash == subject).map(|(_, policies)| *policies)
            }
            Self::Many(entries) => entries.get(&subject).copied(),
        }
    }
}

/// The hash of a user as a member of a group.
fn group_member_hash(user: SubjectHash, group: SubjectHash) -> SubjectHash {
    user.rotate_left(u64::BITS / 2) ^ group
}

/// The hash of a user as a member of any group. A target has it if some policy for the target names the
/// user together with a group.
fn any_group_member_hash(user: SubjectHash) -> SubjectHash {
    user.rotate_left(u64::BITS / 4)
}

/// The groups of the next batch, and those after them.
fn split_off_group_batch(groups: &[String]) -> (&[String], &[String]) {
    groups.split_at(groups.len().min(GROUPS_BATCH))
}

impl FirstReadAndWritePolicies {
    const NONE: Self = Self { read: NO_POLICY, write: NO_POLICY };

    fn merge_earliest_policies(self, other: Self) -> Self {
        Self { read: self.read.min(other.read), write: self.write.min(other.write) }
    }
}

#[cfg(test)]
mod tests;
