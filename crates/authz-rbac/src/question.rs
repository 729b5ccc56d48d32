//! A request as numbers, to be compared with rules that are numbers too.

use std::hash::{BuildHasher, Hasher};

use authz::{Attributes, Resource, Target, User};
use foldhash::fast::RandomState;

use crate::mask::Probe;
use crate::sieve::Place;

/// Turns names into numbers. The seeds are its own, so that nobody can choose names that collide.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hashes {
    users: RandomState,
    groups: RandomState,
    words: RandomState,
    /// Which bits are lost, for tests of what happens when names collide.
    #[cfg(test)]
    lost: u64,
}

/// A request: what is asked of every role that the asker holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) attributes: &'a Attributes<'a>,
    pub(crate) verb: VerbIdx,
    /// The hash of the target.
    pub(crate) target: u64,
    /// What the mask of a role is compared with.
    pub(crate) probe: Probe,
}

/// A verb. Known ones are told apart; all others are [`OTHER_VERB`].
pub(crate) type VerbIdx = u32;

/// The number of all verbs that are not known.
pub(crate) const OTHER_VERB: VerbIdx = 16;

/// The number of a verb. Known are those of the API, and those that guards ask for.
pub(crate) fn verb_idx(verb: &str) -> VerbIdx {
    match verb {
        "get" => 0,
        "list" => 1,
        "watch" => 2,
        "create" => 3,
        "update" => 4,
        "patch" => 5,
        "delete" => 6,
        "deletecollection" => 7,
        "proxy" => 8,
        "use" => 9,
        "bind" => 10,
        "escalate" => 11,
        "impersonate" => 12,
        "approve" => 13,
        "sign" => 14,
        "attest" => 15,
        _ => OTHER_VERB,
    }
}

impl Hashes {
    /// Hashes of which four bits are left, so that many names collide.
    #[cfg(test)]
    pub(crate) fn weak() -> Self {
        Self { lost: !0x3000_0000_0000_0003, ..Self::default() }
    }

    /// The key of a user in a table of holders.
    #[inline]
    pub(crate) fn user(&self, name: &str) -> u64 {
        self.key(&self.users, name)
    }

    /// The key of a group in a table of holders.
    #[inline]
    pub(crate) fn group(&self, name: &str) -> u64 {
        self.key(&self.groups, name)
    }

    /// What targets of the roles of a namespace are mixed with; 0 for those of the cluster.
    pub(crate) fn namespace(&self, name: &str) -> u64 {
        match name {
            "" => 0,
            name => self.hash(&self.words, name),
        }
    }

    /// Where the bindings of a namespace apply; if it is empty, those of the cluster.
    pub(crate) fn place(&self, namespace: &str) -> Place {
        match namespace {
            "" => Place::CLUSTER,
            name => Place::namespace(self.namespace(name)),
        }
    }

    /// The keys of a user and of the groups of the user, in this order.
    pub(crate) fn keys(&self, user: &User) -> impl Iterator<Item = u64> {
        let groups = user.groups.iter().map(|group| self.group(group));
        [self.user(&user.name)].into_iter().chain(groups)
    }

    /// The target of a rule that names a resource as rules do, such as `pods/log`.
    pub(crate) fn rule_resource(&self, api_group: &str, entry: &str) -> u64 {
        let (resource, subresource) = entry.split_once('/').unwrap_or((entry, ""));
        self.resource(&Resource { api_group, resource, subresource, ..Resource::default() })
    }

    fn resource(&self, resource: &Resource<'_>) -> u64 {
        let Resource { api_group, resource, subresource, .. } = *resource;
        let part = |text, place: u32| self.hash(&self.words, text).rotate_left(place);
        part(api_group, 0) ^ part(resource, 19) ^ part(subresource, 41)
    }

    /// The target of a rule about one path.
    pub(crate) fn path(&self, path: &str) -> u64 {
        !self.hash(&self.words, path)
    }

    /// INVARIANT: not 0, which marks room in a table.
    #[inline]
    fn key(&self, seed: &RandomState, name: &str) -> u64 {
        self.hash(seed, name).max(1)
    }

    #[inline]
    fn hash(&self, seed: &RandomState, text: &str) -> u64 {
        let mut hasher = seed.build_hasher();
        hasher.write(text.as_bytes());
        let hash = hasher.finish();
        #[cfg(test)]
        let hash = hash & !self.lost;
        hash
    }
}

impl<'a> Question<'a> {
    /// `None` if the request can not be told by numbers: rules write a resource and its subresource
    /// in one, so a slash in the resource could be read in two ways.
    pub(crate) fn new(hashes: &Hashes, attributes: &'a Attributes<'a>) -> Option<Self> {
        let verb = verb_idx(attributes.verb);
        let (target, probe) = match &attributes.target {
            Target::Resource(resource) if resource.resource.contains('/') => return None,
            Target::Resource(resource) => {
                let target = hashes.resource(resource);
                (target, Probe::resource(verb, target))
            }
            Target::Path(path) => {
                let target = hashes.path(path);
                (target, Probe::path(target))
            }
        };
        Some(Self { attributes, verb, target, probe })
    }
}
