//! Configurations of dynamic admission, as manifests hold them: what is wrong with one, and what is
//! wrong with all of them together.

mod examine;
mod kinds;
mod order;

pub(crate) use examine::{Examined, Rules, examine};
pub(crate) use kinds::keeps;
pub(crate) use order::order;
