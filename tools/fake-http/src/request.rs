//! What a peer has received.

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Which connection of the peer it came on, from 1.
    pub connection: usize,
    /// 1 or 2: the major version of HTTP.
    pub http_version: u8,
    /// The method of the request.
    pub method: String,
    /// The target of the request line: path and query, or a whole URL if we are taken for a proxy.
    pub target: String,
    /// The header fields in order, names as they were written.
    pub headers: Vec<(String, String)>,
    /// The body of the request.
    pub body: Vec<u8>,
    /// What the handshake told, if there was one.
    pub tls: Option<Handshake>,
}

/// What a client has told in a TLS handshake.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Handshake {
    /// The server name that it asked for.
    pub server_name: Option<String>,
    /// The client certificate in DER encoding.
    pub client_certificate: Option<Vec<u8>>,
    /// The application protocol that was agreed on.
    pub protocol: Option<String>,
}

impl Request {
    /// The first value of a header field, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let field = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        field.map(|(_, value)| &**value)
    }
}
