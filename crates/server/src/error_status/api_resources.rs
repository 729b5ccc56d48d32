//! The `Status` of objects of the wrong shape and of unsupported field selectors.

use api_object::Status;
use api_resources::{FieldSelectorError, PrepareError};

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
