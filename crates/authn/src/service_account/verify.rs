//! Whether a token counts.

use api_object::Tree;
use authz::User;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::claims::ObjectReference;
use super::legacy::{self, LEGACY_ISSUER};
use super::lookup::{Lookup, LookupError, ReferencedKind, deleted_at};
use crate::identity::{
    CREDENTIAL_ID_KEY, NODE_NAME_KEY, NODE_UID_KEY, POD_NAME_KEY, POD_UID_KEY,
    service_account_groups, service_account_user_name,
};
use crate::jwt::{self, SignatureError};
use crate::key::VerifyingKey;

/// How far clocks may be apart.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// Whose tokens are accepted.
#[derive(Debug, Clone, Default)]
pub struct ServiceAccountOptions {
    /// The issuers. Legacy tokens name none of these and are accepted too.
    pub issuers: Vec<String>,
    /// The keys that may have signed.
    pub keys: Vec<VerifyingKey>,
}

/// Why a token does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Nobody whom we trust signed it.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// A claim does not have the type that it must have.
    #[error("the {0} claim is malformed")]
    Claim(&'static str),
    /// It is for somebody else.
    #[error(
        "token audiences {} is invalid for the target audiences {}",
        quoted(.audiences),
        quoted(.wanted)
    )]
    Audience {
        /// For whom it is.
        audiences: Vec<String>,
        /// Who was asked for.
        wanted: Vec<String>,
    },
    /// Its time is over.
    #[error("service account token has expired")]
    Expired,
    /// Its time has not come.
    #[error("service account token is not valid yet")]
    NotValidYet,
    /// It was made later than now.
    #[error("service account token is issued in the future")]
    IssuedInTheFuture,
    /// The account does not exist.
    #[error("serviceaccounts {} not found", go_compat::quote(.0))]
    NoAccount(String),
    /// The account has been deleted.
    #[error("service account {namespace}/{name} has been deleted")]
    AccountDeleted {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// An object of that name exists, but it is another one.
    #[error("{noun} UID ({actual}) does not match claim ({claimed})")]
    Uid {
        /// What kind of object.
        noun: &'static str,
        /// The uid of the one that exists.
        actual: String,
        /// The uid of the one that the token is bound to.
        claimed: String,
    },
    /// What it was bound to does not exist any more.
    #[error("service account token has been invalidated")]
    Invalidated,
    /// It is bound to something that tokens can not be bound to here.
    #[error("the token is bound to a webhook configuration, which is not supported")]
    WebhookBound,
    /// A legacy token lacks a claim.
    #[error("{0} claim is missing")]
    ClaimMissing(&'static str),
    /// The claims of a legacy token contradict each other.
    #[error("sub claim is invalid")]
    Subject,
    /// The secret of a legacy token holds another one.
    #[error("Token does not match server's copy")]
    NotTheCopy,
    /// The secret of a legacy token is marked.
    #[error("the token in secret {namespace}/{secret} has been marked invalid")]
    MarkedInvalid {
        /// The namespace of the secret.
        namespace: String,
        /// The secret.
        secret: String,
    },
    /// Nobody can say whether the token counts.
    #[error(transparent)]
    Lookup(#[from] LookupError),
}

/// The user that a token stands for, and for which of the wanted audiences it is good.
pub(crate) type Accepted = (User, Vec<String>);

/// Who checks the tokens of service accounts.
#[derive(Debug)]
pub(crate) struct ServiceAccounts {
    issuers: Vec<String>,
    keys: Vec<VerifyingKey>,
}

impl ServiceAccounts {
    pub(crate) fn new(options: ServiceAccountOptions) -> Self {
        Self { issuers: options.issuers, keys: options.keys }
    }

    /// Checks a token; `None` if it is not one of a service account.
    ///
    /// 1. Somebody whom we trust says to have made it, or it is a legacy token.
    /// 2. One of the keys signed it.
    /// 3. It is for one of the wanted audiences. A token that names none is for the server.
    /// 4. Its time is now.
    /// 5. The account exists and is the one of that time, and so does what it is bound to.
    pub(crate) async fn authenticate<L: Lookup>(
        &self,
        token: &str,
        audiences: Audiences<'_>,
        lookup: &L,
        now: Timestamp,
    ) -> Result<Option<Accepted>, TokenError> {
        let Some(unverified) = jwt::parse(token) else { return Ok(None) };
        let is_own = self.issuers.iter().any(|issuer| issuer == unverified.claimed_issuer());
        let is_legacy = unverified.claimed_issuer() == LEGACY_ISSUER;
        if !is_own && !is_legacy {
            return Ok(None);
        }
        let claims = unverified.verify(&self.keys)?;
        let accepted = accepted_audiences(&claims, audiences)?;
        check_time(&claims, now)?;
        let user = if is_legacy && legacy::is_legacy(&claims) {
            legacy::user(&claims, token, lookup).await?
        } else {
            bound_user(&claims, lookup, now).await?
        };
        Ok(Some((user, accepted)))
    }
}

/// Whom a token may be for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Audiences<'a> {
    /// Whom a token is for that does not say it: the server.
    pub(crate) implicit: &'a [String],
    /// Who asks.
    pub(crate) wanted: &'a [String],
}

fn accepted_audiences(claims: &Tree, audiences: Audiences<'_>) -> Result<Vec<String>, TokenError> {
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
    let named = if named.is_empty() { audiences.implicit.to_vec() } else { named };
    let accepted: Vec<String> =
        named.iter().filter(|one| audiences.wanted.contains(one)).cloned().collect();
    if accepted.is_empty() && !audiences.implicit.is_empty() {
        return Err(TokenError::Audience { audiences: named, wanted: audiences.wanted.to_vec() });
    }
    Ok(accepted)
}

/// The moments that the claims name are compared as numbers: a claim may be any number, and not
/// every number is a time.
#[expect(clippy::cast_precision_loss, reason = "seconds of this era are exact in a double")]
fn check_time(claims: &Tree, now: Timestamp) -> Result<(), TokenError> {
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

async fn bound_user<L: Lookup>(
    claims: &Tree,
    lookup: &L,
    now: Timestamp,
) -> Result<User, TokenError> {
    let malformed = TokenError::Claim("kubernetes.io");
    let private = claims.get("kubernetes.io").and_then(Value::as_object).ok_or(malformed)?;
    let namespace = api_object::text(private, "namespace");
    let account = ObjectReference::read(private, "serviceaccount")
        .ok_or(TokenError::Claim("kubernetes.io"))?;
    let webhooks = ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"];
    if webhooks.iter().any(|member| private.get(*member).is_some_and(|value| !value.is_null())) {
        return Err(TokenError::WebhookBound);
    }
    check_account(lookup, namespace, &account, now).await?;
    let (pod, node, secret) = (
        ObjectReference::read(private, "pod"),
        ObjectReference::read(private, "node"),
        ObjectReference::read(private, "secret"),
    );
    if let Some(secret) = &secret {
        check_bound(lookup, ReferencedKind::Secret, namespace, secret, now).await?;
    }
    match (&pod, &node) {
        (Some(pod), _) => check_bound(lookup, ReferencedKind::Pod, namespace, pod, now).await?,
        // The node of a pod is only told, so that the token outlives the node object.
        (None, Some(node)) => check_bound(lookup, ReferencedKind::Node, "", node, now).await?,
        (None, None) => {}
    }
    let mut user = account_user(namespace, &account);
    let mut tell = |key: &str, value: &str| {
        user.extra.insert(key.to_owned(), vec![value.to_owned()]);
    };
    if let Some(pod) = pod.filter(|pod| !pod.name.is_empty() && !pod.uid.is_empty()) {
        tell(POD_NAME_KEY, &pod.name);
        tell(POD_UID_KEY, &pod.uid);
    }
    if let Some(node) = node.filter(|node| !node.name.is_empty()) {
        tell(NODE_NAME_KEY, &node.name);
        if !node.uid.is_empty() {
            tell(NODE_UID_KEY, &node.uid);
        }
    }
    let id = api_object::text(claims, "jti");
    if !id.is_empty() {
        tell(CREDENTIAL_ID_KEY, &credential_id(id));
    }
    Ok(user)
}

/// What the extra of a user, and the audit log, call a token.
pub(crate) fn credential_id(token_id: &str) -> String {
    format!("JTI={token_id}")
}

/// A service account as a user.
pub(super) fn account_user(namespace: &str, account: &ObjectReference) -> User {
    User {
        name: service_account_user_name(namespace, &account.name),
        uid: account.uid.clone(),
        groups: service_account_groups(namespace),
        ..User::default()
    }
}

async fn check_account<L: Lookup>(
    lookup: &L,
    namespace: &str,
    account: &ObjectReference,
    now: Timestamp,
) -> Result<(), TokenError> {
    let kind = ReferencedKind::ServiceAccount;
    let found = lookup.find(kind, namespace, &account.name).await?;
    let found = found.ok_or_else(|| TokenError::NoAccount(account.name.clone()))?;
    check_uid(&found, kind, account)?;
    if is_gone(&found, now) {
        let (namespace, name) = (namespace.to_owned(), account.name.clone());
        return Err(TokenError::AccountDeleted { namespace, name });
    }
    Ok(())
}

async fn check_bound<L: Lookup>(
    lookup: &L,
    kind: ReferencedKind,
    namespace: &str,
    reference: &ObjectReference,
    now: Timestamp,
) -> Result<(), TokenError> {
    let found = lookup.find(kind, namespace, &reference.name).await?;
    let found = found.ok_or(TokenError::Invalidated)?;
    check_uid(&found, kind, reference)?;
    if is_gone(&found, now) { Err(TokenError::Invalidated) } else { Ok(()) }
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
    Err(TokenError::Uid { noun: kind.noun(), actual, claimed })
}

/// Deleted, and for longer than clocks may be apart.
fn is_gone(found: &Tree, now: Timestamp) -> bool {
    deleted_at(found).is_some_and(|deleted| now.duration_since(deleted) > LEEWAY)
}

fn quoted(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| go_compat::quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

#[cfg(test)]
mod tests;
