//! Determines the user of a request.

use std::sync::{Arc, LazyLock};

use authz::User;
use http::HeaderMap;
use jiff::Timestamp;
use rustls_pki_types::CertificateDer;

use crate::authenticated_user::{
    AuthenticatedUser, AuthenticationResult, CredentialError, Method, Unauthenticated,
};
use crate::authenticator_options::{AnonymousAccess, AuthenticatorOptionsError, Options};
use crate::bearer_token::{self, AuthorizationHeader};
use crate::certificate_identity::{
    CertificateCheck, CertificateIdentity, check_client_certificate, check_front_proxy_certificate,
};
use crate::front_proxy::{DEFAULT_PREFIX, FrontProxyHeaders};
use crate::last_token_cache::{CachedToken, LastTokenCache};
use crate::service_account::{
    AudienceCheck, ObjectLookup, ServiceAccountTokenVerifier, VerifiedTokenUser,
};
use crate::token_file::TokenFile;
use crate::token_table::TokenTable;
use crate::trusted_authorities::{AuthorityKind, TrustedAuthorities};
use crate::well_known_identities::add_authenticated_group;

/// Authenticates requests.
///
/// Only the certificate authorities change at run time, [all of one kind at
/// once](Self::replace_authorities). A [`CertificateIdentity`] that was computed with the old
/// authorities is computed again: see [`uses_current_authorities`](Self::uses_current_authorities).
#[derive(Debug)]
pub struct Authenticator {
    loopback_tokens: TokenTable,
    front_proxy: Option<FrontProxy>,
    pub(crate) trusted_authorities: TrustedAuthorities,
    token_file: Option<TokenFile>,
    pub(crate) service_account_verifier: Option<ServiceAccountTokenVerifier>,
    api_audiences: Vec<String>,
    anonymous_access: AnonymousAccess,
}

#[derive(Debug)]
struct FrontProxy {
    allowed_proxy_names: Vec<String>,
    headers: FrontProxyHeaders,
}

/// The parts of a request that authentication reads.
#[derive(Debug, Clone, Copy)]
pub struct AuthenticationRequest<'r> {
    /// All header fields of the request.
    pub headers: &'r HeaderMap,
    /// The path, percent-decoded, without the query.
    pub path: &'r str,
}

/// A bearer token, and the token cache of its connection.
struct PresentedToken<'t> {
    token_text: &'t str,
    /// The result of an earlier request of the connection with the same token.
    cached_token: Option<CachedToken>,
    /// The token cache of the connection; `None` for the token of a `TokenReview`.
    token_cache: Option<&'t LastTokenCache>,
}

impl<'t> PresentedToken<'t> {
    /// A token without a cached result.
    fn new(text: &'t str) -> Self {
        Self { token_text: text, cached_token: None, token_cache: None }
    }
}

impl Authenticator {
    /// Builds an authenticator from its options.
    ///
    /// # Errors
    /// A certificate of an authority cannot be used.
    pub fn new(options: Options) -> Result<Self, AuthenticatorOptionsError> {
        let mut loopback_tokens = TokenTable::new()?;
        if let Some(credential) = &options.loopback_credential {
            loopback_tokens.insert(credential.loopback_token(), credential.user());
        }
        let proxies = options.front_proxy.as_ref().map(|proxy| proxy.proxy_authorities.as_slice());
        let authorities = TrustedAuthorities::new(&options.client_authorities, proxies)?;
        let front_proxy = options.front_proxy.map(|proxy| FrontProxy {
            allowed_proxy_names: proxy.allowed_proxy_names,
            headers: proxy.headers,
        });
        let mut api_audiences = options.api_audiences;
        if let Some(accounts) = &options.service_account_options
            && api_audiences.is_empty()
        {
            api_audiences.clone_from(&accounts.issuers);
        }
        Ok(Self {
            loopback_tokens,
            front_proxy,
            trusted_authorities: authorities,
            token_file: options.token_file,
            service_account_verifier: options
                .service_account_options
                .map(ServiceAccountTokenVerifier::new),
            api_audiences,
            anonymous_access: options.anonymous_access,
        })
    }

    /// The audiences that identify this server in tokens.
    pub fn api_audiences(&self) -> &[String] {
        &self.api_audiences
    }

    /// Replaces all authorities of one kind, for a CA file that was configured at start and
    /// changed. Front proxies stay untrusted if none was configured at start.
    ///
    /// # Errors
    /// One of them cannot be used, or there is none. Then nothing changes.
    pub fn replace_authorities(
        &self,
        kind: AuthorityKind,
        certificates: &[CertificateDer<'_>],
    ) -> Result<(), AuthenticatorOptionsError> {
        self.trusted_authorities.replace_authorities(kind, certificates)
    }

    /// Reports whether the identity was computed with the current authorities. If not, the
    /// certificates have to be identified again.
    pub fn uses_current_authorities(&self, identity: &CertificateIdentity) -> bool {
        identity.generation == self.trusted_authorities.generation()
    }

    /// Verifies the certificates that a peer presents; its own comes first.
    pub fn identify_certificates(
        &self,
        presented: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> CertificateIdentity {
        let authorities = self.trusted_authorities.current_authorities();
        let proxy = match (&self.front_proxy, &authorities.proxy_authorities) {
            (Some(proxy), Some(authorities)) => check_front_proxy_certificate(
                authorities,
                &proxy.allowed_proxy_names,
                presented,
                now,
            ),
            _ => CertificateCheck::NotPresented,
        };
        let client = match &authorities.client_authorities {
            Some(authorities) => check_client_certificate(authorities, presented, now),
            None => CertificateCheck::NotPresented,
        };
        CertificateIdentity {
            generation: authorities.generation,
            front_proxy_check: proxy,
            client_certificate_check: client,
            last_token_cache: LastTokenCache::default(),
        }
    }

    /// Authenticates a request.
    ///
    /// 1. The loopback token authenticates the server itself.
    /// 2. The sources are tried in order: front proxy headers, client certificate, bearer token,
    ///    token among the WebSocket subprotocols. The first that yields a user wins; errors of the
    ///    sources before it are dropped.
    /// 3. A user of step 2 joins the group `system:authenticated`.
    /// 4. If the request has no credential at all, its user is anonymous. A request with a wrong
    ///    credential is refused.
    ///
    /// # Errors
    /// No source yields a user: respond with 401.
    pub async fn authenticate<L: ObjectLookup>(
        &self,
        request: AuthenticationRequest<'_>,
        certificates: &CertificateIdentity,
        lookup: &L,
        now: Timestamp,
    ) -> Result<AuthenticatedUser, Unauthenticated> {
        let mut refused = Unauthenticated::default();
        let mut is_undecodable = false;
        let bearer = match bearer_token::parse_authorization_header(request.headers) {
            AuthorizationHeader::None => None,
            AuthorizationHeader::UndecodableToken => {
                is_undecodable = true;
                None
            }
            AuthorizationHeader::Token(token) => Some(token),
            AuthorizationHeader::Warning(warning) => {
                refused.response_warnings.push(warning);
                None
            }
        };
        let presented = bearer.map(|text| PresentedToken {
            token_text: text,
            // The tables of tokens never change, so a token that was in none of them still is in none.
            cached_token: certificates.last_token_cache.find_cached_token(text),
            token_cache: Some(&certificates.last_token_cache),
        });
        if let Some(token) = &presented
            && token.cached_token.is_none()
            && let Some(user) = self.loopback_tokens.user(token.token_text)
        {
            return Ok(AuthenticatedUser::new(Arc::clone(user), Method::Loopback));
        }
        let found_user = refused.take_user_or_errors(self.authenticate_by_front_proxy(
            request.headers,
            certificates,
            now,
        ));
        let found_user = found_user.or_else(|| {
            refused.take_user_or_errors(authenticate_by_certificate(certificates, now))
        });
        let found_user = match (found_user, presented) {
            (None, Some(token)) => {
                let requested_audiences = Some(self.api_audiences.as_slice());
                refused.take_user_or_errors(
                    self.authenticate_bearer_token(token, requested_audiences, lookup, now).await,
                )
            }
            (None, None) if is_undecodable => {
                refused.credential_errors.push(CredentialError::UnknownToken);
                None
            }
            (found_user, _) => found_user,
        };
        let found_user = match found_user {
            None => refused.take_user_or_errors(
                self.authenticate_by_websocket(request.headers, lookup, now).await,
            ),
            some => some,
        };
        if let Some(mut authenticated) = found_user {
            add_authenticated_group(&mut authenticated.user);
            authenticated.response_warnings = refused.response_warnings;
            return Ok(authenticated);
        }
        if refused.credential_errors.is_empty()
            && self.anonymous_access.allows_anonymous_path(request.path)
        {
            let warnings = refused.response_warnings;
            return Ok(AuthenticatedUser {
                response_warnings: warnings,
                ..AuthenticatedUser::anonymous_user()
            });
        }
        Err(refused)
    }

    /// Authenticates a bearer token for a `TokenReview`, with the audiences that the reviewing
    /// server accepts, or `None` for those of this server.
    ///
    /// # Errors
    /// The token authenticates no user for these audiences.
    pub async fn authenticate_token<L: ObjectLookup>(
        &self,
        token: &str,
        audiences: Option<&[String]>,
        lookup: &L,
        now: Timestamp,
    ) -> Result<AuthenticatedUser, Unauthenticated> {
        let requested_audiences = audiences.unwrap_or(&self.api_audiences);
        let header = format!("Bearer {token}");
        let mut refused = Unauthenticated::default();
        let found_user = match bearer_token::parse_authorization_value(&header) {
            AuthorizationHeader::Token(token) => match self.loopback_tokens.user(token) {
                Some(user) => Ok(self.restrict_to_api_audiences(
                    user,
                    Method::Loopback,
                    Some(requested_audiences),
                )),
                None => {
                    let token = PresentedToken::new(token);
                    self.authenticate_bearer_token(token, Some(requested_audiences), lookup, now)
                        .await
                }
            },
            AuthorizationHeader::None
            | AuthorizationHeader::Warning(_)
            | AuthorizationHeader::UndecodableToken => Ok(None),
        };
        match refused.take_user_or_errors(found_user) {
            Some(mut authenticated) => {
                add_authenticated_group(&mut authenticated.user);
                Ok(authenticated)
            }
            None => {
                if refused.credential_errors.is_empty() {
                    refused.credential_errors.push(CredentialError::UnknownToken);
                }
                Err(refused)
            }
        }
    }

    /// Removes all credentials from the headers, so that no later code sees or trusts them. The
    /// caller does this once the user is known, for anonymous users too.
    pub fn strip_credentials(&self, headers: &mut HeaderMap) {
        bearer_token::strip_tokens(headers);
        static DEFAULT_HEADERS: LazyLock<FrontProxyHeaders> =
            LazyLock::new(FrontProxyHeaders::default);
        // A check of the prefix of each name is cheaper than the removal of every possible header.
        if headers.keys().any(|name| name.as_str().starts_with(DEFAULT_PREFIX)) {
            DEFAULT_HEADERS.strip_identity_headers(headers);
        }
        if let Some(proxy) = &self.front_proxy {
            proxy.headers.strip_identity_headers(headers);
        }
    }

    fn authenticate_by_front_proxy(
        &self,
        headers: &HeaderMap,
        certificates: &CertificateIdentity,
        now: Timestamp,
    ) -> AuthenticationResult {
        let Some(proxy) = &self.front_proxy else { return Ok(None) };
        if certificates.front_proxy_check.value_if_valid_at(now).map_err(to_error_list)?.is_none() {
            return Ok(None);
        }
        let user = proxy.headers.user(headers).map_err(to_error_list)?;
        Ok(user.map(|user| AuthenticatedUser::new(user, Method::FrontProxy)))
    }

    async fn authenticate_by_websocket<L: ObjectLookup>(
        &self,
        headers: &HeaderMap,
        lookup: &L,
        now: Timestamp,
    ) -> AuthenticationResult {
        match bearer_token::token_from_subprotocols(headers).map_err(to_error_list)? {
            None => Ok(None),
            Some(token) => {
                let requested_audiences = Some(self.api_audiences.as_slice());
                let token = PresentedToken::new(&token);
                self.authenticate_bearer_token(token, requested_audiences, lookup, now).await
            }
        }
    }

    /// Tries the token file, then the service accounts. A token that neither accepts is an error.
    async fn authenticate_bearer_token<L: ObjectLookup>(
        &self,
        token: PresentedToken<'_>,
        requested_audiences: Option<&[String]>,
        lookup: &L,
        now: Timestamp,
    ) -> AuthenticationResult {
        if let Some(CachedToken::FileUser(authenticated)) = token.cached_token {
            return Ok(Some(authenticated));
        }
        if token.cached_token.is_none()
            && let Some(user) =
                self.token_file.as_ref().and_then(|file| file.user(token.token_text))
            && let Some(mut authenticated) =
                self.restrict_to_api_audiences(user, Method::TokenFile, requested_audiences)
        {
            // INVARIANT: only the token of a request has a cache, and its audiences are always those of the API.
            if let Some(memory) = token.token_cache {
                add_authenticated_group(&mut authenticated.user);
                memory.cache_token(token.token_text, CachedToken::FileUser(authenticated.clone()));
            }
            return Ok(Some(authenticated));
        }
        let Some(accounts) = &self.service_account_verifier else {
            return Err(vec![CredentialError::UnknownToken]);
        };
        let default_audiences = self.api_audiences.as_slice();
        let audiences = AudienceCheck {
            default_audiences,
            accepted_audiences: requested_audiences.unwrap_or(default_audiences),
        };
        let claims = match token.cached_token {
            Some(CachedToken::Claims(claims)) => claims,
            Some(CachedToken::FileUser(_)) | None => {
                match accounts.verify_signature(token.token_text) {
                    Ok(None) => return Err(vec![CredentialError::UnknownToken]),
                    Ok(Some(claims)) => {
                        let claims = Arc::new(claims);
                        if let Some(memory) = token.token_cache {
                            memory.cache_token(
                                token.token_text,
                                CachedToken::Claims(Arc::clone(&claims)),
                            );
                        }
                        claims
                    }
                    Err(error) => return Err(to_error_list(error)),
                }
            }
        };
        match accounts
            .authenticate_verified_token(token.token_text, &claims, audiences, lookup, now)
            .await
        {
            Ok(VerifiedTokenUser { user, audiences }) => {
                let method = Method::ServiceAccount;
                let audiences = audiences.into();
                Ok(Some(AuthenticatedUser { audiences, ..AuthenticatedUser::new(user, method) }))
            }
            Err(error) => Err(to_error_list(error)),
        }
    }

    /// A credential that names no audience is valid for the server's own audiences: the result
    /// holds those that are requested, and there is no result if none is.
    fn restrict_to_api_audiences(
        &self,
        user: &Arc<User>,
        method: Method,
        requested_audiences: Option<&[String]>,
    ) -> Option<AuthenticatedUser> {
        let Some(requested_audiences) =
            requested_audiences.filter(|requested_audiences| !requested_audiences.is_empty())
        else {
            return Some(AuthenticatedUser::new(Arc::clone(user), method));
        };
        let audiences: Arc<[String]> = self
            .api_audiences
            .iter()
            .filter(|own| requested_audiences.contains(own))
            .cloned()
            .collect();
        let is_good = !audiences.is_empty();
        is_good.then(|| AuthenticatedUser {
            audiences,
            ..AuthenticatedUser::new(Arc::clone(user), method)
        })
    }
}

fn authenticate_by_certificate(
    certificates: &CertificateIdentity,
    now: Timestamp,
) -> AuthenticationResult {
    let user =
        certificates.client_certificate_check.value_if_valid_at(now).map_err(to_error_list)?;
    Ok(user.map(|user| AuthenticatedUser::new(Arc::clone(user), Method::ClientCertificate)))
}

fn to_error_list(error: impl Into<CredentialError>) -> Vec<CredentialError> {
    vec![error.into()]
}

#[cfg(test)]
mod tests;
