//! The TLS configurations of peers.

use std::io;
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::certificates::Issued;
use crate::request::Handshake;
use crate::stream::Stream;

/// The TLS settings of a peer.
#[derive(Debug, Clone)]
pub struct ServerTls {
    /// The certificate of the peer.
    pub certificate: Issued,
    /// The CA, in PEM encoding, of the required client certificates; `None` requires none.
    pub clients: Option<String>,
    /// Whether the peer offers HTTP/2.
    pub has_http2: bool,
}

impl ServerTls {
    /// A peer with this certificate that requires no client certificates and serves only HTTP/1.1.
    pub fn new(certificate: Issued) -> Self {
        Self { certificate, clients: None, has_http2: false }
    }

    /// Requires client certificates of this CA, in PEM encoding.
    pub fn require_clients_of(self, authority_pem: &str) -> Self {
        Self { clients: Some(authority_pem.to_owned()), ..self }
    }

    /// Offers HTTP/2 in addition to HTTP/1.1.
    pub fn offer_http2(self) -> Self {
        Self { has_http2: true, ..self }
    }

    pub(crate) fn acceptor(&self) -> io::Result<TlsAcceptor> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(certificates(pem)?);
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(io::Error::other)?)
            }
        };
        let key = PrivateKeyDer::from_pem_slice(self.certificate.key_pem.as_bytes())
            .map_err(io::Error::other)?;
        let chain = certificates(&self.certificate.certificate_pem)?;
        let mut config = builder.with_single_cert(chain, key).map_err(io::Error::other)?;
        let protocols: &[&[u8]] =
            if self.has_http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Completes the handshake and returns what the client chose in it.
pub(crate) async fn accept(
    acceptor: &TlsAcceptor,
    tcp: TcpStream,
) -> io::Result<(Stream, Handshake)> {
    let stream = acceptor.accept(tcp).await?;
    let connection = stream.get_ref().1;
    let protocol = connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into());
    let handshake = Handshake {
        server_name: connection.server_name().map(str::to_owned),
        client_certificate: connection
            .peer_certificates()
            .and_then(|chain| chain.first())
            .map(|certificate| certificate.to_vec()),
        protocol,
    };
    Ok((Stream::Tls(Box::new(stream)), handshake))
}

fn certificates(pem: &str) -> io::Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(io::Error::other)
}
