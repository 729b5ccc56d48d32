//! The error of a patch that cannot be applied.

use crate::json_patch::{COPIED_BYTES_MAX, OPERATIONS_MAX, PATCH_STEPS_MAX};
use crate::nesting_depth::NESTING_MAX;

/// The reason why a patch cannot be applied. The patch is always at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The body is not JSON. The caller finds this when it decodes the body.
    #[error("invalid JSON patch")]
    NotJson,
    /// The body is JSON, but not a patch of the requested patch type.
    #[error("error decoding patch: {0}")]
    Shape(&'static str),
    /// The patch has more operations than the limit.
    #[error("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {0}")]
    TooManyOperations(usize),
    /// The operations would move or read too many values.
    #[error("the operations of the JSON patch take more than {PATCH_STEPS_MAX} steps")]
    TooMuchWork,
    /// The copies would become too large.
    #[error("the copies of the JSON patch make more than {COPIED_BYTES_MAX} bytes")]
    CopiesTooLarge,
    /// The result would be nested too deeply.
    #[error("the patched object exceeds max depth of {NESTING_MAX}")]
    TooDeep,
    /// An operation names a path that does not exist.
    #[error("operation {0}: missing path")]
    MissingPath(usize),
    /// A `test` operation found another value.
    #[error("operation {0}: test failed")]
    TestFailed(usize),
    /// An operation is unknown or incomplete.
    #[error("operation {0}: unknown or incomplete operation")]
    BadOperation(usize),
    /// The patched document is not an object.
    #[error("the patched document is not an object")]
    NotAnObject,
    /// A directive of a strategic merge patch is malformed.
    #[error("invalid patch format of {0}")]
    Directive(&'static str),
    /// An item of a list does not have the merge key of the list.
    #[error("map: {item} does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The item as JSON, shortened.
        item: String,
        /// The merge key that the item lacks.
        key: &'static str,
    },
    /// The value of `$patch` is neither `replace` nor `delete`.
    #[error("unknown patch type: {0}")]
    UnknownDirective(String),
    /// The items of a list are lists, which cannot be merged.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// The items of a list that is merged are not all of the same type.
    #[error("list element types are not identical")]
    MixedList,
    /// The order of the items contradicts the `$setElementOrder` list of the patch.
    #[error("the order in the patch list does not match the $setElementOrder list")]
    Order,
}
