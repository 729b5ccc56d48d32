//! Decides what an update does to the pending initializers of an object.

use field_errors::FieldErrors;

use super::initializer_options::InitializerOptions;
use super::initializers_field::Initializers;
use crate::attributes::Attributes;

/// The change that an update makes to `metadata.initializers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitializersOnUpdate {
    /// The object has no pending initializers, before and after. The field is removed.
    NoInitializers,
    /// The request writes a subresource. The stored field is [kept](crate::copy_initializers).
    KeepStored,
    /// The object has pending initializers, and this is the new value of the field. The client needs the permission
    /// `initialize`, even if the value does not change; without it, the error is
    /// [`InitializeDenied`](crate::InitializeDenied).
    NeedsPermission(Initializers),
}

/// Decides about an update before any hook is called.
///
/// 1. If initializers are disabled or the resource is exempt, there are none.
/// 2. A write to a subresource keeps the stored field.
/// 3. An object without pending initializers cannot get any.
/// 4. A transition that no client may make is refused.
/// 5. All other changes need permission.
///
/// The names in the list are validated later, with the object.
///
/// # Errors
/// No client may make this transition.
pub fn decide_initializers_on_update(
    options: &InitializerOptions,
    attributes: &Attributes<'_>,
) -> Result<InitializersOnUpdate, FieldErrors> {
    let (Some(new), Some(old)) = (attributes.object, attributes.old_object) else {
        return Ok(InitializersOnUpdate::NoInitializers);
    };
    if !options.are_initializers_enabled || attributes.exemption().is_some() {
        return Ok(InitializersOnUpdate::NoInitializers);
    }
    if !attributes.subresource.is_empty() {
        return Ok(InitializersOnUpdate::KeepStored);
    }
    let (new, old) = (Initializers::from_object(new), Initializers::from_object(old));
    if new.is_empty() && old.is_empty() {
        return Ok(InitializersOnUpdate::NoInitializers);
    }
    let errors = new.validate_initializers_change(&old);
    errors.into_result(InitializersOnUpdate::NeedsPermission(new))
}
