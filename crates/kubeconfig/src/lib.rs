//! Kubeconfigs and hook files: how to reach a service, and which credentials to present.
//!
//! Owns: the decision whether a file is a kubeconfig or a hook file, the selection of cluster and
//! user, the validation of both, in Kubernetes' words.
//! Must not know: HTTP, how a connection is made, which requests the service gets, how files are
//! watched. Files are read through a function that the caller passes.

#![deny(clippy::indexing_slicing)]

mod cluster_check;
mod cluster_target;
mod connection;
mod credentials;
mod error;
mod hook_connections;
mod kubeconfig_file;
mod load;
mod referenced_files;
mod select_context;
mod server_url;
mod service_users;
mod url_path;
mod user_check;

pub use connection::{Connection, HookConnection, LoadedConnections};
pub use error::LoadError;
pub use kubeconfig_file::{Decoded, decode};
pub use load::{load, parse};
pub use referenced_files::{FILE_BYTES_MAX, FileReader, read_file};
pub use service_users::{ServiceUsers, UserCredentials, load_users, parse_users};
