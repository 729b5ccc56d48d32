//! `TokenReview`: another server asks which user a token authenticates.

use api_object::Tree;
use authz::User;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::authenticator::Authenticator;
use crate::service_account::ObjectLookup;

/// Why a `TokenReview` has no status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenReviewError {
    /// A member of the review has a wrong type.
    #[error("TokenReview in version \"v1\" cannot be handled as a TokenReview: {0}")]
    Malformed(&'static str),
    /// The review has no token.
    #[error("token is required for TokenReview in authentication")]
    NoToken,
}

impl Authenticator {
    /// Answers a `TokenReview` by setting its status. A wrong token is reported in the status and
    /// is not an error.
    ///
    /// # Errors
    /// [`TokenReviewError`] if the review has no token or is malformed.
    pub async fn review_token<L: ObjectLookup>(
        &self,
        mut review: Tree,
        lookup: &L,
        now: Timestamp,
    ) -> Result<Tree, TokenReviewError> {
        let (token, audiences) = parse_review_spec(&review)?;
        let audiences = (!audiences.is_empty()).then_some(audiences.as_slice());
        let status = match self.authenticate_token(&token, audiences, lookup, now).await {
            Ok(authenticated) => {
                let mut status = Tree::new();
                status.insert("authenticated".to_owned(), true.into());
                status.insert("user".to_owned(), user_info_json(&authenticated.user));
                if !authenticated.audiences.is_empty() {
                    status.insert("audiences".to_owned(), authenticated.audiences.to_vec().into());
                }
                status.into()
            }
            Err(refused) => json!({"user": {}, "error": refused.to_string()}),
        };
        review.insert("status".to_owned(), status);
        Ok(review)
    }
}

/// The user as a `UserInfo` object; empty members are left out.
pub fn user_info_json(user: &User) -> Value {
    let mut info = Tree::new();
    let mut add_member = |key: &str, value: Value| {
        info.insert(key.to_owned(), value);
    };
    if !user.name.is_empty() {
        add_member("username", json!(user.name));
    }
    if !user.uid.is_empty() {
        add_member("uid", json!(user.uid));
    }
    if !user.groups.is_empty() {
        add_member("groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        add_member("extra", json!(user.extra));
    }
    Value::Object(info)
}

fn parse_review_spec(review: &Tree) -> Result<(String, Vec<String>), TokenReviewError> {
    let malformed = TokenReviewError::Malformed;
    let spec = match review.get("spec") {
        None | Some(Value::Null) => &Value::Null,
        Some(spec @ Value::Object(_)) => spec,
        Some(_) => return Err(malformed("spec must be an object")),
    };
    let token = match spec.get("token") {
        None | Some(Value::Null) => "",
        Some(Value::String(token)) => token,
        Some(_) => return Err(malformed("spec.token must be a string")),
    };
    let audiences = match spec.get("audiences") {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        }
        Some(_) => None,
    };
    let audiences = audiences.ok_or_else(|| malformed("spec.audiences must be strings"))?;
    if token.is_empty() {
        return Err(TokenReviewError::NoToken);
    }
    Ok((token.to_owned(), audiences))
}

#[cfg(test)]
mod tests;
