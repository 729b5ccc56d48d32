//! What the caller knows of kinds.

use std::borrow::Cow;

use admission::GroupVersionKind;
use api_object::Tree;

/// Knows the kinds of objects.
pub trait Kinds: Sync {
    /// The same object as another kind that stands for it.
    ///
    /// # Errors
    /// Says why that can not be.
    fn convert(&self, tree: &Tree, to: &GroupVersionKind<'_>) -> Result<Tree, String>;

    /// An object as the server would have received it, with its defaults, after a hook changed it.
    ///
    /// # Errors
    /// Says why it is no object of the kind.
    fn settle(&self, tree: Tree, kind: &GroupVersionKind<'_>) -> Result<Tree, String>;
}

/// Knows nothing of kinds but their names: right for objects that have no schema.
#[derive(Debug, Clone, Copy, Default)]
pub struct Untyped;

impl Kinds for Untyped {
    fn convert(&self, tree: &Tree, to: &GroupVersionKind<'_>) -> Result<Tree, String> {
        let api_version = match to.group {
            "" => to.version.to_owned(),
            group => format!("{group}/{}", to.version),
        };
        let mut converted = tree.clone();
        converted.insert("apiVersion".to_owned(), api_version.into());
        converted.insert("kind".to_owned(), to.kind.into());
        Ok(converted)
    }

    fn settle(&self, tree: Tree, _kind: &GroupVersionKind<'_>) -> Result<Tree, String> {
        if api_object::string_member(&tree, "kind").is_empty() {
            let shown = serde_json::to_string(&tree).unwrap_or_default();
            return Err(format!("Object 'Kind' is missing in '{shown}'"));
        }
        Ok(tree)
    }
}

/// An object of one kind as another, which it may be already.
pub(crate) fn as_kind<'t>(
    kinds: &dyn Kinds,
    tree: Cow<'t, Tree>,
    from: &GroupVersionKind<'_>,
    to: &GroupVersionKind<'_>,
) -> Result<Cow<'t, Tree>, String> {
    if from == to { Ok(tree) } else { kinds.convert(&tree, to).map(Cow::Owned) }
}
