//! Users that a trusted front proxy names in headers.
//!
//! The authenticator decides by the proxy's certificate whether to trust these headers; this module
//! only parses them.

use std::collections::BTreeMap;

use authz::User;
use go_compat::{UrlPart, url_unescape};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The names of the headers in which a proxy names the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontProxyHeaders {
    user_name_headers: Vec<HeaderName>,
    uid_headers: Vec<HeaderName>,
    group_headers: Vec<HeaderName>,
    /// Prefixes of headers with extra values, in lower case.
    extra_header_prefixes: Vec<String>,
}

/// Why a configured header name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderNameError {
    /// The name is empty or blank.
    #[error("empty header {}", go_compat::quote(.0))]
    Empty(String),
    /// The name has characters that HTTP does not allow.
    #[error("invalid header {}", go_compat::quote(.0))]
    Invalid(String),
}

/// Why the value of an identity header is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderValueError {
    /// The value is not UTF-8, so no policy could name it.
    #[error("request header {0} is not valid UTF-8")]
    NotText(HeaderName),
    /// The value begins or ends with whitespace. HTTP/1.1 strips blanks around a value; HTTP/2
    /// forbids them (RFC 9113, 8.2.1), but its library passes them on. In logs and policies the
    /// name would look like that of another user.
    #[error("request header {0} begins or ends with whitespace")]
    Whitespace(HeaderName),
}

impl FrontProxyHeaders {
    /// Takes the header names for the user name, the uid and the groups, and the prefixes of extra
    /// headers. For the user name and the uid, the first header with a value counts.
    ///
    /// # Errors
    /// A name is blank or not allowed in HTTP.
    pub fn new(
        user_names: &[String],
        uids: &[String],
        groups: &[String],
        extra_prefixes: &[String],
    ) -> Result<Self, HeaderNameError> {
        let parse = |names: &[String]| -> Result<Vec<HeaderName>, HeaderNameError> {
            names.iter().map(|name| parse_header_name(name)).collect()
        };
        let prefixes = parse(extra_prefixes)?;
        Ok(Self {
            user_name_headers: parse(user_names)?,
            uid_headers: parse(uids)?,
            group_headers: parse(groups)?,
            extra_header_prefixes: prefixes
                .iter()
                .map(|prefix| prefix.as_str().to_owned())
                .collect(),
        })
    }

    /// The user that the headers name, if they name one.
    ///
    /// # Errors
    /// A value is not text, or has whitespace around it.
    pub fn user(&self, headers: &HeaderMap) -> Result<Option<User>, HeaderValueError> {
        let name = first_nonempty_value_of_headers(headers, &self.user_name_headers)?;
        if name.is_empty() {
            return Ok(None);
        }
        Ok(Some(User {
            name: name.to_owned(),
            uid: first_nonempty_value_of_headers(headers, &self.uid_headers)?.to_owned(),
            groups: self.read_group_headers(headers)?,
            extra: self.read_extra_headers(headers)?,
        }))
    }

    /// Removes every header in which a proxy could name a user.
    pub fn strip_identity_headers(&self, headers: &mut HeaderMap) {
        for name in
            self.user_name_headers.iter().chain(&self.uid_headers).chain(&self.group_headers)
        {
            headers.remove(name);
        }
        let extra: Vec<HeaderName> = headers
            .keys()
            .filter(|name| {
                self.extra_header_prefixes.iter().any(|prefix| name.as_str().starts_with(prefix))
            })
            .cloned()
            .collect();
        for name in extra {
            headers.remove(name);
        }
    }

    fn read_group_headers(&self, headers: &HeaderMap) -> Result<Vec<String>, HeaderValueError> {
        let mut groups = Vec::new();
        for name in &self.group_headers {
            for value in headers.get_all(name) {
                let group = read_header_text(name, value)?;
                if !group.is_empty() {
                    groups.push(group.to_owned());
                }
            }
        }
        Ok(groups)
    }

    /// Reads the prefixes in their configured order, so that the order of the values of one key is
    /// stable.
    fn read_extra_headers(
        &self,
        headers: &HeaderMap,
    ) -> Result<BTreeMap<String, Vec<String>>, HeaderValueError> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_header_prefixes {
            for (name, value) in headers {
                if let Some(key) = name.as_str().strip_prefix(prefix.as_str()) {
                    let value = read_header_text(name, value)?.to_owned();
                    extra.entry(decode_extra_key(key)).or_default().push(value);
                }
            }
        }
        Ok(extra)
    }
}

/// The prefix of the names of all default headers.
pub(crate) const DEFAULT_PREFIX: &str = "x-remote-";

/// The header names in the documentation of Kubernetes.
impl Default for FrontProxyHeaders {
    fn default() -> Self {
        Self {
            user_name_headers: vec![HeaderName::from_static("x-remote-user")],
            uid_headers: vec![HeaderName::from_static("x-remote-uid")],
            group_headers: vec![HeaderName::from_static("x-remote-group")],
            extra_header_prefixes: vec!["x-remote-extra-".to_owned()],
        }
    }
}

/// Percent-decodes the key of an extra header; a key that cannot be decoded stays as it is.
///
/// INVARIANT: header names are in lower case, so the unescaped part of a key is too.
pub(crate) fn decode_extra_key(encoded: &str) -> String {
    url_unescape(encoded, UrlPart::PathSegment)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes.into_owned()).ok())
        .unwrap_or_else(|| encoded.to_owned())
}

/// The value of a header as text.
///
/// INVARIANT: no user, group, uid or extra value that comes from a header begins or ends with
/// whitespace.
pub(crate) fn read_header_text<'h>(
    name: &HeaderName,
    value: &'h HeaderValue,
) -> Result<&'h str, HeaderValueError> {
    let text = std::str::from_utf8(value.as_bytes());
    let text = text.map_err(|_| HeaderValueError::NotText(name.clone()))?;
    match text.trim() == text {
        true => Ok(text),
        false => Err(HeaderValueError::Whitespace(name.clone())),
    }
}

fn first_nonempty_value_of_headers<'h>(
    headers: &'h HeaderMap,
    names: &[HeaderName],
) -> Result<&'h str, HeaderValueError> {
    for name in names {
        if let Some(value) = headers.get(name)
            && !value.is_empty()
        {
            return read_header_text(name, value);
        }
    }
    Ok("")
}

fn parse_header_name(name: &str) -> Result<HeaderName, HeaderNameError> {
    match name.trim() {
        "" => Err(HeaderNameError::Empty(name.to_owned())),
        trimmed => trimmed.parse().map_err(|_| HeaderNameError::Invalid(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(names: &[&str], groups: &[&str], prefixes: &[&str]) -> FrontProxyHeaders {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        FrontProxyHeaders::new(&owned(names), &[], &owned(groups), &owned(prefixes)).unwrap()
    }

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }

    fn user(proxy: &FrontProxyHeaders, lines: &[(&str, &str)]) -> Option<User> {
        proxy.user(&headers(lines)).unwrap()
    }

    #[test]
    fn names_and_groups() {
        let standard = FrontProxyHeaders::default();
        let bob = user(&standard, &[("X-Remote-User", "Bob")]).unwrap();
        assert_eq!(bob, User { name: "Bob".to_owned(), ..User::default() });
        assert_eq!(user(&standard, &[("X-Remote-User-With-Suffix", "Bob")]), None);
        assert_eq!(user(&standard, &[("X-Remote-Group", "g")]), None);
        let two = configured(&["A", "B"], &["G1", "G2"], &[]);
        let lines =
            [("A", ""), ("A", "x"), ("B", "y"), ("G2", "c"), ("G1", "a"), ("G1", ""), ("G1", "b")];
        let named = user(&two, &lines).unwrap();
        assert_eq!((named.name.as_str(), named.groups.join(",").as_str()), ("y", "a,b,c"));
    }

    #[test]
    fn extra_keys_are_decoded_if_they_can_be() {
        let standard = FrontProxyHeaders::default();
        for (name, key) in [
            ("X-Remote-Extra-Example.com%2fpercent%2520encoded", "example.com/percent%20encoded"),
            ("X-Remote-Extra-Almost%zzpercent", "almost%zzpercent"),
            ("X-Remote-Extra-%ff", "%ff"),
            ("X-Remote-Extra-", ""),
        ] {
            let named = user(&standard, &[("X-Remote-User", "u"), (name, "v")]).unwrap();
            assert_eq!(named.extra, BTreeMap::from([(key.to_owned(), vec!["v".to_owned()])]));
        }
        let two = configured(&["U"], &[], &["P1-", "P2-"]);
        let named = user(&two, &[("U", "u"), ("P2-k", "b"), ("P1-K", "a"), ("P2-k", "c")]).unwrap();
        assert_eq!(named.extra["k"], ["a", "b", "c"]);
    }

    #[test]
    fn stripping_removes_all_and_nothing_else() {
        let mut map = headers(&[
            ("X-Remote-User", "u"),
            ("X-Remote-Uid", "u"),
            ("X-Remote-Group", "g"),
            ("X-Remote-Group", "h"),
            ("X-Remote-Extra-A", "v"),
            ("X-Remote-Other", "stays"),
        ]);
        FrontProxyHeaders::default().strip_identity_headers(&mut map);
        assert_eq!(map, headers(&[("X-Remote-Other", "stays")]));
    }

    #[test]
    fn what_is_not_text_is_refused() {
        let mut map = headers(&[("X-Remote-User", "u")]);
        map.append("x-remote-group", HeaderValue::from_bytes(b"\xff").unwrap());
        let error = FrontProxyHeaders::default().user(&map).unwrap_err();
        assert_eq!(error.to_string(), "request header x-remote-group is not valid UTF-8");
    }

    /// A22: HTTP/2 passes blanks around a value on, and a name with blanks looks like another name.
    #[test]
    fn a22_values_with_whitespace_around_them_are_refused() {
        for name in ["x-remote-user", "x-remote-uid", "x-remote-group", "x-remote-extra-k"] {
            for value in ["admin ", " admin", "admin\t", " ", "admin\u{a0}", "\u{2003}admin"] {
                let mut map = headers(&[("X-Remote-User", "u")]);
                map.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
                let error = FrontProxyHeaders::default().user(&map).unwrap_err();
                let want = format!("request header {name} begins or ends with whitespace");
                assert_eq!(error.to_string(), want, "{value:?}");
            }
        }
        let inside = user(&FrontProxyHeaders::default(), &[("X-Remote-User", "ad min")]).unwrap();
        assert_eq!(inside.name, "ad min");
    }

    #[test]
    fn header_names_are_checked_at_start() {
        for (name, want) in [
            ("", "empty header \"\""),
            ("\t", "empty header \"\\t\""),
            ("a b", "invalid header \"a b\""),
        ] {
            let error = FrontProxyHeaders::new(&[], &[name.to_owned()], &[], &[]).unwrap_err();
            assert_eq!(error.to_string(), want);
        }
        assert_eq!(configured(&[" A "], &[], &[]), configured(&["a"], &[], &[]));
    }
}
