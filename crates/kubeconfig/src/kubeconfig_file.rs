//! Reads kubeconfig files leniently, as Kubernetes clients do, with the position of every value.

mod decode;
mod exec_settings;
mod read;
mod schema;
#[cfg(test)]
mod tests;

pub use decode::{DecodedKubeconfig, decode_kubeconfig};
pub use exec_settings::ExecSettings;
pub(crate) use read::{Cluster, Context, Kubeconfig, User};
