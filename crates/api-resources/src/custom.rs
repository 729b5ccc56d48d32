//! Resources that people define: CustomResourceDefinitions, and what is served because of them.

mod definition;
mod lifecycle;
mod names;
mod prepare;
mod served;
mod validate;

pub use definition::{
    Condition, ConditionStatus, Definition, Deprecation, Names, PrinterColumn, Version,
};
pub use lifecycle::{CLEANUP_FINALIZER, set_condition};
pub use names::{establish, settle_names};
pub use served::Served;

pub(crate) use lifecycle::prepare_delete;
pub(crate) use prepare::{prepare_create, prepare_update};
pub(crate) use validate::validate;
