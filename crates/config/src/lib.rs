//! Configuration files of authorization: `AuthorizationConfiguration` and
//! `ExternalAuthorizationHookConfiguration`.
//!
//! Owns: the fields, defaults and validation rules of both kinds and their conversion to the
//! configuration of a chain; the published JSON Schema; detection of the kind of any file that the
//! program reads.
//! Must not know: how a chain decides, HTTP, flags, how a diagnostic is shown.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod authorization_config;
pub mod authorization_hooks;
mod file_kind;
mod json_schema;

pub use file_kind::FileKind;
pub use json_schema::{authorization_configuration_json_schema, authorization_hook_json_schema};
