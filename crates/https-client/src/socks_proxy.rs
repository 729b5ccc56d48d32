//! Connections through a SOCKS5 proxy: RFC 1928, and RFC 1929 for passwords.

use std::net::IpAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::connection::ByteStream;
use crate::fault::{Fault, FaultKind};
use crate::go_error_text::error_to_fault;
use crate::proxy::ProxyLogin;
use crate::service_resolver::HostPort;

const VERSION: u8 = 5;
const NO_LOGIN: u8 = 0;
const PASSWORD_LOGIN: u8 = 2;
const LOGIN_VERSION: u8 = 1;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Asks a SOCKS5 proxy to connect to a host. The proxy resolves the name.
pub(crate) async fn request_socks_connect(
    io: &mut dyn ByteStream,
    to: &HostPort,
    login: Option<&ProxyLogin>,
) -> Result<(), Fault> {
    let method = if login.is_some() { PASSWORD_LOGIN } else { NO_LOGIN };
    send(io, &[VERSION, 1, method]).await?;
    match read_array::<2>(io).await? {
        [VERSION, agreed] if agreed == method => {}
        [VERSION, _] => return Err(socks_fault("no acceptable authentication methods")),
        _ => return Err(socks_fault("unexpected protocol version")),
    }
    if let Some(login) = login {
        send(io, &socks_login_message(login)?).await?;
        let [_, status] = read_array(io).await?;
        if status != 0 {
            return Err(socks_fault("username/password authentication failed"));
        }
    }
    send(io, &socks_connect_message(to)?).await?;
    let [_, status, _, kind] = read_array(io).await?;
    if status != 0 {
        return Err(socks_fault(socks_status_text(status)));
    }
    match kind {
        IPV4 => read_array::<4>(io).await.map(drop)?,
        IPV6 => read_array::<16>(io).await.map(drop)?,
        _ => {
            let [length] = read_array(io).await?;
            let mut name = vec![0; usize::from(length)];
            io.read_exact(&mut name).await.map_err(|error| error_to_fault(&error))?;
        }
    }
    read_array::<2>(io).await.map(drop)
}

fn socks_login_message(login: &ProxyLogin) -> Result<Vec<u8>, Fault> {
    let mut message = vec![LOGIN_VERSION];
    push_length_prefixed(&mut message, login.username.as_bytes())?;
    push_length_prefixed(&mut message, login.password.expose())?;
    Ok(message)
}

fn socks_connect_message(to: &HostPort) -> Result<Vec<u8>, Fault> {
    let mut message = vec![VERSION, CONNECT, 0];
    match to.host.parse() {
        Ok(IpAddr::V4(address)) => {
            message.push(IPV4);
            message.extend(address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            message.push(IPV6);
            message.extend(address.octets());
        }
        Err(_) => {
            message.push(NAME);
            push_length_prefixed(&mut message, to.host.as_bytes())?;
        }
    }
    message.extend(to.port.to_be_bytes());
    Ok(message)
}

fn push_length_prefixed(message: &mut Vec<u8>, text: &[u8]) -> Result<(), Fault> {
    let length =
        u8::try_from(text.len()).map_err(|_| socks_fault("a name or password is too long"))?;
    message.push(length);
    message.extend_from_slice(text);
    Ok(())
}

async fn send(io: &mut dyn ByteStream, message: &[u8]) -> Result<(), Fault> {
    io.write_all(message).await.map_err(|error| error_to_fault(&error))?;
    io.flush().await.map_err(|error| error_to_fault(&error))
}

async fn read_array<const N: usize>(io: &mut dyn ByteStream) -> Result<[u8; N], Fault> {
    let mut bytes = [0; N];
    io.read_exact(&mut bytes).await.map_err(|error| error_to_fault(&error))?;
    Ok(bytes)
}

fn socks_fault(reason: &str) -> Fault {
    Fault::new(FaultKind::Other, reason)
}

fn socks_status_text(status: u8) -> &'static str {
    match status {
        1 => "unknown error general SOCKS server failure",
        2 => "unknown error connection not allowed by ruleset",
        3 => "unknown error network unreachable",
        4 => "unknown error host unreachable",
        5 => "unknown error connection refused",
        6 => "unknown error TTL expired",
        7 => "unknown error command not supported",
        8 => "unknown error address type not supported",
        _ => "unknown error unknown code",
    }
}
