//! Character classes of Go's regular expressions, rewritten as classes of the `regex` crate.

use super::regex_escape::{read_regex_escape, text_before_suffix};
use super::regex_translator::{EMPTY_CLASS, RegexSyntaxError};
use super::unicode_class;

/// A class in the notation of the `regex` crate.
#[derive(Debug, Default)]
pub(super) struct CharacterClass {
    pub(super) regex_text: String,
    pub(super) class_parse_steps: CharacterClassParseSteps,
}

/// The steps for parsing a character class, in addition to those for its length; see
/// [`StepBudget`](crate::function::StepBudget).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CharacterClassParseSteps {
    pub(super) case_sensitive_steps: usize,
    /// The steps for a class that ignores case: the case folding of each character is looked up.
    pub(super) case_folded_steps: usize,
}

/// The steps for a Unicode class, which has up to several hundred ranges.
const UNICODE_CLASS_STEPS: CharacterClassParseSteps =
    CharacterClassParseSteps { case_sensitive_steps: 400, case_folded_steps: 5_000 };

/// The characters whose case folding is looked up in one step.
const FOLDED_CHARS_PER_STEP: usize = 8;

impl CharacterClass {
    /// Appends class items and adds their steps.
    fn push(&mut self, items: &CharacterClass) {
        self.regex_text.push_str(&items.regex_text);
        self.class_parse_steps.case_sensitive_steps = self
            .class_parse_steps
            .case_sensitive_steps
            .saturating_add(items.class_parse_steps.case_sensitive_steps);
        self.class_parse_steps.case_folded_steps = self
            .class_parse_steps
            .case_folded_steps
            .saturating_add(items.class_parse_steps.case_folded_steps);
    }
}

/// The ASCII classes of `\d`, `\s`, `\w` and of names such as `[:alpha:]`.
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
pub(super) fn read_bracketed_class(rest: &str) -> Result<(CharacterClass, &str), RegexSyntaxError> {
    let inside = rest.strip_prefix('[').unwrap_or(rest);
    let (negated, mut left) = match inside.strip_prefix('^') {
        Some(left) => (true, left),
        None => (false, inside),
    };
    let mut items = CharacterClass::default();
    // A closing bracket as the first item is a plain character.
    let mut first = true;
    loop {
        if let Some(after) = left.strip_prefix(']').filter(|_| !first) {
            let text = bracket_class_items(&items.regex_text, negated);
            return Ok((CharacterClass { regex_text: text, ..items }, after));
        }
        first = false;
        let found = match read_posix_class(left)? {
            Some(found) => Some(found),
            None => read_escaped_class(left)?,
        };
        if let Some((item, after)) = found {
            items.push(&item);
            left = after;
            continue;
        }
        left = read_class_range(left, rest, &mut items)?;
    }
}

/// Reads a class that is written with a backslash, such as `\d` or `\pL`. The result is not in
/// brackets.
pub(super) fn read_escaped_class(
    rest: &str,
) -> Result<Option<(CharacterClass, &str)>, RegexSyntaxError> {
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
            return read_unicode_class(rest, chars.as_str(), letter == 'P').map(Some);
        }
        _ => return Ok(None),
    };
    Ok(Some((ascii_character_class(items, negated), chars.as_str())))
}

/// Reads a Unicode class. `rest` begins with the backslash; `name` begins after the letter `p`.
fn read_unicode_class<'p>(
    rest: &'p str,
    name: &'p str,
    negated: bool,
) -> Result<(CharacterClass, &'p str), RegexSyntaxError> {
    let class_range_error = |left: &str| {
        RegexSyntaxError::new("invalid character class range", text_before_suffix(rest, left))
    };
    let (name, left) = match name.strip_prefix('{') {
        Some(braced) => braced.split_once('}').ok_or_else(|| class_range_error(""))?,
        None => {
            let end = name.chars().next().map_or(0, char::len_utf8);
            name.split_at_checked(end).unwrap_or((name, ""))
        }
    };
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, !negated),
        None => (name, negated),
    };
    let items = unicode_class::find_unicode_class(name).ok_or_else(|| class_range_error(left))?;
    Ok((
        CharacterClass {
            regex_text: bracket_class_items_if_negated(&items, negated),
            class_parse_steps: UNICODE_CLASS_STEPS,
        },
        left,
    ))
}

/// Reads a class by name, such as `[:alpha:]` or `[:^alpha:]`.
fn read_posix_class(rest: &str) -> Result<Option<(CharacterClass, &str)>, RegexSyntaxError> {
    let Some((name, left)) = rest.strip_prefix("[:").and_then(|named| named.split_once(":]"))
    else {
        return Ok(None);
    };
    let (bare, negated) = match name.strip_prefix('^') {
        Some(bare) => (bare, true),
        None => (name, false),
    };
    match POSIX.iter().find(|(known, _)| *known == bare) {
        Some((_, items)) => Ok(Some((ascii_character_class(items, negated), left))),
        None => Err(RegexSyntaxError::new(
            "invalid character class range",
            text_before_suffix(rest, left),
        )),
    }
}

/// Reads one character or a range of characters. Returns the remaining pattern.
fn read_class_range<'p>(
    rest: &'p str,
    class: &'p str,
    items: &mut CharacterClass,
) -> Result<&'p str, RegexSyntaxError> {
    let (low, mut left) = read_class_character(rest, class)?;
    let mut high = low;
    // A hyphen before the closing bracket is a plain character.
    if let Some(after) = left.strip_prefix('-')
        && !after.is_empty()
        && !after.starts_with(']')
    {
        (high, left) = read_class_character(after, class)?;
    }
    if high < low {
        let range = text_before_suffix(rest, left);
        return Err(RegexSyntaxError::new("invalid character class range", range));
    }
    // Surrogates are not characters and match nothing.
    for (low, high) in [(low, high.min(0xD7FF)), (low.max(0xE000), high)] {
        if low <= high {
            let text = format!(r"\x{{{low:X}}}-\x{{{high:X}}}");
            items.push(&CharacterClass {
                regex_text: text,
                class_parse_steps: CharacterClassParseSteps {
                    case_sensitive_steps: 0,
                    case_folded_steps: case_folding_steps(low, high),
                },
            });
        }
    }
    Ok(left)
}

fn read_class_character<'p>(
    rest: &'p str,
    class: &'p str,
) -> Result<(u32, &'p str), RegexSyntaxError> {
    let mut chars = rest.chars();
    match chars.next() {
        None => Err(RegexSyntaxError::new("missing closing ]", class)),
        Some('\\') => read_regex_escape(rest),
        Some(c) => Ok((u32::from(c), chars.as_str())),
    }
}

/// Returns an ASCII class or its complement.
fn ascii_character_class(items: &str, negated: bool) -> CharacterClass {
    let folded = if negated { case_folding_steps(0, u32::from(char::MAX)) } else { 0 };
    CharacterClass {
        regex_text: bracket_class_items_if_negated(items, negated),
        class_parse_steps: CharacterClassParseSteps {
            case_sensitive_steps: 0,
            case_folded_steps: folded,
        },
    }
}

/// The steps for looking up the case folding of all characters of a range.
fn case_folding_steps(low: u32, high: u32) -> usize {
    usize::try_from(high.saturating_sub(low)).unwrap_or(usize::MAX) / FOLDED_CHARS_PER_STEP
}

/// Returns class items for use between brackets, or the bracketed complement of them.
fn bracket_class_items_if_negated(items: &str, negated: bool) -> String {
    if negated { bracket_class_items(items, true) } else { items.to_owned() }
}

fn bracket_class_items(items: &str, negated: bool) -> String {
    match (items.is_empty(), negated) {
        (false, false) => format!("[{items}]"),
        (false, true) => format!("[^{items}]"),
        (true, false) => EMPTY_CLASS.to_owned(),
        (true, true) => format!("[^{EMPTY_CLASS}]"),
    }
}
