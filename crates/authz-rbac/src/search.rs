//! The quick way to a grant.
//!
//! It goes by numbers: hashes for names, a mask for a role. Numbers may say yes where names say no,
//! never the other way round, so what it looks through is all that may grant the request and
//! perhaps more. The first of that, if names confirm it, is the grant; if they do not, whoever asks
//! has to go the plain way. Nothing here allocates.
//!
//! Speed comes from doing one thing for many holders before doing the next thing for any: lookups
//! that do not depend on each other wait for memory together.

use authz::User;

use crate::bucket::{BindingRef, Bucket, ShortRole};
use crate::decide::{Grant, Search};
use crate::filter::Filter;
use crate::holders::{EMPTY, Held, Holders};
use crate::mask::Mask;
use crate::question::Question;
use crate::snapshot::{BindingSlot, Scope, Snapshot};

/// How many holders are looked up together.
const BATCH_MAX: usize = 64;

/// Looks for the grant that decides what `user` asks in `namespace`; `None` if numbers mislead.
pub(crate) fn search<'s>(
    snapshot: &'s Snapshot,
    question: &Question<'_>,
    user: &User,
    namespace: &str,
) -> Option<Search<'s>> {
    let mut search =
        Searcher { snapshot, question, user, has_broken_bindings: false, is_misled: false };
    let (mut in_cluster, mut in_namespace) = (None, None);
    let mut keys = snapshot.hashes.keys(user);
    let mut batch = Batch { keys: [0; BATCH_MAX], n_keys: 0, n_before: 0 };
    while batch.fill(&mut keys) {
        search.look_through(&snapshot.cluster, &batch, &mut in_cluster);
        if in_cluster.is_none()
            && !namespace.is_empty()
            && let Some(local) = snapshot.scope(namespace)
        {
            search.look_through(local, &batch, &mut in_namespace);
        }
    }
    match in_cluster.or(in_namespace) {
        Some(candidate) => search.confirm(candidate).map(Search::Found),
        None if search.is_misled => None,
        None => Some(Search::Nothing { has_broken_bindings: search.has_broken_bindings }),
    }
}

/// Some of those as whom the user asks: the user, and the groups of the user.
struct Batch {
    keys: [u64; BATCH_MAX],
    n_keys: usize,
    /// How many came before.
    n_before: usize,
}

impl Batch {
    /// Takes the next; `false` if there are none.
    fn fill(&mut self, keys: &mut impl Iterator<Item = u64>) -> bool {
        self.n_before += self.n_keys;
        self.n_keys = 0;
        for (own, key) in self.keys.iter_mut().zip(keys) {
            *own = key;
            self.n_keys += 1;
        }
        self.n_keys > 0
    }

    fn keys(&self) -> &[u64] {
        self.keys.get(..self.n_keys).unwrap_or_default()
    }

    #[inline]
    fn key(&self, idx: usize) -> u64 {
        self.keys[idx % BATCH_MAX]
    }
}

/// Some of a batch, by number.
struct Kept {
    idxs: [u8; BATCH_MAX],
    n_kept: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self { idxs: [0; BATCH_MAX], n_kept: 0 }
    }
}

impl Kept {
    /// Adds a number if it is wanted, without a branch. Each is added once at most.
    #[inline]
    fn push_if(&mut self, is_wanted: bool, idx: usize) {
        self.idxs[self.n_kept % BATCH_MAX] = idx as u8;
        self.n_kept += usize::from(is_wanted);
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        let kept = self.idxs.get(..self.n_kept).unwrap_or_default();
        kept.iter().map(|idx| usize::from(*idx) % BATCH_MAX)
    }
}

/// What may grant the request.
#[derive(Clone, Copy)]
struct Candidate<'s> {
    slot: &'s BindingSlot,
    held: Held,
    /// As whom the user holds it.
    holder_idx: usize,
    rule_idx: usize,
}

/// The first that may grant the request, of those that were weighed.
type Best<'s> = Option<Candidate<'s>>;

struct Searcher<'s, 'q> {
    snapshot: &'s Snapshot,
    question: &'q Question<'q>,
    user: &'q User,
    has_broken_bindings: bool,
    /// Some binding that leads to no role has the number of the asker and another name.
    is_misled: bool,
}

impl<'s> Searcher<'s, '_> {
    fn look_through(&mut self, scope: &'s Scope, batch: &Batch, best: &mut Best<'s>) {
        match scope.holders.filter() {
            Some(filter) => self.look_through_small(&scope.holders, filter, batch, best),
            None => self.look_through_large(&scope.holders, batch, best),
        }
    }

    fn look_through_small(
        &mut self,
        holders: &'s Holders,
        filter: &Filter,
        batch: &Batch,
        best: &mut Best<'s>,
    ) {
        let mut kept = Kept::default();
        for idx in 0..batch.n_keys {
            kept.push_if(filter.may_have(batch.key(idx)), idx);
        }
        for idx in kept.iter() {
            self.look_for(holders, holders.bucket(batch.key(idx)), batch, idx, best);
        }
    }

    /// 1. Find out where each holder is in the table.
    /// 2. Turn down holders who have no role that speaks of the request.
    /// 3. Weigh what the others have.
    ///
    /// The first two steps have no branch that could be guessed wrong, and no lookup in them waits
    /// for another.
    fn look_through_large(&mut self, holders: &'s Holders, batch: &Batch, best: &mut Best<'s>) {
        let mut buckets = [&EMPTY; BATCH_MAX];
        for (bucket, key) in buckets.iter_mut().zip(batch.keys()) {
            *bucket = holders.bucket(*key);
            bucket.touch();
        }
        let mut kept = Kept::default();
        for (idx, (bucket, key)) in buckets.iter().zip(batch.keys()).enumerate() {
            let places = bucket.places(*key);
            let [a, b, c] = bucket.roles(places.first()).map(|role| self.speaks(role));
            let speaks = (a | b | c) & !places.is_empty();
            kept.push_if(speaks | places.has_more() | bucket.overflows(), idx);
        }
        for idx in kept.iter() {
            self.look_for(holders, buckets[idx], batch, idx, best);
        }
    }

    /// Reports whether a role may speak of the request.
    #[inline]
    fn speaks(&self, role: ShortRole) -> bool {
        self.snapshot.masks.get(role.idx()).unwrap_or(&Mask::ALL).meets(self.question.probe)
    }

    /// Weighs what one holder has.
    fn look_for(
        &mut self,
        holders: &'s Holders,
        bucket: &'s Bucket,
        batch: &Batch,
        idx: usize,
        best: &mut Best<'s>,
    ) {
        let (key, holder_idx) = (batch.key(idx), batch.n_before + idx);
        self.look_into(holders, bucket, key, holder_idx, best);
        if bucket.overflows() {
            for bucket in holders.overflow(key) {
                self.look_into(holders, bucket, key, holder_idx, best);
            }
        }
    }

    fn look_into(
        &mut self,
        holders: &'s Holders,
        bucket: &Bucket,
        key: u64,
        holder_idx: usize,
        best: &mut Best<'s>,
    ) {
        for place in bucket.places(key) {
            for (idx, role) in bucket.roles(place).into_iter().enumerate() {
                if !self.speaks(role) {
                    continue;
                }
                let (own, binding) = bucket.holding(place, idx);
                if own != key {
                    break;
                }
                if role == ShortRole::CROWD {
                    self.weigh_crowd(holders, binding.binding, holder_idx, best);
                } else if role == ShortRole::OF_BINDING {
                    if let Some(slot) = self.snapshot.bindings.get(binding.binding) {
                        self.weigh(Held { role: slot.role, binding }, holder_idx, best);
                    }
                } else {
                    self.weigh(Held { role: role.idx() as u32, binding }, holder_idx, best);
                }
            }
        }
    }

    /// Of the bindings that give a crowd the same role only the first by name can be the grant.
    fn weigh_crowd(
        &mut self,
        holders: &'s Holders,
        number: u32,
        holder_idx: usize,
        best: &mut Best<'s>,
    ) {
        let crowd = holders.crowd(number);
        for mut rest in crowd.into_iter().flat_map(|crowd| crowd.chunks()) {
            while let [first, ..] = *rest {
                if self.speaks(ShortRole::new(first.role)) {
                    self.weigh(first, holder_idx, best);
                }
                let n_same = rest.partition_point(|held| held.role == first.role);
                rest = rest.get(n_same..).unwrap_or_default();
            }
        }
    }

    fn weigh(&mut self, held: Held, holder_idx: usize, best: &mut Best<'s>) {
        let Held { role, binding: BindingRef { binding, subject_idx } } = held;
        let Some(compiled) = self.snapshot.roles.get(role).and_then(|role| role.compiled.as_ref())
        else {
            let slot = self.snapshot.bindings.get(binding);
            match slot.is_some_and(|slot| self.is_for_asker(slot, held, holder_idx)) {
                true => self.has_broken_bindings = true,
                false => self.is_misled = true,
            }
            return;
        };
        let Some(rule_idx) = compiled.may_allow(self.question) else { return };
        let Some(slot) = self.snapshot.bindings.get(binding) else { return };
        let is_better = match best {
            None => true,
            Some(own) if own.held.binding.binding == binding => {
                subject_idx < own.held.binding.subject_idx
            }
            Some(own) => slot.order(own.slot).is_lt(),
        };
        if is_better {
            *best = Some(Candidate { slot, held, holder_idx, rule_idx });
        }
    }

    /// Reports whether names say that the binding is for the asker.
    fn is_for_asker(&self, slot: &BindingSlot, held: Held, holder_idx: usize) -> bool {
        let subject = slot.binding.subjects.get(held.binding.subject_idx as usize);
        subject.is_some_and(|subject| match holder_idx.checked_sub(1) {
            None => subject.is_user(&self.user.name, slot.binding.namespace()),
            Some(idx) => {
                let group = self.user.groups.get(idx);
                group.is_some_and(|group| subject.is_group(group))
            }
        })
    }

    /// The grant, if names say that it is one.
    fn confirm(&self, candidate: Candidate<'s>) -> Option<Grant<'s>> {
        let Candidate { slot, held, holder_idx, rule_idx } = candidate;
        let compiled = self.snapshot.roles.get(slot.role)?.compiled.as_ref()?;
        let (role, binding) = (compiled.role.as_ref(), &slot.binding);
        let is_granted = self.is_for_asker(slot, held, holder_idx)
            && role.rules.get(rule_idx)?.allows(self.question.attributes);
        let subject_idx = held.binding.subject_idx as usize;
        is_granted.then_some(Grant { binding, subject_idx, role, rule_idx })
    }
}
