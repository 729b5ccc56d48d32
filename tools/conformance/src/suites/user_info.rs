//! `user-info`: whom the headers of a proxy name, and whom the tokens of a file stand for.

use std::collections::BTreeSet;

use authn::{FrontProxyHeaders, TokenFile};
use authz::User;
use http::HeaderMap;
use serde_json::{Value, json};

use super::Answer;
use super::headers::{canonical, headers};
use crate::vectors::Vector;

pub(super) fn answer(vector: &Vector) -> Result<Answer, String> {
    let want = vector.member("expect")?.clone();
    let got = match vector.body.get("headerConfig") {
        Some(config) => front_proxy(config, headers(vector)?)?,
        None => token_file(vector.text("csv")?, vector.list("tokens")?)?,
    };
    Ok(Answer { want, got, warnings: Vec::new() })
}

/// Every text is written by Kubernetes, or by a reader of CSV that we follow to the letter.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

fn front_proxy(config: &Value, mut headers: HeaderMap) -> Result<Value, String> {
    let names = |member: &str| -> Result<Vec<String>, String> {
        let names = config[member].as_array().into_iter().flatten();
        names
            .map(|name| name.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| format!("`{member}` is not a list of strings"))
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
    let found = proxy.user(&headers).map_err(|error| error.to_string())?;
    if found.is_some() {
        proxy.strip_headers(&mut headers);
    }
    let remaining: BTreeSet<String> = headers.keys().map(|name| canonical(name.as_str())).collect();
    Ok(json!({
        "authenticated": found.is_some(),
        "user": found.as_ref().map(user),
        "remainingHeaders": remaining,
    }))
}

fn token_file(csv: &str, tokens: &[Value]) -> Result<Value, String> {
    let file = match TokenFile::parse("TOKEN_FILE", csv) {
        Ok(file) => file,
        Err(error) => return Ok(json!({ "loadError": error.to_string() })),
    };
    let users: Option<Vec<Value>> =
        tokens.iter().map(|token| Some(json!(file.user(token.as_str()?).map(user)))).collect();
    Ok(json!({ "users": users.ok_or("`tokens` is not a list of strings")? }))
}

/// A user in the form of the vectors.
pub(super) fn user(user: &User) -> Value {
    json!({"name": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra})
}
