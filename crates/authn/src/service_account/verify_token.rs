//! Verification of service-account tokens.

use std::sync::{Arc, OnceLock};

use api_object::Tree;
use authz::User;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::claims::ObjectReference;
use super::legacy_token::{self, LEGACY_ISSUER};
use super::object_lookup::{ObjectLookup, ObjectLookupError, ReferencedKind, deletion_time};
use crate::jwt::{self, SignatureError};
use crate::token_keys::VerifyingKey;
use crate::well_known_identities::{
    CREDENTIAL_ID_KEY, NODE_NAME_KEY, NODE_UID_KEY, POD_NAME_KEY, POD_UID_KEY,
    add_authenticated_group, service_account_groups, service_account_user_name,
};

/// The clock difference between servers that is tolerated.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// The issuers and keys of accepted tokens.
#[derive(Debug, Clone, Default)]
pub struct ServiceAccountOptions {
    /// The accepted issuers. Legacy tokens name none of these and are accepted too.
    pub issuers: Vec<String>,
    /// The keys that may have signed a token.
    pub keys: Vec<VerifyingKey>,
    /// Where verifiers find the keys, if that is not this server.
    pub jwks_uri: Option<String>,
}

/// Why a token is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// No trusted key signed the token.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// A claim has the wrong type.
    #[error("the {0} claim is malformed")]
    Claim(&'static str),
    /// The token is for other audiences.
    #[error(
        "token audiences {} is invalid for the target audiences {}",
        quote_list(.audiences),
        quote_list(.accepted)
    )]
    Audience {
        /// The audiences of the token.
        audiences: Vec<String>,
        /// The audiences that the server accepts.
        accepted: Vec<String>,
    },
    /// The token has expired.
    #[error("service account token has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("service account token is not valid yet")]
    NotValidYet,
    /// The token was issued in the future.
    #[error("service account token is issued in the future")]
    IssuedInTheFuture,
    /// The account does not exist.
    #[error("serviceaccounts {} not found", go_compat::quote(.0))]
    NoAccount(String),
    /// The account has been deleted.
    #[error("service account {namespace}/{name} has been deleted")]
    AccountDeleted {
        /// The namespace of the account.
        namespace: String,
        /// The name of the account.
        name: String,
    },
    /// An object of that name exists, but its uid differs.
    #[error("{noun} UID ({actual}) does not match claim ({claimed})")]
    Uid {
        /// The kind of the object.
        noun: &'static str,
        /// The uid of the existing object.
        actual: String,
        /// The uid that the token names.
        claimed: String,
    },
    /// The object that the token is bound to does not exist any more.
    #[error("service account token has been invalidated")]
    Invalidated,
    /// The token is bound to a webhook configuration, which is not supported.
    #[error("the token is bound to a webhook configuration, which is not supported")]
    WebhookBound,
    /// A legacy token lacks a claim.
    #[error("{0} claim is missing")]
    ClaimMissing(&'static str),
    /// The claims of a legacy token contradict each other.
    #[error("sub claim is invalid")]
    Subject,
    /// The secret of a legacy token holds another token.
    #[error("Token does not match server's copy")]
    NotTheCopy,
    /// The secret of a legacy token is marked as invalid.
    #[error("the token in secret {namespace}/{secret} has been marked invalid")]
    MarkedInvalid {
        /// The namespace of the secret.
        namespace: String,
        /// The name of the secret.
        secret: String,
    },
    /// It is unknown whether the objects of the token exist.
    #[error(transparent)]
    Lookup(#[from] ObjectLookupError),
}

/// The user that a verified token authenticates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerifiedTokenUser {
    pub(crate) user: Arc<User>,
    /// The accepted audiences that the token is for.
    pub(crate) audiences: Vec<String>,
}

/// The claims of a token whose signature is valid.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VerifiedClaims {
    claims: Tree,
    /// The user of a bound token, which depends on nothing but the claims. Set by the first request with the token.
    bound_user: OnceLock<Arc<User>>,
}

impl From<Tree> for VerifiedClaims {
    fn from(claims: Tree) -> Self {
        Self { claims, bound_user: OnceLock::new() }
    }
}

/// Verifies the tokens of service accounts.
#[derive(Debug)]
pub(crate) struct ServiceAccountTokenVerifier {
    issuers: Vec<String>,
    keys: Vec<VerifyingKey>,
}

impl ServiceAccountTokenVerifier {
    pub(crate) fn new(options: ServiceAccountOptions) -> Self {
        Self { issuers: options.issuers, keys: options.keys }
    }

    pub(crate) fn issuers(&self) -> &[String] {
        &self.issuers
    }

    pub(crate) fn keys(&self) -> &[VerifyingKey] {
        &self.keys
    }

    /// The claims of a token whose signature is valid; `None` if it is not a service-account token.
    ///
    /// 1. The token claims an accepted issuer, or the legacy issuer.
    /// 2. One of the keys signed it.
    pub(crate) fn verify_signature(
        &self,
        token: &str,
    ) -> Result<Option<VerifiedClaims>, TokenError> {
        let Some(unverified) = jwt::parse_token(token) else { return Ok(None) };
        let issuer = unverified.claimed_issuer();
        if issuer != LEGACY_ISSUER && !self.issuers.iter().any(|own| own == issuer) {
            return Ok(None);
        }
        Ok(Some(unverified.verify_signature(&self.keys)?.into()))
    }

    /// Authenticates the user of a token whose signature was verified.
    ///
    /// 1. The token is for one of the accepted audiences. A token that names none is for the server.
    /// 2. The current time is within its validity.
    /// 3. The account exists with the uid of the token, and so does the object that the token is
    ///    bound to.
    pub(crate) async fn authenticate_verified_token<L: ObjectLookup>(
        &self,
        token: &str,
        verified: &VerifiedClaims,
        audiences: AudienceCheck<'_>,
        lookup: &L,
        now: Timestamp,
    ) -> Result<VerifiedTokenUser, TokenError> {
        let claims = &verified.claims;
        let audiences = match_audiences(claims, audiences)?;
        check_validity_period(claims, now)?;
        let is_legacy = api_object::string_member(claims, "iss") == LEGACY_ISSUER;
        let user = if is_legacy && legacy_token::has_legacy_format(claims) {
            Arc::new(legacy_token::authenticate_legacy_token(claims, token, lookup).await?)
        } else {
            authenticate_bound_token(verified, lookup, now).await?
        };
        Ok(VerifiedTokenUser { user, audiences })
    }
}

/// The audiences that a token is checked against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AudienceCheck<'a> {
    /// The audiences of a token that names none.
    pub(crate) default_audiences: &'a [String],
    /// The audiences of which the token must name one.
    pub(crate) accepted_audiences: &'a [String],
}

fn match_audiences(claims: &Tree, audiences: AudienceCheck<'_>) -> Result<Vec<String>, TokenError> {
    let malformed = TokenError::Claim("aud");
    let named = match claims.get("aud") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(several)) => several
            .iter()
            .map(|one| one.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or(malformed)?,
        Some(_) => return Err(malformed),
    };
    let named = if named.is_empty() { audiences.default_audiences.to_vec() } else { named };
    let accepted: Vec<String> =
        named.iter().filter(|one| audiences.accepted_audiences.contains(one)).cloned().collect();
    if accepted.is_empty() && !audiences.default_audiences.is_empty() {
        return Err(TokenError::Audience {
            audiences: named,
            accepted: audiences.accepted_audiences.to_vec(),
        });
    }
    Ok(accepted)
}

/// Compares the times in the claims as numbers: a claim may be any number, and not every number is
/// a timestamp.
#[expect(clippy::cast_precision_loss, reason = "seconds of this era are exact in a double")]
fn check_validity_period(claims: &Tree, now: Timestamp) -> Result<(), TokenError> {
    let moment = |claim: &'static str| match claims.get(claim) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or(TokenError::Claim(claim)),
    };
    let (now, leeway) = (now.as_second() as f64, LEEWAY.as_secs() as f64);
    if moment("nbf")?.is_some_and(|begin| now + leeway < begin) {
        return Err(TokenError::NotValidYet);
    }
    if moment("exp")?.is_some_and(|end| now - leeway > end) {
        return Err(TokenError::Expired);
    }
    if moment("iat")?.is_some_and(|issued| now + leeway < issued) {
        return Err(TokenError::IssuedInTheFuture);
    }
    Ok(())
}

async fn authenticate_bound_token<L: ObjectLookup>(
    verified: &VerifiedClaims,
    lookup: &L,
    now: Timestamp,
) -> Result<Arc<User>, TokenError> {
    let claims = &verified.claims;
    let malformed = TokenError::Claim("kubernetes.io");
    let private = claims.get("kubernetes.io").and_then(Value::as_object).ok_or(malformed)?;
    let namespace = api_object::string_member(private, "namespace");
    let account = ObjectReference::read(private, "serviceaccount")
        .ok_or(TokenError::Claim("kubernetes.io"))?;
    let webhooks = ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"];
    if webhooks.iter().any(|member| private.get(*member).is_some_and(|value| !value.is_null())) {
        return Err(TokenError::WebhookBound);
    }
    check_account_exists(lookup, namespace, &account, now).await?;
    let (pod, node, secret) = (
        ObjectReference::read(private, "pod"),
        ObjectReference::read(private, "node"),
        ObjectReference::read(private, "secret"),
    );
    if let Some(secret) = &secret {
        check_bound_object(lookup, ReferencedKind::Secret, namespace, secret, now).await?;
    }
    match (&pod, &node) {
        (Some(pod), _) => {
            check_bound_object(lookup, ReferencedKind::Pod, namespace, pod, now).await?
        }
        // The node of a pod is informational: the token stays valid when the node object is
        // deleted.
        (None, Some(node)) => {
            check_bound_object(lookup, ReferencedKind::Node, "", node, now).await?
        }
        (None, None) => {}
    }
    let user = verified.bound_user.get_or_init(|| {
        let mut user = Arc::new(bound_token_user(claims, namespace, &account, pod, node));
        add_authenticated_group(&mut user);
        user
    });
    Ok(Arc::clone(user))
}

fn bound_token_user(
    claims: &Tree,
    namespace: &str,
    account: &ObjectReference,
    pod: Option<ObjectReference>,
    node: Option<ObjectReference>,
) -> User {
    let mut user = service_account_user(namespace, account);
    let mut add_extra = |key: &str, value: &str| {
        user.extra.insert(key.to_owned(), vec![value.to_owned()]);
    };
    if let Some(pod) = pod.filter(|pod| !pod.name.is_empty() && !pod.uid.is_empty()) {
        add_extra(POD_NAME_KEY, &pod.name);
        add_extra(POD_UID_KEY, &pod.uid);
    }
    if let Some(node) = node.filter(|node| !node.name.is_empty()) {
        add_extra(NODE_NAME_KEY, &node.name);
        if !node.uid.is_empty() {
            add_extra(NODE_UID_KEY, &node.uid);
        }
    }
    let id = api_object::string_member(claims, "jti");
    if !id.is_empty() {
        add_extra(CREDENTIAL_ID_KEY, &credential_id(id));
    }
    user
}

/// The credential id of a token in the user's extra and in the audit log.
pub(crate) fn credential_id(token_id: &str) -> String {
    format!("JTI={token_id}")
}

/// The user of a service account.
pub(super) fn service_account_user(namespace: &str, account: &ObjectReference) -> User {
    User {
        name: service_account_user_name(namespace, &account.name),
        uid: account.uid.clone(),
        groups: service_account_groups(namespace),
        ..User::default()
    }
}

async fn check_account_exists<L: ObjectLookup>(
    lookup: &L,
    namespace: &str,
    account: &ObjectReference,
    now: Timestamp,
) -> Result<(), TokenError> {
    let kind = ReferencedKind::ServiceAccount;
    let found = lookup.lookup_object(kind, namespace, &account.name).await?;
    let found = found.ok_or_else(|| TokenError::NoAccount(account.name.clone()))?;
    check_uid(&found, kind, account)?;
    if is_deleted_beyond_leeway(&found, now) {
        let (namespace, name) = (namespace.to_owned(), account.name.clone());
        return Err(TokenError::AccountDeleted { namespace, name });
    }
    Ok(())
}

async fn check_bound_object<L: ObjectLookup>(
    lookup: &L,
    kind: ReferencedKind,
    namespace: &str,
    reference: &ObjectReference,
    now: Timestamp,
) -> Result<(), TokenError> {
    let found = lookup.lookup_object(kind, namespace, &reference.name).await?;
    let found = found.ok_or(TokenError::Invalidated)?;
    check_uid(&found, kind, reference)?;
    if is_deleted_beyond_leeway(&found, now) { Err(TokenError::Invalidated) } else { Ok(()) }
}

pub(super) fn check_uid(
    found: &Tree,
    kind: ReferencedKind,
    reference: &ObjectReference,
) -> Result<(), TokenError> {
    let actual = api_object::uid(found);
    if actual == reference.uid {
        return Ok(());
    }
    let (actual, claimed) = (actual.to_owned(), reference.uid.clone());
    Err(TokenError::Uid { noun: kind.kind_display_name(), actual, claimed })
}

/// Reports whether deletion began longer ago than the tolerated clock difference.
fn is_deleted_beyond_leeway(found: &Tree, now: Timestamp) -> bool {
    deletion_time(found).is_some_and(|deleted| now.duration_since(deleted) > LEEWAY)
}

fn quote_list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| go_compat::quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

#[cfg(test)]
mod tests;
