//! Validates the admission configurations in manifests, each by itself and all together.

mod initializer_order;
mod kind_handling;
mod validate_configuration;

pub(crate) use initializer_order::check_initializer_order;
pub(crate) use kind_handling::kind_handling;
pub(crate) use validate_configuration::{
    ValidConfiguration, ValidationRules, validate_configuration,
};
