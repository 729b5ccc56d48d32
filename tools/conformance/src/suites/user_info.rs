//! `user-info`: the users of front-proxy headers and of the tokens in a file.

use std::collections::BTreeSet;

use authn::{FrontProxyHeaders, TokenFile};
use authz::User;
use http::HeaderMap;
use serde_json::{Value, json};

use super::AnswerPair;
use super::headers::{canonical_header_name, parse_headers};
use crate::vectors::{UnusableVector, Vector};

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let want = vector.member("expect")?.clone();
    let got = match vector.body.get("headerConfig") {
        Some(config) => read_front_proxy_user(config, parse_headers(vector)?)?,
        None => read_token_users(vector.text("csv")?, vector.list("tokens")?)?,
    };
    Ok(AnswerPair { want, got, warnings: Vec::new() })
}

/// Kubernetes or the CSV reader of Go writes every text, so all of it must agree.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

fn read_front_proxy_user(config: &Value, mut headers: HeaderMap) -> Result<Value, UnusableVector> {
    let names = |member: &str| -> Result<Vec<String>, UnusableVector> {
        let names = config[member].as_array().into_iter().flatten();
        names
            .map(|name| name.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| UnusableVector::new(format!("`{member}` is not a list of strings")))
    };
    let proxy = FrontProxyHeaders::new(
        &names("usernameHeaders")?,
        &names("uidHeaders")?,
        &names("groupHeaders")?,
        &names("extraHeaderPrefixes")?,
    );
    let proxy = match proxy {
        Ok(proxy) => proxy,
        Err(error) => return Ok(json!({ "configError": error.to_string() })),
    };
    let found = proxy.user(&headers).map_err(UnusableVector::new)?;
    if found.is_some() {
        proxy.strip_identity_headers(&mut headers);
    }
    let remaining: BTreeSet<String> =
        headers.keys().map(|name| canonical_header_name(name.as_str())).collect();
    Ok(json!({
        "authenticated": found.is_some(),
        "user": found.as_ref().map(user_to_json),
        "remainingHeaders": remaining,
    }))
}

fn read_token_users(csv: &str, tokens: &[Value]) -> Result<Value, UnusableVector> {
    let file = match TokenFile::parse("TOKEN_FILE", csv) {
        Ok(file) => file,
        Err(error) => return Ok(json!({ "loadError": error.to_string() })),
    };
    let users: Option<Vec<Value>> = tokens
        .iter()
        .map(|token| Some(json!(file.user(token.as_str()?).map(|user| user_to_json(user)))))
        .collect();
    Ok(
        json!({ "users": users.ok_or_else(|| UnusableVector::new("`tokens` is not a list of strings"))? }),
    )
}

/// A user in the form of the vectors.
pub(super) fn user_to_json(user: &User) -> Value {
    json!({"name": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra})
}
