//! The four kinds of `rbac.authorization.k8s.io/v1`: decoding, validation and encoding.

mod bootstrap;
mod decode;
mod encode;
mod metadata;
mod role_limits;
mod schema;
#[cfg(test)]
mod tests;
mod validate;
mod wire;

pub use bootstrap::bootstrap_policy;
pub use decode::{
    API_VERSION, DecodeError, Kind, RbacObject, UnvalidatedObject, decode_object, decode_rules,
};
pub use encode::{encode_object, encode_rule, encode_subject};
pub use role_limits::check_role_limits;
pub(crate) use schema::OBJECT_META;
pub use validate::validate_object_update;
