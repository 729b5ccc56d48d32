//! The one table from the errors of inner crates to the `Status` that clients receive.
//!
//! Inner crates return typed errors and know no status codes. Each file here belongs to one inner crate and
//! gives every error of that crate its code, reason and message, which are those of Kubernetes.

mod access_reviews;
mod admission;
mod admission_hooks;
mod api_resources;
mod authn;
mod codec;
mod object_patch;

use api_object::Status;

pub(crate) use self::admission::{
    InitializationTimeoutCause, UninitializedObject, being_initialized_status,
    deleted_while_waiting_status, initialization_failure_status, initialization_timeout_status,
};

/// Converts an error of an inner crate to the `Status` of the response.
pub trait IntoStatus {
    /// Returns the `Status` that a client receives for this error.
    fn into_status(self) -> Status;
}
