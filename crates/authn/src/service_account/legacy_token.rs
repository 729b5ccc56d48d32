//! Legacy service-account tokens, which are stored in secrets and never expire.

use api_object::Tree;
use authz::User;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::Value;

use super::claims::ObjectReference;
use super::object_lookup::{ObjectLookup, ReferencedKind};
use super::verify_token::{TokenError, check_uid, service_account_user};
use crate::random_secrets;
use crate::well_known_identities::split_service_account_user_name;

/// The issuer of all legacy tokens.
pub(super) const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

const NAMESPACE: &str = "kubernetes.io/serviceaccount/namespace";
const SECRET: &str = "kubernetes.io/serviceaccount/secret.name";
const NAME: &str = "kubernetes.io/serviceaccount/service-account.name";
const UID: &str = "kubernetes.io/serviceaccount/service-account.uid";

/// The label of a secret whose token was invalidated.
const INVALID_SINCE_LABEL: &str = "kubernetes.io/legacy-token-invalid-since";

/// Reports whether verified claims have the legacy format.
pub(super) fn has_legacy_format(claims: &Tree) -> bool {
    !claims.contains_key("kubernetes.io")
}

/// The service account, if its secret still holds the token.
pub(super) async fn authenticate_legacy_token<L: ObjectLookup>(
    claims: &Tree,
    token: &str,
    lookup: &L,
) -> Result<User, TokenError> {
    let subject = read_required_claim(claims, "sub", "sub")?;
    let namespace = read_required_claim(claims, NAMESPACE, "namespace")?;
    let secret_name = read_required_claim(claims, SECRET, "secretName")?;
    let account = ObjectReference {
        name: read_required_claim(claims, NAME, "serviceAccountName")?.to_owned(),
        uid: read_required_claim(claims, UID, "serviceAccountUID")?.to_owned(),
    };
    if split_service_account_user_name(subject) != Some((namespace, &account.name)) {
        return Err(TokenError::Subject);
    }
    let secret = lookup.lookup_object(ReferencedKind::Secret, namespace, secret_name).await?;
    let secret = secret.filter(|secret| !api_object::is_terminating(secret));
    let secret = secret.ok_or(TokenError::Invalidated)?;
    if !secret_contains_token(&secret, token) {
        return Err(TokenError::NotTheCopy);
    }
    let kind = ReferencedKind::ServiceAccount;
    let found = lookup.lookup_object(kind, namespace, &account.name).await?;
    let found = found.ok_or_else(|| TokenError::NoAccount(account.name.clone()))?;
    if api_object::is_terminating(&found) {
        let (namespace, name) = (namespace.to_owned(), account.name);
        return Err(TokenError::AccountDeleted { namespace, name });
    }
    check_uid(&found, kind, &account)?;
    if is_secret_marked_invalid(&secret) {
        let (namespace, secret) = (namespace.to_owned(), secret_name.to_owned());
        return Err(TokenError::MarkedInvalid { namespace, secret });
    }
    Ok(service_account_user(namespace, &account))
}

fn read_required_claim<'c>(
    claims: &'c Tree,
    key: &str,
    name: &'static str,
) -> Result<&'c str, TokenError> {
    match api_object::string_member(claims, key) {
        "" => Err(TokenError::ClaimMissing(name)),
        value => Ok(value),
    }
}

/// Compares HMAC tags under a random key, so that the time of the comparison reveals nothing.
fn secret_contains_token(secret: &Tree, token: &str) -> bool {
    let data = secret.get("data").and_then(Value::as_object);
    let copy = data.and_then(|data| STANDARD.decode(api_object::string_member(data, "token")).ok());
    let (Some(copy), Ok(key)) = (copy, random_secrets::random_bytes::<32>()) else { return false };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let tag = hmac::sign(&key, &copy);
    hmac::verify(&key, token.as_bytes(), tag.as_ref()).is_ok()
}

fn is_secret_marked_invalid(secret: &Tree) -> bool {
    let labels = api_object::metadata(secret).get("labels").and_then(Value::as_object);
    labels.is_some_and(|labels| !api_object::string_member(labels, INVALID_SINCE_LABEL).is_empty())
}
