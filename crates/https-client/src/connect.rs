//! Connections to a target: name, proxy, TCP, TLS.

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

use crate::address::AddressPolicy;
use crate::dial::{check_literal, dial, dial_any};
use crate::dials::Dials;
use crate::endpoint::Endpoint;
use crate::failure::is_local;
use crate::fault::{Fault, FaultKind};
use crate::proxy::{Login, ProxyKind, ProxyUrl};
use crate::resolve::{HostPort, Resolve};
use crate::target::ServiceName;
use crate::tls::Tls;
use crate::wire::{Io, Wire};
use crate::{socks, tunnel};

/// Makes connections to one target.
#[derive(Clone)]
pub(crate) struct Connector {
    route: Arc<Route>,
    dials: Arc<Dials>,
}

/// All that a new connection needs.
pub(crate) struct Route {
    pub(crate) endpoint: Endpoint,
    pub(crate) way: Way,
    pub(crate) resolver: Option<Arc<dyn Resolve>>,
    /// None for plain HTTP.
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) connect_timeout: Duration,
    /// Which addresses the target may have.
    pub(crate) addresses: AddressPolicy,
}

/// What leads to the target.
pub(crate) enum Way {
    Direct,
    Service(ServiceName),
    Proxy(Hop),
}

/// A proxy.
pub(crate) struct Hop {
    pub(crate) proxy: ProxyUrl,
    /// For those that are spoken to over TLS, with the name that they must have.
    pub(crate) tls: Option<(Arc<Tls>, ServerName<'static>)>,
}

impl Connector {
    pub(crate) fn new(route: Route) -> Self {
        Self { route: Arc::new(route), dials: Arc::default() }
    }

    pub(crate) fn route(&self) -> &Route {
        &self.route
    }

    /// How many connections were made so far.
    pub(crate) fn n_connected(&self) -> u64 {
        self.dials.n_connected()
    }
}

impl Route {
    /// A new connection, ready for requests, or a failure after the time that connecting may take.
    pub(crate) async fn connect(&self) -> Result<Wire, Fault> {
        let mut fault = match timeout(self.connect_timeout, self.connect_at_leisure()).await {
            Ok(Ok(wire)) => return Ok(wire),
            Ok(Err(fault)) => fault,
            Err(_) => {
                let at = &self.endpoint.at;
                Fault::new(FaultKind::Connect, format!("dial tcp {at}: i/o timeout"))
            }
        };
        // A client certificate that can not be read for want of a descriptor looks like a fault of TLS.
        let is_vague = matches!(fault.kind, FaultKind::Tls | FaultKind::Other);
        if is_vague && UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_err_and(|own| is_local(&own)) {
            fault.kind = FaultKind::Local;
        }
        Err(fault)
    }

    async fn connect_at_leisure(&self) -> Result<Wire, Fault> {
        let tcp = match &self.way {
            Way::Direct => self.dial_host().await?,
            Way::Service(service) => self.dial_service(service).await?,
            Way::Proxy(hop) => {
                // The operator names the proxy, which resolves the names of targets itself.
                check_literal(&self.endpoint.at, self.addresses)?;
                let dialed = dial(&hop.proxy.at, AddressPolicy::default()).await;
                dialed.map_err(|fault| fault.within("proxyconnect tcp"))?
            }
        };
        let (local, peer) = (tcp.local_addr().ok(), tcp.peer_addr().ok());
        let io: Box<dyn Io> = match &self.way {
            Way::Direct | Way::Service(_) => Box::new(tcp),
            Way::Proxy(hop) => hop.pass(tcp, &self.endpoint.at, self.tls.is_some()).await?,
        };
        let (Some(tls), Some(name)) = (&self.tls, &self.endpoint.server_name) else {
            let mut wire = Wire::new(io, local, peer);
            wire.is_relayed = matches!(&self.way, Way::Proxy(hop) if !hop.proxy.is_socks());
            return Ok(wire);
        };
        let stream = tls.handshake(io, name.clone()).await?;
        Ok(Wire::new(Box::new(stream), local, peer))
    }

    async fn dial_host(&self) -> Result<TcpStream, Fault> {
        let at = &self.endpoint.at;
        let known = self.resolver.as_ref().and_then(|it| it.address(&at.host, at.port));
        match known {
            Some(address) => dial_any(vec![address], self.addresses).await,
            None => dial(at, self.addresses).await,
        }
    }

    /// Asks anew where the service is, so that a change takes effect with the next connection.
    async fn dial_service(&self, service: &ServiceName) -> Result<TcpStream, Fault> {
        let resolved = match &self.resolver {
            Some(resolver) => resolver.resolve(service),
            None => Ok(HostPort { host: service.dns_name(), port: service.port }),
        };
        let at = resolved.map_err(|error| Fault::new(FaultKind::Dns, error.to_string()))?;
        dial(&at, self.addresses).await
    }
}

impl Hop {
    /// Has the proxy pass us on. Plain HTTP needs no tunnel through a proxy that reads it.
    async fn pass(
        &self,
        tcp: TcpStream,
        to: &HostPort,
        wants_tunnel: bool,
    ) -> Result<Box<dyn Io>, Fault> {
        let mut io: Box<dyn Io> = Box::new(tcp);
        if let Some((tls, name)) = &self.tls {
            let secured = tls.handshake(io, name.clone()).await;
            io = Box::new(secured.map_err(|fault| fault.within("proxyconnect tcp"))?);
        }
        let login: Option<&Login> = self.proxy.login.as_ref();
        match self.proxy.kind {
            ProxyKind::Socks5 => {
                let what = format!("socks connect tcp {}->{to}", self.proxy.at);
                let opened = socks::open(&mut *io, to, login).await;
                opened.map_err(|fault| fault.within(what))?;
            }
            ProxyKind::Http | ProxyKind::Https if wants_tunnel => {
                tunnel::open(&mut *io, to, login).await?;
            }
            ProxyKind::Http | ProxyKind::Https => {}
        }
        Ok(io)
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Wire>;
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<Wire>, Fault>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        Poll::Ready(Ok(()))
    }

    /// There is but one target, so the URL says nothing new.
    fn call(&mut self, _: Uri) -> Self::Future {
        let connection = self.dials.connection(&self.route);
        Box::pin(async move { connection.await.map(TokioIo::new) })
    }
}
