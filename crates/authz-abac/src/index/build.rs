//! The making of an index.

use super::{First, Index, NONE, PolicyIdx, SubjectIdx, UserEntry};
use crate::policy::{Policy, Subject};
use crate::sieve::Sieves;
use crate::targets::{self, TargetIdx};

impl Index {
    pub(crate) fn new(policies: &[Policy]) -> Self {
        let mut draft = Draft::new();
        for (policy, idx) in policies.iter().zip(0..NONE) {
            draft.add(policy, idx);
        }
        draft.finish()
    }
}

/// An index to which policies are added in file order.
struct Draft {
    index: Index,
    targets: targets::Builder,
    /// The subject of each policy that has one.
    owners: Vec<(SubjectIdx, PolicyIdx)>,
    /// The targets of each such policy, with the hash of whom it is for.
    holders: Vec<(TargetIdx, u64)>,
    n_subjects: u32,
}

impl Draft {
    fn new() -> Self {
        Self {
            index: Index::default(),
            targets: targets::Builder::new(),
            owners: Vec::new(),
            holders: Vec::new(),
            n_subjects: 0,
        }
    }

    fn add(&mut self, policy: &Policy, idx: PolicyIdx) {
        let hash = match policy.subject() {
            Subject::Nobody => return,
            // Members are let through by their names, and then looked up by their groups too.
            Subject::User(user) | Subject::Member { user, .. } => self.index.hashes.of_user(user),
            Subject::Group(group) => self.index.hashes.of_group(group),
        };
        let Some(subject) = self.subject(policy.subject()) else { return };
        self.owners.push((subject, idx));
        let first = First::new(idx, policy.spec().is_readonly);
        for target in self.targets.add(policy.spec()) {
            let known = self.index.grants.entry((subject, target)).or_insert_with(|| {
                self.holders.push((target, hash));
                first
            });
            *known = known.or_earlier(first);
        }
    }

    /// The place of a subject, made when it is first seen.
    fn subject(&mut self, subject: Subject<'_>) -> Option<SubjectIdx> {
        let next = self.n_subjects;
        let idx = match subject {
            Subject::Nobody => return None,
            Subject::User(user) => *self.user(user).alone.get_or_insert(next),
            Subject::Group(group) => match self.index.groups.get(group) {
                Some(known) => *known,
                None => *self.index.groups.entry(group.into()).or_insert(next),
            },
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
        if idx == next {
            // INVARIANT on Policies: there are fewer subjects than policies.
            self.n_subjects += 1;
        }
        Some(idx)
    }

    fn user(&mut self, name: &str) -> &mut UserEntry {
        self.index.users.entry(name.into()).or_default()
    }

    fn finish(self) -> Index {
        let Self { mut index, targets, mut owners, holders, n_subjects } = self;
        // Stable, so that the policies of a subject stay in file order.
        owners.sort_by_key(|(owner, _)| *owner);
        // INVARIANT: every subject has a policy, so every end is set.
        let mut ends = vec![0; n_subjects as usize];
        for ((owner, _), end) in owners.iter().zip(1..) {
            if let Some(own) = ends.get_mut(*owner as usize) {
                *own = end;
            }
        }
        index.ends = ends.into();
        index.policies = owners.into_iter().map(|(_, policy)| policy).collect();
        let (sieves, all) = Sieves::new(targets.n_targets(), &holders);
        index.sieves = sieves;
        index.targets = targets.finish(&all);
        index.grants.shrink_to_fit();
        index
    }
}
