//! CustomResourceDefinitions and the resources that they define.

mod accept_names;
mod definition;
mod definition_defaults;
mod lifecycle;
mod served_version;
mod validate;

pub use accept_names::{accept_names, mark_established};
pub use definition::{
    Condition, ConditionStatus, Definition, Deprecation, Names, PrinterColumn, Version,
};
pub use lifecycle::{CLEANUP_FINALIZER, set_condition};
pub use served_version::ServedVersion;

pub(crate) use definition_defaults::{prepare_create, prepare_update};
pub(crate) use lifecycle::prepare_delete;
pub(crate) use validate::validate;
