//! `TokenRequest`: issues a token for a service account.

mod token_request_error;

use std::sync::Arc;

use api_object::{GroupVersion, Tree};
use field_errors::{BadValue, FieldErrors, FieldPath};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::random_secrets::random_token_id;
use crate::service_account::{
    BoundObject, Claims, ObjectLookup, ObjectLookupError, ObjectReference, ReferencedKind,
    TokenIssuer, credential_id,
};

pub use token_request_error::TokenRequestError;

/// The lifetime of a token if the request names none.
const LIFETIME_SECONDS_DEFAULT: i64 = 60 * 60;
/// The shortest lifetime that a request may ask for.
const LIFETIME_SECONDS_MIN: i64 = 10 * 60;
/// The longest lifetime that a request may ask for; the server may shorten it.
const LIFETIME_SECONDS_MAX: i64 = 1 << 32;

/// The server's settings for tokens.
#[derive(Debug, Clone, Copy)]
pub struct TokenRequestSettings<'s> {
    /// The audiences of a token if the request names none.
    pub api_audiences: &'s [String],
    /// The longest lifetime of a token; longer requests are shortened.
    pub lifetime_seconds_max: Option<i64>,
}

/// A complete and valid request for a token. Admission sees it before the token is
/// [issued](Self::issue_token).
#[derive(Debug, Clone)]
pub struct TokenRequest {
    request_object: Tree,
    namespace: String,
    service_account: ObjectReference,
    audiences: Vec<String>,
    lifetime_seconds: i64,
    bound_object_reference: Option<BoundObjectReference>,
    issue_time: Timestamp,
}

/// The response to a request for a token.
#[derive(Debug, Clone)]
pub struct IssuedToken {
    /// The request with its status, which holds the token.
    pub response_object: Tree,
    /// The id of the token in the audit log.
    pub credential_id: String,
    /// Texts for `Warning` headers of the response.
    pub response_warnings: Vec<String>,
}

#[derive(Debug, Clone)]
struct BoundObjectReference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
}

/// Sets the default lifetime. Hooks see the request with this default.
pub fn set_token_request_defaults(posted: &mut Tree) {
    if let None | Some(Value::Null | Value::Object(_)) = posted.get("spec") {
        let spec = api_object::object_member_mut(posted, "spec");
        if spec.get("expirationSeconds").is_none_or(Value::is_null) {
            spec.insert("expirationSeconds".to_owned(), LIFETIME_SECONDS_DEFAULT.into());
        }
    }
}

/// The status of a request without a token, as hooks see it.
pub fn empty_token_status() -> Value {
    json!({"token": "", "expirationTimestamp": null})
}

impl TokenRequest {
    /// Parses the request that was posted for an account, sets its defaults and validates it.
    ///
    /// # Errors
    /// [`TokenRequestError`] if the request is malformed or invalid, or if the account does not exist
    /// or has another uid than the request names.
    pub async fn read<L: ObjectLookup>(
        mut posted: Tree,
        namespace: &str,
        name: &str,
        settings: TokenRequestSettings<'_>,
        lookup: &L,
        now: Timestamp,
    ) -> Result<Self, TokenRequestError> {
        check_names_match_path(&posted, namespace, name)?;
        let mut spec = TokenRequestSpec::read(&posted)?;
        let account =
            find_referenced_object(lookup, ReferencedKind::ServiceAccount, namespace, name).await?;
        let uid = api_object::uid(&account).to_owned();
        let posted_uid = api_object::uid(&posted);
        if !posted_uid.is_empty() && posted_uid != uid {
            return Err(TokenRequestError::AccountUid {
                name: name.to_owned(),
                requested_uid: posted_uid.to_owned(),
                uid,
            });
        }
        if spec.audiences.is_empty() {
            spec.audiences = settings.api_audiences.to_vec();
        }
        spec.validate_token_request_spec()?;
        let metadata = api_object::metadata_mut(&mut posted);
        for (member, value) in [
            ("name", name),
            ("namespace", namespace),
            ("uid", uid.as_str()),
            ("creationTimestamp", &api_object::format_rfc3339(now)),
        ] {
            metadata.insert(member.to_owned(), value.into());
        }
        let tree = api_object::object_member_mut(&mut posted, "spec");
        tree.insert("audiences".to_owned(), json!(spec.audiences));
        tree.insert("expirationSeconds".to_owned(), spec.lifetime_seconds.into());
        tree.entry("boundObjectRef").or_insert(Value::Null);
        posted.insert("status".to_owned(), empty_token_status());
        Ok(Self {
            request_object: posted,
            namespace: namespace.to_owned(),
            service_account: ObjectReference { name: name.to_owned(), uid },
            audiences: spec.audiences,
            lifetime_seconds: spec.lifetime_seconds,
            bound_object_reference: spec.bound_object_reference,
            issue_time: now,
        })
    }

    /// The request as admission sees it.
    pub fn request_object(&self) -> &Tree {
        &self.request_object
    }

    /// Signs the token.
    ///
    /// # Errors
    /// [`TokenRequestError`] if the token cannot be bound to the object that the request names, or if
    /// signing fails.
    pub async fn issue_token<L: ObjectLookup>(
        mut self,
        settings: TokenRequestSettings<'_>,
        issuer: &TokenIssuer,
        lookup: &L,
    ) -> Result<IssuedToken, TokenRequestError> {
        let bound_object = match &self.bound_object_reference {
            None => None,
            Some(bound) => Some(self.resolve_bound_object(bound, lookup).await?),
        };
        let mut warnings = Vec::new();
        let asked = self.lifetime_seconds;
        if let Some(max) = settings.lifetime_seconds_max.filter(|max| *max > 0 && asked > *max) {
            warnings.push(format!(
                "requested expiration of {asked} seconds shortened to {max} seconds"
            ));
            self.lifetime_seconds = max;
            api_object::object_member_mut(&mut self.request_object, "spec")
                .insert("expirationSeconds".to_owned(), max.into());
        }
        let failed = |why: &dyn std::fmt::Display| TokenRequestError::Generation(why.to_string());
        let id = random_token_id().map_err(|error| failed(&error))?;
        let expires_at = self
            .issue_time
            .checked_add(SignedDuration::from_secs(self.lifetime_seconds))
            .map_err(|error| failed(&error))?;
        let claims = Claims {
            namespace: self.namespace,
            service_account: self.service_account,
            audiences: self.audiences,
            issued_at: self.issue_time,
            expires_at,
            id,
            bound_object,
        };
        let token = issuer.issue_token(&claims).map_err(|error| failed(&error))?;
        let status = json!({
            "token": token,
            "expirationTimestamp": api_object::format_rfc3339(expires_at),
        });
        self.request_object.insert("status".to_owned(), status);
        Ok(IssuedToken {
            response_object: self.request_object,
            credential_id: credential_id(&claims.id),
            response_warnings: warnings,
        })
    }

    /// Looks up the object that the token is to be bound to.
    async fn resolve_bound_object<L: ObjectLookup>(
        &self,
        bound: &BoundObjectReference,
        lookup: &L,
    ) -> Result<BoundObject, TokenRequestError> {
        let version = GroupVersion::parse_api_version(&bound.api_version)
            .unwrap_or_else(|| GroupVersion::new("", &bound.api_version));
        let reference = |found: &Tree| ObjectReference {
            name: bound.name.clone(),
            uid: api_object::uid(found).to_owned(),
        };
        let namespace = self.namespace.as_str();
        let bound_object = match (version.group.as_str(), bound.kind.as_str()) {
            ("", "Pod") => {
                let pod =
                    find_referenced_object(lookup, ReferencedKind::Pod, namespace, &bound.name)
                        .await?;
                let spec = pod.get("spec").and_then(Value::as_object);
                let text = |member| spec.map_or("", |spec| api_object::string_member(spec, member));
                if text("serviceAccountName") != self.service_account.name {
                    let account = self.service_account.name.clone();
                    return Err(TokenRequestError::PodOfOtherAccount { account });
                }
                BoundObject::Pod(reference(&pod), find_node_of_pod(lookup, text("nodeName")).await?)
            }
            ("", "Node") => {
                let node =
                    find_referenced_object(lookup, ReferencedKind::Node, "", &bound.name).await?;
                BoundObject::Node(reference(&node))
            }
            ("", "Secret") => {
                let secret =
                    find_referenced_object(lookup, ReferencedKind::Secret, namespace, &bound.name)
                        .await?;
                BoundObject::Secret(reference(&secret))
            }
            (_, kind) => {
                let kind = kind.to_owned();
                let GroupVersion { group, version } = version;
                return Err(TokenRequestError::UnsupportedBoundKind { group, version, kind });
            }
        };
        let (BoundObject::Pod(found, _) | BoundObject::Node(found) | BoundObject::Secret(found)) =
            &bound_object;
        if !bound.uid.is_empty() && bound.uid != found.uid {
            return Err(TokenRequestError::BoundObjectUid {
                group: version.group,
                kind: bound.kind.clone(),
                name: bound.name.clone(),
                requested_uid: bound.uid.clone(),
            });
        }
        Ok(bound_object)
    }
}

/// Looks up the node of a pod. A node that does not exist is returned with its name and without a
/// uid.
async fn find_node_of_pod<L: ObjectLookup>(
    lookup: &L,
    name: &str,
) -> Result<Option<ObjectReference>, ObjectLookupError> {
    if name.is_empty() {
        return Ok(None);
    }
    let node = lookup.lookup_object(ReferencedKind::Node, "", name).await?;
    let uid = node.as_deref().map(api_object::uid).unwrap_or_default().to_owned();
    Ok(Some(ObjectReference { name: name.to_owned(), uid }))
}

async fn find_referenced_object<L: ObjectLookup>(
    lookup: &L,
    kind: ReferencedKind,
    namespace: &str,
    name: &str,
) -> Result<Arc<Tree>, TokenRequestError> {
    let found = lookup.lookup_object(kind, namespace, name).await?;
    found.ok_or_else(|| TokenRequestError::NotFound { kind, name: name.to_owned() })
}

/// Checks that name and namespace in the body, if present, are those of the path.
fn check_names_match_path(
    posted: &Tree,
    namespace: &str,
    name: &str,
) -> Result<(), TokenRequestError> {
    let at = FieldPath::root("metadata");
    for (member, got, want, what) in [
        ("name", api_object::name(posted), name, "name"),
        ("namespace", api_object::namespace(posted), namespace, "namespace"),
    ] {
        if !got.is_empty() && got != want {
            let detail = format!("must match the service account {what} if specified");
            let errors = FieldErrors::from(at.child(member).invalid(got, &detail));
            return Err(TokenRequestError::Invalid { name: name.to_owned(), errors });
        }
    }
    Ok(())
}

/// The parsed spec of a request.
struct TokenRequestSpec {
    audiences: Vec<String>,
    lifetime_seconds: i64,
    bound_object_reference: Option<BoundObjectReference>,
    attestations: Option<Value>,
}

impl TokenRequestSpec {
    fn read(posted: &Tree) -> Result<Self, TokenRequestError> {
        let malformed = |what: &str| TokenRequestError::Malformed(what.to_owned());
        let none = Tree::new();
        let spec = match posted.get("spec") {
            None | Some(Value::Null) => &none,
            Some(Value::Object(spec)) => spec,
            Some(_) => return Err(malformed("spec must be an object")),
        };
        let present = |member: &str| spec.get(member).filter(|value| !value.is_null());
        let audiences = match present("audiences") {
            None => Some(Vec::new()),
            Some(value) => value.as_array().and_then(|items| {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
            }),
        };
        let lifetime_seconds = match present("expirationSeconds") {
            None => Some(LIFETIME_SECONDS_DEFAULT),
            Some(value) => value.as_i64(),
        };
        let bound = match present("boundObjectRef") {
            None => None,
            Some(Value::Object(bound)) => {
                let text = |member: &str| match bound.get(member) {
                    None | Some(Value::Null) => Ok(String::new()),
                    Some(Value::String(text)) => Ok(text.clone()),
                    Some(_) => {
                        Err(malformed(&format!("spec.boundObjectRef.{member} must be a string")))
                    }
                };
                Some(BoundObjectReference {
                    api_version: text("apiVersion")?,
                    kind: text("kind")?,
                    name: text("name")?,
                    uid: text("uid")?,
                })
            }
            Some(_) => return Err(malformed("spec.boundObjectRef must be an object")),
        };
        Ok(Self {
            audiences: audiences.ok_or_else(|| malformed("spec.audiences must be strings"))?,
            lifetime_seconds: lifetime_seconds
                .ok_or_else(|| malformed("spec.expirationSeconds must be an integer"))?,
            bound_object_reference: bound,
            attestations: present("attestations").cloned(),
        })
    }

    fn validate_token_request_spec(&self) -> Result<(), TokenRequestError> {
        let at = FieldPath::root("spec");
        let mut errors = FieldErrors::new();
        let lifetime = at.child("expirationSeconds");
        if self.lifetime_seconds < LIFETIME_SECONDS_MIN {
            let detail = "may not specify a duration less than 10 minutes";
            errors.push(lifetime.invalid(self.lifetime_seconds, detail));
        }
        if self.lifetime_seconds > LIFETIME_SECONDS_MAX {
            let detail = "may not specify a duration larger than 2^32 seconds";
            errors.push(lifetime.invalid(self.lifetime_seconds, detail));
        }
        let attestations = self.attestations.as_ref().filter(|value| **value != json!({}));
        if let Some(attestations) = attestations {
            let detail = "attestations may only be specified with a webhook bound object reference";
            let value = BadValue::Json(attestations.to_string());
            errors = at.child("attestations").invalid(value, detail).into();
        }
        let invalid = |errors| TokenRequestError::Invalid { name: String::new(), errors };
        errors.into_result(()).map_err(invalid)
    }
}

#[cfg(test)]
mod tests;
