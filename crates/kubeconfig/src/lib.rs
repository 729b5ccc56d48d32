//! Loads kubeconfigs and hook files: the address of a service, and the credentials to present to it.
//!
//! Owns: the decision whether a file is a kubeconfig or a hook file, the selection of cluster and
//! user, the validation of both, in Kubernetes' words.
//! Must not know: HTTP, how a connection is made, which requests the service gets, how files are
//! watched. The caller passes the function that reads files.

#![deny(clippy::indexing_slicing)]

mod authorization_hook_connections;
mod cluster_check;
mod cluster_connection;
mod cluster_target;
mod connection;
mod credentials;
mod in_cluster;
mod kubeconfig_file;
mod load_connections;
mod load_error;
mod merged_kubeconfig;
mod referenced_files;
mod select_context;
mod server_url;
mod url_path;
mod user_check;
mod users_by_server_name;

pub use cluster_connection::{
    ClusterConnection, ContextOverrides, ExecClusterInfo, load_cluster_connection,
};
pub use connection::{AuthorizationHookConnection, LoadedConnections, ServerConnection};
pub use in_cluster::{InClusterError, in_cluster_connection};
pub use kubeconfig_file::{DecodedKubeconfig, ExecSettings, decode_kubeconfig};
pub use load_connections::{load_connections, parse_connections};
pub use load_error::LoadError;
pub use referenced_files::{FILE_BYTES_MAX, ReadFileFn, read_file};
pub use users_by_server_name::{
    UserCredentials, UsersByServerName, load_users_by_server_name, parse_users_by_server_name,
};
