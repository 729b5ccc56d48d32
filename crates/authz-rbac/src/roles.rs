//! The roles under their numbers, and who may hold one that speaks of a request.
//!
//! Of hundreds of roles none or one or two speak of what is asked. To begin with those, and to ask
//! who may hold them, is quicker than to begin with what the asker holds.

use std::sync::Arc;

use crate::compiled::{CompiledRole, Verbs, Wild, has_verb};
use crate::local_speakers::LocalSpeakers;
use crate::mask::{Mask, Masks};
use crate::multimap::{Crowded, Multimap};
use crate::policy::Role;
use crate::question::{Hashes, Question};
use crate::sieve::{Place, Sieve, passing};
use crate::slab::Slab;
use crate::wild_holders::WildHolders;

/// The number of what is no role: such a reference never leads to one.
pub(crate) const NO_ROLE: u32 = 1;

/// The most masks. Roles with greater numbers are looked at one by one, which takes longer.
const MASKS_MAX: usize = u16::MAX as usize - 1;

/// The most roles whose holders are asked for. If more speak of a request, it is quicker to begin
/// with what the asker holds.
const SUSPECTS_MAX: usize = 8;

/// The most roles that are known for a target, whatever the verb.
pub(crate) const TARGET_ROLES_MAX: usize = 48;

/// All roles, those included that bindings refer to and that do not exist.
#[derive(Debug, Clone)]
pub(crate) struct Roles {
    slots: Slab<Arc<RoleSlot>>,
    /// The masks of the roles whose numbers have two bytes, by number; everything for a role that
    /// does not exist, so that nobody passes over that.
    pub(crate) masks: Masks,
    /// The ClusterRoles that speak of a target.
    ///
    /// INVARIANT: every role that exists is under every target that it lists.
    speakers: Speakers,
    /// The same for the roles of namespaces. Targets are mixed with the hash of the namespace.
    local_speakers: LocalSpeakers,
    /// Who holds roles that speak of targets that they do not list, each kind by itself.
    wild_resources: WildHolders,
    wild_paths: WildHolders,
}

/// For each target: roles and the verbs of which they speak there.
pub(crate) type Speakers = Multimap<(Verbs, u32), TARGET_ROLES_MAX>;

/// A role under its number, which stays the same while the role comes and goes, so that bindings
/// need not be touched when it does.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoleSlot {
    /// `None` if the role does not exist.
    pub(crate) compiled: Option<Arc<CompiledRole>>,
    /// How many bindings refer to the role.
    n_bindings: usize,
    /// Who holds it, wherever.
    holders: Sieve,
}

/// Who may hold a role that speaks of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suspects<'s> {
    /// Of roles that speak of targets that they do not list.
    wild: &'s Sieve,
    /// Of those that list what is asked.
    listed: [Option<&'s Sieve>; SUSPECTS_MAX],
    n_listed: usize,
}

impl Default for Roles {
    fn default() -> Self {
        let mut roles = Self {
            slots: Slab::default(),
            masks: Masks::default(),
            speakers: Speakers::default(),
            local_speakers: LocalSpeakers::default(),
            wild_resources: WildHolders::default(),
            wild_paths: WildHolders::default(),
        };
        // INVARIANT: the first numbers are 0, which tables use where there is no role, and
        // `NO_ROLE`.
        roles.add();
        roles.add();
        roles.masks.set(0, Mask::NONE);
        roles
    }
}

/// Reading.
impl Roles {
    /// No number is as large.
    pub(crate) fn numbers_end(&self) -> u32 {
        self.slots.numbers_end()
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&RoleSlot> {
        self.slots.get(number).map(AsRef::as_ref)
    }

    /// Who may hold a ClusterRole that speaks of the request.
    ///
    /// # Errors
    /// Fails if there are too many such roles.
    pub(crate) fn suspects(&self, question: &Question<'_>) -> Result<Suspects<'_>, Crowded> {
        let wild = match question.attributes.resource() {
            Some(_) => &self.wild_resources,
            None => &self.wild_paths,
        };
        let wild = wild.of(question.verb);
        let mut suspects = Suspects { wild, listed: [None; SUSPECTS_MAX], n_listed: 0 };
        let suspect = |speaker| self.suspect(&mut suspects, question, speaker);
        self.speakers.visit(question.target, suspect)?;
        Ok(suspects)
    }

    /// The same, and who may hold a role of the namespace of this hash that does.
    ///
    /// # Errors
    /// Fails if there are too many such roles.
    pub(crate) fn local_suspects<'s>(
        &'s self,
        mut suspects: Suspects<'s>,
        question: &Question<'_>,
        namespace: u64,
    ) -> Result<Suspects<'s>, Crowded> {
        let suspect = |speaker| self.suspect(&mut suspects, question, speaker);
        self.local_speakers.visit(question.target ^ namespace, suspect)?;
        Ok(suspects)
    }

    /// Adds the holders of a role, if it speaks of the verb.
    fn suspect<'s>(
        &'s self,
        suspects: &mut Suspects<'s>,
        question: &Question<'_>,
        (verbs, role): (Verbs, u32),
    ) -> Result<(), Crowded> {
        if has_verb(verbs, question.verb)
            && let Some(slot) = self.get(role)
            && slot.n_bindings > 0
        {
            *suspects.listed.get_mut(suspects.n_listed).ok_or(Crowded)? = Some(&slot.holders);
            suspects.n_listed += 1;
        }
        Ok(())
    }
}

impl<'s> Suspects<'s> {
    /// Reports whether there is somebody to be suspected there.
    pub(crate) fn are_any(&self, place: Place) -> bool {
        self.sieves(place).next().is_some()
    }

    /// Which of these keys are suspected there: a bit for each, the lowest for the first.
    pub(crate) fn among(&self, keys: &[u64], place: Place) -> u64 {
        let (mut sieves, mut n_sieves) = ([[].as_slice(); SUSPECTS_MAX + 1], 0);
        for (own, sieve) in sieves.iter_mut().zip(self.sieves(place)) {
            *own = sieve.words();
            n_sieves += 1;
        }
        passing(sieves.get(..n_sieves).unwrap_or_default(), keys, place)
    }

    fn sieves(&self, place: Place) -> impl Iterator<Item = &'s Sieve> {
        let listed = self.listed.iter().take(self.n_listed).copied().flatten();
        listed.chain([self.wild]).filter(move |sieve| sieve.is_about(place))
    }
}

/// Changes.
impl Roles {
    /// Gives a number to a role that does not exist yet; `None` if there are no more.
    pub(crate) fn add(&mut self) -> Option<u32> {
        let number = self.slots.insert(Arc::default())?;
        self.set_mask(number, Mask::ALL);
        Some(number)
    }

    /// Makes a role exist, or be another, or not exist. Returns what it was.
    pub(crate) fn set(
        &mut self,
        hashes: &Hashes,
        number: u32,
        compiled: Option<CompiledRole>,
    ) -> Option<Arc<Role>> {
        let slot = self.get(number)?;
        let (old, old_wild) = (slot.role().cloned(), slot.wild());
        self.set_mask(number, compiled.as_ref().map_or(Mask::ALL, |compiled| compiled.mask));
        let slot = Arc::make_mut(self.slots.get_mut(number)?);
        slot.compiled = compiled.map(Arc::new);
        let (new, new_wild) = (slot.role().cloned(), slot.wild());
        let holders = slot.holders.clone();
        self.wild_resources.move_all(&holders, old_wild.resources, new_wild.resources);
        self.wild_paths.move_all(&holders, old_wild.paths, new_wild.paths);
        self.set_targets(hashes, number, old.as_deref(), new.as_deref());
        old
    }

    fn set_targets(
        &mut self,
        hashes: &Hashes,
        number: u32,
        old: Option<&Role>,
        new: Option<&Role>,
    ) {
        if old.map(|role| &role.rules) == new.map(|role| &role.rules) {
            return;
        }
        let spoken = |role: Option<&Role>| role.map(|role| hashes.spoken(role)).unwrap_or_default();
        let namespace = old.or(new).map_or("", |role| &role.metadata.namespace);
        let is_own = |(_, role): (Verbs, u32)| role == number;
        for (target, _) in spoken(old) {
            match namespace {
                "" => self.speakers.remove(target, is_own),
                _ => self.local_speakers.remove(target, is_own),
            }
        }
        for (target, verbs) in spoken(new) {
            match namespace {
                "" => self.speakers.insert(target, (verbs, number)),
                _ => self.local_speakers.insert(target, (verbs, number)),
            }
        }
    }

    /// Makes a binding refer to a role, and the holders of these keys hold it in a place.
    pub(crate) fn bind(&mut self, number: u32, place: Place, keys: &[u64]) {
        let Some(slot) = self.slots.get_mut(number).map(Arc::make_mut) else { return };
        let wild = slot.wild();
        slot.n_bindings += 1;
        for holder in keys.iter().map(|key| place.holder(*key)) {
            slot.holders.insert(holder);
            self.wild_resources.insert(holder, wild.resources);
            self.wild_paths.insert(holder, wild.paths);
        }
    }

    /// The reverse of [`bind`](Self::bind).
    pub(crate) fn unbind(&mut self, number: u32, place: Place, keys: &[u64]) {
        let Some(slot) = self.slots.get_mut(number).map(Arc::make_mut) else { return };
        let wild = slot.wild();
        slot.n_bindings = slot.n_bindings.saturating_sub(1);
        for holder in keys.iter().map(|key| place.holder(*key)) {
            slot.holders.remove(holder);
            self.wild_resources.remove(holder, wild.resources);
            self.wild_paths.remove(holder, wild.paths);
        }
    }

    /// Gives up the number of a role that does not exist and that no binding refers to, and reports
    /// whether it did.
    pub(crate) fn remove_unused(&mut self, number: u32) -> bool {
        let is_unused = |slot: &RoleSlot| slot.compiled.is_none() && slot.n_bindings == 0;
        let is_removed = number > NO_ROLE && self.get(number).is_some_and(is_unused);
        if is_removed {
            self.slots.remove(number);
        }
        is_removed
    }

    fn set_mask(&mut self, number: u32, mask: Mask) {
        let role = number as usize;
        if role < MASKS_MAX {
            self.masks.set(role, mask);
        }
    }
}

impl RoleSlot {
    pub(crate) fn role(&self) -> Option<&Arc<Role>> {
        self.compiled.as_ref().map(|compiled| &compiled.role)
    }

    /// A role that does not exist may be about anything.
    fn wild(&self) -> Wild {
        self.compiled.as_ref().map_or(Wild::ALL, |compiled| compiled.wild)
    }
}
