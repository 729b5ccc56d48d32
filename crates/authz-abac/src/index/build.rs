//! The making of an index.

use super::{First, Index, NONE, PolicyIdx, Range};
use crate::hashes::{Hashes, any_member, holding, member};
use crate::holders::{Entry, FEW_MAX, Held, Holders};
use crate::policy::{Policy, Subject};
use crate::proofs::Proofs;
use crate::sieve::{NO_MASK, Sieve, mask};
use crate::table::Table;
use crate::targets;

/// A target is not sieved if one of so many subjects holds it, for then it holds hardly anybody
/// back. Nothing is such a target: nearly everybody has some policy without a path.
const SUBJECTS_PER_HOLDER: usize = 8;

/// So many have to hold it in any case.
const UNSIEVED_MIN: usize = 64;

impl Index {
    pub(crate) fn new(hashes: Hashes, policies: &[Policy]) -> Self {
        let mut draft = Draft {
            hashes,
            targets: targets::Builder::default(),
            proofs: Proofs::default(),
            holdings: Vec::with_capacity(policies.len() * 2),
            owners: Vec::with_capacity(policies.len()),
        };
        for (policy, idx) in policies.iter().zip(0..) {
            draft.add(policy, idx);
        }
        draft.finish()
    }
}

/// An index to which policies are added in file order.
struct Draft {
    hashes: Hashes,
    targets: targets::Builder,
    proofs: Proofs,
    holdings: Vec<Holding>,
    /// The hash of the subject of each policy that has one.
    owners: Vec<(u64, PolicyIdx)>,
}

/// Of a subject and a target, the first policy.
#[derive(Debug, Clone, Copy)]
struct Holding {
    target: u64,
    is_path: bool,
    subject: u64,
    /// The hash by which sieves let the subject through. Of members only the names are let through,
    /// and all their groups are looked up then.
    holder: u64,
    first: First,
}

impl Draft {
    fn add(&mut self, policy: &Policy, idx: PolicyIdx) {
        let (subject, holder) = match policy.subject() {
            Subject::Nobody => return,
            Subject::User(user) => (self.hashes.user(user), self.hashes.user(user)),
            Subject::Group(group) => (self.hashes.group(group), self.hashes.group(group)),
            Subject::Member { user, group } => {
                let user = self.hashes.user(user);
                (member(user, self.hashes.group(group)), any_member(user))
            }
        };
        self.owners.push((subject, idx));
        let first = First::new(self.proofs.add(policy, idx), policy.spec().is_readonly);
        let targets = self.targets.add(&self.hashes, policy.spec());
        for (target, is_path) in targets.into_iter().zip([false, true]) {
            self.holdings.push(Holding { target, is_path, subject, holder, first });
        }
    }

    fn finish(self) -> Index {
        let Self { hashes, targets, proofs, mut holdings, mut owners } = self;
        owners.sort_unstable();
        let mut subjects: Vec<(u64, Range)> = Vec::new();
        // INVARIANT on Policies: there are fewer than a u32 can count.
        for ((subject, _), start) in owners.iter().zip(0_u32..) {
            match subjects.last_mut() {
                Some((last, range)) if last == subject => range.end = start + 1,
                _ => subjects.push((*subject, Range { start, end: start + 1 })),
            }
        }
        holdings.sort_unstable_by_key(|own| (own.target, own.subject));
        holdings.dedup_by(|next, own| {
            let is_same = (own.target, own.subject) == (next.target, next.subject);
            if is_same {
                own.first = own.first.or_earlier(next.first);
            }
            is_same
        });
        let mut held = HeldTargets::default();
        for holdings in holdings.chunk_by(|a, b| a.target == b.target) {
            held.add(holdings, subjects.len());
        }
        Index {
            targets: targets.finish(&hashes),
            holders: Holders::new(&held.entries),
            resource_holders: Sieve::new(&held.resource_holders),
            path_holders: Sieve::new(&held.path_holders),
            members: Sieve::new(&held.members),
            pairs: Sieve::new(&held.pairs),
            grants: Table::new(held.grants.into_iter()),
            proofs: proofs.finish(),
            subjects: Table::new(subjects.into_iter()),
            policies: owners.into_iter().map(|(_, policy)| policy).collect(),
            hashes,
        }
    }
}

/// What the parts of an index are made of.
#[derive(Default)]
struct HeldTargets {
    entries: Vec<Entry>,
    resource_holders: Vec<(u64, u64)>,
    path_holders: Vec<(u64, u64)>,
    members: Vec<(u64, u64)>,
    pairs: Vec<(u64, u64)>,
    grants: Vec<(u64, First)>,
}

impl HeldTargets {
    /// Adds a target, with all its holdings: those of few subjects as entries, others to the table.
    fn add(&mut self, holdings: &[Holding], n_subjects: usize) {
        let Some(Holding { target, .. }) = holdings.first().copied() else { return };
        let n_entries = self.entries.len();
        let singles = holdings.iter().filter(|own| !own.is_of_member());
        self.entries.extend(singles.flat_map(Holding::entries));
        let are_few = self.entries.len() - n_entries <= FEW_MAX;
        if !are_few {
            self.entries.truncate(n_entries);
        }
        let others = || holdings.iter().filter(|own| !are_few || own.is_of_member());
        let n_others = others().count();
        if n_others == 0 {
            return;
        }
        let is_sieved = n_others < UNSIEVED_MIN || n_others < n_subjects / SUBJECTS_PER_HOLDER;
        let mask = if is_sieved { mask(target) } else { NO_MASK };
        self.entries.push(Entry { target, is_readonly: false, held: Held::ByOthers { mask } });
        for own in others() {
            self.add_other(own, is_sieved);
        }
    }

    fn add_other(&mut self, own: &Holding, is_sieved: bool) {
        let pair = holding(own.subject, own.target);
        self.grants.push((pair, own.first));
        if own.is_of_member() {
            self.grants.push((holding(own.holder, own.target), own.first));
        }
        if is_sieved {
            let sieved = match (own.is_of_member(), own.is_path) {
                (true, _) => &mut self.members,
                (false, true) => &mut self.path_holders,
                (false, false) => &mut self.resource_holders,
            };
            sieved.push((own.holder, own.target));
            self.pairs.push((pair, pair));
        }
    }
}

impl Holding {
    fn is_of_member(&self) -> bool {
        self.holder != self.subject
    }

    /// One entry if the first policy grants writing too or none does, and otherwise two.
    fn entries(&self) -> impl Iterator<Item = Entry> {
        let Self { target, holder, first: First { read, write }, .. } = *self;
        let entry = move |policy, is_readonly| Entry {
            target,
            is_readonly,
            held: Held::by(holder, policy),
        };
        let later = (write != read && write != NONE).then(|| entry(write, false));
        std::iter::once(entry(read, write != read)).chain(later)
    }
}
