//! What a role speaks of, at a glance.
//!
//! Most roles that an asker holds have nothing to do with what is asked. A mask tells that by a few
//! bits: each pair of a verb and a resource that a role grants sets two, and a request whose two are
//! not both set is not granted. Bits that are set prove nothing, since pairs share them.

use crate::question::VerbIdx;

const WORDS: usize = 8;

/// The bits for pairs of a verb and a resource: all words but the last.
const PAIR_BITS: u64 = 64 * (WORDS as u64 - 1);

/// The word for everything else.
const WIDE: usize = WORDS - 1;

/// Where its bits begin: verbs on resources that are not told apart, verbs on subresources of any
/// resource, and paths.
const SUBRESOURCE_BITS: u32 = 20;
const PATH_BITS: u32 = 40;
const MANY_PATHS_BIT: u32 = 62;

/// A bit of the last word that no mask has but [`Mask::ALL`].
const UNUSED_BIT: u32 = 64 * WORDS as u32 - 1;

/// What a role speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mask([u64; WORDS]);

/// What a request asks for. It may be granted by what the mask of a role has in common with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe {
    /// Two bits, by number, both of which a role has that names the verb and the resource.
    pair: [u32; 2],
    /// Bits of the last word, one of which a role has that speaks of the request in other ways.
    wide: u64,
}

impl Mask {
    /// Everything.
    pub(crate) const ALL: Self = Self([u64::MAX; WORDS]);
    /// Nothing.
    pub(crate) const NONE: Self = Self([0; WORDS]);

    /// Reports whether the role may speak of what is asked.
    #[inline]
    pub(crate) fn meets(&self, probe: Probe) -> bool {
        let [a, b] = probe.pair.map(|bit| self.0[word(bit)] >> (bit % u64::BITS));
        (a & b & 1) | (self.0[WIDE] & probe.wide) != 0
    }

    /// Adds a verb on a resource, given by its hash.
    pub(crate) fn add_resource(&mut self, verb: VerbIdx, target: u64) {
        for bit in Probe::resource(verb, target, false).pair {
            self.0[word(bit)] |= 1 << (bit % u64::BITS);
        }
    }

    /// Adds a verb on resources that are not told apart.
    pub(crate) fn add_resources(&mut self, verb: VerbIdx) {
        self.0[WIDE] |= 1 << verb;
    }

    /// Adds a verb on a subresource of any resource.
    pub(crate) fn add_subresources(&mut self, verb: VerbIdx) {
        self.0[WIDE] |= 1 << (SUBRESOURCE_BITS + verb);
    }

    /// Adds a path, given by its hash, whatever the verb: few roles have any.
    pub(crate) fn add_path(&mut self, target: u64) {
        self.0[WIDE] |= path_bit(target);
    }

    /// Adds more than one path.
    pub(crate) fn add_paths(&mut self) {
        self.0[WIDE] |= 1 << MANY_PATHS_BIT;
    }
}

impl Probe {
    /// A request for a resource, given by its hash.
    #[inline]
    pub(crate) fn resource(verb: VerbIdx, target: u64, has_subresource: bool) -> Self {
        let pair = target.wrapping_add(u64::from(verb).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let bit = |half: u64| ((half * PAIR_BITS) >> 32) as u32;
        let subresource = u64::from(has_subresource) << SUBRESOURCE_BITS;
        let pair = [bit(pair >> 32), bit(pair & u64::from(u32::MAX))];
        Self { pair, wide: (1 | subresource) << verb }
    }

    /// A request for a path, given by its hash.
    pub(crate) fn path(target: u64) -> Self {
        Self { pair: [UNUSED_BIT; 2], wide: path_bit(target) | 1 << MANY_PATHS_BIT }
    }
}

/// INVARIANT: less than [`WORDS`].
#[inline]
fn word(bit: u32) -> usize {
    (bit / u64::BITS) as usize % WORDS
}

fn path_bit(target: u64) -> u64 {
    1 << (u64::from(PATH_BITS) + target % u64::from(MANY_PATHS_BIT - PATH_BITS))
}
