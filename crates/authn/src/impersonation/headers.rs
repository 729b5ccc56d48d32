//! The impersonation headers of a request.

use authz::User;
use http::{HeaderMap, HeaderName};

use super::impersonation_error::ImpersonationError;
use crate::front_proxy::{HeaderValueError, decode_extra_key, read_header_text};

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const EXTRA_PREFIX: &str = "impersonate-extra-";
/// The beginning of the names of all these headers.
const PREFIX: &str = "impersonate-";

/// Reports whether a header name has the prefix of impersonation headers. Most requests have none, and this check
/// is cheaper than a lookup of each header.
pub fn has_impersonation_headers(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with(PREFIX))
}

/// The user that the headers describe, exactly as they describe it; `None` without such headers.
pub(super) fn requested_impersonated_user(
    headers: &HeaderMap,
) -> Result<Option<User>, ImpersonationError> {
    let requested = parse_impersonation_headers(headers)?;
    if !requested.name.is_empty() {
        return Ok(Some(requested));
    }
    if requested == User::default() {
        return Ok(None);
    }
    Err(ImpersonationError::NoUserName(Box::new(requested)))
}

/// Removes the impersonation headers, so that no later code sees them.
pub fn strip_impersonation_headers(headers: &mut HeaderMap) {
    for name in [USER, GROUP, UID] {
        headers.remove(name);
    }
    let extra: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(EXTRA_PREFIX)).cloned().collect();
    for name in extra {
        headers.remove(name);
    }
}

fn parse_impersonation_headers(headers: &HeaderMap) -> Result<User, HeaderValueError> {
    let text = |name: &HeaderName, value| read_header_text(name, value).map(str::to_owned);
    let first = |name: HeaderName| headers.get(&name).map_or(Ok(String::new()), |v| text(&name, v));
    let mut requested = User { name: first(USER)?, uid: first(UID)?, ..User::default() };
    for value in headers.get_all(GROUP) {
        requested.groups.push(text(&GROUP, value)?);
    }
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
            requested.extra.entry(decode_extra_key(key)).or_default().push(text(name, value)?);
        }
    }
    Ok(requested)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn headers_describe_a_user() {
        let map = headers(&[
            ("Impersonate-User", "u"),
            ("Impersonate-User", "other"),
            ("Impersonate-Group", "b"),
            ("impersonate-group", "a"),
            ("Impersonate-Uid", "1"),
            ("Impersonate-Extra-Example.com%2fX", "v"),
            ("Impersonate-Extra-bad%zz", "w"),
        ]);
        let requested = requested_impersonated_user(&map).unwrap().unwrap();
        assert_eq!((requested.name.as_str(), requested.uid.as_str()), ("u", "1"));
        assert_eq!(requested.groups, ["b", "a"]);
        let keys: Vec<_> = requested.extra.keys().collect();
        assert_eq!(keys, ["bad%zz", "example.com/x"]);
    }

    #[test]
    fn a_user_must_be_named() {
        assert_eq!(requested_impersonated_user(&HeaderMap::new()).unwrap(), None);
        assert_eq!(
            requested_impersonated_user(&headers(&[("Impersonate-User", "")])).unwrap(),
            None
        );
        for (name, want) in [
            (
                "Impersonate-Group",
                "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"x\"}, \
                 Extra:map[string][]string(nil)} without impersonating a user name",
            ),
            (
                "Impersonate-Uid",
                "requested &user.DefaultInfo{Name:\"\", UID:\"x\", Groups:[]string(nil), \
                 Extra:map[string][]string(nil)} without impersonating a user name",
            ),
            (
                "Impersonate-Extra-x",
                "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string(nil), \
                 Extra:map[string][]string{\"x\":[]string{\"x\"}}} without impersonating a user name",
            ),
        ] {
            let error = requested_impersonated_user(&headers(&[(name, "x")])).unwrap_err();
            assert!(matches!(error, ImpersonationError::NoUserName(_)));
            assert_eq!(error.to_string(), want);
        }
    }

    #[test]
    fn what_is_not_text_is_refused() {
        let mut map = headers(&[("Impersonate-User", "u")]);
        map.append("impersonate-extra-k", HeaderValue::from_bytes(b"\xff").unwrap());
        assert!(matches!(requested_impersonated_user(&map), Err(ImpersonationError::Header(_))));
    }

    /// A22: a name with blanks around it is refused, because it looks like the name of another user.
    #[test]
    fn a22_values_with_whitespace_around_them_are_refused() {
        let names =
            ["impersonate-user", "impersonate-uid", "impersonate-group", "impersonate-extra-k"];
        for name in names {
            for value in ["admin ", "\tadmin", " \t ", "admin\u{a0}"] {
                let mut map = headers(&[("Impersonate-User", "u")]);
                map.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
                let error = requested_impersonated_user(&map).unwrap_err();
                let want = format!("request header {name} begins or ends with whitespace");
                assert!(matches!(error, ImpersonationError::Header(_)));
                assert_eq!(error.to_string(), want, "{value:?}");
            }
        }
    }

    #[test]
    fn stripping_removes_all_and_nothing_else() {
        let mut map = headers(&[
            ("Impersonate-User", "u"),
            ("Impersonate-Group", "g"),
            ("Impersonate-Group", "h"),
            ("Impersonate-Uid", "1"),
            ("Impersonate-Extra-a", "v"),
            ("Impersonate-Else", "stays"),
        ]);
        strip_impersonation_headers(&mut map);
        assert_eq!(map, headers(&[("Impersonate-Else", "stays")]));
        assert!(has_impersonation_headers(&map));
        assert!(!has_impersonation_headers(&headers(&[("Authorization", "x")])));
    }
}
