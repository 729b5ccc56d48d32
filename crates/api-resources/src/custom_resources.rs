//! CustomResourceDefinitions and the resources that they define.

mod accept_definition_names;
mod custom_resource_definition;
mod defined_resources;
mod definition_conditions;
mod definition_defaults;
mod definition_validation;
mod served_version;

pub use accept_definition_names::{accept_definition_names, mark_established};
pub use custom_resource_definition::{
    ConditionStatus, CustomResourceDefinition, DefinitionCondition, DefinitionVersion,
    PrinterColumn, ResourceNames, VersionDeprecation,
};
pub use defined_resources::DefinedResources;
pub use definition_conditions::{CLEANUP_FINALIZER, set_definition_condition};
pub use served_version::ServedVersion;

pub(crate) use definition_conditions::prepare_definition_delete;
pub(crate) use definition_defaults::{prepare_definition_create, prepare_definition_update};
pub(crate) use definition_validation::validate;
