//! The hashes that the index knows names by.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

/// What hashes are made with, at random.
///
/// The index compares hashes and no names, which lie in too many places of memory. What it finds is
/// compared with the request before it counts, so hashes that are equal by accident do no harm; and
/// since nobody knows what they are made with, they are not equal by design either.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hashes {
    users: RandomState,
    groups: RandomState,
    namespaces: RandomState,
    resources: RandomState,
    api_groups: RandomState,
    paths: RandomState,
    prefixes: RandomState,
}

/// The hashes of the parts of a resource.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parts {
    pub(crate) namespace: u64,
    pub(crate) resource: u64,
    pub(crate) api_group: u64,
}

impl Hashes {
    pub(crate) fn user(&self, name: &str) -> u64 {
        self.text(&self.users, name)
    }

    pub(crate) fn group(&self, name: &str) -> u64 {
        self.text(&self.groups, name)
    }

    pub(crate) fn parts(&self, namespace: &str, resource: &str, api_group: &str) -> Parts {
        Parts {
            namespace: self.text(&self.namespaces, namespace),
            resource: self.text(&self.resources, resource),
            api_group: self.text(&self.api_groups, api_group),
        }
    }

    pub(crate) fn path(&self, path: &str) -> u64 {
        self.text(&self.paths, path)
    }

    pub(crate) fn prefix(&self, prefix: &str) -> u64 {
        self.text(&self.prefixes, prefix)
    }

    /// A text by itself, which needs no mark at its end.
    fn text(&self, state: &RandomState, text: &str) -> u64 {
        let mut hasher = state.build_hasher();
        hasher.write(text.as_bytes());
        hasher.finish()
    }
}

impl Parts {
    /// The hash of the resource.
    pub(crate) fn whole(self) -> u64 {
        both(both(self.namespace, self.resource), self.api_group)
    }
}

/// The hash of a user as a member of a group.
pub(crate) fn member(user: u64, group: u64) -> u64 {
    both(user, group)
}

/// The hash of a user as one who is granted something as a member of some group.
pub(crate) fn any_member(user: u64) -> u64 {
    both(user, 1)
}

/// The hash of a subject with a target.
pub(crate) fn holding(subject: u64, target: u64) -> u64 {
    both(subject, target)
}

/// One hash from two, of which the order counts: the halves of a product, laid over each other.
fn both(first: u64, second: u64) -> u64 {
    const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
    const SECOND: u64 = 0xd6e8_feb8_6659_fd93;
    let product = u128::from(first ^ FIRST) * u128::from(second.rotate_left(32) ^ SECOND);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_differs_has_different_hashes() {
        let hashes = Hashes::default();
        let texts = ["", "*", "a", "b", "ab", "system:authenticated", "a-name-of-many-letters"];
        let mut all = BTreeSet::new();
        let mut n_added = 0;
        for first in texts {
            let (user, group) = (hashes.user(first), hashes.group(first));
            let path = [hashes.path(first), hashes.prefix(first)];
            for hash in [user, group, any_member(user)].into_iter().chain(path) {
                n_added += usize::from(all.insert(hash));
            }
            for second in texts {
                n_added += usize::from(all.insert(member(user, hashes.group(second))));
                n_added += usize::from(all.insert(holding(user, hashes.path(second))));
                for third in texts {
                    let parts = hashes.parts(first, second, third);
                    n_added += usize::from(all.insert(parts.whole()));
                }
            }
        }
        assert_eq!(n_added, 7 * 5 + 49 * 2 + 343);
    }
}
