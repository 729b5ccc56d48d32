//! Tokens of the first kind, which live in secrets and never expire.

use api_object::Tree;
use authz::User;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::Value;

use super::claims::ObjectReference;
use super::lookup::{Lookup, ReferencedKind};
use super::verify::{TokenError, account_user, check_uid};
use crate::identity::split_service_account;
use crate::random;

/// Who made them all.
pub(super) const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

const NAMESPACE: &str = "kubernetes.io/serviceaccount/namespace";
const SECRET: &str = "kubernetes.io/serviceaccount/secret.name";
const NAME: &str = "kubernetes.io/serviceaccount/service-account.name";
const UID: &str = "kubernetes.io/serviceaccount/service-account.uid";

/// The label that takes a token out of use.
const INVALID_SINCE_LABEL: &str = "kubernetes.io/legacy-token-invalid-since";

/// Reports whether verified claims are of this kind, and not of the kind that replaced it.
pub(super) fn is_legacy(claims: &Tree) -> bool {
    !claims.contains_key("kubernetes.io")
}

/// The account, if the secret still holds the token.
pub(super) async fn user<L: Lookup>(
    claims: &Tree,
    token: &str,
    lookup: &L,
) -> Result<User, TokenError> {
    let subject = claim(claims, "sub", "sub")?;
    let namespace = claim(claims, NAMESPACE, "namespace")?;
    let secret_name = claim(claims, SECRET, "secretName")?;
    let account = ObjectReference {
        name: claim(claims, NAME, "serviceAccountName")?.to_owned(),
        uid: claim(claims, UID, "serviceAccountUID")?.to_owned(),
    };
    if split_service_account(subject) != Some((namespace, &account.name)) {
        return Err(TokenError::Subject);
    }
    let secret = lookup.find(ReferencedKind::Secret, namespace, secret_name).await?;
    let secret = secret.filter(|secret| !api_object::is_terminating(secret));
    let secret = secret.ok_or(TokenError::Invalidated)?;
    if !holds(&secret, token) {
        return Err(TokenError::NotTheCopy);
    }
    let kind = ReferencedKind::ServiceAccount;
    let found = lookup.find(kind, namespace, &account.name).await?;
    let found = found.ok_or_else(|| TokenError::NoAccount(account.name.clone()))?;
    if api_object::is_terminating(&found) {
        let (namespace, name) = (namespace.to_owned(), account.name);
        return Err(TokenError::AccountDeleted { namespace, name });
    }
    check_uid(&found, kind, &account)?;
    if is_marked_invalid(&secret) {
        let (namespace, secret) = (namespace.to_owned(), secret_name.to_owned());
        return Err(TokenError::MarkedInvalid { namespace, secret });
    }
    Ok(account_user(namespace, &account))
}

fn claim<'c>(claims: &'c Tree, key: &str, name: &'static str) -> Result<&'c str, TokenError> {
    match api_object::text(claims, key) {
        "" => Err(TokenError::ClaimMissing(name)),
        value => Ok(value),
    }
}

/// Compares under a key of the moment, so that the time it takes tells nothing.
fn holds(secret: &Tree, token: &str) -> bool {
    let data = secret.get("data").and_then(Value::as_object);
    let copy = data.and_then(|data| STANDARD.decode(api_object::text(data, "token")).ok());
    let (Some(copy), Ok(key)) = (copy, random::bytes::<32>()) else { return false };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let tag = hmac::sign(&key, &copy);
    hmac::verify(&key, token.as_bytes(), tag.as_ref()).is_ok()
}

fn is_marked_invalid(secret: &Tree) -> bool {
    let labels = api_object::metadata(secret).get("labels").and_then(Value::as_object);
    labels.is_some_and(|labels| !api_object::text(labels, INVALID_SINCE_LABEL).is_empty())
}
