//! An HTTPS client for one server, such as a webhook or the API server of a cluster.
//!
//! A [`Target`] has the address of the server, the certificates to accept and the credentials. A [`Client`] pools connections
//! to it and makes one exchange per call, with a timeout, a size limit and no redirects.
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use https_client::{Client, Destination, Limits, NoCertificateObserver, Scheme, Target};
//!
//! let peer = fake_http::Peer::start(fake_http::Answer::json("{}"))?;
//! let destination = Destination::Url {
//!     scheme: Scheme::Http,
//!     host: "127.0.0.1".to_owned(),
//!     port: Some(peer.address().port()),
//! };
//! let target = Target::new(destination, "/authorize");
//! let client = Client::new(target, None, Limits::default(), Arc::new(NoCertificateObserver))?;
//! let reply = client.post("timeout=3s", "{}".into(), Duration::from_secs(3)).await?;
//! assert_eq!(reply.status, 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Owns: dialing, proxies, client-side TLS, credentials of requests, pooling, and the error messages, which are those of
//! Kubernetes' client.
//! Must not know: the content of requests and responses, retries, configuration files, how Services are resolved.

#![deny(clippy::indexing_slicing)]

mod address_policy;
mod certificate_check;
mod certificate_observer;
mod client;
mod client_certificate;
mod connection;
mod connector;
mod credentials;
mod endpoint;
mod fault;
mod go_error_text;
mod http_proxy_tunnel;
mod impersonation;
mod limits;
mod path_request;
mod pem_file;
mod proxy;
mod reply;
mod reply_stream;
mod secret;
mod server_trust;
mod service_resolver;
mod shared_dials;
mod socks_proxy;
mod target;
mod tcp_dial;
mod tls_client;

pub use address_policy::{AddressPolicy, RefusedAddress};
pub use certificate_observer::{CertificateObserver, NoCertificateObserver};
pub use client::{BuildError, Client, ClientFuture, RESPONSE_SIZE_FACTOR};
pub use client_certificate::{ClientCertificate, ClientCertificateError, PemLocation};
pub use credentials::Credentials;
pub use fault::{Fault, FaultKind};
pub use impersonation::Impersonation;
pub use limits::Limits;
pub use path_request::{PathRequest, RequestMethod};
pub use proxy::{Proxy, ProxyUrl, ProxyUrlError};
pub use reply::{Reply, ReplyByteCounter};
pub use reply_stream::ReplyStream;
pub use secret::Secret;
pub use server_trust::ServerTrust;
pub use service_resolver::{HostPort, ResolveError, ServiceResolver};
pub use target::{Destination, Scheme, ServiceName, Target};
pub use x509_verify::{CaBundle, CaBundleError};
