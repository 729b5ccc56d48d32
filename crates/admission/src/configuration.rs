//! The four kinds that configure admission: what they look like, what they default to, what is wrong
//! with them and what they mean.

mod client;
mod conditions;
mod defaults;
mod kind;
mod names;
mod ordering;
mod ratchet;
mod registration;
mod rules;
mod selectors;
mod shape;
mod v1alpha1;
mod warning;
mod webhooks;

use std::net::IpAddr;

use api_object::{ShapeError, Tree, name};
use field_errors::{FieldErrors, FieldPath};

pub use kind::ConfigurationKind;
pub(crate) use names::check_qualified;
pub use ordering::{ordering_errors, ordering_warnings};
pub(crate) use shape::{Shape, TEXT_LIST, fit_value};
pub use warning::{Warning, WarningCause};

use self::ratchet::Strictness;
use crate::members::objects;

/// Names that only manifests on the server's disk may have.
const STATIC_SUFFIX: &str = ".static.k8s.io";

/// Completes a configuration that was received: it is brought into the shape of its kind, without
/// members that the kind lacks, and gets its defaults. Metadata is left alone.
///
/// # Errors
/// A value is of a type that its field can not have, which makes the request a bad one (400).
pub fn prepare(kind: ConfigurationKind, tree: &mut Tree) -> Result<(), ShapeError> {
    shape::fit(kind, tree)?;
    defaults::set(kind, tree);
    Ok(())
}

/// The places of members that a received configuration has and its kind lacks, such as
/// `webhooks[0].matchPolcy`; metadata is left alone. They go when it is [prepared](prepare).
#[must_use]
pub fn unknown_fields(kind: ConfigurationKind, tree: &Tree) -> Vec<String> {
    shape::unknown(kind, tree)
}

/// The members that an object inside of a configuration may have, by its place such as
/// `webhooks[0].clientConfig`; that of the configuration itself is empty. For whoever misspelled one.
#[must_use]
pub fn known_fields(kind: ConfigurationKind, at: &str) -> Vec<&'static str> {
    shape::members_at(kind, at)
}

/// What is wrong with a new configuration that was [prepared](prepare), its metadata aside.
#[must_use]
pub fn validate_create(kind: ConfigurationKind, new: &Tree) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate(kind, new, None, &mut errors);
    if name(new).ends_with(STATIC_SUFFIX) {
        let at = FieldPath::root("metadata");
        errors.push(at.child("name").invalid(name(new), &static_suffix_detail()));
    }
    errors
}

/// What is wrong with the next state of a configuration, its metadata aside.
///
/// Some rules hold only if the stored state kept them, so that an object from before a rule can
/// still be changed (admission §2.6).
#[must_use]
pub fn validate_update(kind: ConfigurationKind, new: &Tree, old: &Tree) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate(kind, new, Some(old), &mut errors);
    errors
}

fn validate(kind: ConfigurationKind, new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    let at = FieldPath::root(kind.list());
    let entries = objects(new, kind.list());
    let stored = old.map(|old| objects(old, kind.list()));
    match kind {
        ConfigurationKind::Initializer => {
            v1alpha1::check_initializers(&entries, stored.as_deref(), &at, errors);
        }
        ConfigurationKind::ExternalHook => {
            v1alpha1::check_hooks(&entries, stored.as_deref(), &at, errors);
        }
        ConfigurationKind::Mutating | ConfigurationKind::Validating => {
            let strictness = Strictness::towards(&entries, stored.as_deref());
            webhooks::check(kind, &entries, &strictness, &at, errors);
        }
    }
}

/// What the author of a configuration that is accepted should know. `old` is `None` on create.
#[must_use]
pub fn warnings(kind: ConfigurationKind, new: &Tree, old: Option<&Tree>) -> Vec<Warning> {
    warning::find(kind, new, old)
}

/// Warns of webhooks whose `url` has an IP address that the server refuses to connect to: the server then
/// refuses every request that such a webhook matches. Host names are resolved only when a webhook is called.
///
/// `refusal` is the check that the HTTPS client makes before it connects; it returns the kind of address, such
/// as `link-local`, if the client refuses it.
#[must_use]
pub fn address_warnings(
    kind: ConfigurationKind,
    new: &Tree,
    refusal: &dyn Fn(IpAddr) -> Option<String>,
) -> Vec<Warning> {
    warning::find_refused_addresses(kind, new, refusal)
}

fn static_suffix_detail() -> String {
    let suffix = go_compat::quote(STATIC_SUFFIX);
    format!(
        "names ending with {suffix} are reserved for static manifest-based configurations and \
         cannot be managed via the API"
    )
}
