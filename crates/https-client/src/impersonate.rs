//! Acting as somebody else.

use http::header::{HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};

/// As whom requests are to be understood, if the service permits it. Empty means as ourselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Impersonate {
    /// The user name; without one nothing of the rest is sent.
    pub user: String,
    /// The identifier of the user, or empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// More about the user: keys and their values.
    pub extra: Vec<(String, Vec<String>)>,
}

impl Impersonate {
    /// Adds the headers that say so.
    ///
    /// # Errors
    /// If a value can not be written in a header.
    pub(crate) fn write(&self, headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
        if self.user.is_empty() {
            return Ok(());
        }
        headers.insert("impersonate-user", HeaderValue::from_str(&self.user)?);
        if !self.uid.is_empty() {
            headers.insert("impersonate-uid", HeaderValue::from_str(&self.uid)?);
        }
        for group in &self.groups {
            headers.append("impersonate-group", HeaderValue::from_str(group)?);
        }
        for (key, values) in &self.extra {
            let Ok(name) = HeaderName::try_from(extra_header(key)) else { continue };
            for value in values {
                headers.append(name.clone(), HeaderValue::from_str(value)?);
            }
        }
        Ok(())
    }
}

/// Keys are any text, header names are not: what a header name can not hold, and the percent sign
/// that says so, are percent-encoded. Case is lost either way.
fn extra_header(key: &str) -> String {
    let mut name = "impersonate-extra-".to_owned();
    for byte in key.bytes() {
        let is_token = byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        if is_token {
            name.push(char::from(byte.to_ascii_lowercase()));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_a_user() {
        let impersonate = Impersonate {
            user: "jane".to_owned(),
            uid: "7".to_owned(),
            groups: vec!["a".to_owned(), "b".to_owned()],
            extra: vec![("example.com/Team".to_owned(), vec!["x".to_owned(), "y".to_owned()])],
        };
        let mut headers = HeaderMap::new();
        impersonate.write(&mut headers).unwrap();
        let all = |name: &str| headers.get_all(name).iter().cloned().collect::<Vec<_>>();
        assert_eq!(all("Impersonate-User"), ["jane"]);
        assert_eq!(all("Impersonate-Uid"), ["7"]);
        assert_eq!(all("Impersonate-Group"), ["a", "b"]);
        assert_eq!(all("impersonate-extra-example.com%2fteam"), ["x", "y"]);
    }

    #[test]
    fn nobody_and_what_can_not_be_sent() {
        let mut headers = HeaderMap::new();
        Impersonate { uid: "7".to_owned(), ..Impersonate::default() }.write(&mut headers).unwrap();
        assert!(headers.is_empty());
        let broken = Impersonate { user: "a\nb".to_owned(), ..Impersonate::default() };
        assert!(broken.write(&mut headers).is_err());
    }
}
