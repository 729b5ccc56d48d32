//! Verification of X.509 certificates, with the same results as Go's `crypto/x509`.
//!
//! kube-apiserver verifies client certificates and the certificates of webhooks and of etcd with
//! `Certificate.Verify`; [`Roots::verify`] is that function. A certificate is not an authority
//! just because a CA file contains it: its basic constraints, key usage, extended key usage, path
//! length, name constraints and validity are checked like those of every other certificate. A
//! certificate that is no authority matches only itself.
//!
//! Owns: DER, parsing certificates, building chains, the checks that Go applies to a chain; handshake
//! signatures; the server certificate verifier for `rustls`; certificate signing requests.
//! Must not know: users, files, sockets, clocks.

#![deny(clippy::indexing_slicing)]

mod alternative_names;
mod ca_bundle;
mod certificate;
mod certificate_request;
mod chain_search;
mod der;
mod der_time;
mod distinguished_name;
mod extensions;
#[cfg(feature = "rustls")]
mod handshake_signature;
mod name_constraints;
#[cfg(feature = "rustls")]
mod server_verifier;
mod signature;
mod verify_error;

pub use ca_bundle::{CaBundle, CaBundleError};
pub use certificate::{Certificate, MalformedCertificateError, OldCertificateVersionError};
pub use certificate_request::{CertificateRequest, CertificateRequestError};
pub use chain_search::{CertificateUsage, Roots, Validity};
pub use der::{DerReader, DerTag, DerValue, encode_der_value};
pub use der_time::encode_time;
pub use distinguished_name::{COMMON_NAME, ORGANIZATION};
pub use extensions::ExtendedKeyUsage;
#[cfg(feature = "rustls")]
pub use handshake_signature::{verify_tls12_signature, verify_tls13_signature};
pub use name_constraints::NameConstraintError;
#[cfg(feature = "rustls")]
pub use server_verifier::{ServerCertificateChecker, ServerVerifier, TrustedRootsCheck};
pub use verify_error::{IssuerFault, SigningFault, VerifyError};
