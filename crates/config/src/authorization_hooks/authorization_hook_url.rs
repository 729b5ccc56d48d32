//! The rules of the URL of a hook, which are those that Kubernetes has for admission webhooks.

use field_errors::{FieldError, FieldPath};

const URL_FORMAT: &str = "; desired format: https://host[/path]";

/// Returns every fault of a URL. Messages do not show a user name or a password.
pub(super) fn authorization_hook_url_faults(at: &FieldPath<'_>, url: &str) -> Vec<FieldError> {
    let Some((scheme, rest)) = url.split_once("://") else {
        let detail = format!("'https' is the only allowed URL scheme{URL_FORMAT}");
        return vec![at.invalid(url_without_secrets(url), &detail)];
    };
    if url.chars().any(|c| c.is_control() || c == ' ') {
        return vec![
            at.invalid(url_without_secrets(url), &format!("url must be a valid URL{URL_FORMAT}")),
        ];
    }
    let (rest, has_fragment) = text_before_separator(rest, '#');
    let (rest, has_query) = text_before_separator(rest, '?');
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let mut faults = Vec::new();
    if !scheme.eq_ignore_ascii_case("https") {
        let detail = format!("'https' is the only allowed URL scheme{URL_FORMAT}");
        faults.push(at.invalid(scheme, &detail));
    }
    if host.is_empty() || host.starts_with(':') {
        faults.push(at.invalid(host, &format!("host must be specified{URL_FORMAT}")));
    }
    if user.is_some() {
        faults.push(at.invalid("(hidden)", "user information is not permitted in the URL"));
    }
    if has_fragment {
        faults.push(at.invalid(url_without_secrets(url), "fragments are not permitted in the URL"));
    }
    if has_query {
        faults.push(
            at.invalid(url_without_secrets(url), "query parameters are not permitted in the URL"),
        );
    }
    faults
}

fn text_before_separator(text: &str, separator: char) -> (&str, bool) {
    text.split_once(separator).map_or((text, false), |(before, _)| (before, true))
}

/// Removes the parts of a URL that may be secret: user, password, query and fragment.
fn url_without_secrets(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at_checked(start).unwrap_or((url, ""));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    match rest.rsplit_once('@') {
        Some((_, rest)) => format!("{scheme}{rest}"),
        None => format!("{scheme}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(url: &str) -> Vec<String> {
        authorization_hook_url_faults(&FieldPath::root("url"), url)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn valid_urls_have_no_faults() {
        for url in ["https://h", "HTTPS://h:8443/", "https://[::1]:1/a/b", "https://h/a@b"] {
            assert!(details(url).is_empty(), "{url}");
        }
    }

    #[test]
    fn faults_are_reported_without_secrets() {
        let form = "desired format: https://host[/path]";
        for (url, want) in [
            ("http://h/", format!("\"http\": 'https' is the only allowed URL scheme; {form}")),
            ("h:443", format!("\"h:443\": 'https' is the only allowed URL scheme; {form}")),
            ("https:///x", format!("\"\": host must be specified; {form}")),
            ("https://:1/x", format!("\":1\": host must be specified; {form}")),
            ("https://h /", format!("\"https://h /\": url must be a valid URL; {form}")),
            (
                "https://a:secret@h",
                "\"(hidden)\": user information is not permitted in the URL".to_owned(),
            ),
            (
                "https://h#secret",
                "\"https://h\": fragments are not permitted in the URL".to_owned(),
            ),
            (
                "https://h?t=secret",
                "\"https://h\": query parameters are not permitted in the URL".to_owned(),
            ),
        ] {
            assert_eq!(details(url), [format!("url: Invalid value: {want}")]);
        }
        assert_eq!(details("http://a:secret@?secret#secret").len(), 5);
        assert!(!details("http://a:secret@?secret#secret").join("").contains("secret"));
    }
}
