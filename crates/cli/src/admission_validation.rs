//! Validates the admission configurations in manifests, each by itself and all together.

mod admission_kind_handling;
mod initializer_order;
mod validate_configuration;

pub(crate) use admission_kind_handling::admission_kind_handling;
pub(crate) use initializer_order::check_initializer_order;
pub(crate) use validate_configuration::{
    ValidConfiguration, ValidationMode, validate_configuration,
};
