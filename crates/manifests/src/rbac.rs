//! The four kinds of `rbac.authorization.k8s.io/v1`: from JSON to policy and back.

mod bootstrap;
mod decode;
mod encode;
mod limits;
mod metadata;
mod shapes;
#[cfg(test)]
mod tests;
mod validate;
mod wire;

pub use bootstrap::bootstrap_policy;
pub use decode::{API_VERSION, DecodeError, Kind, Manifest, Object, decode, decode_rules};
pub use encode::{encode, encode_rule, encode_subject};
pub use limits::limit_errors;
pub(crate) use shapes::OBJECT_META;
pub use validate::validate_update;
