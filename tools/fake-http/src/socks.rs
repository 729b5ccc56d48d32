//! SOCKS version 5 (RFC 1928 and RFC 1929), as far as HTTP clients use it.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};

use crate::relay::{Asked, RelayState};
use crate::stream::Stream;

const VERSION: u8 = 5;
const NO_LOGIN: u8 = 0;
const PASSWORD_LOGIN: u8 = 2;
const NOTHING_ACCEPTABLE: u8 = 0xff;

pub(crate) async fn serve(mut stream: Stream, rules: &RelayState) -> io::Result<()> {
    let Some(login) = negotiate(&mut stream, rules).await? else { return Ok(()) };
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let host = match head[3] {
        1 => Ipv4Addr::from(read::<4>(&mut stream).await?).to_string(),
        4 => format!("[{}]", Ipv6Addr::from(read::<16>(&mut stream).await?)),
        _ => read_text(&mut stream).await?,
    };
    let port = u16::from_be_bytes(read(&mut stream).await?);
    let target = format!("{host}:{port}");
    let is_permitted = rules.permit(Asked { target: target.clone(), login });
    let connected = match is_permitted {
        true => rules.connect(&target).await.map_err(|_| 5),
        false => Err(2),
    };
    let status = connected.as_ref().err().copied().unwrap_or(0);
    stream.write_all(&[VERSION, status, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    stream.flush().await?;
    match connected {
        Ok(mut onward) => copy_bidirectional(&mut stream, &mut onward).await.map(drop),
        Err(_) => stream.shutdown().await,
    }
}

/// Negotiates the authentication method and runs it. `None` if the client is not accepted.
async fn negotiate(
    stream: &mut Stream,
    rules: &RelayState,
) -> io::Result<Option<Option<(String, String)>>> {
    let [version, n_methods] = read(stream).await?;
    let mut methods = vec![0; usize::from(n_methods)];
    stream.read_exact(&mut methods).await?;
    let wanted = if rules.login.is_some() { PASSWORD_LOGIN } else { NO_LOGIN };
    if version != VERSION || !methods.contains(&wanted) {
        stream.write_all(&[VERSION, NOTHING_ACCEPTABLE]).await?;
        stream.shutdown().await?;
        return Ok(None);
    }
    stream.write_all(&[VERSION, wanted]).await?;
    stream.flush().await?;
    if wanted == NO_LOGIN {
        return Ok(Some(None));
    }
    let [_] = read(stream).await?;
    let login = (read_text(stream).await?, read_text(stream).await?);
    let is_known = rules.login.as_ref() == Some(&login);
    stream.write_all(&[1, u8::from(!is_known)]).await?;
    stream.flush().await?;
    Ok(is_known.then_some(Some(login)))
}

async fn read<const N: usize>(stream: &mut Stream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Reads a text that follows its length.
async fn read_text(stream: &mut Stream) -> io::Result<String> {
    let [length] = read(stream).await?;
    let mut text = vec![0; usize::from(length)];
    stream.read_exact(&mut text).await?;
    String::from_utf8(text).map_err(io::Error::other)
}
