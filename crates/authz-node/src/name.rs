//! What vertices are called.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use foldhash::quality::RandomState;
use persistent::Shared;

/// The kinds of vertices. Edges lead from a kind to one that is listed later, hence no cycles, and
/// no path is longer than the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
    ServiceAccount,
    ResourceClaim,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    VolumeAttachment,
    ResourceSlice,
    PodCertificateRequest,
    Node,
}

impl Kind {
    /// The name in explanations.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
            Self::ServiceAccount => "serviceaccount",
            Self::ResourceClaim => "resourceclaim",
            Self::PersistentVolume => "persistentvolume",
            Self::PersistentVolumeClaim => "persistentvolumeclaim",
            Self::Pod => "pod",
            Self::VolumeAttachment => "volumeattachment",
            Self::ResourceSlice => "resourceslice",
            Self::PodCertificateRequest => "podcertificaterequest",
            Self::Node => "node",
        }
    }
}

/// What a vertex stands for. The object need not exist: a pod may name a secret that does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Name<'a> {
    pub(crate) kind: Kind,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> Name<'a> {
    pub(crate) const fn node(name: &'a str) -> Self {
        Self { kind: Kind::Node, namespace: "", name }
    }
}

/// The hash of a namespace and a name. Half of a hash is enough: names that share it are few, and
/// they are compared anyway.
#[inline]
pub(crate) fn hash(namespace: &str, name: &str, hasher: &RandomState) -> u32 {
    let mut hasher = hasher.build_hasher();
    if !namespace.is_empty() {
        hasher.write(namespace.as_bytes());
    }
    hasher.write(name.as_bytes());
    (hasher.finish() >> 32) as u32
}

/// A name that is kept.
///
/// Namespace and name, one after the other, lie in the value itself if they are not long, and the
/// value takes what a processor reads at once, so that comparing them waits for memory once. Whatever
/// is allowed was compared with two such names.
#[derive(Debug, Clone)]
pub(crate) enum OwnName {
    Short(Short),
    Long { kind: Kind, namespace_len: usize, both: Arc<str> },
}

/// INVARIANT: the first so many bytes are a namespace and the next so many are a name.
#[derive(Debug, Clone)]
#[repr(C, align(64))] // Aligned here and not around: else the values would be twice as long.
pub(crate) struct Short {
    kind: Kind,
    namespace_len: u8,
    name_len: u8,
    bytes: [u8; SHORT_MAX],
}

/// Bytes of a namespace and a name together that lie in the value. Names that Kubernetes makes up
/// have about 40.
const SHORT_MAX: usize = 61;

/// Long names are few, so their owners are not worth to be read.
impl Shared for OwnName {
    fn n_owners(&self) -> usize {
        0
    }
}

impl OwnName {
    pub(crate) fn new(name: Name<'_>) -> Self {
        short(name).unwrap_or_else(|| long(name))
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Short(Short { kind, .. }) | Self::Long { kind, .. } => *kind,
        }
    }

    /// Reports whether this is the name.
    #[inline]
    pub(crate) fn is(&self, name: Name<'_>) -> bool {
        match self {
            Self::Short(own) => own.is(name),
            Self::Long { .. } => self.get() == name,
        }
    }

    pub(crate) fn get(&self) -> Name<'_> {
        let (namespace, name) = self.parts();
        // They were texts when they were put in.
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        Name { kind: self.kind(), namespace: text(namespace), name: text(name) }
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        match self {
            Self::Short(Short { namespace_len, name_len, bytes, .. }) => {
                let (namespace, rest) = bytes.split_at(usize::from(*namespace_len).min(SHORT_MAX));
                (namespace, rest.get(..usize::from(*name_len)).unwrap_or_default())
            }
            Self::Long { namespace_len, both, .. } => {
                both.as_bytes().split_at((*namespace_len).min(both.len()))
            }
        }
    }
}

impl Short {
    /// The lengths come first: where they differ, no text is compared.
    #[inline]
    fn is(&self, name: Name<'_>) -> bool {
        let Name { kind, namespace, name } = name;
        let (namespace_len, name_len) = (namespace.len(), name.len());
        self.kind == kind
            && usize::from(self.namespace_len) == namespace_len
            && usize::from(self.name_len) == name_len
            && self.bytes.get(namespace_len..namespace_len + name_len) == Some(name.as_bytes())
            && (namespace.is_empty()
                || self.bytes.get(..namespace_len) == Some(namespace.as_bytes()))
    }
}

fn short(name: Name<'_>) -> Option<OwnName> {
    let Name { kind, namespace, name } = name;
    let mut bytes = [0; SHORT_MAX];
    let both = bytes.get_mut(..namespace.len().checked_add(name.len())?)?;
    let (first, second) = both.split_at_mut(namespace.len());
    first.copy_from_slice(namespace.as_bytes());
    second.copy_from_slice(name.as_bytes());
    let namespace_len = u8::try_from(namespace.len()).ok()?;
    let name_len = u8::try_from(name.len()).ok()?;
    Some(OwnName::Short(Short { kind, namespace_len, name_len, bytes }))
}

fn long(name: Name<'_>) -> OwnName {
    let Name { kind, namespace, name } = name;
    OwnName::Long { kind, namespace_len: namespace.len(), both: [namespace, name].concat().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_whole_however_long() {
        for namespace_len in [0, 1, 30, SHORT_MAX - 1, SHORT_MAX, SHORT_MAX + 1, 300] {
            for name_len in [0, 1, 22, SHORT_MAX - 30, SHORT_MAX - 29, SHORT_MAX, 300] {
                let (namespace, name) = ("n".repeat(namespace_len), "o".repeat(name_len));
                let name = Name { kind: Kind::Pod, namespace: &namespace, name: &name };
                let own = OwnName::new(name);
                assert_eq!(own.get(), name);
                assert!(own.is(name));
                let is_short = matches!(own, OwnName::Short(_));
                assert_eq!(is_short, namespace_len + name_len <= SHORT_MAX);
            }
        }
    }

    #[test]
    fn names_differ_in_every_part() {
        for (namespace, name) in
            [("ab", "c"), ("größe", "süß"), ("", "pvc-long".repeat(9).as_str())]
        {
            let own = OwnName::new(Name { kind: Kind::Secret, namespace, name });
            assert!(own.is(Name { kind: Kind::Secret, namespace, name }));
            assert!(!own.is(Name { kind: Kind::ConfigMap, namespace, name }));
            assert!(!own.is(Name { kind: Kind::Secret, namespace: "a", name }));
            assert!(!own.is(Name { kind: Kind::Secret, namespace, name: "bc" }));
            assert!(!own.is(Name { kind: Kind::Secret, namespace: name, name: namespace }));
        }
    }
}
