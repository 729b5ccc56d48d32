//! Character classes of Go's regular expressions, rewritten as classes of the `regex` crate.

use super::escape::{between, escape};
use super::translate::{NOTHING, RegexSyntaxError};
use super::unicode_class;

/// A class in the notation of the `regex` crate.
#[derive(Debug, Default)]
pub(super) struct CharacterClass {
    pub(super) text: String,
    pub(super) weight: ClassWeight,
}

/// How much work reading a class is beside that for its length, in steps of
/// [`StepBudget`](crate::function::Work).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClassWeight {
    pub(super) plain: usize,
    /// When upper and lower case are the same, each character of the class is looked up.
    pub(super) folded: usize,
}

/// A class by name has up to some hundred ranges.
const NAMED: ClassWeight = ClassWeight { plain: 400, folded: 5_000 };

/// How many characters are looked up in one step.
const FOLDED_PER_STEP: usize = 8;

impl CharacterClass {
    /// Adds items with their weight.
    fn push(&mut self, items: &CharacterClass) {
        self.text.push_str(&items.text);
        self.weight.plain = self.weight.plain.saturating_add(items.weight.plain);
        self.weight.folded = self.weight.folded.saturating_add(items.weight.folded);
    }
}

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
pub(super) fn bracketed(rest: &str) -> Result<(CharacterClass, &str), RegexSyntaxError> {
    let inside = rest.strip_prefix('[').unwrap_or(rest);
    let (negated, mut left) = match inside.strip_prefix('^') {
        Some(left) => (true, left),
        None => (false, inside),
    };
    let mut items = CharacterClass::default();
    // A closing bracket is a plain character in the first place.
    let mut first = true;
    loop {
        if let Some(after) = left.strip_prefix(']').filter(|_| !first) {
            let text = enclose(&items.text, negated);
            return Ok((CharacterClass { text, ..items }, after));
        }
        first = false;
        let found = match posix(left)? {
            Some(found) => Some(found),
            None => escaped(left)?,
        };
        if let Some((item, after)) = found {
            items.push(&item);
            left = after;
            continue;
        }
        left = range(left, rest, &mut items)?;
    }
}

/// Reads a letter after a backslash that stands for a class: `\d`, `\pL` and the like. The items
/// belong in brackets.
pub(super) fn escaped(rest: &str) -> Result<Option<(CharacterClass, &str)>, RegexSyntaxError> {
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
    Ok(Some((by_letter(items, negated), chars.as_str())))
}

/// Reads a Unicode class. `rest` begins with the backslash, `name` after the letter.
fn unicode<'p>(
    rest: &'p str,
    name: &'p str,
    negated: bool,
) -> Result<(CharacterClass, &'p str), RegexSyntaxError> {
    let refuse =
        |left: &str| RegexSyntaxError::new("invalid character class range", between(rest, left));
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
    Ok((CharacterClass { text: item(&items, negated), weight: NAMED }, left))
}

/// Reads a class by name, such as `[:alpha:]` or `[:^alpha:]`.
fn posix(rest: &str) -> Result<Option<(CharacterClass, &str)>, RegexSyntaxError> {
    let Some((name, left)) = rest.strip_prefix("[:").and_then(|named| named.split_once(":]"))
    else {
        return Ok(None);
    };
    let (bare, negated) = match name.strip_prefix('^') {
        Some(bare) => (bare, true),
        None => (name, false),
    };
    match POSIX.iter().find(|(known, _)| *known == bare) {
        Some((_, items)) => Ok(Some((by_letter(items, negated), left))),
        None => Err(RegexSyntaxError::new("invalid character class range", between(rest, left))),
    }
}

/// Reads one character or a range of them; returns what follows.
fn range<'p>(
    rest: &'p str,
    class: &'p str,
    items: &mut CharacterClass,
) -> Result<&'p str, RegexSyntaxError> {
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
        return Err(RegexSyntaxError::new("invalid character class range", range));
    }
    // Surrogates are no characters: they match nothing.
    for (low, high) in [(low, high.min(0xD7FF)), (low.max(0xE000), high)] {
        if low <= high {
            let text = format!(r"\x{{{low:X}}}-\x{{{high:X}}}");
            items.push(&CharacterClass {
                text,
                weight: ClassWeight { plain: 0, folded: width(low, high) },
            });
        }
    }
    Ok(left)
}

fn character<'p>(rest: &'p str, class: &'p str) -> Result<(u32, &'p str), RegexSyntaxError> {
    let mut chars = rest.chars();
    match chars.next() {
        None => Err(RegexSyntaxError::new("missing closing ]", class)),
        Some('\\') => escape(rest),
        Some(c) => Ok((u32::from(c), chars.as_str())),
    }
}

/// A class of ASCII, or the complement of one.
fn by_letter(items: &str, negated: bool) -> CharacterClass {
    let folded = if negated { width(0, u32::from(char::MAX)) } else { 0 };
    CharacterClass { text: item(items, negated), weight: ClassWeight { plain: 0, folded } }
}

/// How many steps it takes to look up all characters of a range.
fn width(low: u32, high: u32) -> usize {
    usize::try_from(high.saturating_sub(low)).unwrap_or(usize::MAX) / FOLDED_PER_STEP
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
