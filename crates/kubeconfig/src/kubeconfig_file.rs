//! Kubeconfig files: read leniently, as clients of Kubernetes read them, with the place of all that
//! was read.

mod decode;
mod read;
mod shapes;
#[cfg(test)]
mod tests;

pub use decode::{Decoded, decode};
pub(crate) use read::{Cluster, Kubeconfig, User};
