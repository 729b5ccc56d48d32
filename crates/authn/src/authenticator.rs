//! From a request to its user.

use std::sync::LazyLock;

use authz::User;
use http::HeaderMap;
use jiff::Timestamp;
use rustls_pki_types::CertificateDer;

use crate::bearer::{self, Bearer, ProtocolError};
use crate::certificate::{self, CertificateError, Validity};
use crate::front_proxy::{FrontProxyHeaders, HeaderValueError};
use crate::identity::{ANONYMOUS_USER, UNAUTHENTICATED_GROUP, add_authenticated_group};
use crate::options::{Anonymous, Options, OptionsError};
use crate::service_account::{Audiences, Lookup, ServiceAccounts, TokenError};
use crate::token_file::TokenFile;
use crate::token_table::TokenTable;
use crate::trust::{AuthorityKind, CurrentTrust};

/// Tells who sends a request.
///
/// Only the authorities change, [as a whole](Self::replace_authorities). A certificate that was
/// [identified](Self::identify_certificates) by the old ones is identified anew: see
/// [`is_current`](Self::is_current).
#[derive(Debug)]
pub struct Authenticator {
    loopback: TokenTable,
    front_proxy: Option<FrontProxy>,
    trust: CurrentTrust,
    token_file: Option<TokenFile>,
    service_accounts: Option<ServiceAccounts>,
    api_audiences: Vec<String>,
    anonymous: Anonymous,
}

#[derive(Debug)]
struct FrontProxy {
    allowed_names: Vec<String>,
    headers: FrontProxyHeaders,
}

/// What of a request says who sends it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// The headers.
    pub headers: &'r HeaderMap,
    /// The path, percent-decoded, without the query.
    pub path: &'r str,
}

/// A user, and how it became known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticated {
    /// The user.
    pub user: User,
    /// By what.
    pub method: Method,
    /// For which audiences the credential is good; empty if it does not say.
    pub audiences: Vec<String>,
    /// What the client should be told in `Warning` headers.
    pub warnings: Vec<&'static str>,
}

/// How a user became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// The server calls itself.
    Loopback,
    /// A proxy named the user.
    FrontProxy,
    /// A client certificate.
    ClientCertificate,
    /// The static token file.
    TokenFile,
    /// A token of a service account.
    ServiceAccount,
    /// Nothing: the request has no credentials.
    Anonymous,
}

/// Nobody is known to send the request. The answer is 401, whatever the reasons are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unauthenticated {
    /// Why each of the credentials was refused; empty if there were none. For logs, not for the
    /// client. No credential appears in it.
    pub errors: Vec<CredentialError>,
    /// What the client should be told in `Warning` headers.
    pub warnings: Vec<&'static str>,
}

/// Why a credential was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// No source of tokens knows the token.
    #[error("invalid bearer token")]
    UnknownToken,
    /// A certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The headers of a proxy.
    #[error(transparent)]
    FrontProxy(#[from] HeaderValueError),
    /// The subprotocols of a WebSocket.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// A token of a service account.
    #[error(transparent)]
    ServiceAccount(#[from] TokenError),
}

/// What the certificates of one connection say. Made when the connection begins, and used for each
/// of its requests until the authorities change.
#[derive(Debug, Clone, Default)]
pub struct CertificateIdentity {
    /// Which authorities were asked.
    generation: u64,
    /// Whether the peer is a proxy that may name users.
    proxy: Finding<()>,
    /// The user whom the certificate names.
    client: Finding<User>,
}

/// What a certificate proves.
#[derive(Debug, Clone, Default)]
enum Finding<T> {
    /// Nothing was presented, or nobody looks at it.
    #[default]
    Nothing,
    /// What was presented is not good.
    Refused(CertificateError),
    /// This, as long as the certificate is valid.
    Proved(T, Validity),
}

impl<T> Finding<T> {
    fn from_result(result: Result<Option<(T, Validity)>, CertificateError>) -> Self {
        match result {
            Ok(None) => Self::Nothing,
            Ok(Some((value, validity))) => Self::Proved(value, validity),
            Err(error) => Self::Refused(error),
        }
    }

    /// What is still proved now.
    fn at(&self, now: Timestamp) -> Result<Option<&T>, CertificateError> {
        match self {
            Self::Nothing => Ok(None),
            Self::Refused(error) => Err(error.clone()),
            Self::Proved(value, validity) if validity.contains(now) => Ok(Some(value)),
            Self::Proved(_, validity) => {
                Err(CertificateError::Expired { until: validity.not_after })
            }
        }
    }
}

/// What one source says: a user, nothing, or that the credential is wrong.
type Opinion = Result<Option<Authenticated>, Vec<CredentialError>>;

impl Authenticator {
    /// Makes one.
    ///
    /// # Errors
    /// A certificate of an authority can not be used.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        let mut loopback = TokenTable::new()?;
        if let Some(credential) = &options.loopback {
            loopback.insert(credential.token(), credential.user());
        }
        let proxies = options.front_proxy.as_ref().map(|proxy| proxy.authorities.as_slice());
        let trust = CurrentTrust::new(&options.client_authorities, proxies)?;
        let front_proxy = options
            .front_proxy
            .map(|proxy| FrontProxy { allowed_names: proxy.allowed_names, headers: proxy.headers });
        let mut api_audiences = options.api_audiences;
        if let Some(accounts) = &options.service_accounts
            && api_audiences.is_empty()
        {
            api_audiences.clone_from(&accounts.issuers);
        }
        Ok(Self {
            loopback,
            front_proxy,
            trust,
            token_file: options.token_file,
            service_accounts: options.service_accounts.map(ServiceAccounts::new),
            api_audiences,
            anonymous: options.anonymous,
        })
    }

    /// What the server calls itself in tokens.
    pub fn api_audiences(&self) -> &[String] {
        &self.api_audiences
    }

    /// Trusts these authorities in place of those that it trusts. It is for a file that was given
    /// at the start; proxies are believed only if they were then.
    ///
    /// # Errors
    /// One of them can not be used, or there is none. Then nothing changes.
    pub fn replace_authorities(
        &self,
        kind: AuthorityKind,
        certificates: &[CertificateDer<'_>],
    ) -> Result<(), OptionsError> {
        self.trust.replace(kind, certificates)
    }

    /// Whether the authorities are still those that were asked. If not, the certificates have to be
    /// identified anew.
    pub fn is_current(&self, identity: &CertificateIdentity) -> bool {
        identity.generation == self.trust.generation()
    }

    /// Reads the certificates that a peer presents, its own first.
    pub fn identify_certificates(
        &self,
        presented: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> CertificateIdentity {
        let trust = self.trust.load();
        let generation = trust.generation;
        let Some(leaf) = presented.first() else {
            return CertificateIdentity { generation, ..CertificateIdentity::default() };
        };
        let proxy = match (&self.front_proxy, &trust.proxies) {
            (Some(proxy), Some(authorities)) => {
                authorities.verify(presented, now).and_then(|validity| {
                    let parsed = certificate::parse(leaf).ok_or(CertificateError::Malformed)?;
                    let name = certificate::common_name(&parsed)?;
                    if proxy.allowed_names.is_empty() || proxy.allowed_names.contains(&name) {
                        Ok(Some(((), validity)))
                    } else {
                        Err(CertificateError::NameNotAllowed(name))
                    }
                })
            }
            _ => Ok(None),
        };
        let client = trust.clients.as_ref().map_or(Ok(None), |authorities| {
            let validity = authorities.verify(presented, now)?;
            let parsed = certificate::parse(leaf).ok_or(CertificateError::Malformed)?;
            let user = certificate::user(leaf, &parsed)?;
            Ok(user.map(|user| (user, validity)))
        });
        CertificateIdentity {
            generation,
            proxy: Finding::from_result(proxy),
            client: Finding::from_result(client),
        }
    }

    /// Tells who sends a request.
    ///
    /// 1. The loopback token.
    /// 2. The headers of a proxy, the client certificate, the bearer token, and the token among the
    ///    subprotocols of a WebSocket. The first that names a user wins; the errors of those before
    ///    it do not matter.
    /// 3. Whoever is known by 2 is in the group of the authenticated.
    /// 4. If there was no credential at all, the anonymous user. A wrong one never gets here.
    ///
    /// # Errors
    /// Nobody is known: answer 401.
    pub async fn authenticate<L: Lookup>(
        &self,
        request: Request<'_>,
        certificates: &CertificateIdentity,
        lookup: &L,
        now: Timestamp,
    ) -> Result<Authenticated, Unauthenticated> {
        let mut refused = Unauthenticated::default();
        let bearer = match bearer::from_headers(request.headers) {
            Bearer::None => None,
            Bearer::Token(token) => Some(token),
            Bearer::Warning(warning) => {
                refused.warnings.push(warning);
                None
            }
        };
        if let Some(user) = bearer.and_then(|token| self.loopback.user(token)) {
            return Ok(known(user.clone(), Method::Loopback));
        }
        let opinion = refused.first_of(self.ask_front_proxy(request.headers, certificates, now));
        let opinion = opinion.or_else(|| refused.first_of(ask_certificate(certificates, now)));
        let opinion = match (opinion, bearer) {
            (None, Some(token)) => {
                let wanted = Some(self.api_audiences.as_slice());
                refused.first_of(self.ask_tokens(token, wanted, lookup, now).await)
            }
            (opinion, _) => opinion,
        };
        let opinion = match opinion {
            None => refused.first_of(self.ask_websocket(request.headers, lookup, now).await),
            some => some,
        };
        if let Some(mut authenticated) = opinion {
            add_authenticated_group(&mut authenticated.user);
            authenticated.warnings = refused.warnings;
            return Ok(authenticated);
        }
        if refused.errors.is_empty() && self.anonymous.allows(request.path) {
            let warnings = refused.warnings;
            return Ok(Authenticated { warnings, ..known(anonymous(), Method::Anonymous) });
        }
        Err(refused)
    }

    /// Tells whom a bearer token stands for, as a `TokenReview` asks: with the audiences that the
    /// asker serves, or `None` for those of this server.
    ///
    /// # Errors
    /// Nobody.
    pub async fn authenticate_token<L: Lookup>(
        &self,
        token: &str,
        audiences: Option<&[String]>,
        lookup: &L,
        now: Timestamp,
    ) -> Result<Authenticated, Unauthenticated> {
        let wanted = audiences.unwrap_or(&self.api_audiences);
        let header = format!("Bearer {token}");
        let mut refused = Unauthenticated::default();
        let opinion = match bearer::from_value(&header) {
            Bearer::Token(token) => match self.loopback.user(token) {
                Some(user) => Ok(self.agnostic(user, Method::Loopback, Some(wanted))),
                None => self.ask_tokens(token, Some(wanted), lookup, now).await,
            },
            Bearer::None | Bearer::Warning(_) => Ok(None),
        };
        match refused.first_of(opinion) {
            Some(mut authenticated) => {
                add_authenticated_group(&mut authenticated.user);
                Ok(authenticated)
            }
            None => {
                if refused.errors.is_empty() {
                    refused.errors.push(CredentialError::UnknownToken);
                }
                Err(refused)
            }
        }
    }

    /// Takes all credentials out of the headers, so that nobody behind the gate sees or believes
    /// them. To be called when the user is known, whoever it is.
    pub fn strip_credentials(&self, headers: &mut HeaderMap) {
        bearer::strip(headers);
        static USUAL: LazyLock<FrontProxyHeaders> = LazyLock::new(FrontProxyHeaders::default);
        USUAL.strip(headers);
        if let Some(proxy) = &self.front_proxy {
            proxy.headers.strip(headers);
        }
    }

    fn ask_front_proxy(
        &self,
        headers: &HeaderMap,
        certificates: &CertificateIdentity,
        now: Timestamp,
    ) -> Opinion {
        let Some(proxy) = &self.front_proxy else { return Ok(None) };
        if certificates.proxy.at(now).map_err(one_error)?.is_none() {
            return Ok(None);
        }
        let user = proxy.headers.user(headers).map_err(one_error)?;
        Ok(user.map(|user| known(user, Method::FrontProxy)))
    }

    async fn ask_websocket<L: Lookup>(
        &self,
        headers: &HeaderMap,
        lookup: &L,
        now: Timestamp,
    ) -> Opinion {
        match bearer::from_protocols(headers).map_err(one_error)? {
            None => Ok(None),
            Some(token) => {
                let wanted = Some(self.api_audiences.as_slice());
                self.ask_tokens(&token, wanted, lookup, now).await
            }
        }
    }

    /// Asks the sources of tokens in turn. A token that none of them knows is wrong.
    async fn ask_tokens<L: Lookup>(
        &self,
        token: &str,
        wanted: Option<&[String]>,
        lookup: &L,
        now: Timestamp,
    ) -> Opinion {
        if let Some(user) = self.token_file.as_ref().and_then(|file| file.user(token))
            && let Some(authenticated) = self.agnostic(user, Method::TokenFile, wanted)
        {
            return Ok(Some(authenticated));
        }
        let Some(accounts) = &self.service_accounts else {
            return Err(vec![CredentialError::UnknownToken]);
        };
        let implicit = self.api_audiences.as_slice();
        let audiences = Audiences { implicit, wanted: wanted.unwrap_or(implicit) };
        match accounts.authenticate(token, audiences, lookup, now).await {
            Ok(Some((user, audiences))) => {
                let method = Method::ServiceAccount;
                Ok(Some(Authenticated { audiences, ..known(user, method) }))
            }
            Ok(None) => Err(vec![CredentialError::UnknownToken]),
            Err(error) => Err(one_error(error)),
        }
    }

    /// A credential that names no audience is for the server: it is good for those of its names
    /// that are wanted, and if it has names, for nobody else.
    fn agnostic(
        &self,
        user: &User,
        method: Method,
        wanted: Option<&[String]>,
    ) -> Option<Authenticated> {
        let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
            return Some(known(user.clone(), method));
        };
        let audiences: Vec<String> =
            self.api_audiences.iter().filter(|own| wanted.contains(own)).cloned().collect();
        let is_good = !audiences.is_empty();
        is_good.then(|| Authenticated { audiences, ..known(user.clone(), method) })
    }
}

impl Authenticated {
    /// Reports whether nobody is known behind the request. Connections of such clients are closed
    /// after one request where keeping them is costly.
    pub fn is_anonymous(&self) -> bool {
        self.user.name == ANONYMOUS_USER || self.user.is_in_group(UNAUTHENTICATED_GROUP)
    }
}

impl Unauthenticated {
    /// The user of an opinion; an error is kept.
    fn first_of(&mut self, opinion: Opinion) -> Option<Authenticated> {
        match opinion {
            Ok(authenticated) => authenticated,
            Err(errors) => {
                self.errors.extend(errors);
                None
            }
        }
    }
}

/// The aggregate of the errors; empty if there was no credential.
impl std::fmt::Display for Unauthenticated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let messages: Vec<String> = self.errors.iter().map(ToString::to_string).collect();
        f.write_str(&field_errors::aggregate(&messages))
    }
}

impl std::error::Error for Unauthenticated {}

fn ask_certificate(certificates: &CertificateIdentity, now: Timestamp) -> Opinion {
    let user = certificates.client.at(now).map_err(one_error)?;
    Ok(user.map(|user| known(user.clone(), Method::ClientCertificate)))
}

fn known(user: User, method: Method) -> Authenticated {
    Authenticated { user, method, audiences: Vec::new(), warnings: Vec::new() }
}

fn anonymous() -> User {
    User {
        name: ANONYMOUS_USER.to_owned(),
        groups: vec![UNAUTHENTICATED_GROUP.to_owned()],
        ..User::default()
    }
}

fn one_error(error: impl Into<CredentialError>) -> Vec<CredentialError> {
    vec![error.into()]
}

#[cfg(test)]
mod tests;
