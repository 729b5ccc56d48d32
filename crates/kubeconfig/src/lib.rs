//! Files that say how a service is reached: kubeconfigs and files of external authorization hooks; and
//! kubeconfigs that only say who we are to services that are known otherwise.
//!
//! Owns: which of the two a file is, which cluster and user of a kubeconfig count, what they mean
//! together, and what is wrong with them, in the words of Kubernetes.
//! Must not know: HTTP, how a connection is made, what is asked of the service, where files are
//! watched. Files are read through a function that the caller passes.

mod access;
mod cluster;
mod connection;
mod error;
mod files;
mod hooks;
mod kubeconfig_file;
mod load;
mod select;
mod server_url;
mod target;
mod url_path;
mod user;
mod users;

pub use connection::{Connection, HookConnection, Loaded};
pub use error::LoadError;
pub use files::{FILE_BYTES_MAX, Read, read_file};
pub use kubeconfig_file::{Decoded, decode};
pub use load::{load, parse};
pub use users::{UserAccess, Users, load_users, parse_users};
