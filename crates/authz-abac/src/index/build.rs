//! The making of an index.

use super::{First, Index, NONE, PolicyIdx, Range};
use crate::hashes::{Hashes, any_member, holding, member};
use crate::policy::{Policy, Subject};
use crate::sieve::Sieves;
use crate::table::Table;
use crate::targets::{self, Map};

impl Index {
    pub(crate) fn new(hashes: Hashes, policies: &[Policy]) -> Self {
        let mut draft = Draft {
            hashes,
            targets: targets::Builder::default(),
            holders: Vec::new(),
            grants: Map::default(),
            owners: Vec::new(),
        };
        for (policy, idx) in policies.iter().zip(0..NONE) {
            draft.add(policy, idx);
        }
        draft.finish()
    }
}

/// An index to which policies are added in file order.
struct Draft {
    hashes: Hashes,
    targets: targets::Builder,
    /// The numbers of targets, with the hash by which a holder of a policy for it is let through.
    holders: Vec<(u32, u64)>,
    grants: Map<u64, First>,
    /// The hash of the subject of each policy that has one.
    owners: Vec<(u64, PolicyIdx)>,
}

impl Draft {
    fn add(&mut self, policy: &Policy, idx: PolicyIdx) {
        let (subject, holder) = match policy.subject() {
            Subject::Nobody => return,
            Subject::User(user) => (self.hashes.user(user), self.hashes.user(user)),
            Subject::Group(group) => (self.hashes.group(group), self.hashes.group(group)),
            // Of members only the names are let through, and all their groups are looked up then.
            Subject::Member { user, group } => {
                let user = self.hashes.user(user);
                (member(user, self.hashes.group(group)), any_member(user))
            }
        };
        self.owners.push((subject, idx));
        let first = First::new(idx, policy.spec().is_readonly);
        for target in self.targets.add(&self.hashes, policy.spec()) {
            self.holders.push((target.number, holder));
            let known = self.grants.entry(holding(subject, target.hash)).or_insert(first);
            *known = known.or_earlier(first);
        }
    }

    fn finish(self) -> Index {
        let Self { hashes, targets, mut holders, grants, mut owners } = self;
        holders.sort_unstable();
        holders.dedup();
        let (sieves, all) = Sieves::new(targets.n_targets(), &holders);
        owners.sort_unstable();
        let mut subjects: Vec<(u64, Range)> = Vec::new();
        // INVARIANT on Policies: there are fewer than a u32 can count.
        for ((subject, _), start) in owners.iter().zip(0_u32..) {
            match subjects.last_mut() {
                Some((last, range)) if last == subject => range.end = start + 1,
                _ => subjects.push((*subject, Range { start, end: start + 1 })),
            }
        }
        Index {
            targets: targets.finish(&hashes, &all),
            sieves,
            grants: Table::new(grants.into_iter()),
            subjects: Table::new(subjects.into_iter()),
            policies: owners.into_iter().map(|(_, policy)| policy).collect(),
            hashes,
        }
    }
}
