//! TCP connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::address::{AddressPolicy, RefusedAddress};
use crate::failure::{io_words, is_local};
use crate::fault::{Fault, FaultKind};
use crate::resolve::HostPort;

/// How many addresses of a host are tried.
const ADDRESSES_MAX: usize = 16;
/// How long an address may be silent before the next is tried beside it.
const HEAD_START: Duration = Duration::from_millis(300);
/// How long a connection is silent before the system asks whether the peer lives.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(30);

/// Connects to the first address of a host that answers. The name is resolved once, and the addresses that
/// the policy permits are those that are dialed.
pub(crate) async fn dial(at: &HostPort, policy: AddressPolicy) -> Result<TcpStream, Fault> {
    let addresses = match at.host.parse() {
        Ok(address) => vec![SocketAddr::new(address, at.port)],
        Err(_) => look_up(at).await?,
    };
    dial_any(addresses, policy).await.map_err(|fault| match fault.kind {
        // The address of a name is not told to those who can not look it up themselves.
        FaultKind::AddressRefused => fault.within(format_args!("dial tcp {at}")),
        _ => fault,
    })
}

/// Checks the address of a host that somebody else will resolve, as far as that is possible.
pub(crate) fn check_literal(at: &HostPort, policy: AddressPolicy) -> Result<(), Fault> {
    let address = at.host.parse().ok();
    let checked = address.map_or(Ok(()), |address| policy.check(address));
    checked.map_err(|refused| not_permitted(refused).within(format_args!("dial tcp {at}")))
}

fn not_permitted(refused: RefusedAddress) -> Fault {
    let message = format!("webhooks may not be at a {refused} address");
    Fault::new(FaultKind::AddressRefused, message)
}

async fn look_up(at: &HostPort) -> Result<Vec<SocketAddr>, Fault> {
    let fault =
        |why: &str| Fault::new(FaultKind::Dns, format!("dial tcp: lookup {}: {why}", at.host));
    let found = tokio::net::lookup_host((&*at.host, at.port)).await;
    let found = found.map_err(|error| {
        // A name service without descriptors says that there is no such host.
        let lack = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).err();
        match [Some(&error), lack.as_ref()].into_iter().flatten().find(|own| is_local(own)) {
            Some(local) => Fault { kind: FaultKind::Local, ..fault(&io_words(local)) },
            None => fault(lookup_words(&error.to_string())),
        }
    });
    let addresses: Vec<_> = found?.take(ADDRESSES_MAX).collect();
    if addresses.is_empty() { Err(fault("no such host")) } else { Ok(addresses) }
}

fn lookup_words(error: &str) -> &str {
    let is_unknown =
        ["Name or service not known", "No address associated", "nodename nor servname"]
            .iter()
            .any(|words| error.contains(words));
    if is_unknown { "no such host" } else { error }
}

/// Connects to the first permitted address that answers. An address that fails gives way to the next at once,
/// one that is silent gets company after a while. If all fail, the first fault is returned, unless this
/// process was not able to try one of them.
///
/// INVARIANT: every address that is connected to was checked here.
pub(crate) async fn dial_any(
    addresses: Vec<SocketAddr>,
    policy: AddressPolicy,
) -> Result<TcpStream, Fault> {
    let mut permitted = Vec::with_capacity(addresses.len());
    let mut failed: Option<Fault> = None;
    for address in addresses {
        match policy.check(address.ip()) {
            Ok(()) => permitted.push(address),
            Err(refused) => _ = failed.get_or_insert(not_permitted(refused)),
        }
    }
    // An address that is permitted has the word, whether or not it answers.
    failed = failed.filter(|_| permitted.is_empty());
    let mut left = permitted.into_iter();
    let mut attempts = JoinSet::new();
    loop {
        let has_more = match left.next() {
            Some(address) => {
                attempts.spawn(async move { (address, TcpStream::connect(address).await) });
                left.len() > 0
            }
            None => false,
        };
        let ended = tokio::select! {
            ended = attempts.join_next() => ended,
            () = sleep(HEAD_START), if has_more => continue,
        };
        match ended {
            Some(Ok((address, connected))) => match connected.and_then(prepare) {
                Ok(stream) => return Ok(stream),
                Err(error) if is_local(&error) => failed = Some(refusal(address, &error)),
                Err(error) => _ = failed.get_or_insert(refusal(address, &error)),
            },
            Some(Err(error)) => {
                failed.get_or_insert(Fault::new(FaultKind::Other, error.to_string()));
            }
            None => {
                return Err(
                    failed.unwrap_or_else(|| Fault::new(FaultKind::Other, "dial tcp: no address"))
                );
            }
        }
    }
}

fn prepare(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let keep_alive = TcpKeepalive::new().with_time(KEEP_ALIVE_AFTER);
    SockRef::from(&stream).set_tcp_keepalive(&keep_alive)?;
    Ok(stream)
}

fn refusal(address: SocketAddr, error: &io::Error) -> Fault {
    let kind = match error.kind() {
        _ if is_local(error) => FaultKind::Local,
        io::ErrorKind::ConnectionRefused => FaultKind::Refused,
        io::ErrorKind::ConnectionReset => FaultKind::Reset,
        _ => FaultKind::Connect,
    };
    Fault::new(kind, format!("dial tcp {address}: connect: {}", io_words(error)))
}

#[cfg(test)]
mod tests {
    use fake_http::{Answer, NOBODY, Peer};

    use super::*;

    const POLICY: AddressPolicy = AddressPolicy { allows_loopback: true };

    /// A19, L7: names of every spelling are checked by the address that they lead to, and addresses that are
    /// permitted are dialed though others of the name are not.
    #[tokio::test]
    async fn a19_the_address_of_a_dial_is_checked() {
        let peer = Peer::start(Answer::json("{}")).unwrap();
        let port = peer.address().port();
        let strict = AddressPolicy { allows_loopback: false };
        for host in ["127.0.0.1", "localhost", "127.1", "0x7f000001", "::1", "::ffff:127.0.0.1"] {
            let at = HostPort { host: host.to_owned(), port };
            let fault = dial(&at, strict).await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::AddressRefused, "{host}: {}", fault.message);
            let message = format!("dial tcp {at}: webhooks may not be at a loopback address");
            assert_eq!(fault.message, message);
        }
        assert_eq!(peer.n_accepted(), 0);
        let link_local = SocketAddr::from(([169, 254, 169, 254], 80));
        let mixed = vec![link_local, peer.address(), link_local];
        let stream = dial_any(mixed.clone(), POLICY).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), peer.address());
        let fault = dial_any(mixed, strict).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::AddressRefused);
        let fault = dial_any(vec![link_local, NOBODY], POLICY).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Refused);
    }

    #[tokio::test]
    async fn an_address_that_fails_gives_way_to_the_next() {
        let peer = Peer::start(Answer::json("{}")).unwrap();
        let stream = dial_any(vec![NOBODY, NOBODY, peer.address()], POLICY).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), peer.address());
        assert!(stream.nodelay().unwrap());
    }

    #[tokio::test]
    async fn the_first_that_fails_has_the_word() {
        let peer = Peer::start(Answer::json("{}")).unwrap();
        peer.stop_listening().unwrap();
        let fault = dial_any(vec![NOBODY, peer.address()], POLICY).await.unwrap_err();
        assert_eq!(fault.message, "dial tcp 127.0.0.1:1: connect: connection refused");
        let fault = dial_any(Vec::new(), POLICY).await.unwrap_err();
        assert_eq!(fault.message, "dial tcp: no address");
    }

    #[test]
    fn exhaustion_is_no_fault_of_the_peer() {
        for (code, kind) in [
            (24, FaultKind::Local),
            (23, FaultKind::Local),
            (105, FaultKind::Local),
            (99, FaultKind::Local),
            (111, FaultKind::Refused),
            (104, FaultKind::Reset),
            (110, FaultKind::Connect),
            (113, FaultKind::Connect),
        ] {
            let fault = refusal(NOBODY, &io::Error::from_raw_os_error(code));
            assert_eq!(fault.kind, kind, "{code}: {}", fault.message);
        }
    }

    #[test]
    fn what_name_services_say() {
        let unknown = "failed to lookup address information: Name or service not known";
        assert_eq!(lookup_words(unknown), "no such host");
        assert_eq!(lookup_words("something else"), "something else");
    }
}
