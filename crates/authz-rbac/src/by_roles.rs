//! From the roles that speak of a request to those who hold them.
//!
//! Of hundreds of roles none or one or two speak of what is asked, so most that the asker holds is
//! never looked at. Memory is waited for twice: for who holds these roles, and for the bindings.

use std::hint::black_box;

use arrayvec::ArrayVec;
use authz::User;

use crate::askers::{Askers, places};
use crate::bound::{AskerName, BindingSlot};
use crate::compiled::has_verb;
use crate::decide::{Granted, Outcome};
use crate::few::Crowded;
use crate::grants::{GrantKey, Spot};
use crate::namespaces::NamespaceNumber;
use crate::question::Question;
use crate::roles::Says;
use crate::sieve::{BATCH_MAX, Place, Sieve, passing};
use crate::snapshot::Snapshot;
use crate::speakers::{Spoken, TargetName};
use crate::wild_holders::WildHolders;

/// The most roles that list what is asked. If more do, it is quicker to begin with what the asker
/// holds.
const SUSPECTS_MAX: usize = 32;

/// The most bindings that are weighed.
const CANDIDATES_MAX: usize = 16;

/// Looks for the binding that grants what `user` asks in `namespace`.
///
/// 1. Tell which roles speak of the request.
/// 2. Tell as whom the user may hold one of them in the cluster.
/// 3. Look up the bindings by which that is so. The first of them is it.
/// 4. If there is none, do the same in the namespace.
///
/// # Errors
/// Fails if there are too many roles or bindings.
pub(crate) fn search(
    snapshot: &Snapshot,
    question: &Question<'_>,
    user: &User,
    namespace: &str,
) -> Result<Outcome, Crowded> {
    let roles = &snapshot.roles;
    let wild = match question.attributes.resource() {
        Some(_) => &roles.wild_resources,
        None => &roles.wild_paths,
    };
    let mut searcher = Searcher {
        snapshot,
        question,
        user,
        wild,
        suspects: ArrayVec::new(),
        askers: Askers::new(),
        has_broken_bindings: false,
    };
    searcher.suspect(roles.speakers.of(question.target, question.verb))?;
    if let Some(granted) = searcher.look_through("", Place::CLUSTER)? {
        return Ok(Outcome::Granted(granted));
    }
    if !namespace.is_empty() {
        let hash = snapshot.hashes.namespace(namespace);
        searcher.suspect(roles.local_speakers.of(question.target ^ hash, question.verb))?;
        if let Some(granted) = searcher.look_through(namespace, Place::namespace(hash))? {
            return Ok(Outcome::Granted(granted));
        }
    }
    Ok(Outcome::Nothing { has_broken_bindings: searcher.has_broken_bindings })
}

struct Searcher<'s, 'q> {
    snapshot: &'s Snapshot,
    question: &'q Question<'q>,
    user: &'q User,
    /// The roles that speak of targets that they do not list.
    wild: &'s WildHolders,
    /// Those that list what is asked.
    suspects: Suspects<'s>,
    askers: Askers,
    has_broken_bindings: bool,
}

/// A role that lists what is asked, and that some binding refers to.
#[derive(Debug, Clone, Copy)]
struct Suspect<'s> {
    role: u32,
    holders: &'s Sieve,
    /// What is called so it surely grants.
    granted: Option<&'s TargetName>,
}

/// A role that an asker may hold, and where the bindings are by which that is so.
#[derive(Debug, Clone, Copy)]
struct Lead<'s> {
    spot: Spot<'s>,
    role: u32,
    is_missing: bool,
    asker_idx: usize,
}

/// One of these bindings, unless it is there for another role, holder or place.
#[derive(Debug, Clone, Copy)]
struct Candidate<'s> {
    lead: Lead<'s>,
    number: u32,
    slot: &'s BindingSlot,
}

type Leads<'s> = ArrayVec<Lead<'s>, CANDIDATES_MAX>;
type Candidates<'s> = ArrayVec<Candidate<'s>, CANDIDATES_MAX>;
type Suspects<'s> = ArrayVec<Suspect<'s>, SUSPECTS_MAX>;

impl<'s> Searcher<'s, '_> {
    /// Suspects the roles that speak of the target.
    fn suspect(&mut self, spoken: Option<&'s Spoken>) -> Result<(), Crowded> {
        let Some(spoken) = spoken else { return Ok(()) };
        black_box(spoken.name.touch());
        for own in spoken.speakers()? {
            if has_verb(own.verbs, self.question.verb)
                && let Some(slot) = self.snapshot.roles.get(own.role)
                && slot.n_bindings > 0
            {
                let is_granted = has_verb(own.granted, self.question.verb);
                let granted = is_granted.then_some(spoken.name.as_ref());
                let suspect = Suspect { role: own.role, holders: &slot.holders, granted };
                self.suspects.try_push(suspect).map_err(|_| Crowded)?;
            }
        }
        Ok(())
    }

    /// Looks through a namespace, or the cluster, which has no name.
    fn look_through(&mut self, namespace: &str, place: Place) -> Result<Option<Granted>, Crowded> {
        let wild = self.wild.holders(self.question.verb).filter(|own| own.is_about(place));
        let mut sieves: ArrayVec<&[u64], { SUSPECTS_MAX + 1 }> = ArrayVec::new();
        for holders in self.suspects_in(place).map(|own| own.holders).chain(wild) {
            sieves.try_push(holders.words(place)).map_err(|_| Crowded)?;
        }
        let mut candidates = Candidates::new();
        let mut start = 0;
        while !sieves.is_empty() && self.askers.load(&self.snapshot.hashes, self.user, start) {
            start += BATCH_MAX;
            let mut passed = [0; SUSPECTS_MAX + 1];
            if passing(&sieves, self.askers.keys(), place, &mut passed) != 0 {
                self.follow(place, &passed, &mut candidates)?;
            }
        }
        // To find a namespace takes long.
        if candidates.is_empty() {
            return Ok(None);
        }
        let number = self.snapshot.namespace_number(namespace);
        Ok(number.and_then(|number| self.first(number, &candidates)))
    }

    /// The roles that list what is asked and that somebody holds there, or in some other namespace.
    fn suspects_in(&self, place: Place) -> impl Iterator<Item = &Suspect<'s>> {
        self.suspects.iter().filter(move |own| own.holders.is_about(place))
    }

    /// Looks up by which bindings the askers that passed hold these roles, or after them wild ones.
    fn follow(
        &self,
        place: Place,
        passed: &[u64; SUSPECTS_MAX + 1],
        candidates: &mut Candidates<'s>,
    ) -> Result<(), Crowded> {
        let mut leads = Leads::new();
        let mut passed = passed.iter().copied();
        for (suspect, passed) in self.suspects_in(place).zip(passed.by_ref()) {
            if passed != 0 {
                self.lead(place, suspect.role, self.says(suspect), passed, &mut leads)?;
            }
        }
        let passed = passed.next().unwrap_or_default();
        if passed != 0 {
            self.follow_wild(place, passed, &mut leads)?;
        }
        for lead in &leads {
            lead.spot.numbers(|number| {
                let Some(slot) = self.snapshot.fetch_binding(number) else { return Ok(()) };
                let candidate = Candidate { lead: *lead, number, slot };
                candidates.try_push(candidate).map_err(|_| Crowded)
            })?;
        }
        Ok(())
    }

    /// Tells which wild roles the askers that passed may hold.
    fn follow_wild(&self, place: Place, passed: u64, leads: &mut Leads<'s>) -> Result<(), Crowded> {
        for role in self.wild.roles(self.question.verb)?.iter().copied() {
            let Some(slot) = self.snapshot.roles.get(role) else { continue };
            let holder = |at| place.holder(self.askers.asker(at).key);
            let held = places(passed).filter(|at| slot.holders.lets_pass(holder(*at)));
            let passed = held.fold(0, |passed, at| passed | 1 << at);
            if passed != 0 {
                self.lead(
                    place,
                    role,
                    self.snapshot.roles.says(role, self.question),
                    passed,
                    leads,
                )?;
            }
        }
        Ok(())
    }

    /// Tells where to look for the bindings by which the askers that passed hold a role.
    fn lead(
        &self,
        place: Place,
        role: u32,
        says: Says,
        passed: u64,
        leads: &mut Leads<'s>,
    ) -> Result<(), Crowded> {
        if says == Says::Nothing {
            return Ok(());
        }
        let is_missing = says == Says::Missing;
        for asker in places(passed).map(|at| self.askers.asker(at)) {
            let spot = self.snapshot.grants.spot(GrantKey::new(asker.key, place, role));
            black_box(spot.touch());
            let lead = Lead { spot, role, is_missing, asker_idx: asker.idx };
            leads.try_push(lead).map_err(|_| Crowded)?;
        }
        Ok(())
    }

    fn says(&self, suspect: &Suspect<'_>) -> Says {
        match suspect.granted {
            Some(name) if name.is_of(self.question.attributes) => Says::Allows,
            _ => self.snapshot.roles.says(suspect.role, self.question),
        }
    }

    /// The first of the candidates by name, and of its subjects, that names confirm.
    fn first(
        &mut self,
        namespace: NamespaceNumber,
        candidates: &Candidates<'s>,
    ) -> Option<Granted> {
        let mut best: Option<(&Candidate<'_>, usize)> = None;
        for own in candidates {
            let is_later = |(best, _): (&Candidate<'_>, usize)| {
                best.number != own.number && best.slot.order(own.slot).is_lt()
            };
            if !own.lead.is_missing && best.is_some_and(is_later) {
                continue;
            }
            let Some(subject_idx) = own.subject_idx(self.user, namespace) else { continue };
            let is_same_later = |(best, best_idx): (&Candidate<'_>, usize)| {
                best.number == own.number && best_idx <= subject_idx
            };
            if own.lead.is_missing {
                self.has_broken_bindings = true;
            } else if !best.is_some_and(is_same_later) {
                best = Some((own, subject_idx));
            }
        }
        best.map(|(best, subject_idx)| Granted { number: best.number, subject_idx })
    }
}

impl Candidate<'_> {
    /// The subject that means the asker, if names say that the binding gives the role to the asker
    /// there.
    fn subject_idx(&self, user: &User, namespace: NamespaceNumber) -> Option<usize> {
        let Self { lead, slot, .. } = self;
        if slot.role != lead.role || slot.namespace != namespace {
            return None;
        }
        slot.subject_of(AskerName::new(user, lead.asker_idx)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::Grants;
    use crate::policy::{Binding, Subject};

    /// Other holders, roles and places may have the same key.
    #[test]
    fn a_binding_counts_for_its_own_holder_role_and_place_only() {
        let subjects = vec![Subject::user("eve"), Subject::group("dev")];
        let slot = BindingSlot::new(Binding { subjects, ..Binding::default() }, 7, 3);
        let user = User {
            name: "ana".to_owned(),
            groups: vec!["ops".to_owned(), "dev".to_owned()],
            ..User::default()
        };
        let grants = Grants::default();
        let spot = grants.spot(GrantKey::new(1, Place::CLUSTER, 7));
        let subject_idx = |role, namespace, asker_idx| {
            let lead = Lead { spot, role, is_missing: false, asker_idx };
            Candidate { lead, number: 0, slot: &slot }.subject_idx(&user, namespace)
        };
        assert_eq!(subject_idx(7, 3, 2), Some(1));
        assert_eq!(subject_idx(8, 3, 2), None);
        assert_eq!(subject_idx(7, 4, 2), None);
        assert_eq!(subject_idx(7, 3, 1), None);
        assert_eq!(subject_idx(7, 3, 0), None);
    }
}
