//! The four kinds of `rbac.authorization.k8s.io/v1`: decoding, validation and encoding.

mod bootstrap;
mod decode_rbac;
mod encode_rbac;
mod metadata_validation;
mod rbac_schema;
mod role_limits;
#[cfg(test)]
mod tests;
mod validate_rbac;
mod wire;

pub use bootstrap::bootstrap_policy;
pub use decode_rbac::{
    API_VERSION, Kind, RbacDecodeError, RbacObject, UnvalidatedRbacObject, decode_rbac_rules,
    decode_unvalidated_rbac_object,
};
pub use encode_rbac::{encode_rbac_object, encode_rbac_rule, encode_rbac_subject};
pub(crate) use rbac_schema::OBJECT_META;
pub use role_limits::check_role_limits;
pub use validate_rbac::validate_rbac_object_update;
