//! The path of a URL as Go's client sends it.

/// Resolves dots and redundant slashes, removes the last slash, and percent-encodes characters that a
/// path must not contain. Returns `None` if an escape is malformed.
pub(crate) fn normalize_path(raw: &str) -> Option<String> {
    let decoded = percent_decode(raw)?;
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in decoded.split(|&byte| byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let mut cleaned = Vec::with_capacity(decoded.len());
    for segment in kept {
        cleaned.push(b'/');
        cleaned.extend_from_slice(segment);
    }
    if cleaned.is_empty() {
        cleaned.push(b'/');
    }
    // A path that needs no cleaning is sent unchanged, so that `%2F` stays escaped.
    let is_as_written = cleaned == decoded && raw.bytes().all(may_be_unescaped);
    Some(if is_as_written { raw.to_owned() } else { percent_encode(&cleaned) })
}

/// Replaces percent escapes. Returns `None` if an escape is malformed.
pub(crate) fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    let digit = |byte: Option<u8>| {
        let digit = char::from(byte?).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => digit(bytes.next())? << 4 | digit(bytes.next())?,
            byte => byte,
        });
    }
    Some(decoded)
}

fn percent_encode(path: &[u8]) -> String {
    let mut encoded = String::with_capacity(path.len());
    for &byte in path {
        if is_never_escaped(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Reports whether Go never escapes this byte in a path.
fn is_never_escaped(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte)
}

/// Reports whether the author of a URL may leave this byte unescaped.
fn may_be_unescaped(byte: u8) -> bool {
    is_never_escaped(byte) || b"!'()*[]%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalized_like_go() {
        for (raw, want) in [
            ("", "/"),
            ("/", "/"),
            ("//", "/"),
            ("/authz/", "/authz"),
            ("/a//b///", "/a/b"),
            ("/a/./b/../c", "/a/c"),
            ("/../a", "/a"),
            ("/a%2Fb", "/a%2Fb"),
            ("/a%2Fb/", "/a/b"),
            ("/a b", "/a%20b"),
            ("/ü", "/%C3%BC"),
            ("/a(b)*!'[]", "/a(b)*!'[]"),
            ("/a(b)/", "/a%28b%29"),
            ("/%41", "/%41"),
            ("/a;b,c=d", "/a;b,c=d"),
        ] {
            assert_eq!(normalize_path(raw).as_deref(), Some(want), "{raw}");
        }
        for broken in ["/%", "/%4", "/%zz"] {
            assert_eq!(normalize_path(broken), None, "{broken}");
        }
    }
}
