//! The HTTPS listener: certificates, TLS, HTTP connections and their limits.
//!
//! Owns: the certificate files of a data directory and their reload, the TLS handshake, the limits
//! of connections and bodies, which connection goes when there are too many, the
//! phases of a shutdown.
//! Must not know: to which user a certificate belongs, what a request means, resources, stores.

#![deny(clippy::indexing_slicing)]

mod activity_stream;
mod connection;
mod connection_fault;
mod connection_occupancy;
mod connection_table;
mod descriptor_limit;
mod limits;
mod listener;
mod pki;
mod plain_response;
mod request_body;
mod response_body;
mod run_connection;
mod serve;
mod shutdown;
mod stream_executor;
mod tls;
mod watched_files;

pub use connection::{Connection, HttpProtocol};
pub use connection_fault::{ConnectionFault, ConnectionFaultReporter};
pub use connection_table::{ConnectionLimit, TooManyConnections};
pub use descriptor_limit::{DescriptorLimit, raise_descriptor_limit};
pub use limits::Limits;
pub use listener::{BindError, Listener};
pub use pki::{
    CertificateFiles, GENERATED_FILES, OperatorPkiFiles, PkiError, PkiFiles, PkiOptions,
    ServerNames, SharedPkiOptions, create_shared_pki, host_addresses, host_name, prepare_pki_files,
    renew_certificates_periodically, renew_shared_pki, replace_private_file,
    write_admin_kubeconfig,
};
pub use request_body::{CollectBodyError, MinimumBodyRate, collect_body, discard_body};
pub use response_body::{
    BODY_CHUNK_BYTES, Body, BodySender, ChunkSender, LAST_CHUNK_BYTES, PeerDisconnected,
    ResponseBodyError, first_chunk_bytes,
};
pub use serve::{BoxedFuture, ResponseSender, Service, serve, serve_with_response_sender};
pub use shutdown::{DrainPlan, DrainResult, Shutdown, ShutdownPhase, WatchRegistration};
pub use tls::{ClientCertificates, ReloadingCertificate, TlsError, tls_server_config};
pub use watched_files::{FileReadError, WatchedFiles};
