//! The four kinds that configure admission: their fields, defaults, validation and warnings.

mod check_client_config;
mod check_conditions;
mod check_names;
mod check_ordering;
mod check_rules;
mod check_selectors;
mod check_v1alpha1;
mod check_webhooks;
mod configuration_kind;
mod configuration_warnings;
mod defaults;
mod field_types;
mod ratcheting;
mod require_fail_open_registration;

use std::net::IpAddr;

use api_object::{MetadataTypeError, Tree, name};
use field_errors::{FieldErrors, FieldPath};

pub(crate) use check_names::check_qualified_name;
pub use check_ordering::{initializer_ordering_errors, initializer_ordering_warnings};
pub use configuration_kind::ConfigurationKind;
pub use configuration_warnings::{ConfigurationWarning, WarningKind};
pub(crate) use field_types::{FieldType, STRING_LIST, check_value_type};

use self::ratcheting::UpdateRatchet;
use crate::json_members::read_objects;

/// The suffix of names that only static manifests may have.
const STATIC_MANIFEST_SUFFIX: &str = ".static.k8s.io";

/// Prepares a received configuration: checks the types of its fields, removes unknown members and sets defaults. Metadata
/// is not changed.
///
/// # Errors
/// A field has a value of a wrong type, so the request is a bad request.
pub fn prepare_configuration(
    kind: ConfigurationKind,
    tree: &mut Tree,
) -> Result<(), MetadataTypeError> {
    field_types::check_field_types(kind, tree)?;
    defaults::set_defaults(kind, tree);
    Ok(())
}

/// Returns the paths of unknown members, such as `webhooks[0].matchPolcy`, except in metadata. [`prepare_configuration`] removes them.
#[must_use]
pub fn unknown_configuration_fields(kind: ConfigurationKind, tree: &Tree) -> Vec<String> {
    field_types::unknown_members(kind, tree)
}

/// Returns the members that the object at a path, such as `webhooks[0].clientConfig`, may have; the empty path is the
/// configuration itself. It serves hints for misspelled members.
#[must_use]
pub fn known_configuration_fields(kind: ConfigurationKind, at: &str) -> Vec<&'static str> {
    field_types::known_members_at(kind, at)
}

/// Validates a new configuration that was [prepared](prepare_configuration), except its metadata.
#[must_use]
pub fn validate_configuration_create(kind: ConfigurationKind, new: &Tree) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_configuration_entries(kind, new, None, &mut errors);
    if name(new).ends_with(STATIC_MANIFEST_SUFFIX) {
        let at = FieldPath::root("metadata");
        errors.push(at.child("name").invalid(name(new), &reserved_suffix_detail()));
    }
    errors
}

/// Validates the next state of a configuration, except its metadata.
///
/// Some rules apply only if the stored state satisfies them, so that an object that predates a rule can still be changed.
#[must_use]
pub fn validate_configuration_update(
    kind: ConfigurationKind,
    new: &Tree,
    old: &Tree,
) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_configuration_entries(kind, new, Some(old), &mut errors);
    errors
}

fn validate_configuration_entries(
    kind: ConfigurationKind,
    new: &Tree,
    old: Option<&Tree>,
    errors: &mut FieldErrors,
) {
    let at = FieldPath::root(kind.entries_member_name());
    let entries = read_objects(new, kind.entries_member_name());
    let stored = old.map(|old| read_objects(old, kind.entries_member_name()));
    match kind {
        ConfigurationKind::Initializer => {
            check_v1alpha1::check_initializers(&entries, stored.as_deref(), &at, errors);
        }
        ConfigurationKind::ExternalHook => {
            check_v1alpha1::check_external_hooks(&entries, stored.as_deref(), &at, errors);
        }
        ConfigurationKind::Mutating | ConfigurationKind::Validating => {
            let strictness = UpdateRatchet::for_update(&entries, stored.as_deref());
            check_webhooks::check_webhooks(kind, &entries, &strictness, &at, errors);
        }
    }
}

/// Returns warnings about a valid configuration. `old` is `None` on create.
#[must_use]
pub fn configuration_warnings(
    kind: ConfigurationKind,
    new: &Tree,
    old: Option<&Tree>,
) -> Vec<ConfigurationWarning> {
    configuration_warnings::find_configuration_warnings(kind, new, old)
}

/// Warns of webhooks whose `url` has an IP address that the server refuses to connect to: the server then
/// refuses every request that such a webhook matches. Host names are resolved only when a webhook is called.
///
/// `refusal` is the check that the HTTPS client makes before it connects; it returns the kind of address, such
/// as `link-local`, if the client refuses it.
#[must_use]
pub fn refused_address_warnings(
    kind: ConfigurationKind,
    new: &Tree,
    refusal: &dyn Fn(IpAddr) -> Option<String>,
) -> Vec<ConfigurationWarning> {
    configuration_warnings::warn_of_refused_addresses(kind, new, refusal)
}

fn reserved_suffix_detail() -> String {
    let suffix = go_compat::quote(STATIC_MANIFEST_SUFFIX);
    format!(
        "names ending with {suffix} are reserved for static manifest-based configurations and \
         cannot be managed via the API"
    )
}
