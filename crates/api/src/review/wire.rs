//! The JSON of a review, borrowed from the line or from the tree made of it.
//!
//! The derived reader is the quick look: it refuses escapes, `null` in place of texts and lists,
//! repeated fields and unknown ones, all of which the reader with places takes up.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

pub(super) const KIND: &str = "SubjectAccessReview";
pub(super) const V1: &str = "authorization.k8s.io/v1";
pub(super) const V1BETA1: &str = "authorization.k8s.io/v1beta1";

/// A whole review. What a client says about the answer is ignored.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Review<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    #[serde(default, rename = "metadata", deserialize_with = "optional_object")]
    _metadata: Option<NoMetadata>,
    #[serde(borrow, deserialize_with = "object")]
    pub(super) spec: Spec<'a>,
    #[serde(default, rename = "status")]
    _status: Option<IgnoredAny>,
}

/// Metadata that says nothing, as clients write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoMetadata {
    #[serde(default, rename = "creationTimestamp")]
    _creation_timestamp: Option<()>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Spec<'a> {
    #[serde(borrow, deserialize_with = "optional_object")]
    pub(super) resource_attributes: Option<ResourceAttributes<'a>>,
    #[serde(borrow, deserialize_with = "optional_object")]
    pub(super) non_resource_attributes: Option<NonResourceAttributes<'a>>,
    pub(super) user: &'a str,
    pub(super) groups: Option<Vec<&'a str>>,
    /// The name of `groups` in version v1beta1.
    pub(super) group: Option<Vec<&'a str>>,
    pub(super) uid: &'a str,
    pub(super) extra: BTreeMap<&'a str, Vec<&'a str>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ResourceAttributes<'a> {
    pub(super) namespace: &'a str,
    pub(super) verb: &'a str,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) resource: &'a str,
    pub(super) subresource: &'a str,
    pub(super) name: &'a str,
    #[serde(borrow, deserialize_with = "optional_object")]
    pub(super) field_selector: Option<Selector<'a>>,
    #[serde(borrow, deserialize_with = "optional_object")]
    pub(super) label_selector: Option<Selector<'a>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct NonResourceAttributes<'a> {
    pub(super) path: &'a str,
    pub(super) verb: &'a str,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Selector<'a> {
    pub(super) raw_selector: &'a str,
    #[serde(borrow, deserialize_with = "objects")]
    pub(super) requirements: Vec<Requirement<'a>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Requirement<'a> {
    pub(super) key: &'a str,
    pub(super) operator: &'a str,
    #[serde(borrow)]
    pub(super) values: Vec<&'a str>,
}

/// An object. A derived reader also takes a list of the fields in order, which JSON does not mean.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Reads the text of an object.
pub(super) fn from_object<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    serde_json::from_str::<Object<T>>(text).ok().map(|Object(value)| value)
}

fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Object::deserialize(deserializer).map(|Object(value)| value)
}

fn optional_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let found = Option::<Object<T>>::deserialize(deserializer)?;
    Ok(found.map(|Object(value)| value))
}

fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let found = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(found.into_iter().map(|Object(value)| value).collect())
}
