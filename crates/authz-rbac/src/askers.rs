//! As whom a user asks, by numbers.

use authz::User;

use crate::question::Hashes;
use crate::sieve::BATCH_MAX;

/// Some of those as whom a user asks: the user, who has the number 0, and the groups of the user.
pub(crate) struct Askers {
    /// The number of the first.
    start: usize,
    keys: [u64; BATCH_MAX],
    /// How many there are; none until somebody asks for them.
    n_askers: usize,
}

/// One as whom the user asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) key: u64,
    pub(crate) idx: usize,
}

impl Asker {
    pub(crate) const NONE: Self = Self { key: 0, idx: 0 };
}

impl Askers {
    pub(crate) const fn new() -> Self {
        Self { start: 0, keys: [0; BATCH_MAX], n_askers: 0 }
    }

    /// Makes the keys of the askers from this number on, as many as there is room for; `false` if
    /// there are none.
    pub(crate) fn load(&mut self, hashes: &Hashes, user: &User, start: usize) -> bool {
        if start > user.groups.len() {
            return false;
        }
        if self.n_askers == 0 || self.start != start {
            let groups = user.groups.get(start.saturating_sub(1)..).unwrap_or_default();
            let n_users = usize::from(start == 0);
            self.keys[0] = hashes.user(&user.name);
            for (own, group) in self.keys.iter_mut().skip(n_users).zip(groups) {
                *own = hashes.group(group);
            }
            self.start = start;
            self.n_askers = (n_users + groups.len()).min(BATCH_MAX);
        }
        true
    }

    #[inline]
    pub(crate) fn keys(&self) -> &[u64] {
        self.keys.get(..self.n_askers).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn asker(&self, at: usize) -> Asker {
        Asker { key: self.keys[at % BATCH_MAX], idx: self.start + at }
    }
}

/// The places of the bits that are set.
#[inline]
pub(crate) fn places(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (bits != 0).then(|| bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        place
    })
}
