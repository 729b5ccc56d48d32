//! Character classes of Go's regular expressions, rewritten as classes of the `regex` crate.

use super::escape::{between, escape};
use super::syntax::{NOTHING, SyntaxError};
use super::unicode_class;

/// A class and what follows it.
type Class<'p> = (String, &'p str);

/// The classes that a letter after a backslash or a name between `[:` and `:]` stands for: all are
/// ASCII.
const DIGIT: &str = "0-9";
const SPACE: &str = r"\t\n\x0C\r ";
const WORD: &str = "0-9A-Z_a-z";

const POSIX: &[(&str, &str)] = &[
    ("alnum", "0-9A-Za-z"),
    ("alpha", "A-Za-z"),
    ("ascii", r"\x00-\x7F"),
    ("blank", r"\t "),
    ("cntrl", r"\x00-\x1F\x7F"),
    ("digit", DIGIT),
    ("graph", r"\x21-\x7E"),
    ("lower", "a-z"),
    ("print", r"\x20-\x7E"),
    ("punct", r"\x21-\x2F\x3A-\x40\x5B-\x60\x7B-\x7E"),
    ("space", r"\t\n\x0B\x0C\r "),
    ("upper", "A-Z"),
    ("word", WORD),
    ("xdigit", "0-9A-Fa-f"),
];

/// Reads a class in brackets.
pub(super) fn bracketed(rest: &str) -> Result<Class<'_>, SyntaxError> {
    let inside = rest.strip_prefix('[').unwrap_or(rest);
    let (negated, mut left) = match inside.strip_prefix('^') {
        Some(left) => (true, left),
        None => (false, inside),
    };
    let mut items = String::new();
    // A closing bracket is a plain character in the first place.
    let mut first = true;
    loop {
        if let Some(after) = left.strip_prefix(']').filter(|_| !first) {
            return Ok((enclose(&items, negated), after));
        }
        first = false;
        let found = match posix(left)? {
            Some(found) => Some(found),
            None => escaped(left)?,
        };
        if let Some((item, after)) = found {
            items.push_str(&item);
            left = after;
            continue;
        }
        left = range(left, rest, &mut items)?;
    }
}

/// Reads a letter after a backslash that stands for a class: `\d`, `\pL` and the like. The items
/// belong in brackets.
pub(super) fn escaped(rest: &str) -> Result<Option<Class<'_>>, SyntaxError> {
    let mut chars = rest.chars();
    if chars.next() != Some('\\') {
        return Ok(None);
    }
    let (items, negated) = match chars.next() {
        Some('d') => (DIGIT, false),
        Some('D') => (DIGIT, true),
        Some('s') => (SPACE, false),
        Some('S') => (SPACE, true),
        Some('w') => (WORD, false),
        Some('W') => (WORD, true),
        Some(letter @ ('p' | 'P')) => {
            return unicode(rest, chars.as_str(), letter == 'P').map(Some);
        }
        _ => return Ok(None),
    };
    Ok(Some((item(items, negated), chars.as_str())))
}

/// Reads a Unicode class. `rest` begins with the backslash, `name` after the letter.
fn unicode<'p>(rest: &'p str, name: &'p str, negated: bool) -> Result<Class<'p>, SyntaxError> {
    let refuse =
        |left: &str| SyntaxError::new("invalid character class range", between(rest, left));
    let (name, left) = match name.strip_prefix('{') {
        Some(braced) => braced.split_once('}').ok_or_else(|| refuse(""))?,
        None => {
            let end = name.chars().next().map_or(0, char::len_utf8);
            name.split_at_checked(end).unwrap_or((name, ""))
        }
    };
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, !negated),
        None => (name, negated),
    };
    let items = unicode_class::items(name).ok_or_else(|| refuse(left))?;
    Ok((item(&items, negated), left))
}

/// Reads a class by name, such as `[:alpha:]` or `[:^alpha:]`.
fn posix(rest: &str) -> Result<Option<Class<'_>>, SyntaxError> {
    let Some((name, left)) = rest.strip_prefix("[:").and_then(|named| named.split_once(":]"))
    else {
        return Ok(None);
    };
    let (bare, negated) = match name.strip_prefix('^') {
        Some(bare) => (bare, true),
        None => (name, false),
    };
    match POSIX.iter().find(|(known, _)| *known == bare) {
        Some((_, items)) => Ok(Some((item(items, negated), left))),
        None => Err(SyntaxError::new("invalid character class range", between(rest, left))),
    }
}

/// Reads one character or a range of them; returns what follows.
fn range<'p>(rest: &'p str, class: &'p str, items: &mut String) -> Result<&'p str, SyntaxError> {
    let (low, mut left) = character(rest, class)?;
    let mut high = low;
    // A hyphen before the closing bracket is a plain character.
    if let Some(after) = left.strip_prefix('-')
        && !after.is_empty()
        && !after.starts_with(']')
    {
        (high, left) = character(after, class)?;
    }
    if high < low {
        let range = between(rest, left);
        return Err(SyntaxError::new("invalid character class range", range));
    }
    // Surrogates are no characters: they match nothing.
    for (low, high) in [(low, high.min(0xD7FF)), (low.max(0xE000), high)] {
        if low <= high {
            items.push_str(&format!(r"\x{{{low:X}}}-\x{{{high:X}}}"));
        }
    }
    Ok(left)
}

fn character<'p>(rest: &'p str, class: &'p str) -> Result<(u32, &'p str), SyntaxError> {
    let mut chars = rest.chars();
    match chars.next() {
        None => Err(SyntaxError::new("missing closing ]", class)),
        Some('\\') => escape(rest),
        Some(c) => Ok((u32::from(c), chars.as_str())),
    }
}

/// Items for use between brackets, or the complement of them.
fn item(items: &str, negated: bool) -> String {
    if negated { enclose(items, true) } else { items.to_owned() }
}

fn enclose(items: &str, negated: bool) -> String {
    match (items.is_empty(), negated) {
        (false, false) => format!("[{items}]"),
        (false, true) => format!("[^{items}]"),
        (true, false) => NOTHING.to_owned(),
        (true, true) => format!("[^{NOTHING}]"),
    }
}
