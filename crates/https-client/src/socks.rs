//! Connections through a SOCKS5 proxy: RFC 1928, and RFC 1929 for passwords.

use std::net::IpAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::failure::explain;
use crate::fault::{Fault, FaultKind};
use crate::proxy::Login;
use crate::resolve::HostPort;
use crate::wire::Io;

const VERSION: u8 = 5;
const NO_LOGIN: u8 = 0;
const PASSWORD_LOGIN: u8 = 2;
const LOGIN_VERSION: u8 = 1;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Has a proxy connect us to a host, whose name it looks up itself.
pub(crate) async fn open(
    io: &mut dyn Io,
    to: &HostPort,
    login: Option<&Login>,
) -> Result<(), Fault> {
    let method = if login.is_some() { PASSWORD_LOGIN } else { NO_LOGIN };
    send(io, &[VERSION, 1, method]).await?;
    match read::<2>(io).await? {
        [VERSION, agreed] if agreed == method => {}
        [VERSION, _] => return Err(failed("no acceptable authentication methods")),
        _ => return Err(failed("unexpected protocol version")),
    }
    if let Some(login) = login {
        send(io, &login_message(login)?).await?;
        let [_, status] = read(io).await?;
        if status != 0 {
            return Err(failed("username/password authentication failed"));
        }
    }
    send(io, &connect_message(to)?).await?;
    let [_, status, _, kind] = read(io).await?;
    if status != 0 {
        return Err(failed(status_words(status)));
    }
    match kind {
        IPV4 => read::<4>(io).await.map(drop)?,
        IPV6 => read::<16>(io).await.map(drop)?,
        _ => {
            let [length] = read(io).await?;
            let mut name = vec![0; usize::from(length)];
            io.read_exact(&mut name).await.map_err(|error| explain(&error))?;
        }
    }
    read::<2>(io).await.map(drop)
}

fn login_message(login: &Login) -> Result<Vec<u8>, Fault> {
    let mut message = vec![LOGIN_VERSION];
    push_text(&mut message, login.username.as_bytes())?;
    push_text(&mut message, login.password.expose())?;
    Ok(message)
}

fn connect_message(to: &HostPort) -> Result<Vec<u8>, Fault> {
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
            push_text(&mut message, to.host.as_bytes())?;
        }
    }
    message.extend(to.port.to_be_bytes());
    Ok(message)
}

fn push_text(message: &mut Vec<u8>, text: &[u8]) -> Result<(), Fault> {
    let length = u8::try_from(text.len()).map_err(|_| failed("a name or password is too long"))?;
    message.push(length);
    message.extend_from_slice(text);
    Ok(())
}

async fn send(io: &mut dyn Io, message: &[u8]) -> Result<(), Fault> {
    io.write_all(message).await.map_err(|error| explain(&error))?;
    io.flush().await.map_err(|error| explain(&error))
}

async fn read<const N: usize>(io: &mut dyn Io) -> Result<[u8; N], Fault> {
    let mut bytes = [0; N];
    io.read_exact(&mut bytes).await.map_err(|error| explain(&error))?;
    Ok(bytes)
}

fn failed(why: &str) -> Fault {
    Fault::new(FaultKind::Other, why)
}

fn status_words(status: u8) -> &'static str {
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
