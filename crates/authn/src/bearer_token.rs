//! Bearer tokens in headers: in `Authorization`, and among the subprotocols of a WebSocket.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue};

/// The prefix of a token among WebSocket subprotocols.
const PROTOCOL_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// The warning for a header with two blanks before the token.
const EXTRA_BLANK_WARNING: &str = "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// The content of an `Authorization` header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AuthorizationHeader<'h> {
    /// There is no bearer token.
    None,
    /// There is no usable token, but the header looks like an attempt to send one.
    Warning(&'static str),
    /// There is a bearer token.
    Token(&'h str),
    /// There is a bearer token that is not UTF-8, so no source of tokens can know it.
    UndecodableToken,
}

/// Why a token among WebSocket subprotocols is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubprotocolError {
    /// There is more than one token.
    #[error("multiple base64.bearer.authorization tokens specified")]
    Multiple,
    /// The token is not base64url without padding.
    #[error("invalid base64.bearer.authorization token encoding")]
    Encoding,
    /// The decoded token is not UTF-8.
    #[error("invalid base64.bearer.authorization token")]
    NotText,
    /// The token is the only subprotocol, so none is left to agree on.
    #[error("missing additional subprotocol")]
    Alone,
}

/// Parses the first `Authorization` header.
pub(crate) fn parse_authorization_header(headers: &HeaderMap) -> AuthorizationHeader<'_> {
    let Some(value) = headers.get(AUTHORIZATION) else { return AuthorizationHeader::None };
    // Most clients write it this way, and then there is nothing to trim or to split.
    if let Some(token) = value.as_bytes().strip_prefix(b"Bearer ")
        && !token.is_empty()
        && token.iter().all(u8::is_ascii_graphic)
        && let Ok(token) = std::str::from_utf8(token)
    {
        return AuthorizationHeader::Token(token);
    }
    match std::str::from_utf8(value.as_bytes()) {
        Ok(value) => parse_authorization_value(value),
        // A wrong credential must not make the request anonymous.
        Err(_) => match parse_authorization_value(&String::from_utf8_lossy(value.as_bytes())) {
            AuthorizationHeader::Token(_) => AuthorizationHeader::UndecodableToken,
            AuthorizationHeader::None
            | AuthorizationHeader::Warning(_)
            | AuthorizationHeader::UndecodableToken => AuthorizationHeader::None,
        },
    }
}

/// Parses the value of an `Authorization` header; text after the token is ignored.
pub(crate) fn parse_authorization_value(value: &str) -> AuthorizationHeader<'_> {
    let mut parts = value.trim().splitn(3, ' ');
    let (Some(scheme), Some(token)) = (parts.next(), parts.next()) else {
        return AuthorizationHeader::None;
    };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return AuthorizationHeader::None;
    }
    match (token, parts.next()) {
        ("", Some(_)) => AuthorizationHeader::Warning(EXTRA_BLANK_WARNING),
        ("", None) => AuthorizationHeader::None,
        (token, _) => AuthorizationHeader::Token(token),
    }
}

/// Finds the token among the subprotocols that a WebSocket request offers.
pub(crate) fn token_from_subprotocols(
    headers: &HeaderMap,
) -> Result<Option<String>, SubprotocolError> {
    if !is_websocket_upgrade(headers) {
        return Ok(None);
    }
    let (mut token, mut has_other) = (None, false);
    for protocol in offered_subprotocols(headers) {
        let Some(encoded) = protocol.strip_prefix(PROTOCOL_PREFIX.as_bytes()) else {
            has_other = true;
            continue;
        };
        if token.is_some() {
            return Err(SubprotocolError::Multiple);
        }
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| SubprotocolError::Encoding)?;
        token = Some(String::from_utf8(bytes).map_err(|_| SubprotocolError::NotText)?);
    }
    match token.filter(|token| !token.is_empty()) {
        Some(_) if !has_other => Err(SubprotocolError::Alone),
        token => Ok(token),
    }
}

/// Removes all tokens from the headers, so that no later code sees them.
pub(crate) fn strip_tokens(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    if !offered_subprotocols(headers)
        .any(|protocol| protocol.starts_with(PROTOCOL_PREFIX.as_bytes()))
    {
        return;
    }
    let others: Vec<&[u8]> = offered_subprotocols(headers)
        .filter(|protocol| !protocol.starts_with(PROTOCOL_PREFIX.as_bytes()))
        .collect();
    let kept = HeaderValue::from_bytes(&others.join(&b","[..]));
    match kept {
        Ok(kept) if !others.is_empty() => {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, kept);
        }
        _ => {
            headers.remove(SEC_WEBSOCKET_PROTOCOL);
        }
    }
}

fn offered_subprotocols(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .into_iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}

fn is_websocket_upgrade(headers: &HeaderMap) -> bool {
    let says = |name, word: &str| {
        headers.get_all(name).into_iter().any(|value| {
            let value = value.as_bytes().to_ascii_lowercase();
            value.windows(word.len()).any(|window| window == word.as_bytes())
        })
    };
    says(CONNECTION, "upgrade") && says(UPGRADE, "websocket")
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use proptest::prelude::*;

    use super::*;

    fn headers(lines: &[(HeaderName, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    /// L21: a token that is not UTF-8 is a wrong credential, not an absent one.
    #[test]
    fn tokens_that_are_not_text_are_wrong() {
        let parse = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
            match parse_authorization_header(&headers) {
                AuthorizationHeader::UndecodableToken => "undecodable",
                AuthorizationHeader::None => "none",
                AuthorizationHeader::Token(_) | AuthorizationHeader::Warning(_) => "other",
            }
        };
        assert_eq!(parse(b"Bearer admin\xff"), "undecodable");
        assert_eq!(parse(b"bearer \xff"), "undecodable");
        assert_eq!(parse(b"Basic \xff"), "none");
        assert_eq!(parse(b"Bearer\xff token"), "none");
    }

    #[test]
    fn tokens_follow_the_word_bearer() {
        for value in ["Bearer token a b", "bearer token", "BEARER token", "  Bearer token  "] {
            assert_eq!(
                parse_authorization_value(value),
                AuthorizationHeader::Token("token"),
                "{value:?}"
            );
        }
        for value in ["Bearer", "bear token", "Bearer: token", "Basic 123", "Bearer ", "", " "] {
            assert_eq!(parse_authorization_value(value), AuthorizationHeader::None, "{value:?}");
        }
        assert_eq!(
            parse_authorization_value("Bearer  token"),
            AuthorizationHeader::Warning(EXTRA_BLANK_WARNING)
        );
    }

    #[test]
    fn the_first_authorization_header_counts() {
        let two = headers(&[(AUTHORIZATION, "Bearer a"), (AUTHORIZATION, "Bearer b")]);
        assert_eq!(parse_authorization_header(&two), AuthorizationHeader::Token("a"));
        let basic_first = headers(&[(AUTHORIZATION, "Basic a"), (AUTHORIZATION, "Bearer b")]);
        assert_eq!(parse_authorization_header(&basic_first), AuthorizationHeader::None);
        assert_eq!(parse_authorization_header(&HeaderMap::new()), AuthorizationHeader::None);
    }

    fn websocket(protocols: &[&str]) -> HeaderMap {
        let mut lines = vec![(CONNECTION, "keep-alive, Upgrade"), (UPGRADE, "WebSocket")];
        lines.extend(protocols.iter().map(|&protocol| (SEC_WEBSOCKET_PROTOCOL, protocol)));
        headers(&lines)
    }

    #[test]
    fn websockets_offer_a_token_as_a_subprotocol() {
        let encoded = format!("{PROTOCOL_PREFIX}{}", URL_SAFE_NO_PAD.encode("tok en"));
        let offer = [encoded.as_str(), "v4.channel.k8s.io, base64"];
        assert_eq!(token_from_subprotocols(&websocket(&offer)), Ok(Some("tok en".to_owned())));
        let without_upgrade = headers(&[(SEC_WEBSOCKET_PROTOCOL, &encoded)]);
        assert_eq!(token_from_subprotocols(&without_upgrade), Ok(None));
        assert_eq!(token_from_subprotocols(&websocket(&["v4.channel.k8s.io"])), Ok(None));
        let empty = format!("{PROTOCOL_PREFIX},x");
        assert_eq!(token_from_subprotocols(&websocket(&[&empty])), Ok(None));
        for (offer, want) in [
            (vec![encoded.as_str()], SubprotocolError::Alone),
            (vec![encoded.as_str(), encoded.as_str(), "x"], SubprotocolError::Multiple),
            (vec![&format!("{PROTOCOL_PREFIX}a=") as &str, "x"], SubprotocolError::Encoding),
            (vec![&format!("{PROTOCOL_PREFIX}_w") as &str, "x"], SubprotocolError::NotText),
        ] {
            assert_eq!(token_from_subprotocols(&websocket(&offer)), Err(want), "{offer:?}");
        }
    }

    #[test]
    fn stripping_leaves_no_token() {
        let encoded = format!("{PROTOCOL_PREFIX}dG9r");
        let mut offer = websocket(&[&format!("a, {encoded}"), "b"]);
        offer.insert(AUTHORIZATION, HeaderValue::from_static("Bearer x"));
        strip_tokens(&mut offer);
        assert!(offer.get(AUTHORIZATION).is_none());
        let left: Vec<_> = offer.get_all(SEC_WEBSOCKET_PROTOCOL).iter().collect();
        assert_eq!(left, ["a,b"]);
        let mut alone = websocket(&[&encoded]);
        strip_tokens(&mut alone);
        assert!(alone.get(SEC_WEBSOCKET_PROTOCOL).is_none());
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(value in ".{0,30}|[ bB]earer [ a]{0,5}", bytes: Vec<u8>) {
            let _ = parse_authorization_value(&value);
            let mut map = websocket(&["x"]);
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                map.append(AUTHORIZATION, value.clone());
                map.append(SEC_WEBSOCKET_PROTOCOL, value);
            }
            if let Ok(value) = HeaderValue::from_str(&format!("{PROTOCOL_PREFIX}{value}")) {
                map.append(SEC_WEBSOCKET_PROTOCOL, value);
            }
            let _ = (parse_authorization_header(&map), token_from_subprotocols(&map));
            strip_tokens(&mut map);
            prop_assert_eq!(token_from_subprotocols(&map), Ok(None));
        }
    }
}
