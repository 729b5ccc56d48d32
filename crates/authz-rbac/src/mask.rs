//! What a role speaks of, at a glance.
//!
//! Most roles that an asker holds have nothing to do with what is asked. A mask tells that by a few
//! bits: each pair of a verb and a resource that a role grants sets two of a word, and a request
//! whose two are not both set is not granted. Bits that are set prove nothing, since pairs share
//! them.
//!
//! A request looks at one word of a mask only, so the same words of all roles lie side by side.

use std::sync::Arc;

use crate::question::VerbIdx;

const WORDS: usize = 8;

/// How many words are for pairs of a verb and a resource. The last one is for paths.
const PAIR_WORDS: u64 = WORDS as u64 - 1;
const PATH_WORD: usize = WORDS - 1;

/// How many bits of such a word are for pairs. The others are for verbs, and set if a role grants
/// them on resources that are not told apart.
const PAIR_BITS: u64 = 44;

/// The bit of the last word for rules about more than one path; the others are for single paths.
const MANY_PATHS: u64 = 1 << 63;

/// What a role speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mask([u64; WORDS]);

/// The masks of roles, by their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Masks(Arc<[Vec<u64>; WORDS]>);

/// What a request asks for, and the words of all masks that have to do with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Glance<'a> {
    words: &'a [u64],
    probe: Probe,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe {
    word: usize,
    /// Bits that a role has all of if it names what is asked.
    all: u64,
    /// Bits that a role has any of if it speaks of it in another way.
    any: u64,
}

impl Mask {
    /// Everything.
    pub(crate) const ALL: Self = Self([u64::MAX; WORDS]);
    /// Nothing.
    pub(crate) const NONE: Self = Self([0; WORDS]);

    /// Adds a verb on a resource, given by its hash.
    pub(crate) fn add_resource(&mut self, verb: VerbIdx, target: u64) {
        let Probe { word, all, .. } = Probe::resource(verb, target);
        self.0[word % WORDS] |= all;
    }

    /// Adds a verb on resources that are not told apart.
    pub(crate) fn add_resources(&mut self, verb: VerbIdx) {
        self.0.iter_mut().take(PATH_WORD).for_each(|word| *word |= verb_bit(verb));
    }

    /// Adds a path, given by its hash, whatever the verb: few roles have any.
    pub(crate) fn add_path(&mut self, target: u64) {
        self.0[PATH_WORD] |= path_bit(target);
    }

    /// Adds more than one path.
    pub(crate) fn add_paths(&mut self) {
        self.0[PATH_WORD] |= MANY_PATHS;
    }
}

impl Masks {
    /// Sets the mask of a role. Those before it that have none speak of everything.
    pub(crate) fn set(&mut self, role: usize, mask: Mask) {
        let is_set = |(words, word): (&Vec<u64>, &u64)| words.get(role) == Some(word);
        if self.0.iter().zip(&mask.0).all(is_set) {
            return;
        }
        for (words, word) in Arc::make_mut(&mut self.0).iter_mut().zip(mask.0) {
            if words.len() <= role {
                words.resize(role + 1, u64::MAX);
            }
            words[role] = word;
        }
    }

    /// The masks as a request sees them.
    pub(crate) fn glance(&self, probe: Probe) -> Glance<'_> {
        Glance { words: &self.0[probe.word % WORDS], probe }
    }
}

impl Glance<'_> {
    /// Reports whether a role may speak of what is asked.
    #[inline]
    pub(crate) fn meets(&self, role: usize) -> bool {
        self.probe.meets(self.word(role))
    }

    /// Reports whether some of these roles may speak of what is asked.
    #[inline]
    pub(crate) fn meets_any(&self, [a, b, c]: [usize; 3]) -> bool {
        self.probe.meets(self.word(a) | self.word(b) | self.word(c))
    }

    /// A role without a mask may speak of everything.
    #[inline]
    fn word(&self, role: usize) -> u64 {
        self.words.get(role).copied().unwrap_or(u64::MAX)
    }
}

impl Probe {
    /// A request for a resource, given by its hash.
    pub(crate) fn resource(verb: VerbIdx, target: u64) -> Self {
        let pair = target.wrapping_add(u64::from(verb).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        // Each of three parts of the number, as a fraction of what it could be.
        let part = |shift: u32, n: u64| ((pair >> shift & 0xffff) * n) >> 16;
        let all = 1 << part(0, PAIR_BITS) | 1 << part(16, PAIR_BITS);
        Self { word: part(32, PAIR_WORDS) as usize, all, any: verb_bit(verb) }
    }

    /// A request for a path, given by its hash.
    pub(crate) fn path(target: u64) -> Self {
        Self { word: PATH_WORD, all: u64::MAX, any: path_bit(target) | MANY_PATHS }
    }

    #[inline]
    fn meets(self, word: u64) -> bool {
        (word & self.all == self.all) | (word & self.any != 0)
    }
}

fn verb_bit(verb: VerbIdx) -> u64 {
    1 << (PAIR_BITS + u64::from(verb))
}

fn path_bit(target: u64) -> u64 {
    1 << (target % 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_without_a_mask_speaks_of_everything() {
        let mut masks = Masks::default();
        masks.set(2, Mask::NONE);
        let older = masks.clone();
        masks.set(2, Mask::ALL);
        masks.set(3, Mask::NONE);
        for probe in [Probe::resource(3, 77), Probe::path(77)] {
            let (old, new) = (older.glance(probe), masks.glance(probe));
            assert_eq!([0, 1, 2, 3].map(|role| old.meets(role)), [true, true, false, true]);
            assert_eq!([0, 1, 2, 3].map(|role| new.meets(role)), [true, true, true, false]);
            assert!(!old.meets_any([2, 2, 2]) && old.meets_any([2, 9, 2]));
        }
    }

    #[test]
    fn kinds_of_targets_are_kept_apart() {
        let meets = |mask: Mask, probe: Probe| {
            let mut masks = Masks::default();
            masks.set(0, mask);
            masks.glance(probe).meets(0)
        };
        let mut mask = Mask::NONE;
        mask.add_resource(0, 5 << 20);
        mask.add_resources(1);
        mask.add_path(9);
        let probes = [
            (Probe::resource(0, 5 << 20), true),
            (Probe::resource(2, 5 << 20), false),
            (Probe::resource(1, 1234), true),
            (Probe::path(9), true),
            (Probe::path(10), false),
        ];
        for (idx, (probe, want)) in probes.into_iter().enumerate() {
            assert_eq!(meets(mask, probe), want, "{idx}");
        }
        mask.add_paths();
        assert!(meets(mask, Probe::path(10)));
    }
}
