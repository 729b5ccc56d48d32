//! The roles that speak of a target, and what the target is called.
//!
//! A request for what is called so, with a verb that a role surely grants there, is granted by the
//! role: nothing of the role itself has to be read.

use std::sync::Arc;

use authz::{Attributes, Target};
use persistent::Shared;

use crate::compiled::{Verbs, has_verb};
use crate::few::{Crowded, Few};
use crate::question::VerbIdx;
use crate::rule::matches_resource;
use crate::trie::{Page, Trie};

/// The most targets of a page that can still be split.
const PAGE_TARGETS_MAX: usize = 12;

/// The most roles that are known for a target, whatever the verb.
const SPEAKERS_MAX: usize = 48;

/// The roles by the hashes of targets, of which old versions stay readable.
///
/// INVARIANT: whoever changes it adds a role to a target only once, and takes out only what it added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Speakers {
    trie: Trie<Targets, 16>,
}

/// A role that speaks of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speaker {
    pub(crate) role: u32,
    /// The verbs of which it speaks there.
    pub(crate) verbs: Verbs,
    /// Those that it grants there, whatever else is asked.
    pub(crate) granted: Verbs,
}

/// What a target is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TargetName {
    /// The API group, and right behind it the resource as rules write it; or a path.
    text: Box<str>,
    /// Where the API group ends; `None` for a path.
    api_group_end: Option<usize>,
}

/// What is known of a target.
#[derive(Debug, Clone)]
pub(crate) struct Spoken {
    /// INVARIANT: what a role surely grants it grants on the target of this name.
    pub(crate) name: Arc<TargetName>,
    /// Of which verbs somebody speaks, or did.
    verbs: Verbs,
    speakers: Few<Speaker, SPEAKERS_MAX>,
}

/// A page: a flat list.
#[derive(Debug, Clone, Default)]
struct Targets(Arc<[(u64, Spoken)]>);

impl TargetName {
    pub(crate) fn resource(api_group: &str, entry: &str) -> Self {
        let text = [api_group, entry].concat().into();
        Self { text, api_group_end: Some(api_group.len()) }
    }

    pub(crate) fn path(path: &str) -> Self {
        Self { text: path.into(), api_group_end: None }
    }

    /// Some bits of it, for who only wants it to be at hand.
    #[inline]
    pub(crate) fn touch(&self) -> u8 {
        self.text.as_bytes().first().copied().unwrap_or_default()
    }

    /// Reports whether this is the name of what is asked for. Two names may have one hash.
    pub(crate) fn is_of(&self, attributes: &Attributes<'_>) -> bool {
        match (self.api_group_end, &attributes.target) {
            (None, Target::Path(path)) => *self.text == **path,
            (Some(end), Target::Resource(resource)) => {
                let parts = self.text.split_at_checked(end);
                parts.is_some_and(|(api_group, entry)| {
                    api_group == resource.api_group && matches_resource(entry, resource)
                })
            }
            (None, Target::Resource(_)) | (Some(_), Target::Path(_)) => false,
        }
    }
}

impl Spoken {
    /// The roles that speak of the target.
    ///
    /// # Errors
    /// Fails if there are too many.
    #[inline]
    pub(crate) fn speakers(&self) -> Result<&[Speaker], Crowded> {
        self.speakers.all()
    }
}

impl Speakers {
    /// What is known of the target of this hash, unless nobody speaks of the verb there.
    #[inline]
    pub(crate) fn of(&self, target: u64, verb: VerbIdx) -> Option<&Spoken> {
        self.find(target).filter(|spoken| has_verb(spoken.verbs, verb))
    }

    /// What the target of this hash is called, if somebody speaks of it.
    pub(crate) fn name_of(&self, target: u64) -> Option<&Arc<TargetName>> {
        self.find(target).map(|spoken| &spoken.name)
    }

    #[inline]
    fn find(&self, target: u64) -> Option<&Spoken> {
        let targets = self.trie.page(target).0.iter();
        targets.filter(|(own, _)| *own == target).map(|(_, spoken)| spoken).next()
    }

    /// Makes a role a speaker of a target.
    pub(crate) fn insert(&mut self, target: u64, name: &Arc<TargetName>, mut speaker: Speaker) {
        self.trie.page_mut(target).edit(target, |spoken| {
            let new = || Spoken { name: Arc::clone(name), verbs: 0, speakers: Few::default() };
            let mut spoken = spoken.cloned().unwrap_or_else(new);
            if spoken.name != *name {
                // Two names have one hash, so the role has to be read.
                speaker.granted = 0;
            }
            spoken.verbs |= speaker.verbs;
            spoken.speakers.insert(speaker);
            Some(spoken)
        });
    }

    /// Takes out a role that was inserted.
    pub(crate) fn remove(&mut self, target: u64, role: u32) {
        self.trie.take(target, |page| {
            page.edit(target, |spoken| {
                let mut spoken = spoken?.clone();
                spoken.speakers.remove(|own| own.role == role);
                (!spoken.speakers.is_empty()).then_some(spoken)
            });
        });
    }
}

impl Targets {
    /// Changes what is known of a target.
    fn edit(&mut self, target: u64, edit: impl FnOnce(Option<&Spoken>) -> Option<Spoken>) {
        let is_own = |(own, _): &&(u64, Spoken)| *own == target;
        let edited = edit(self.0.iter().find(is_own).map(|(_, spoken)| spoken));
        let others = self.0.iter().filter(|own| !is_own(own)).cloned();
        self.0 = others.chain(edited.map(|spoken| (target, spoken))).collect();
    }
}

impl Shared for Targets {
    fn n_owners(&self) -> usize {
        self.0.n_owners()
    }
}

impl Page for Targets {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn is_full(&self) -> bool {
        self.0.len() >= PAGE_TARGETS_MAX
    }

    fn split<const N: usize>(&self, child: impl Fn(u64) -> usize) -> [Self; N] {
        std::array::from_fn(|idx| {
            let own = self.0.iter().filter(|(target, _)| child(*target) == idx);
            Self(own.cloned().collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use authz::Resource;
    use proptest::prelude::*;

    use super::*;

    type Plain = BTreeMap<u64, Vec<u32>>;

    fn name(text: &str) -> Arc<TargetName> {
        Arc::new(TargetName::path(text))
    }

    fn speaker(role: u32) -> Speaker {
        Speaker { role, verbs: role + 1, granted: 1 }
    }

    /// Few keys, some of which share their highest bits, so that pages are split and can not be.
    fn target() -> impl Strategy<Value = u64> {
        let spread = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        prop_oneof![(0..60u64).prop_map(spread), 0..30u64]
    }

    fn check(speakers: &Speakers, plain: &Plain) -> Result<(), TestCaseError> {
        for (target, want) in plain {
            let spoken = speakers.find(*target);
            prop_assert_eq!(spoken.is_some(), !want.is_empty());
            // What was crowded stays so until nothing is left.
            if let Some(Ok(all)) = spoken.map(Spoken::speakers) {
                let mut roles: Vec<u32> = all.iter().map(|own| own.role).collect();
                roles.sort_unstable();
                prop_assert_eq!(&roles, want);
                prop_assert!(all.iter().all(|own| own.verbs == own.role + 1));
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn agrees_with_a_plain_map_and_keeps_old_versions(
            changes in prop::collection::vec((target(), 0..60u32), 0..1500),
        ) {
            let (mut speakers, mut plain) = (Speakers::default(), Plain::new());
            let mut versions = Vec::new();
            for (step, (target, role)) in changes.into_iter().enumerate() {
                let own = plain.entry(target).or_default();
                match own.binary_search(&role) {
                    Ok(at) => {
                        own.remove(at);
                        speakers.remove(target, role);
                    }
                    Err(at) => {
                        own.insert(at, role);
                        speakers.insert(target, &name("/a"), speaker(role));
                    }
                }
                if step % 300 == 0 {
                    versions.push((speakers.clone(), plain.clone()));
                }
            }
            versions.push((speakers.clone(), plain.clone()));
            for (speakers, plain) in &versions {
                check(speakers, plain)?;
            }
            for (target, roles) in plain {
                roles.into_iter().for_each(|role| speakers.remove(target, role));
            }
            prop_assert!(speakers.trie.is_empty());
        }
    }

    #[test]
    fn of_two_names_with_one_hash_only_the_first_is_surely_granted() {
        let mut speakers = Speakers::default();
        speakers.insert(7, &name("/a"), speaker(2));
        speakers.insert(7, &name("/b"), speaker(3));
        speakers.insert(7, &name("/a"), speaker(4));
        let granted = |speakers: &Speakers| -> Vec<(u32, Verbs)> {
            let all = speakers.find(7).unwrap().speakers().unwrap();
            all.iter().map(|own| (own.role, own.granted)).collect()
        };
        assert_eq!(granted(&speakers), [(2, 1), (3, 0), (4, 1)]);
        // The name stays while somebody speaks of the target.
        speakers.remove(7, 2);
        speakers.insert(7, &name("/b"), speaker(5));
        assert_eq!(granted(&speakers), [(3, 0), (4, 1), (5, 0)]);
    }

    #[test]
    fn a_name_is_that_of_one_target() {
        let log = Resource {
            api_group: "apps",
            resource: "pods",
            subresource: "log",
            ..Resource::default()
        };
        let is_of =
            |name: TargetName, target| name.is_of(&Attributes { user: None, verb: "get", target });
        assert!(is_of(TargetName::resource("apps", "pods/log"), Target::Resource(log)));
        for other in [("apps", "pods"), ("app", "spods/log"), ("", "appspods/log")] {
            assert!(!is_of(TargetName::resource(other.0, other.1), Target::Resource(log)));
        }
        assert!(!is_of(TargetName::path("appspods/log"), Target::Resource(log)));
        assert!(is_of(TargetName::path("/api"), Target::Path("/api")));
        assert!(!is_of(TargetName::path("/api"), Target::Path("/apis")));
        assert!(!is_of(TargetName::resource("", "/api"), Target::Path("/api")));
    }
}
