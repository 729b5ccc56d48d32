//! Requests that a peer has received.

/// A request that a peer has received.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The number of the connection of the peer, from 1.
    pub connection: usize,
    /// The major version of HTTP: 1 or 2.
    pub http_version: u8,
    /// The method of the request.
    pub method: String,
    /// The target of the request line: path and query, or an absolute URL for a proxy.
    pub target: String,
    /// The header fields in order, with the names as the client wrote them.
    pub headers: Vec<(String, String)>,
    /// The body of the request.
    pub body: Vec<u8>,
    /// The TLS handshake of the connection, if there was one.
    pub tls: Option<Handshake>,
}

/// The parts of a TLS handshake that the client chose.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Handshake {
    /// The requested server name.
    pub server_name: Option<String>,
    /// The client certificate in DER encoding.
    pub client_certificate: Option<Vec<u8>>,
    /// The negotiated application protocol.
    pub protocol: Option<String>,
}

impl Request {
    /// The first value of a header field; the case of the name does not matter.
    pub fn header(&self, name: &str) -> Option<&str> {
        let field = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        field.map(|(_, value)| &**value)
    }
}
