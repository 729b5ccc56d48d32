//! Opens TCP connections to addresses that the address policy permits.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use concurrency_limit::FairCpuScheduler;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::address_policy::{AddressPolicy, RefusedAddress};
use crate::fault::{Fault, FaultKind};
use crate::go_error_text::{go_io_error_text, is_local_resource_error};
use crate::service_resolver::HostPort;

/// The maximum number of addresses of a host that are tried.
const ADDRESSES_MAX: usize = 16;
/// The time that the client waits for an address before it tries the next one in parallel.
const NEXT_ADDRESS_DELAY: Duration = Duration::from_millis(300);
/// The maximum number of lookups of host names at the same time; one domain has at most half of them. A lookup keeps a
/// thread until the resolver answers, even if no request waits for it any more. The owner of a webhook's domain can
/// make it slow.
const LOOKUPS_MAX: usize = 128;
/// A lookup that does not begin within this time, which is less than the time to connect, fails with an
/// error of this server and not of the webhook.
const LOOKUP_WAIT_MAX: Duration = Duration::from_secs(1);
/// The idle time after which the system sends TCP keepalive probes.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(30);

/// The turns of lookups. Domains that wait take turns.
static LOOKUPS: LazyLock<Arc<FairCpuScheduler>> =
    LazyLock::new(|| Arc::new(FairCpuScheduler::new(LOOKUPS_MAX)));

/// Connects to the first address of a host that answers. The name is resolved once, and only addresses that the policy
/// permits are dialed.
pub(crate) async fn dial_host_port(
    at: &HostPort,
    policy: AddressPolicy,
) -> Result<TcpStream, Fault> {
    let addresses = match at.host.parse() {
        Ok(address) => vec![SocketAddr::new(address, at.port)],
        Err(_) => resolve_host(at).await?,
    };
    dial_first_reachable(addresses, policy).await.map_err(|fault| match fault.kind {
        // The message names the host and not its address, which the client of the API may not be allowed to know.
        FaultKind::AddressRefused => fault.with_message_prefix(format_args!("dial tcp {at}")),
        _ => fault,
    })
}

/// Checks a host that a proxy resolves, if it is an IP address.
pub(crate) fn check_ip_literal(at: &HostPort, policy: AddressPolicy) -> Result<(), Fault> {
    let address = at.host.parse().ok();
    let checked = address.map_or(Ok(()), |address| policy.check_address(address));
    checked.map_err(|refused| {
        refused_address_fault(refused).with_message_prefix(format_args!("dial tcp {at}"))
    })
}

fn refused_address_fault(refused: RefusedAddress) -> Fault {
    let message = format!("webhooks may not be at a {refused} address");
    Fault::new(FaultKind::AddressRefused, message)
}

async fn resolve_host(at: &HostPort) -> Result<Vec<SocketAddr>, Fault> {
    let fault =
        |why: &str| Fault::new(FaultKind::Dns, format!("dial tcp: lookup {}: {why}", at.host));
    let turn = LOOKUPS.acquire_cpu_slot(last_two_labels(&at.host), false);
    let Ok(turn) = timeout(LOOKUP_WAIT_MAX, turn).await else {
        let why = "too many lookups are under way";
        return Err(Fault { kind: FaultKind::Local, ..fault(why) });
    };
    let target = (at.host.clone(), at.port);
    let lookup = tokio::spawn(async move {
        let found = tokio::net::lookup_host(target).await;
        drop(turn);
        found.map(|found| found.take(ADDRESSES_MAX).collect::<Vec<_>>())
    });
    let found = lookup.await.unwrap_or_else(|error| Err(io::Error::other(error)));
    let found = found.map_err(|error| {
        // Without free descriptors, the resolver reports that the host does not exist.
        let lack = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).err();
        match [Some(&error), lack.as_ref()]
            .into_iter()
            .flatten()
            .find(|own| is_local_resource_error(own))
        {
            Some(local) => Fault { kind: FaultKind::Local, ..fault(&go_io_error_text(local)) },
            None => fault(lookup_error_text(&error.to_string())),
        }
    });
    let addresses = found?;
    if addresses.is_empty() { Err(fault("no such host")) } else { Ok(addresses) }
}

/// The last two labels of a host name: the owner of this domain controls how fast lookups of the name are
/// answered.
fn last_two_labels(host: &str) -> &str {
    let host = host.strip_suffix('.').unwrap_or(host);
    let last_dots = host.rmatch_indices('.').map(|(idx, _)| idx);
    last_dots.take(2).nth(1).and_then(|idx| host.get(idx + 1..)).unwrap_or(host)
}

fn lookup_error_text(error: &str) -> &str {
    let is_unknown =
        ["Name or service not known", "No address associated", "nodename nor servname"]
            .iter()
            .any(|words| error.contains(words));
    if is_unknown { "no such host" } else { error }
}

/// Connects to the first permitted address that answers. After a failure the next address is tried at once; while an
/// address does not answer, the next one is tried in parallel. If all fail, the first fault is returned, unless this process
/// lacked resources for one of them.
///
/// INVARIANT: every address that is connected to was checked here.
pub(crate) async fn dial_first_reachable(
    addresses: Vec<SocketAddr>,
    policy: AddressPolicy,
) -> Result<TcpStream, Fault> {
    let mut permitted = Vec::with_capacity(addresses.len());
    let mut failed: Option<Fault> = None;
    for address in addresses {
        match policy.check_address(address.ip()) {
            Ok(()) => permitted.push(address),
            Err(refused) => _ = failed.get_or_insert(refused_address_fault(refused)),
        }
    }
    // The fault of a permitted address takes precedence over the refusal of another address.
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
            () = sleep(NEXT_ADDRESS_DELAY), if has_more => continue,
        };
        match ended {
            Some(Ok((address, connected))) => match connected.and_then(set_socket_options) {
                Ok(stream) => return Ok(stream),
                Err(error) if is_local_resource_error(&error) => {
                    failed = Some(connect_fault(address, &error))
                }
                Err(error) => _ = failed.get_or_insert(connect_fault(address, &error)),
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

fn set_socket_options(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let keep_alive = TcpKeepalive::new().with_time(KEEP_ALIVE_AFTER);
    SockRef::from(&stream).set_tcp_keepalive(&keep_alive)?;
    Ok(stream)
}

fn connect_fault(address: SocketAddr, error: &io::Error) -> Fault {
    let kind = match error.kind() {
        _ if is_local_resource_error(error) => FaultKind::Local,
        io::ErrorKind::ConnectionRefused => FaultKind::Refused,
        io::ErrorKind::ConnectionReset => FaultKind::Reset,
        _ => FaultKind::Connect,
    };
    Fault::new(kind, format!("dial tcp {address}: connect: {}", go_io_error_text(error)))
}

#[cfg(test)]
mod tests {
    use fake_http::{Answer, NOBODY, Peer};

    use super::*;

    const POLICY: AddressPolicy = AddressPolicy { allows_loopback: true };

    /// A4: if lookups of one domain hang, further ones fail with an error of this server, to which no failure
    /// policy applies. Lookups of other domains continue.
    #[tokio::test]
    async fn a4_slow_lookups_of_one_domain_concern_no_other() {
        let at = |host: &str| HostPort { host: host.to_owned(), port: 443 };
        let mut slow = Vec::new();
        for _ in 0..LOOKUPS_MAX / 2 {
            slow.push(LOOKUPS.acquire_cpu_slot("evil.example", false).await);
        }
        let fault = resolve_host(&at("h1.slow.evil.example")).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Local, "{}", fault.message);
        assert!(resolve_host(&at("localhost")).await.is_ok());
    }

    #[test]
    fn the_domain_of_a_host_is_its_last_two_labels() {
        for (host, want) in [
            ("localhost", "localhost"),
            ("a.example", "a.example"),
            ("h1.a.example", "a.example"),
            ("x.h1.a.example.", "a.example"),
            ("", ""),
            ("..", "."),
        ] {
            assert_eq!(last_two_labels(host), want, "{host}");
        }
    }

    /// A19 and L7 of `docs/attacks.md`: the resolved address is checked, however the host is spelled. A permitted
    /// address is dialed even if another address of the same name is refused.
    #[tokio::test]
    async fn a19_the_address_of_a_dial_is_checked() {
        let peer = Peer::start(Answer::json("{}")).unwrap();
        let port = peer.address().port();
        let strict = AddressPolicy { allows_loopback: false };
        for host in ["127.0.0.1", "localhost", "127.1", "0x7f000001", "::1", "::ffff:127.0.0.1"] {
            let at = HostPort { host: host.to_owned(), port };
            let fault = dial_host_port(&at, strict).await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::AddressRefused, "{host}: {}", fault.message);
            let message = format!("dial tcp {at}: webhooks may not be at a loopback address");
            assert_eq!(fault.message, message);
        }
        assert_eq!(peer.n_accepted(), 0);
        let link_local = SocketAddr::from(([169, 254, 169, 254], 80));
        let mixed = vec![link_local, peer.address(), link_local];
        let stream = dial_first_reachable(mixed.clone(), POLICY).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), peer.address());
        let fault = dial_first_reachable(mixed, strict).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::AddressRefused);
        let fault = dial_first_reachable(vec![link_local, NOBODY], POLICY).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Refused);
    }

    #[tokio::test]
    async fn the_next_address_is_tried_after_a_failure() {
        let peer = Peer::start(Answer::json("{}")).unwrap();
        let stream =
            dial_first_reachable(vec![NOBODY, NOBODY, peer.address()], POLICY).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), peer.address());
        assert!(stream.nodelay().unwrap());
    }

    #[tokio::test]
    async fn the_first_fault_is_returned() {
        let peer = Peer::start(Answer::json("{}")).unwrap();
        peer.stop_listening().unwrap();
        let fault = dial_first_reachable(vec![NOBODY, peer.address()], POLICY).await.unwrap_err();
        assert_eq!(fault.message, "dial tcp 127.0.0.1:1: connect: connection refused");
        let fault = dial_first_reachable(Vec::new(), POLICY).await.unwrap_err();
        assert_eq!(fault.message, "dial tcp: no address");
    }

    #[test]
    fn resource_exhaustion_is_a_local_fault() {
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
            let fault = connect_fault(NOBODY, &io::Error::from_raw_os_error(code));
            assert_eq!(fault.kind, kind, "{code}: {}", fault.message);
        }
    }

    #[test]
    fn lookup_error_texts() {
        let unknown = "failed to lookup address information: Name or service not known";
        assert_eq!(lookup_error_text(unknown), "no such host");
        assert_eq!(lookup_error_text("something else"), "something else");
    }
}
