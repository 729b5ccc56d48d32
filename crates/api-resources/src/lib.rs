//! Which resources there are: the built-in set, custom ones, their discovery, their columns, their
//! own rules.
//!
//! A [`Registry`] is an immutable snapshot of everything that is served. The rest are plain
//! functions from a [`Resource`] and a tree to what a server answers or stores.
//!
//! Owns: the table of built-in resources, what definitions add to it, discovery and OpenAPI
//! documents, defaults and validation of single kinds, table columns, field selectors, storage keys.
//! Must not know: HTTP, stores, clocks, who asks, how the metadata of every object is validated.

#![deny(clippy::indexing_slicing)]

mod resource;
mod verb;

mod built_in;
mod custom;
mod registry;
mod version_order;

mod discovery;
mod document;
mod openapi;
mod schema;

mod admitted_as;
mod complete;
mod kind;

mod age;
mod columns;
mod enforcement;
mod fields;
mod json_path;

mod key;

mod tree;

pub use admitted_as::{equivalents, group_version_resource, written_kind};
pub use built_in::BuiltIn;
pub use columns::{Column, cells, columns};
pub use complete::{complete_create, complete_update};
pub use custom::{
    CLEANUP_FINALIZER, Condition, ConditionStatus, Definition, Deprecation, Names, PrinterColumn,
    Served, Version, establish, set_condition, settle_names,
};
pub use discovery::Discovery;
pub use document::Document;
pub use enforcement::{
    Enforcement, UNENFORCED_PREFIX, Unenforced, enforcement, enforcement_table, unenforced,
};
pub use fields::{check_field_selector, field_value};
pub use key::{DEFAULT_PREFIX, definition_prefix, key, names, prefix, share};
pub use kind::{
    SignerDemand, configuration_kind, forbidden_subject, is_content_changed, is_held,
    keep_other_parts, prepare_create, prepare_delete, prepare_update, set_requester, signer_demand,
    stamp_conditions, validate_create, validate_update,
};
pub use openapi::OpenApi;
pub use registry::{Group, GroupVersionResources, Registry};
pub use resource::{NameRule, Origin, OtherKind, Resource, Scope, Subresource};
pub use verb::{Verb, Verbs};
