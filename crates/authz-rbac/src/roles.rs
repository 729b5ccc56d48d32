//! The roles under their numbers, and by what they speak of.

use std::sync::Arc;

use crate::compiled::{CompiledRole, WildVerbs};
use crate::local_speakers::LocalSpeakers;
use crate::mask::{Mask, Masks};
use crate::policy::Role;
use crate::question::{Hashes, Question};
use crate::sieve::{Place, Sieve};
use crate::slab::Slab;
use crate::speakers::{Speaker, Speakers};
use crate::spoken::SpokenTarget;
use crate::wild_holders::WildHolders;

/// The number of what is no role: such a reference never leads to one.
pub(crate) const NO_ROLE: u32 = 1;

/// The most masks. Roles with greater numbers are looked at one by one, which takes longer.
const MASKS_MAX: usize = u16::MAX as usize - 1;

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
    pub(crate) speakers: Speakers,
    /// The same for the roles of namespaces. Targets are mixed with the hash of the namespace.
    pub(crate) local_speakers: LocalSpeakers,
    /// Roles that speak of targets that they do not list, and who holds them, each kind by itself.
    pub(crate) wild_resources: WildHolders,
    pub(crate) wild_paths: WildHolders,
}

/// A role under its number, which stays the same while the role comes and goes, so that bindings
/// need not be touched when it does.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoleSlot {
    /// `None` if the role does not exist.
    pub(crate) compiled: Option<Arc<CompiledRole>>,
    /// How many bindings refer to the role.
    pub(crate) n_bindings: usize,
    /// Who holds it, wherever.
    pub(crate) holders: Sieve,
}

/// What a role says of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    /// No rule allows it.
    Nothing,
    /// Some rule does.
    Allows,
    /// The role does not exist.
    Missing,
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
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&RoleSlot> {
        self.slots.get(number).map(AsRef::as_ref)
    }

    /// What a role says of a request.
    pub(crate) fn says(&self, number: u32, question: &Question<'_>) -> Says {
        let compiled = self.get(number).and_then(|slot| slot.compiled.as_ref());
        match compiled.map(|compiled| compiled.quickly_allows(question)) {
            Some(true) => Says::Allows,
            Some(false) => Says::Nothing,
            None => Says::Missing,
        }
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
        if slot.n_bindings > 0 {
            self.move_wild(number, old_wild, new_wild);
        }
        self.wild_resources.move_holders(&holders, old_wild.resources, new_wild.resources);
        self.wild_paths.move_holders(&holders, old_wild.paths, new_wild.paths);
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
        for own in spoken(old) {
            match namespace {
                "" => self.speakers.remove(own.target, number),
                _ => self.local_speakers.remove(own.target, number),
            }
        }
        let hash = hashes.namespace(namespace);
        for SpokenTarget { target, name, verbs, granted } in spoken(new) {
            let speaker = Speaker { role: number, verbs, granted };
            match namespace {
                "" => self.speakers.insert(target, &name, speaker),
                _ => {
                    // Most names are known already, and one of each is enough for all namespaces.
                    let known = self.speakers.name_of(target ^ hash).filter(|own| **own == name);
                    self.local_speakers.insert(target, known.unwrap_or(&name), speaker);
                }
            }
        }
    }

    fn move_wild(&mut self, number: u32, old: WildVerbs, new: WildVerbs) {
        self.wild_resources.move_role(number, old.resources, new.resources);
        self.wild_paths.move_role(number, old.paths, new.paths);
    }

    /// Makes a binding refer to a role, and the holders of these keys hold it in a place.
    pub(crate) fn bind(&mut self, number: u32, place: Place, keys: &[u64]) {
        let Some(slot) = self.slots.get_mut(number).map(Arc::make_mut) else { return };
        let wild = slot.wild();
        slot.n_bindings += 1;
        let is_first = slot.n_bindings == 1;
        for holder in keys.iter().map(|key| place.holder(*key)) {
            slot.holders.insert(holder);
            self.wild_resources.insert(holder, wild.resources);
            self.wild_paths.insert(holder, wild.paths);
        }
        if is_first {
            self.move_wild(number, WildVerbs::default(), wild);
        }
    }

    /// The reverse of [`bind`](Self::bind).
    pub(crate) fn unbind(&mut self, number: u32, place: Place, keys: &[u64]) {
        let Some(slot) = self.slots.get_mut(number).map(Arc::make_mut) else { return };
        let wild = slot.wild();
        slot.n_bindings = slot.n_bindings.saturating_sub(1);
        let is_last = slot.n_bindings == 0;
        for holder in keys.iter().map(|key| place.holder(*key)) {
            slot.holders.remove(holder);
            self.wild_resources.remove(holder, wild.resources);
            self.wild_paths.remove(holder, wild.paths);
        }
        if is_last {
            self.move_wild(number, wild, WildVerbs::default());
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

    /// A role that does not exist may be about anything; one of a namespace is never about paths.
    fn wild(&self) -> WildVerbs {
        match &self.compiled {
            Some(compiled) if compiled.role.metadata.namespace.is_empty() => compiled.wild,
            Some(compiled) => WildVerbs { paths: 0, ..compiled.wild },
            None => WildVerbs::ALL,
        }
    }
}
