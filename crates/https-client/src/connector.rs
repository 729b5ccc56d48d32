//! Opens connections to a target: name resolution, proxy, TCP and TLS.

use std::future::Future;
use std::net::{Ipv4Addr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::address_policy::AddressPolicy;
use crate::connection::{ByteStream, TargetConnection};
use crate::endpoint::Endpoint;
use crate::fault::{Fault, FaultKind};
use crate::go_error_text::is_local_resource_error;
use crate::proxy::{ProxyKind, ProxyLogin, ProxyUrl};
use crate::service_resolver::{HostPort, ServiceResolver};
use crate::shared_dials::SharedDials;
use crate::target::ServiceName;
use crate::tcp_dial::{check_ip_literal, dial_first_reachable, dial_host_port};
use crate::tls_client::TlsClient;
use crate::{http_proxy_tunnel, socks_proxy};

/// Opens connections to one target, for the HTTP library.
#[derive(Clone)]
pub(crate) struct Connector {
    connection_route: Arc<ConnectionRoute>,
    shared_dials: Arc<SharedDials>,
}

/// The parameters of new connections.
pub(crate) struct ConnectionRoute {
    pub(crate) endpoint: Endpoint,
    pub(crate) kind: RouteKind,
    pub(crate) service_resolver: Option<Arc<dyn ServiceResolver>>,
    /// The TLS client; `None` for plain HTTP.
    pub(crate) tls_client: Option<Arc<TlsClient>>,
    pub(crate) connect_timeout: Duration,
    /// The addresses that the client may connect to.
    pub(crate) address_policy: AddressPolicy,
}

/// The way in which the client reaches the target.
pub(crate) enum RouteKind {
    Direct,
    Service(ServiceName),
    Proxy(ProxyHop),
}

/// A proxy, with its TLS client.
pub(crate) struct ProxyHop {
    pub(crate) proxy: ProxyUrl,
    /// The TLS client and the name to verify in the certificate; only for HTTPS proxies.
    pub(crate) tls_client: Option<(Arc<TlsClient>, ServerName<'static>)>,
}

impl Connector {
    pub(crate) fn new(route: ConnectionRoute) -> Self {
        Self { connection_route: Arc::new(route), shared_dials: Arc::default() }
    }

    pub(crate) fn connection_route(&self) -> &ConnectionRoute {
        &self.connection_route
    }

    /// The number of connections that were opened so far.
    pub(crate) fn n_successful_dials(&self) -> u64 {
        self.shared_dials.n_successful_dials()
    }
}

impl ConnectionRoute {
    /// Opens a connection that is ready for requests, within the connect timeout.
    pub(crate) async fn connect(&self) -> Result<TargetConnection, Fault> {
        let mut fault = match timeout(self.connect_timeout, self.connect_without_timeout()).await {
            Ok(Ok(wire)) => return Ok(wire),
            Ok(Err(fault)) => fault,
            Err(_) => {
                let at = &self.endpoint.host_port;
                Fault::new(FaultKind::Connect, format!("dial tcp {at}: i/o timeout"))
            }
        };
        // Without free descriptors, reading the client certificate fails, which looks like a TLS fault.
        let may_lack_descriptors = matches!(fault.kind, FaultKind::Tls | FaultKind::Other);
        if may_lack_descriptors
            && UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
                .is_err_and(|own| is_local_resource_error(&own))
        {
            fault.kind = FaultKind::Local;
        }
        Err(fault)
    }

    async fn connect_without_timeout(&self) -> Result<TargetConnection, Fault> {
        let tcp = match &self.kind {
            RouteKind::Direct => self.dial_host().await?,
            RouteKind::Service(service) => self.dial_service(service).await?,
            RouteKind::Proxy(hop) => {
                // The operator configures the proxy, and the proxy resolves host names.
                check_ip_literal(&self.endpoint.host_port, self.address_policy)?;
                let dialed = dial_host_port(&hop.proxy.host_port, AddressPolicy::default()).await;
                dialed.map_err(|fault| fault.with_message_prefix("proxyconnect tcp"))?
            }
        };
        let (local, peer) = (tcp.local_addr().ok(), tcp.peer_addr().ok());
        let io: Box<dyn ByteStream> = match &self.kind {
            RouteKind::Direct | RouteKind::Service(_) => Box::new(tcp),
            RouteKind::Proxy(hop) => {
                hop.connect_via_proxy(tcp, &self.endpoint.host_port, self.tls_client.is_some())
                    .await?
            }
        };
        let (Some(tls), Some(name)) = (&self.tls_client, &self.endpoint.server_name) else {
            let mut wire = TargetConnection::new(io, local, peer);
            wire.is_forwarded_by_proxy =
                matches!(&self.kind, RouteKind::Proxy(hop) if !hop.proxy.is_socks());
            return Ok(wire);
        };
        let stream = tls.tls_handshake(io, name.clone()).await?;
        Ok(TargetConnection::new(Box::new(stream), local, peer))
    }

    async fn dial_host(&self) -> Result<TcpStream, Fault> {
        let at = &self.endpoint.host_port;
        let known =
            self.service_resolver.as_ref().and_then(|it| it.override_address(&at.host, at.port));
        match known {
            Some(address) => dial_first_reachable(vec![address], self.address_policy).await,
            None => dial_host_port(at, self.address_policy).await,
        }
    }

    /// Resolves the Service for every connection, so that a change of endpoints takes effect with the next one.
    async fn dial_service(&self, service: &ServiceName) -> Result<TcpStream, Fault> {
        let resolved = match &self.service_resolver {
            Some(resolver) => resolver.resolve_service(service),
            None => {
                let port = service.port.unwrap_or(self.endpoint.scheme.default_port());
                Ok(HostPort { host: service.service_dns_name(), port })
            }
        };
        let at = resolved.map_err(|error| Fault::new(FaultKind::Dns, error.to_string()))?;
        dial_host_port(&at, self.address_policy).await
    }
}

impl ProxyHop {
    /// Connects to the target through the proxy. Plain HTTP needs no tunnel through an HTTP proxy.
    async fn connect_via_proxy(
        &self,
        tcp: TcpStream,
        to: &HostPort,
        wants_tunnel: bool,
    ) -> Result<Box<dyn ByteStream>, Fault> {
        let mut io: Box<dyn ByteStream> = Box::new(tcp);
        if let Some((tls, name)) = &self.tls_client {
            let secured = tls.tls_handshake(io, name.clone()).await;
            io = Box::new(secured.map_err(|fault| fault.with_message_prefix("proxyconnect tcp"))?);
        }
        let login: Option<&ProxyLogin> = self.proxy.proxy_login.as_ref();
        match self.proxy.kind {
            ProxyKind::Socks5 => {
                let what = format!("socks connect tcp {}->{to}", self.proxy.host_port);
                let opened = socks_proxy::request_socks_connect(&mut *io, to, login).await;
                opened.map_err(|fault| fault.with_message_prefix(what))?;
            }
            ProxyKind::Http | ProxyKind::Https if wants_tunnel => {
                http_proxy_tunnel::open_tunnel(&mut *io, to, login).await?;
            }
            ProxyKind::Http | ProxyKind::Https => {}
        }
        Ok(io)
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TargetConnection>;
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<TargetConnection>, Fault>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        Poll::Ready(Ok(()))
    }

    /// The connector has one target, so the URL is ignored.
    fn call(&mut self, _: Uri) -> Self::Future {
        let connection = self.shared_dials.wait_for_connection(&self.connection_route);
        Box::pin(async move { connection.await.map(TokioIo::new) })
    }
}
