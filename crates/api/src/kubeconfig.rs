//! Kubeconfig files: read leniently, as clients of Kubernetes read them, with the place of all that
//! was read.

mod decode;
mod read;
mod shapes;
#[cfg(test)]
mod tests;

pub use decode::{Decoded, decode};
pub use read::{Cluster, Context, Extra, Kubeconfig, User};
pub(crate) use shapes::{KIND, VERSION};
