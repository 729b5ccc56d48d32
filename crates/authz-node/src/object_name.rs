//! The kind, namespace and name of an object.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use authz::Namespace;

/// The kinds of objects that may be related to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ObjectKind {
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
}

impl ObjectKind {
    /// The name of the kind in an explanation.
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
        }
    }
}

/// The kind, namespace and name of an object. The object need not exist: a pod may refer to a secret
/// that does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectName<'a> {
    pub(crate) kind: ObjectKind,
    /// The cluster scope for cluster-scoped kinds.
    pub(crate) namespace: Namespace<'a>,
    pub(crate) name: &'a str,
}

/// An [`ObjectName`] on the heap. A clone allocates nothing.
#[derive(Debug, Clone)]
pub(crate) struct OwnedObjectName {
    kind: ObjectKind,
    namespace_len: u32,
    /// The namespace, directly followed by the name.
    namespace_and_name: Arc<str>,
}

/// A borrowed or owned object name. Maps that own their keys are searched with a borrowed key through
/// this trait, so a lookup allocates nothing.
pub(crate) trait AsObjectName {
    fn as_object_name(&self) -> ObjectName<'_>;
}

impl AsObjectName for ObjectName<'_> {
    fn as_object_name(&self) -> ObjectName<'_> {
        *self
    }
}

impl AsObjectName for OwnedObjectName {
    fn as_object_name(&self) -> ObjectName<'_> {
        let (namespace, name) = self
            .namespace_and_name
            .split_at_checked(self.namespace_len as usize)
            .unwrap_or_default();
        ObjectName { kind: self.kind, namespace: Namespace::new(namespace), name }
    }
}

impl From<ObjectName<'_>> for OwnedObjectName {
    fn from(object: ObjectName<'_>) -> Self {
        let ObjectName { kind, namespace, name } = object;
        let namespace = namespace.as_str();
        // Names are much shorter than 4 GiB: the store limits the size of an object.
        Self {
            kind,
            namespace_len: namespace.len() as u32,
            namespace_and_name: [namespace, name].concat().into(),
        }
    }
}

impl<'a> Borrow<dyn AsObjectName + 'a> for OwnedObjectName {
    fn borrow(&self) -> &(dyn AsObjectName + 'a) {
        self
    }
}

impl Hash for dyn AsObjectName + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_object_name().hash(state);
    }
}

impl PartialEq for dyn AsObjectName + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.as_object_name() == other.as_object_name()
    }
}

impl Eq for dyn AsObjectName + '_ {}

impl Hash for OwnedObjectName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_object_name().hash(state);
    }
}

impl PartialEq for OwnedObjectName {
    fn eq(&self, other: &Self) -> bool {
        self.as_object_name() == other.as_object_name()
    }
}

impl Eq for OwnedObjectName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owned_name_has_the_parts_of_the_borrowed_one() {
        for (namespace, name) in [("ab", "c"), ("", "abc"), ("größe", "süß"), ("ab", "")] {
            let object =
                ObjectName { kind: ObjectKind::Secret, namespace: Namespace::new(namespace), name };
            assert_eq!(OwnedObjectName::from(object).as_object_name(), object);
        }
    }

    #[test]
    fn names_differ_in_every_part() {
        let owned =
            |kind, namespace, name| OwnedObjectName::from(ObjectName { kind, namespace, name });
        let object = owned(ObjectKind::Secret, Namespace::new("ab"), "c");
        assert_eq!(object, owned(ObjectKind::Secret, Namespace::new("ab"), "c"));
        assert_ne!(object, owned(ObjectKind::ConfigMap, Namespace::new("ab"), "c"));
        assert_ne!(object, owned(ObjectKind::Secret, Namespace::new("a"), "bc"));
        assert_ne!(object, owned(ObjectKind::Secret, Namespace::new("c"), "ab"));
    }
}
