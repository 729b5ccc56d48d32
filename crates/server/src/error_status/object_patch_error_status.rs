//! The `Status` of patches that cannot be applied.

use api_object::Status;
use object_patch::PatchError;

use super::IntoStatus;

impl IntoStatus for PatchError {
    fn into_status(self) -> Status {
        match self {
            Self::NotJson | Self::Shape(_) | Self::Directive(_) => {
                Status::bad_request(self.to_string())
            }
            Self::TooManyOperations(_) | Self::TooMuchWork | Self::TooDeep => {
                Status::too_large_with_reason(&self.to_string())
            }
            // Kubernetes does not report which operation of a JSON Patch failed.
            Self::CopiesTooLarge
            | Self::MissingPath(_)
            | Self::TestFailed(_)
            | Self::BadOperation(_) => Status::unprocessable_patch(),
            Self::NotAnObject
            | Self::NoMergeKey { .. }
            | Self::UnknownDirective(_)
            | Self::ListOfLists
            | Self::MixedList
            | Self::Order => Status { message: self.to_string(), ..Status::unprocessable_patch() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_those_of_kubernetes() {
        for (error, code, message) in [
            (PatchError::NotJson, 400, "invalid JSON patch"),
            (
                PatchError::TooManyOperations(10_001),
                413,
                "Request entity too large: The allowed maximum operations in a JSON patch is \
                 10000, got 10001",
            ),
            (
                PatchError::TestFailed(0),
                422,
                "the server rejected our request due to an error in our request",
            ),
            (
                PatchError::NoMergeKey { item: "{}".to_owned(), key: "name" },
                422,
                "map: {} does not contain declared merge key: name",
            ),
            (PatchError::Directive("retainKeys"), 400, "invalid patch format of retainKeys"),
        ] {
            let status = error.into_status();
            assert_eq!((status.code, status.message.as_str()), (code, message));
        }
    }
}
