//! Users that a trusted proxy names in headers.
//!
//! Whether the proxy may be trusted is decided by its certificate, elsewhere. Here is what the
//! headers say.

use std::collections::BTreeMap;

use authz::User;
use go_compat::{UrlPart, url_unescape};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The headers in which a proxy names the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontProxyHeaders {
    user_names: Vec<HeaderName>,
    uids: Vec<HeaderName>,
    groups: Vec<HeaderName>,
    /// In lower case.
    extra_prefixes: Vec<String>,
}

/// Why a name can not be that of a header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderNameError {
    /// There is nothing but blanks.
    #[error("empty header {}", go_compat::quote(.0))]
    Empty(String),
    /// It has characters that HTTP does not allow.
    #[error("invalid header {}", go_compat::quote(.0))]
    Invalid(String),
}

/// Why the value of a header that names somebody is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderValueError {
    /// It is not text, so that no policy could speak of what it says.
    #[error("request header {0} is not valid UTF-8")]
    NotText(HeaderName),
    /// It begins or ends with whitespace. In HTTP/1.1 blanks around a value are no part of it; HTTP/2
    /// forbids them (RFC 9113, 8.2.1), but its library hands them on. The name would look like that of
    /// somebody else in every log and policy.
    #[error("request header {0} begins or ends with whitespace")]
    Whitespace(HeaderName),
}

impl FrontProxyHeaders {
    /// Headers with the user name, the uid, groups, and the prefixes of those with extra. Of names
    /// and uids the first header counts that has a value.
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
            names.iter().map(|name| parse_name(name)).collect()
        };
        let prefixes = parse(extra_prefixes)?;
        Ok(Self {
            user_names: parse(user_names)?,
            uids: parse(uids)?,
            groups: parse(groups)?,
            extra_prefixes: prefixes.iter().map(|prefix| prefix.as_str().to_owned()).collect(),
        })
    }

    /// The user that the headers name, if they name one.
    ///
    /// # Errors
    /// A value is not text, or has blanks around it.
    pub fn user(&self, headers: &HeaderMap) -> Result<Option<User>, HeaderValueError> {
        let name = first_value(headers, &self.user_names)?;
        if name.is_empty() {
            return Ok(None);
        }
        Ok(Some(User {
            name: name.to_owned(),
            uid: first_value(headers, &self.uids)?.to_owned(),
            groups: self.groups(headers)?,
            extra: self.extra(headers)?,
        }))
    }

    /// Removes every header in which a proxy could name a user.
    pub fn strip(&self, headers: &mut HeaderMap) {
        for name in self.user_names.iter().chain(&self.uids).chain(&self.groups) {
            headers.remove(name);
        }
        let extra: Vec<HeaderName> = headers
            .keys()
            .filter(|name| {
                self.extra_prefixes.iter().any(|prefix| name.as_str().starts_with(prefix))
            })
            .cloned()
            .collect();
        for name in extra {
            headers.remove(name);
        }
    }

    fn groups(&self, headers: &HeaderMap) -> Result<Vec<String>, HeaderValueError> {
        let mut groups = Vec::new();
        for name in &self.groups {
            for value in headers.get_all(name) {
                let group = text(name, value)?;
                if !group.is_empty() {
                    groups.push(group.to_owned());
                }
            }
        }
        Ok(groups)
    }

    /// Prefixes in their order, so that the values of one key have an order too.
    fn extra(
        &self,
        headers: &HeaderMap,
    ) -> Result<BTreeMap<String, Vec<String>>, HeaderValueError> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            for (name, value) in headers {
                if let Some(key) = name.as_str().strip_prefix(prefix.as_str()) {
                    let value = text(name, value)?.to_owned();
                    extra.entry(decode_extra_key(key)).or_default().push(value);
                }
            }
        }
        Ok(extra)
    }
}

/// The headers that Kubernetes' documents use: `X-Remote-User` and so on.
impl Default for FrontProxyHeaders {
    fn default() -> Self {
        Self {
            user_names: vec![HeaderName::from_static("x-remote-user")],
            uids: vec![HeaderName::from_static("x-remote-uid")],
            groups: vec![HeaderName::from_static("x-remote-group")],
            extra_prefixes: vec!["x-remote-extra-".to_owned()],
        }
    }
}

/// The key that the rest of a header name stands for: its escapes decoded, unless that is not
/// possible.
///
/// INVARIANT: header names are in lower case, so what is not escaped is too.
pub(crate) fn decode_extra_key(encoded: &str) -> String {
    url_unescape(encoded, UrlPart::PathSegment)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes.into_owned()).ok())
        .unwrap_or_else(|| encoded.to_owned())
}

/// The value of a header as text.
///
/// INVARIANT: no user, group, uid or extra value that a header names begins or ends with whitespace.
pub(crate) fn text<'h>(
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

fn first_value<'h>(
    headers: &'h HeaderMap,
    names: &[HeaderName],
) -> Result<&'h str, HeaderValueError> {
    for name in names {
        if let Some(value) = headers.get(name)
            && !value.is_empty()
        {
            return text(name, value);
        }
    }
    Ok("")
}

fn parse_name(name: &str) -> Result<HeaderName, HeaderNameError> {
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

    /// Authorizers AU-23 to AU-26.
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

    /// Authorizers AU-27 to AU-29.
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
        FrontProxyHeaders::default().strip(&mut map);
        assert_eq!(map, headers(&[("X-Remote-Other", "stays")]));
    }

    #[test]
    fn what_is_not_text_is_refused() {
        let mut map = headers(&[("X-Remote-User", "u")]);
        map.append("x-remote-group", HeaderValue::from_bytes(b"\xff").unwrap());
        let error = FrontProxyHeaders::default().user(&map).unwrap_err();
        assert_eq!(error.to_string(), "request header x-remote-group is not valid UTF-8");
    }

    /// A22: HTTP/2 hands on blanks around a value, and a name with them looks like another.
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
