//! The refusal of a client that may not write initializers.

use api_object::GroupResource;

use crate::attributes::Operation;

/// The error of a client that writes the initializers of an object without the permission `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", describe_write(*.operation))]
pub struct InitializeDenied {
    /// The operation of the request: create, or update of an object with pending initializers.
    pub operation: Operation,
    /// The resource of the object.
    pub resource: GroupResource,
    /// The name of the object.
    pub name: String,
    /// The reason of the authorizer.
    pub reason: String,
}

const fn describe_write(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create with initializers denied",
        Operation::Update | Operation::Delete | Operation::Connect => {
            "update to uninitialized resource denied"
        }
    }
}
