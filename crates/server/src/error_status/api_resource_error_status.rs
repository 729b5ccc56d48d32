//! The `Status` of objects of the wrong shape, of objects without a Scale and of unsupported field selectors.

use api_object::Status;
use api_resources::{FieldSelectorError, PrepareError, ScaleError};

use super::IntoStatus;

impl IntoStatus for PrepareError {
    fn into_status(self) -> Status {
        Status::bad_request(self.to_string())
    }
}

impl IntoStatus for FieldSelectorError {
    fn into_status(self) -> Status {
        Status::bad_request(self.to_string())
    }
}

impl IntoStatus for ScaleError {
    fn into_status(self) -> Status {
        Status::error_without_reason(self.to_string())
    }
}
