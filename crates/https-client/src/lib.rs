//! Calling a service of somebody else over HTTPS: one target, one client.
//!
//! A [`Target`] says where the service is, whom to trust and who we are; a [`Client`] keeps
//! connections to it and makes one exchange per call, within a time, a size and no redirects.
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use https_client::{Client, Limits, Place, Scheme, Target, Unobserved};
//!
//! let peer = fake_http::Peer::start(fake_http::Answer::json("{}"))?;
//! let place = Place::Url {
//!     scheme: Scheme::Http,
//!     host: "127.0.0.1".to_owned(),
//!     port: Some(peer.address().port()),
//! };
//! let target = Target::new(place, "/authorize");
//! let client = Client::new(target, None, Limits::default(), Arc::new(Unobserved))?;
//! let reply = client.post("timeout=3s", "{}".into(), Duration::from_secs(3)).await?;
//! assert_eq!(reply.status, 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Owns: dialing, proxies, TLS as a client, credentials of requests, pooling, and the words for
//! what goes wrong, which are those that clients of Kubernetes know.
//! Must not know: what is asked and answered, retries, configuration files, where services come
//! from.

mod address;
mod client;
mod connect;
mod credentials;
mod dial;
mod dials;
mod endpoint;
mod failure;
mod fault;
mod identity;
mod impersonate;
mod limits;
mod observe;
mod pem;
mod proxy;
mod reply;
mod resolve;
mod secret;
mod socks;
mod target;
mod tls;
mod trust;
mod tunnel;
mod verify;
mod wire;

pub use address::{AddressPolicy, RefusedAddress};
pub use client::{ANSWER_FACTOR, BuildError, Client};
pub use credentials::Credentials;
pub use fault::{Fault, FaultKind};
pub use identity::{Identity, IdentityError, Material};
pub use impersonate::Impersonate;
pub use limits::Limits;
pub use observe::{Observe, Unobserved};
pub use proxy::{Proxy, ProxyUrl, ProxyUrlError};
pub use reply::Reply;
pub use resolve::{HostPort, Resolve, ResolveError};
pub use secret::Secret;
pub use target::{Place, Scheme, ServiceName, Target};
pub use trust::Trust;
pub use x509_verify::{CaBundle, CaBundleError};
