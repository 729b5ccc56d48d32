//! Deserializers for the objects in a response.
//!
//! A derived `Deserialize` accepts an array in place of an object. Go does not, and this server must not
//! read a decision from an array.

use api_object::Tree;
use serde::Deserialize as _;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde_json::Value;

/// Reads a member that is an object, or null.
pub(crate) fn deserialize_object_or_null<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let tree = Option::<Tree>::deserialize(deserializer)?;
    tree.map(|tree| T::deserialize(Value::Object(tree)).map_err(D::Error::custom)).transpose()
}

/// Reads a member that is a list of objects, or null.
pub(crate) fn deserialize_objects_or_null<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let trees = Option::<Vec<Option<Tree>>>::deserialize(deserializer)?.unwrap_or_default();
    let read = |tree: Option<Tree>| T::deserialize(Value::Object(tree.unwrap_or_default()));
    trees.into_iter().map(read).collect::<Result<_, _>>().map_err(D::Error::custom)
}
