//! Reads kubeconfig files leniently, as Kubernetes clients do, with the position of every value.

mod decode;
mod exec_settings;
mod kubeconfig_reader;
mod schema;
#[cfg(test)]
mod tests;

pub use decode::{DecodedKubeconfig, decode_kubeconfig};
pub use exec_settings::ExecSettings;
pub(crate) use kubeconfig_reader::{Cluster, Context, Kubeconfig, User};
