//! Names and their places, found either way.

use crate::name::{Name, OwnName};
use crate::set::{Set, gather, join, spread};
use crate::slab::{Id, Slab};

/// Names by place, and places by the hashes of names.
///
/// What else is known of what bears the names lies elsewhere, at the same places. A question reads
/// names and little more, so they are kept dense: of a large cluster, more of them stay in the cache.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// As many side by side as can still be copied for every change: questions go by place.
    names: Slab<OwnName, 128, 16>,
    /// For each name: its hash, and its place, spread.
    places: Set,
}

impl Names {
    pub(crate) fn get(&self, id: Id) -> Option<&OwnName> {
        self.names.get(id)
    }

    /// The place of a name.
    pub(crate) fn find(&self, hash: u32, name: Name<'_>) -> Option<Id> {
        let is_wanted = |id| self.get(id).is_some_and(|own| own.is(name));
        self.places.find(hash, |place| is_wanted(gather(place))).map(gather)
    }

    /// Adds a name that is not there, unless there are too many.
    pub(crate) fn add(&mut self, hash: u32, name: Name<'_>) -> Option<Id> {
        let id = self.names.insert(OwnName::new(name))?;
        self.places.insert(join(hash, spread(id)));
        Some(id)
    }

    /// Removes the name of a place, whose hash this is.
    pub(crate) fn remove(&mut self, hash: u32, id: Id) {
        if self.places.remove(join(hash, spread(id))) {
            self.names.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Kind;
    use crate::slab::Leaf;

    /// All names collide, so the names themselves have to tell them apart.
    #[test]
    fn names_that_share_a_hash_keep_their_places() {
        let name = |name| Name { kind: Kind::Secret, namespace: "default", name };
        let mut names = Names::default();
        let [a, b] = ["a", "b"].map(|own| names.add(7, name(own)).unwrap());
        assert_eq!(names.find(7, name("a")), Some(a));
        assert_eq!(names.find(7, name("b")), Some(b));
        assert_eq!(names.find(7, name("c")), None);
        assert_eq!(names.find(8, name("a")), None);
        names.remove(8, a);
        assert_eq!(names.find(7, name("a")), Some(a));
        names.remove(7, a);
        assert_eq!(names.find(7, name("a")), None);
        assert_eq!(names.get(b).map(OwnName::get), Some(name("b")));
        assert_eq!(names.add(7, name("c")), Some(a));
    }

    #[test]
    fn a_name_takes_what_a_processor_reads_at_once() {
        assert_eq!(size_of::<Leaf<OwnName, 16>>(), 16 * 64);
        assert_eq!(align_of::<Leaf<OwnName, 16>>(), 64);
    }
}
