//! The impersonation headers of a request.

use http::header::{HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};

/// The user that requests impersonate, if the service permits it. An empty user name disables impersonation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Impersonation {
    /// The user name; if it is empty, no impersonation header is sent.
    pub user: String,
    /// The identifier of the user, or empty.
    pub uid: String,
    /// The groups of the user.
    pub groups: Vec<String>,
    /// Extra attributes of the user: keys and their values.
    pub extra: Vec<(String, Vec<String>)>,
}

impl Impersonation {
    /// Adds the impersonation headers.
    ///
    /// # Errors
    /// If a value cannot be written in a header.
    pub(crate) fn write_impersonation_headers(
        &self,
        headers: &mut HeaderMap,
    ) -> Result<(), InvalidHeaderValue> {
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
            let Ok(name) = HeaderName::try_from(extra_header_name(key)) else { continue };
            for value in values {
                headers.append(name.clone(), HeaderValue::from_str(value)?);
            }
        }
        Ok(())
    }
}

/// Encodes a key for the name of a header. Bytes that a header name cannot hold, and the percent sign, are
/// percent-encoded. Header names have no case, so the case of the key is lost.
fn extra_header_name(key: &str) -> String {
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
    fn impersonation_headers() {
        let impersonate = Impersonation {
            user: "jane".to_owned(),
            uid: "7".to_owned(),
            groups: vec!["a".to_owned(), "b".to_owned()],
            extra: vec![("example.com/Team".to_owned(), vec!["x".to_owned(), "y".to_owned()])],
        };
        let mut headers = HeaderMap::new();
        impersonate.write_impersonation_headers(&mut headers).unwrap();
        let all = |name: &str| headers.get_all(name).iter().cloned().collect::<Vec<_>>();
        assert_eq!(all("Impersonate-User"), ["jane"]);
        assert_eq!(all("Impersonate-Uid"), ["7"]);
        assert_eq!(all("Impersonate-Group"), ["a", "b"]);
        assert_eq!(all("impersonate-extra-example.com%2fteam"), ["x", "y"]);
    }

    #[test]
    fn empty_user_and_invalid_header_values() {
        let mut headers = HeaderMap::new();
        Impersonation { uid: "7".to_owned(), ..Impersonation::default() }
            .write_impersonation_headers(&mut headers)
            .unwrap();
        assert!(headers.is_empty());
        let broken = Impersonation { user: "a\nb".to_owned(), ..Impersonation::default() };
        assert!(broken.write_impersonation_headers(&mut headers).is_err());
    }
}
