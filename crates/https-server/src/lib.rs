//! The listener: certificates, TLS, HTTP connections and their limits.
//!
//! Owns: the files of a data directory that let clients and server know each other, how they are
//! reloaded, the TLS handshake, the limits of connections, bodies and requests in flight, the
//! phases of a shutdown.
//! Must not know: who a certificate belongs to, what a request means, resources, stores.

#![deny(clippy::indexing_slicing)]

mod body;
mod collect;
mod connection;
mod drive;
mod in_flight;
mod limits;
mod listen;
mod metered;
mod pki;
mod shutdown;
mod tls;
mod watched_files;

pub use body::{Body, BodyError, BodySender, PeerGone};
pub use collect::{CollectError, collect_limited, discard};
pub use connection::{Connection, Protocol};
pub use in_flight::{InFlight, InFlightPermit, RequestKind};
pub use limits::Limits;
pub use listen::{BindError, Listener, Report, Responder, Trouble, serve, serve_responding};
pub use pki::{
    CertificateFiles, OWN_FILES, Pki, PkiError, PkiOptions, ServerNames, Supplied, host_name,
    keep_renewing, prepare, replace_file, write_kubeconfig,
};
pub use shutdown::{DrainPlan, Drained, Phase, Shutdown, WatchEnd};
pub use tls::{ReloadingCertificate, TlsError, server_config};
pub use watched_files::{ReadError, WatchedFiles};
