//! Bearer tokens in headers: in `Authorization`, and among the subprotocols of a WebSocket.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue};

/// What precedes a token among the subprotocols of a WebSocket.
const PROTOCOL_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// What clients are told that write two blanks before the token.
const EXTRA_BLANK_WARNING: &str = "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// What an `Authorization` header holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bearer<'h> {
    /// Nothing that concerns us.
    None,
    /// No token, but something that was surely meant as one.
    Warning(&'static str),
    /// A token.
    Token(&'h str),
}

/// Why a WebSocket's offer of a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// There is more than one.
    #[error("multiple base64.bearer.authorization tokens specified")]
    Multiple,
    /// It is not base64url without padding.
    #[error("invalid base64.bearer.authorization token encoding")]
    Encoding,
    /// It is not text.
    #[error("invalid base64.bearer.authorization token")]
    NotText,
    /// The token would be the only subprotocol, and none would be left to agree on.
    #[error("missing additional subprotocol")]
    Alone,
}

/// The token in the first `Authorization` header.
pub(crate) fn from_headers(headers: &HeaderMap) -> Bearer<'_> {
    // What is not text can not be a token of ours, nor be compared with one.
    let value =
        headers.get(AUTHORIZATION).and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
    value.map_or(Bearer::None, from_value)
}

/// The token in the value of an `Authorization` header; what follows it is ignored.
pub(crate) fn from_value(value: &str) -> Bearer<'_> {
    let mut parts = value.trim().splitn(3, ' ');
    let (Some(scheme), Some(token)) = (parts.next(), parts.next()) else { return Bearer::None };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Bearer::None;
    }
    match (token, parts.next()) {
        ("", Some(_)) => Bearer::Warning(EXTRA_BLANK_WARNING),
        ("", None) => Bearer::None,
        (token, _) => Bearer::Token(token),
    }
}

/// The token among the subprotocols that a WebSocket offers.
pub(crate) fn from_protocols(headers: &HeaderMap) -> Result<Option<String>, ProtocolError> {
    if !is_websocket(headers) {
        return Ok(None);
    }
    let (mut token, mut has_other) = (None, false);
    for protocol in protocols(headers) {
        let Some(encoded) = protocol.strip_prefix(PROTOCOL_PREFIX.as_bytes()) else {
            has_other = true;
            continue;
        };
        if token.is_some() {
            return Err(ProtocolError::Multiple);
        }
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| ProtocolError::Encoding)?;
        token = Some(String::from_utf8(bytes).map_err(|_| ProtocolError::NotText)?);
    }
    match token.filter(|token| !token.is_empty()) {
        Some(_) if !has_other => Err(ProtocolError::Alone),
        token => Ok(token),
    }
}

/// Takes the tokens out of the headers, so that nobody behind the gate sees them.
pub(crate) fn strip(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    if !protocols(headers).any(|protocol| protocol.starts_with(PROTOCOL_PREFIX.as_bytes())) {
        return;
    }
    let others: Vec<&[u8]> = protocols(headers)
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

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .into_iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}

fn is_websocket(headers: &HeaderMap) -> bool {
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

    /// Authorizers AU-9 to AU-12.
    #[test]
    fn tokens_follow_the_word_bearer() {
        for value in ["Bearer token a b", "bearer token", "BEARER token", "  Bearer token  "] {
            assert_eq!(from_value(value), Bearer::Token("token"), "{value:?}");
        }
        for value in ["Bearer", "bear token", "Bearer: token", "Basic 123", "Bearer ", "", " "] {
            assert_eq!(from_value(value), Bearer::None, "{value:?}");
        }
        assert_eq!(from_value("Bearer  token"), Bearer::Warning(EXTRA_BLANK_WARNING));
    }

    #[test]
    fn the_first_authorization_header_counts() {
        let two = headers(&[(AUTHORIZATION, "Bearer a"), (AUTHORIZATION, "Bearer b")]);
        assert_eq!(from_headers(&two), Bearer::Token("a"));
        let basic_first = headers(&[(AUTHORIZATION, "Basic a"), (AUTHORIZATION, "Bearer b")]);
        assert_eq!(from_headers(&basic_first), Bearer::None);
        assert_eq!(from_headers(&HeaderMap::new()), Bearer::None);
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
        assert_eq!(from_protocols(&websocket(&offer)), Ok(Some("tok en".to_owned())));
        let without_upgrade = headers(&[(SEC_WEBSOCKET_PROTOCOL, &encoded)]);
        assert_eq!(from_protocols(&without_upgrade), Ok(None));
        assert_eq!(from_protocols(&websocket(&["v4.channel.k8s.io"])), Ok(None));
        let empty = format!("{PROTOCOL_PREFIX},x");
        assert_eq!(from_protocols(&websocket(&[&empty])), Ok(None));
        for (offer, want) in [
            (vec![encoded.as_str()], ProtocolError::Alone),
            (vec![encoded.as_str(), encoded.as_str(), "x"], ProtocolError::Multiple),
            (vec![&format!("{PROTOCOL_PREFIX}a=") as &str, "x"], ProtocolError::Encoding),
            (vec![&format!("{PROTOCOL_PREFIX}_w") as &str, "x"], ProtocolError::NotText),
        ] {
            assert_eq!(from_protocols(&websocket(&offer)), Err(want), "{offer:?}");
        }
    }

    #[test]
    fn stripping_leaves_no_token() {
        let encoded = format!("{PROTOCOL_PREFIX}dG9r");
        let mut offer = websocket(&[&format!("a, {encoded}"), "b"]);
        offer.insert(AUTHORIZATION, HeaderValue::from_static("Bearer x"));
        strip(&mut offer);
        assert!(offer.get(AUTHORIZATION).is_none());
        let left: Vec<_> = offer.get_all(SEC_WEBSOCKET_PROTOCOL).iter().collect();
        assert_eq!(left, ["a,b"]);
        let mut alone = websocket(&[&encoded]);
        strip(&mut alone);
        assert!(alone.get(SEC_WEBSOCKET_PROTOCOL).is_none());
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(value in ".{0,30}|[ bB]earer [ a]{0,5}", bytes: Vec<u8>) {
            let _ = from_value(&value);
            let mut map = websocket(&["x"]);
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                map.append(AUTHORIZATION, value.clone());
                map.append(SEC_WEBSOCKET_PROTOCOL, value);
            }
            if let Ok(value) = HeaderValue::from_str(&format!("{PROTOCOL_PREFIX}{value}")) {
                map.append(SEC_WEBSOCKET_PROTOCOL, value);
            }
            let _ = (from_headers(&map), from_protocols(&map));
            strip(&mut map);
            prop_assert_eq!(from_protocols(&map), Ok(None));
        }
    }
}
