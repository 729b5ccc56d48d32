//! The serde types of a review, borrowed from the line or from its tree.
//!
//! The derived readers are the fast path. They refuse escapes, `null` instead of texts and lists,
//! and repeated or unknown fields; the slower reader that tracks positions handles those.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub(super) const KIND: &str = "SubjectAccessReview";
pub(super) const V1: &str = "authorization.k8s.io/v1";
pub(super) const V1BETA1: &str = "authorization.k8s.io/v1beta1";

/// A whole review. The status that a client sends is ignored.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PlainReview<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    #[serde(default, rename = "metadata", deserialize_with = "deserialize_optional_object")]
    _metadata: Option<EmptyMetadata>,
    #[serde(borrow, deserialize_with = "deserialize_object")]
    pub(super) spec: Spec<'a>,
    #[serde(default, rename = "status", deserialize_with = "deserialize_optional_object")]
    _status: Option<IgnoredStatus>,
}

/// Empty metadata, as clients write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyMetadata {
    #[serde(default, rename = "creationTimestamp")]
    _creation_timestamp: Option<()>,
}

/// The status that a client sends; its types are checked and its values ignored.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct IgnoredStatus {
    #[serde(default, rename = "allowed")]
    _allowed: bool,
    #[serde(default, rename = "denied")]
    _denied: bool,
    #[serde(default, rename = "reason")]
    _reason: String,
    #[serde(default, rename = "evaluationError")]
    _evaluation_error: String,
}

/// The spec of a review. Absent parts are empty.
///
/// Serializes as Kubernetes writes it: without empty parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are those of the review, by their own names")]
pub struct Spec<'a> {
    #[serde(
        borrow,
        deserialize_with = "deserialize_optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub resource_attributes: Option<ResourceAttributes<'a>>,
    #[serde(
        borrow,
        deserialize_with = "deserialize_optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub non_resource_attributes: Option<NonResourceAttributes<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub user: &'a str,
    #[serde(skip_serializing_if = "is_none_or_empty")]
    pub groups: Option<Vec<&'a str>>,
    /// The name of `groups` in version v1beta1.
    #[serde(skip_serializing_if = "is_none_or_empty")]
    pub group: Option<Vec<&'a str>>,
    #[serde(
        deserialize_with = "deserialize_map_without_duplicates",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub extra: BTreeMap<&'a str, Vec<&'a str>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uid: &'a str,
}

/// The resource that a review asks about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are those of the review, by their own names")]
pub struct ResourceAttributes<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub verb: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub subresource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: &'a str,
    #[serde(
        borrow,
        deserialize_with = "deserialize_optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub field_selector: Option<SelectorAttributes<'a>>,
    #[serde(
        borrow,
        deserialize_with = "deserialize_optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub label_selector: Option<SelectorAttributes<'a>>,
}

/// The path that a review asks about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are those of the review, by their own names")]
pub struct NonResourceAttributes<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub path: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub verb: &'a str,
}

/// A selector as a review writes it: as text or as a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are those of the review, by their own names")]
pub struct SelectorAttributes<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub raw_selector: &'a str,
    #[serde(
        borrow,
        deserialize_with = "deserialize_objects",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub requirements: Vec<SelectorRequirement<'a>>,
}

/// One requirement of a selector that is written as a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are those of the review, by their own names")]
pub struct SelectorRequirement<'a> {
    pub key: &'a str,
    pub operator: &'a str,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<&'a str>,
}

#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
fn is_none_or_empty(list: &Option<Vec<&str>>) -> bool {
    list.as_ref().is_none_or(Vec::is_empty)
}

/// A JSON object. The derived deserializer would also accept a list of the fields in order.
struct JsonObject<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = JsonObject<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(JsonObject)
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Parses the text of a JSON object. UTF-8 is validated once for the whole text and not per string.
pub(super) fn parse_json_object<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Option<T> {
    let text = std::str::from_utf8(text).ok()?;
    serde_json::from_str::<JsonObject<T>>(text).ok().map(|JsonObject(value)| value)
}

/// Deserializes a map without duplicate keys. The derived deserializer would silently keep the last value.
fn deserialize_map_without_duplicates<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<&'de str, Vec<&'de str>>, D::Error> {
    struct MapVisitor;

    impl<'de> Visitor<'de> for MapVisitor {
        type Value = BTreeMap<&'de str, Vec<&'de str>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of lists")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = BTreeMap::new();
            while let Some((key, values)) = map.next_entry()? {
                if found.insert(key, values).is_some() {
                    return Err(A::Error::custom("a key occurs twice"));
                }
            }
            Ok(found)
        }
    }

    deserializer.deserialize_map(MapVisitor)
}

fn deserialize_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    JsonObject::deserialize(deserializer).map(|JsonObject(value)| value)
}

fn deserialize_optional_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let found = Option::<JsonObject<T>>::deserialize(deserializer)?;
    Ok(found.map(|JsonObject(value)| value))
}

fn deserialize_objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let found = Vec::<JsonObject<T>>::deserialize(deserializer)?;
    Ok(found.into_iter().map(|JsonObject(value)| value).collect())
}
