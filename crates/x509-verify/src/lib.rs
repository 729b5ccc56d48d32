//! Which certificates are trusted, decided as Go's `crypto/x509` decides it.
//!
//! kube-apiserver verifies client certificates and the certificates of webhooks and of etcd with
//! `Certificate.Verify`; [`Roots::verify`] is that function. A certificate in a file of authorities is
//! not an authority by standing there: its basic constraints, key usage, extended key usage, path
//! length, name constraints and validity count as those of every other certificate. A certificate
//! that is no authority matches only itself.
//!
//! Owns: reading certificates, building chains, and what Go checks of a chain; the signatures of
//! handshakes, whatever else a certificate says; the verifier of servers for `rustls`; requests for
//! certificates.
//! Must not know: users, files, sockets, clocks.

#![deny(clippy::indexing_slicing)]

mod ca_bundle;
mod certificate;
mod chain;
mod constraints;
mod der;
mod error;
mod extensions;
#[cfg(feature = "rustls")]
mod handshake;
mod names;
mod request;
#[cfg(feature = "rustls")]
mod server;
mod signature;
mod time;

pub use ca_bundle::{CaBundle, CaBundleError};
pub use certificate::{Certificate, MalformedError};
pub use chain::{Roots, Usage, Validity};
pub use error::{IssuerFault, SigningFault, VerifyError};
#[cfg(feature = "rustls")]
pub use handshake::{verify_tls12_signature, verify_tls13_signature};
pub use request::{CertificateRequest, RequestError};
#[cfg(feature = "rustls")]
pub use server::ServerVerifier;
