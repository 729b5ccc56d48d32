//! CustomResourceDefinitions and the resources that they define.

mod accept_names;
mod defined_resources;
mod definition;
mod definition_conditions;
mod definition_defaults;
mod served_version;
mod validate;

pub use accept_names::{accept_names, mark_established};
pub use defined_resources::DefinedResources;
pub use definition::{
    ConditionStatus, Definition, DefinitionCondition, DefinitionVersion, Deprecation,
    PrinterColumn, ResourceNames,
};
pub use definition_conditions::{CLEANUP_FINALIZER, set_condition};
pub use served_version::ServedVersion;

pub(crate) use definition_conditions::prepare_delete;
pub(crate) use definition_defaults::{prepare_create, prepare_update};
pub(crate) use validate::validate;
