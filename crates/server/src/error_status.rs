//! The one table from the errors of inner crates to the `Status` that clients receive.
//!
//! Inner crates return typed errors and know no status codes. Each file here belongs to one inner crate and
//! gives every error of that crate its code, reason and message, which are those of Kubernetes.

mod access_review_error_status;
mod admission_error_status;
mod admission_hook_error_status;
mod api_resource_error_status;
mod authn_error_status;
mod codec_error_status;
mod object_patch_error_status;

use api_object::Status;

pub(crate) use self::admission_error_status::{
    ObjectInitializationTimeoutCause, UninitializedObject, deleted_during_initialization_status,
    object_being_initialized_status, object_initialization_failure_status,
    object_initialization_timeout_status,
};

/// Converts an error of an inner crate to the `Status` of the response.
pub trait IntoStatus {
    /// Returns the `Status` that a client receives for this error.
    fn into_status(self) -> Status;
}
