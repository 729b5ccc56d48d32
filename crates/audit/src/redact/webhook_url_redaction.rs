//! Redacts credentials in the URLs of webhooks. The server refuses such URLs, but the audit log records the request that
//! has them and the message that quotes them.

/// Characters that end a URL in a message or in an encoded document.
const ENDS: [char; 4] = ['"', '\\', '\'', '`'];

/// Redacts the user, the query and the fragment of every URL in a text.
pub(super) fn redact_urls_in_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at + "://".len());
        let (url, after) = url.split_at(url.find(ENDS).unwrap_or(url.len()));
        shown.push_str(before);
        push_redacted_url(url, &mut shown);
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Appends a URL, which begins after its scheme. All before the last `@` may be a password, even if that is not encoded
/// as it should be.
fn push_redacted_url(url: &str, shown: &mut String) {
    let (has_user, address) = match url.rsplit_once('@') {
        Some((_, address)) => (true, address),
        None => (false, url),
    };
    let (address, has_query) = match address.split_once(['?', '#']) {
        Some((address, _)) => (address, true),
        None => (address, false),
    };
    if has_user {
        shown.push_str("redacted@");
    }
    shown.push_str(address);
    if has_query {
        shown.push_str("?redacted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_keeps_its_host_and_path() {
        for (text, want) in [
            ("https://h.io/x", "https://h.io/x"),
            ("no url: a@b?c", "no url: a@b?c"),
            ("https://u:p@h.io/x", "https://redacted@h.io/x"),
            ("https://u:p/w@h.io/x", "https://redacted@h.io/x"),
            ("https://h.io/x?token=t", "https://h.io/x?redacted"),
            ("https://h.io/x#t", "https://h.io/x?redacted"),
            ("https://u:p?w@h.io/x", "https://redacted@h.io/x"),
            (
                "url: Invalid value: \"https://u:p@h.io/x?token=t\": wrong: \"https://v@i\"",
                "url: Invalid value: \"https://redacted@h.io/x?redacted\": wrong: \"https://redacted@i\"",
            ),
            (r#"{\"url\":\"https://u:p@h\"}"#, r#"{\"url\":\"https://redacted@h\"}"#),
        ] {
            assert_eq!(redact_urls_in_text(text), want);
        }
    }
}
