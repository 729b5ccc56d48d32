//! Parses a `Content-Type` header as Go does.

/// Parses the media type, in lower case and without parameters.
///
/// # Errors
/// Go's message about the syntax.
pub(crate) fn parse_media_type(content_type: &str) -> Result<String, &'static str> {
    let (media_type, mut rest) = match content_type.find(';') {
        Some(at) => content_type.split_at(at),
        None => (content_type, ""),
    };
    let media_type = media_type.to_lowercase();
    let media_type = media_type.trim();
    check_media_type(media_type)?;
    let mut parameters: Vec<(String, String)> = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(media_type.to_owned());
        }
        let Some((name, value, after)) = parse_media_type_parameter(rest) else {
            // A semicolon at the end is allowed.
            return match rest.trim() {
                ";" => Ok(media_type.to_owned()),
                _ => Err("mime: invalid media parameter"),
            };
        };
        match parameters.iter().find(|(other, _)| *other == name) {
            Some((_, other)) if *other != value => return Err("mime: duplicate parameter name"),
            Some(_) => {}
            None if parameters.len() == PARAMETERS_MAX => return Err("mime: too many parameters"),
            None => parameters.push((name, value)),
        }
        rest = after;
    }
}

/// The maximum number of different parameters. The search for repeated ones is quadratic.
const PARAMETERS_MAX: usize = 64;

fn check_media_type(media_type: &str) -> Result<(), &'static str> {
    let (first, rest) = split_http_token(media_type);
    if first.is_empty() {
        return Err("mime: no media type");
    }
    if rest.is_empty() {
        return Ok(());
    }
    let Some(rest) = rest.strip_prefix('/') else {
        return Err("mime: expected slash after first token");
    };
    match split_http_token(rest) {
        ("", _) => Err("mime: expected token after slash"),
        (_, "") => Ok(()),
        (_, _) => Err("mime: unexpected content after media subtype"),
    }
}

/// Parses the first parameter: its name, its value, and the rest of the text.
fn parse_media_type_parameter(text: &str) -> Option<(String, String, &str)> {
    let rest = text.trim_start().strip_prefix(';')?.trim_start();
    let (name, rest) = split_http_token(rest);
    if name.is_empty() {
        return None;
    }
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let (value, after) = if rest.starts_with('"') {
        parse_quoted_string(rest)?
    } else {
        let (value, after) = split_http_token(rest);
        if value.is_empty() {
            return None;
        }
        (value.to_owned(), after)
    };
    Some((name.to_lowercase(), value, after))
}

fn split_http_token(text: &str) -> (&str, &str) {
    let end = text.find(|c| !is_token_char(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// Parses a quoted text and returns it with the rest. A backslash escapes only special characters.
fn parse_quoted_string(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.chars();
    chars.next();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some((value, chars.as_str())),
            '\r' | '\n' => return None,
            '\\' if chars.as_str().starts_with(is_tspecial_char) => value.extend(chars.next()),
            other => value.push(other),
        }
    }
    None
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_graphic() && !is_tspecial_char(c)
}

fn is_tspecial_char(c: char) -> bool {
    "()<>@,;:\\\"/[]?=".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_with_and_without_parameters() {
        for (source, want) in [
            ("application/json", "application/json"),
            (" Text/HTML ; Charset=UTF-8", "text/html"),
            ("text", "text"),
            ("a/b;", "a/b"),
            ("a/b; x=\"q\\\"; r\" ; y=z ;", "a/b"),
            ("a/b;x=1;x=1", "a/b"),
        ] {
            assert_eq!(parse_media_type(source), Ok(want.to_owned()), "{source}");
        }
    }

    #[test]
    fn broken_ones() {
        for (source, want) in [
            (" ", "mime: no media type"),
            ("/json", "mime: no media type"),
            ("a b", "mime: expected slash after first token"),
            ("a/", "mime: expected token after slash"),
            ("a/b c", "mime: unexpected content after media subtype"),
            ("a/b; x", "mime: invalid media parameter"),
            ("a/b; x=\"y", "mime: invalid media parameter"),
            ("a/b; x=", "mime: invalid media parameter"),
            ("a/b;x=1;x=2", "mime: duplicate parameter name"),
        ] {
            assert_eq!(parse_media_type(source), Err(want), "{source}");
        }
        let many: String = (0..=PARAMETERS_MAX).map(|n| format!(";p{n}=1")).collect();
        assert_eq!(parse_media_type(&format!("a/b{many}")), Err("mime: too many parameters"));
        let fewer: String = (0..PARAMETERS_MAX).map(|n| format!(";p{n}=1")).collect();
        assert!(parse_media_type(&format!("a/b{fewer}")).is_ok());
    }
}
