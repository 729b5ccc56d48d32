//! Validates the admission configurations in manifests, each by itself and all together.

mod initializer_order;
mod select_admission_kinds;
mod validate_admission_configuration;

pub(crate) use initializer_order::check_initializer_order;
pub(crate) use select_admission_kinds::decide_admission_kind_handling;
pub(crate) use validate_admission_configuration::{
    NewOrStored, ValidAdmissionConfiguration, validate_admission_configuration,
};
