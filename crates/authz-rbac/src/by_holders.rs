//! From what the asker holds to what grants the request.
//!
//! This is the way for who asks as few, and for requests of which many roles speak. Speed comes from
//! doing one thing for many holders before doing the next thing for any: lookups that do not depend
//! on each other wait for memory together.

use std::hint::black_box;

use authz::User;

use crate::askers::{Asker, Askers, places};
use crate::bound::{AskerName, BindingSlot};
use crate::bucket::ShortRole;
use crate::decide::{Granted, Outcome};
use crate::holders::{Held, Holders, NO_ENTRIES};
use crate::mask::Glance;
use crate::question::Question;
use crate::roles::{NO_ROLE, Says};
use crate::sieve::BATCH_MAX;
use crate::snapshot::{Scope, Snapshot};

/// Looks for the binding that grants what `user` asks in `namespace`; `None` if numbers mislead.
///
/// 1. Look up those as whom the user asks, and weigh what they hold in the cluster: a role that allows
///    the request, by a binding for one of them, is a candidate.
/// 2. If there is none, do the same in the namespace.
/// 3. The first candidate is it.
pub(crate) fn search(
    snapshot: &Snapshot,
    question: &Question<'_>,
    user: &User,
    namespace: &str,
) -> Option<Outcome> {
    let mut searcher = Searcher {
        snapshot,
        question,
        glance: snapshot.roles.masks.glance(question.probe),
        user,
        askers: Askers::new(),
        best: None,
        last_said: (NO_ROLE, Says::Missing),
        has_broken_bindings: false,
        is_misled: false,
    };
    searcher.look_through("");
    if searcher.best.is_none() && !namespace.is_empty() {
        searcher.look_through(namespace);
    }
    match searcher.best {
        _ if searcher.is_misled => None,
        Some(Candidate { number, subject_idx, .. }) => {
            Some(Outcome::Granted(Granted { number, subject_idx }))
        }
        None => {
            let has_broken_bindings = searcher.has_broken_bindings;
            Some(Outcome::Nothing { has_broken_bindings })
        }
    }
}

/// How many holdings are read together.
const HOLDINGS_MAX: usize = 16;

/// A role that speaks of the request, the number of the binding, and as whom the user holds it.
#[derive(Debug, Clone, Copy)]
struct Holding {
    role: ShortRole,
    number: u32,
    asker: Asker,
}

impl Holding {
    const NONE: Self = Self { role: ShortRole::NONE, number: 0, asker: Asker::NONE };
}

/// What grants the request, unless something else comes first.
#[derive(Clone, Copy)]
struct Candidate<'s> {
    slot: &'s BindingSlot,
    /// The number of the binding.
    number: u32,
    subject_idx: usize,
}

struct Searcher<'s, 'q> {
    snapshot: &'s Snapshot,
    question: &'q Question<'q>,
    glance: Glance<'s>,
    user: &'q User,
    askers: Askers,
    /// The first of what grants the request, as far as it was looked for.
    best: Option<Candidate<'s>>,
    /// The role that was asked last, and what it said.
    last_said: (u32, Says),
    has_broken_bindings: bool,
    /// Somebody in the table of holders has the key of an asker and another name, so what the table
    /// says of the asker may not be all.
    is_misled: bool,
}

impl<'s> Searcher<'s, '_> {
    /// Looks through a namespace, or the cluster, which has no name.
    fn look_through(&mut self, namespace: &str) {
        let Some(Scope { holders, .. }) = self.snapshot.scope(namespace) else { return };
        let mut start = 0;
        while self.askers.load(&self.snapshot.hashes, self.user, start) {
            start += BATCH_MAX;
            let chosen = self.speaking(holders);
            self.look_up(holders, chosen);
        }
    }

    /// The askers who may hold a role that speaks of the request, as the table of holders tells it: a
    /// bit for each.
    ///
    /// 1. Leave out askers of whom there is nothing in the table, if that is easy to tell.
    /// 2. Find the others in the table.
    /// 3. Leave out those who have no role that speaks of the request.
    ///
    /// No step has a branch that could be guessed wrong, and no lookup waits for another.
    fn speaking(&self, holders: &Holders) -> u64 {
        let (mut known, mut n_known) = ([0_u8; BATCH_MAX], 0);
        for (at, key) in self.askers.keys().iter().enumerate() {
            known[n_known % BATCH_MAX] = at as u8;
            n_known += usize::from(holders.filter().is_none_or(|filter| filter.may_have(*key)));
        }
        let known = known.get(..n_known).unwrap_or_default();
        let key_of = |at: &u8| self.askers.asker(usize::from(*at)).key;
        let mut lines = [&NO_ENTRIES; BATCH_MAX];
        for (line, at) in lines.iter_mut().zip(known) {
            *line = holders.line(key_of(at));
        }
        // Reading a bit of every line first makes them all be fetched at once.
        black_box(lines.iter().take(n_known).fold(0, |all, line| all ^ line.touch()));
        let pairs = lines.iter().zip(known);
        pairs.fold(0, |speaking, (line, at)| {
            let places = line.places(key_of(at));
            let [a, b, c] = line.roles(places.first());
            let speaks = self.glance.meets_any([a.idx(), b.idx(), c.idx()]) & !places.is_empty();
            speaking | u64::from(speaks | places.has_more() | line.overflows()) << at
        })
    }

    /// Weighs what the chosen askers hold. What has to be read is read for all of them, as far as
    /// possible, before it is needed for one.
    fn look_up(&mut self, holders: &'s Holders, chosen: u64) {
        let keys = || places(chosen).map(|at| self.askers.asker(at).key);
        black_box(keys().fold(0, |all, key| all ^ holders.touch(key)));
        let (mut held, mut n_held) = ([Holding::NONE; HOLDINGS_MAX], 0);
        for at in places(chosen) {
            let asker = self.askers.asker(at);
            holders.visit_speaking(asker.key, self.glance, |role, number| {
                let holding = Holding { role, number, asker };
                match held.get_mut(n_held) {
                    Some(own) => *own = holding,
                    None => self.weigh(holders, holding),
                }
                n_held += 1;
            });
        }
        let held = held.get(..n_held).unwrap_or(&held);
        for own in held {
            self.snapshot.fetch_binding(own.number);
        }
        held.iter().for_each(|holding| self.weigh(holders, *holding));
    }

    fn weigh(&mut self, holders: &'s Holders, holding: Holding) {
        let Holding { role, number, asker } = holding;
        if role == ShortRole::CROWD {
            self.weigh_crowd(holders, number, asker);
        } else if role == ShortRole::OF_BINDING {
            let slot = self.snapshot.bindings.get(number);
            slot.into_iter().for_each(|slot| self.weigh_role(slot.role, number, asker));
        } else {
            self.weigh_role(role.idx() as u32, number, asker);
        }
    }

    /// Of the bindings that give a crowd the same role only the first by name can be the grant.
    fn weigh_crowd(&mut self, holders: &'s Holders, number: u32, asker: Asker) {
        for mut rest in holders.crowd(number).into_iter().flat_map(|crowd| crowd.chunks()) {
            while let [Held { role, binding }, ..] = *rest {
                let short = ShortRole::new(role);
                if self.glance.meets(short.idx()) {
                    self.weigh_role(role, binding, asker);
                }
                let n_same = rest.partition_point(|held| held.role == role);
                rest = rest.get(n_same..).unwrap_or_default();
            }
        }
    }

    fn weigh_role(&mut self, role: u32, number: u32, asker: Asker) {
        let is_missing = match self.says(role) {
            Says::Nothing => return,
            Says::Allows => false,
            Says::Missing => true,
        };
        match self.subject_of(number, asker) {
            Some(_) if is_missing => self.has_broken_bindings = true,
            Some((slot, subject_idx)) => {
                self.weigh_candidate(Candidate { slot, number, subject_idx });
            }
            None => self.is_misled = true,
        }
    }

    /// What a role says of the request. Several bindings often grant the same role, so the last one
    /// that was asked is remembered.
    #[inline]
    fn says(&mut self, role: u32) -> Says {
        let (last, says) = self.last_said;
        if last == role {
            return says;
        }
        let says = self.snapshot.roles.says(role, self.question);
        self.last_said = (role, says);
        says
    }

    fn weigh_candidate(&mut self, candidate: Candidate<'s>) {
        if self.best.as_ref().is_none_or(|best| candidate.is_before(best)) {
            self.best = Some(candidate);
        }
    }

    /// A binding and the first of its subjects that means the asker, if names say that one does.
    fn subject_of(&self, number: u32, asker: Asker) -> Option<(&'s BindingSlot, usize)> {
        let slot = self.snapshot.bindings.get(number)?;
        let subject_idx = slot.subject_of(AskerName::new(self.user, asker.idx)?)?;
        Some((slot, subject_idx))
    }
}

impl Candidate<'_> {
    /// Reports whether it is visited before the other. One binding may be held in several ways, of
    /// which that of the first subject counts.
    fn is_before(&self, other: &Self) -> bool {
        match self.number == other.number {
            true => self.subject_idx < other.subject_idx,
            false => self.slot.order(other.slot).is_lt(),
        }
    }
}
