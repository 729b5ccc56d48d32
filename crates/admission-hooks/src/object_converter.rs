//! The interface by which the caller converts objects and applies their defaults.

use std::borrow::Cow;

use admission::GroupVersionKind;
use api_object::Tree;

/// Converts objects between kinds and applies their defaults.
pub trait ObjectConverter: Sync {
    /// Converts an object to an equivalent kind.
    ///
    /// # Errors
    /// The object cannot be converted.
    fn convert_to_kind(
        &self,
        tree: &Tree,
        to: &GroupVersionKind<'_>,
    ) -> Result<Tree, ObjectConversionError>;

    /// Decodes an object that a hook changed as if a client had sent it, and applies its defaults.
    ///
    /// # Errors
    /// It is no object of the kind.
    fn decode_and_default(
        &self,
        tree: Tree,
        kind: &GroupVersionKind<'_>,
    ) -> Result<Tree, ObjectConversionError>;
}

/// Why an object cannot be converted or decoded; the text is for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ObjectConversionError(pub String);

/// Changes only `apiVersion` and `kind`, which is right for objects without a schema.
#[derive(Debug, Clone, Copy, Default)]
pub struct UntypedConverter;

impl ObjectConverter for UntypedConverter {
    fn convert_to_kind(
        &self,
        tree: &Tree,
        to: &GroupVersionKind<'_>,
    ) -> Result<Tree, ObjectConversionError> {
        let api_version = match to.group {
            "" => to.version.to_owned(),
            group => format!("{group}/{}", to.version),
        };
        let mut converted = tree.clone();
        converted.insert("apiVersion".to_owned(), api_version.into());
        converted.insert("kind".to_owned(), to.kind.into());
        Ok(converted)
    }

    fn decode_and_default(
        &self,
        tree: Tree,
        _kind: &GroupVersionKind<'_>,
    ) -> Result<Tree, ObjectConversionError> {
        if api_object::string_member(&tree, "kind").is_empty() {
            let shown = serde_json::to_string(&tree).unwrap_or_default();
            return Err(ObjectConversionError(format!("Object 'Kind' is missing in '{shown}'")));
        }
        Ok(tree)
    }
}

/// Converts an object unless it has the kind already.
pub(crate) fn convert_unless_same_kind<'t>(
    kinds: &dyn ObjectConverter,
    tree: Cow<'t, Tree>,
    from: &GroupVersionKind<'_>,
    to: &GroupVersionKind<'_>,
) -> Result<Cow<'t, Tree>, ObjectConversionError> {
    if from == to { Ok(tree) } else { kinds.convert_to_kind(&tree, to).map(Cow::Owned) }
}
