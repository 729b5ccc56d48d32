//! Reads kubeconfig files leniently, as Kubernetes clients do, with the position of every value.

mod decode;
mod read;
mod schema;
#[cfg(test)]
mod tests;

pub use decode::{DecodedKubeconfig, decode};
pub(crate) use read::{Cluster, Kubeconfig, User};
