//! The served resources: built-in and custom ones, their discovery, columns and validation.
//!
//! A [`Registry`] is an immutable snapshot of the served resources. The other items are plain functions
//! over a [`Resource`] and an object.
//!
//! Owns: the table of built-in resources, the resources of definitions, the names that people write for
//! resources, discovery and OpenAPI documents, defaults and validation of single kinds, table columns, field selectors, storage
//! keys.
//! Must not know: HTTP, stores, clocks, users, the validation of metadata.

#![deny(clippy::indexing_slicing)]

mod resource;
mod verb;

mod built_in_resources;
mod custom_resources;
mod registry;
mod resource_name;
mod version_order;

mod discovery;
mod openapi;
mod published_document;
mod schema;

mod admission_names;
mod complete_object;
mod kind_rules;
mod scale;

mod columns;
mod field_selector;
mod human_age;
mod json_path;
mod kind_enforcement;

mod storage_key;

mod json_members;

pub use admission_names::{equivalent_resources, group_version_resource, kind_of_written_object};
pub use built_in_resources::BuiltInResource;
pub use columns::{Column, table_cells, table_columns};
pub use complete_object::{complete_new_object, complete_updated_object};
pub use custom_resources::{
    CLEANUP_FINALIZER, ConditionStatus, CustomResourceDefinition, DefinedResources,
    DefinitionCondition, DefinitionVersion, PrinterColumn, ResourceNames, ServedVersion,
    VersionDeprecation, accept_definition_names, mark_established, set_definition_condition,
};
pub use discovery::Discovery;
pub use field_selector::{FieldSelectorError, check_field_selector, selector_field_value};
pub use kind_enforcement::{
    EnforcingComponent, UNENFORCED_PREFIX, UnenforcedObject, enforcement_table_rows,
    enforcing_component, find_unenforced_rule,
};
pub use kind_rules::{
    PrepareError, SignerPermission, blocks_removal, configuration_kind,
    forbidden_node_certificate_reason, forbidden_subject_reason, is_spec_changed, prepare_create,
    prepare_delete, prepare_update, required_signer_permission, reset_unwritable_fields,
    set_condition_times, set_requester, unspecified_job_pods_deletion_warning, validate_create,
    validate_update,
};
pub use openapi::OpenApi;
pub use published_document::EncodedDocument;
pub use registry::{DefinitionChange, Group, GroupVersionResources, Registry};
pub use resource::{NameRule, Resource, ResourceOrigin, Scope, Subresource, SubresourceKind};
pub use resource_name::{
    DiscoveredResourceNames, ParseResourceNameError, ResolvedResource, ResourceName,
    ResourceNameError, ResourceNameTable, UnknownVerb, VerbTarget, check_verb, qualified_name,
};
pub use scale::{
    ObjectScale, ReplicaPaths, ScaleError, scale_of_object, scale_resource, set_replicas,
};
pub use storage_key::{
    DEFAULT_PREFIX, definition_key_prefix, list_key_prefix, namespace_and_name_in_key, object_key,
    tenant_of_key,
};
pub use verb::{Verb, Verbs};
