//! Removes comments and literals from Rust source.

/// Replaces comments, and the content of string and character literals, by spaces.
///
/// Line breaks stay, so line numbers stay too. Rules that search for words in code would otherwise find them
/// in prose about the rules.
pub(super) fn code_only(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let end = end_of_prose(&chars, at);
        if end == at {
            code.push(c);
            at += 1;
        } else {
            code.extend(chars[at..end].iter().map(|&c| if c == '\n' { c } else { ' ' }));
            at = end;
        }
    }
    code
}

/// The end of the comment or literal that begins at `at`; `at` itself if none begins there.
fn end_of_prose(chars: &[char], at: usize) -> usize {
    let rest = &chars[at..];
    let length = match rest {
        ['/', '/', ..] => rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
        ['/', '*', ..] => block_comment(rest),
        ['"', ..] => quoted(rest, '"'),
        ['\'', '\\', ..] | ['\'', _, '\'', ..] => quoted(rest, '\''),
        ['r', '#' | '"', ..] if begins_token(chars, at) => raw_string(rest).unwrap_or(0),
        _ => 0,
    };
    at + length
}

/// Reports whether the `r` at `at` begins a token and is not the end of a name; `br` and `cr` are prefixes of
/// literals too.
fn begins_token(chars: &[char], at: usize) -> bool {
    let is_name =
        |idx: usize| chars.get(idx).is_some_and(|c: &char| c.is_alphanumeric() || *c == '_');
    match at.checked_sub(1) {
        None => true,
        Some(before) if matches!(chars[before], 'b' | 'c') => {
            before.checked_sub(1).is_none_or(|idx| !is_name(idx))
        }
        Some(before) => !is_name(before),
    }
}

/// The length of a block comment; block comments nest.
fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a literal with escapes, including the closing quote.
fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while let Some(&c) = rest.get(at) {
        match c {
            '\\' => at += 2,
            _ if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of `r"..."` or `r#"..."#`; `None` for a raw identifier such as `r#type`.
fn raw_string(rest: &[char]) -> Option<usize> {
    let n_hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
    let begin = 1 + n_hashes;
    if rest.get(begin) != Some(&'"') {
        return None;
    }
    let is_end = |at: usize| {
        rest[at] == '"'
            && rest[at + 1..].iter().take(n_hashes).filter(|&&c| c == '#').count() == n_hashes
    };
    let end = (begin + 1..rest.len()).find(|&at| is_end(at));
    Some(end.map_or(rest.len(), |at| at + 1 + n_hashes))
}

#[cfg(test)]
mod tests {
    use super::code_only;

    /// The words that are left in the code.
    fn words(source: &str) -> Vec<String> {
        code_only(source).split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn comments_are_removed() {
        assert_eq!(words("a // x\nb /* x /* x */ x */ c"), ["a", "b", "c"]);
        assert_eq!(words("a /* never closed"), ["a"]);
        assert_eq!(words("//! x\n/// x\na"), ["a"]);
    }

    #[test]
    fn literals_are_removed() {
        assert_eq!(words(r#"a "x \" // x" b"#), ["a", "b"]);
        assert_eq!(words("a r#\"x \" x\"# b"), ["a", "b"]);
        // The prefix of a byte string is not part of its text.
        assert_eq!(words("a br##\"x \"# x\"## c"), ["a", "b", "c"]);
        assert_eq!(words("a '\"' b '\\'' c"), ["a", "b", "c"]);
        assert_eq!(words("a \"never closed"), ["a"]);
        assert_eq!(words("a \"x\\"), ["a"]);
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_kept() {
        assert_eq!(words("fn a<'b>(c: &'b str)"), ["fn", "a<'b>(c:", "&'b", "str)"]);
        assert_eq!(words("r#type r#fn"), ["r#type", "r#fn"]);
        assert_eq!(words("for\"x\""), ["for"]);
    }

    #[test]
    fn lines_keep_their_numbers() {
        let source = "a\n\"x\nx\" /* x\n x */ b\nc";
        let code = code_only(source);
        assert_eq!(code.lines().count(), source.lines().count());
        assert_eq!(code.lines().nth(3).map(str::trim), Some("b"));
    }
}
