//! What an update means for an object that initializers have yet to act on.

use field_errors::FieldErrors;

use super::initializers::Initializers;
use super::options::InitializerOptions;
use crate::attributes::Attributes;

/// What becomes of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateDecision {
    /// The object is initialized and stays so. What it says about initializers is dropped.
    Ordinary,
    /// Somebody writes a part of the object through a subresource. Whom it waits for
    /// [stays](crate::carry_initializers) as it is stored.
    Carry,
    /// The object is uninitialized and is to say this next. That takes the permission `initialize`,
    /// even if nothing of this is new; without it the answer is
    /// [`update_denied`](crate::update_denied).
    NeedsPermission(Initializers),
}

/// Decides about an update before any hook (admission §6.3, B1 to B5, C1 and C2).
///
/// 1. Without the feature and for exempt resources there are no initializers.
/// 2. Subresources do not touch them.
/// 3. An initialized object stays so.
/// 4. A step that nobody may take is refused, whoever asks.
/// 5. Everything else takes permission.
///
/// Faults of single names are found later, when the object is validated.
///
/// # Errors
/// The step is one that nobody may take (422).
pub fn decide_update(
    options: &InitializerOptions,
    attributes: &Attributes<'_>,
) -> Result<UpdateDecision, FieldErrors> {
    let (Some(new), Some(old)) = (attributes.object, attributes.old_object) else {
        return Ok(UpdateDecision::Ordinary);
    };
    if !options.is_enabled || attributes.exemption().is_some() {
        return Ok(UpdateDecision::Ordinary);
    }
    if !attributes.subresource.is_empty() {
        return Ok(UpdateDecision::Carry);
    }
    let (new, old) = (Initializers::of(new), Initializers::of(old));
    if new.is_empty() && old.is_empty() {
        return Ok(UpdateDecision::Ordinary);
    }
    let errors = new.transition_errors(&old);
    errors.into_result(UpdateDecision::NeedsPermission(new))
}
