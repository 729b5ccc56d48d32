//! Configurations of dynamic admission, as manifests hold them: what is wrong with one, and what is
//! wrong with all of them together.

mod initializer_order;
mod kind_handling;
mod validate_configuration;

pub(crate) use initializer_order::check_initializer_order;
pub(crate) use kind_handling::kind_handling;
pub(crate) use validate_configuration::{
    ValidConfiguration, ValidationRules, validate_configuration,
};
