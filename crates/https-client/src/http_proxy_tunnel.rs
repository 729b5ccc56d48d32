//! Tunnels through an HTTP proxy, opened with CONNECT.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::connection::ByteStream;
use crate::credentials::basic_auth_header;
use crate::fault::{Fault, FaultKind};
use crate::go_error_text::error_to_fault;
use crate::proxy::ProxyLogin;
use crate::service_resolver::HostPort;

/// The longest response head of a proxy in bytes.
const RESPONSE_HEAD_BYTES_MAX: usize = 16 * 1024;

/// Asks a proxy to open a tunnel to a host.
pub(crate) async fn open_tunnel(
    io: &mut dyn ByteStream,
    to: &HostPort,
    login: Option<&ProxyLogin>,
) -> Result<(), Fault> {
    let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n").into_bytes();
    if let Some(header) = login.and_then(|it| basic_auth_header(&it.username, it.password.expose()))
    {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(header.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    io.write_all(&request).await.map_err(|error| error_to_fault(&error))?;
    io.flush().await.map_err(|error| error_to_fault(&error))?;
    let answer = read_response_head(io).await?;
    check_status_line(&answer)
}

/// Reads exactly the response head: the bytes after it belong to the tunnel.
async fn read_response_head(io: &mut dyn ByteStream) -> Result<Vec<u8>, Fault> {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= RESPONSE_HEAD_BYTES_MAX {
            return Err(Fault::new(FaultKind::TooLarge, "the answer of the proxy is too long"));
        }
        answer.push(io.read_u8().await.map_err(|error| error_to_fault(&error))?);
    }
    Ok(answer)
}

fn check_status_line(answer: &[u8]) -> Result<(), Fault> {
    let malformed = || Fault::new(FaultKind::Other, "malformed HTTP response from the proxy");
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| malformed())?;
    let (version, status) = line.split_once(' ').ok_or_else(malformed)?;
    let (code, reason) = status.split_once(' ').unwrap_or((status, "unknown status code"));
    match code.as_bytes() {
        _ if !version.starts_with("HTTP/1.") => Err(malformed()),
        [b'2', _, _] => Ok(()),
        [b'1'..=b'5', _, _] => Err(Fault::new(FaultKind::Other, reason)),
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines_of_proxies() {
        check_status_line(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        check_status_line(b"HTTP/1.0 201\r\n\r\n").unwrap();
        let fault = |answer: &[u8]| check_status_line(answer).unwrap_err().message;
        assert_eq!(fault(b"HTTP/1.1 403 No way\r\n\r\n"), "No way");
        for junk in ["", "\r\n\r\n", "ICY 200\r\n\r\n", "HTTP/1.1 abc\r\n\r\n"] {
            assert!(fault(junk.as_bytes()).starts_with("malformed"), "{junk}");
        }
    }
}
