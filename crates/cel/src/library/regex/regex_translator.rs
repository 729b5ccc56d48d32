//! Translates Go's regular expression syntax to that of the `regex` crate.
//!
//! Both descend from RE2, match in linear time and prefer the leftmost alternative, so only the
//! notation differs. The translator escapes literals, applies flags to each atom, and makes all
//! groups non-capturing. These notations differ:
//!
//! | notation                     | Go                          | `regex` crate              |
//! |------------------------------|-----------------------------|----------------------------|
//! | `\d` `\w` `\s` `\b` `[[:x:]]`| ASCII                       | Unicode                    |
//! | `\s`                         | without `\v`                | with `\v`                  |
//! | `\z`                         | end of the text             | the same                   |
//! | `\Q...\E`                    | literal text                | an error                   |
//! | `\C`                         | an error                    | an error                   |
//! | `\101`                       | octal                       | an error                   |
//! | `\x{D800}`                   | allowed, matches nothing    | an error                   |
//! | `\pN`, `\p{^Han}`            | categories and scripts      | many more properties       |
//! | `a{,5}`, `a{01}`, `{`        | literal text                | a repetition or an error   |
//! | `a**`, `a{2}{3}`             | an error                    | nested repetitions         |
//! | `a{1001}`, `(a{100}){11}`    | an error                    | allowed                    |
//! | `a(?i)*`                     | repeats `a`                 | an error                   |
//! | `[a[b]`, `[a&&b]`, `[a~~b]`  | plain characters            | set operations             |
//! | `[[:foo:]]`, `[a-\d]`        | an error                    | other texts, other rules   |
//! | `(?x)`, `(?u)`, `(?R)`       | an error                    | flags                      |
//! | `(?P<n>a)(?P<n>b)`           | allowed                     | an error                   |

use std::fmt;

use super::character_class::{self, CharacterClass};
use super::regex_escape::{read_regex_escape, text_before_suffix};
use super::regex_piece::{RegexPiece, RegexPieceKind};
use super::regex_repetition::{COPIES_MAX, RepeatOperator, read_counted_repetition};

/// The greatest height of the syntax tree of a pattern. Go allows 1000. The `regex` crate walks the
/// tree recursively, and this height fits into the smallest stack of our threads.
pub(super) const HEIGHT_MAX: usize = 200;

/// The nesting limit for the `regex` crate. Each level of a tree of [`HEIGHT_MAX`] counts up to
/// three times: an operator, its group, and the concatenation in the group.
pub(super) const NESTING_MAX: u32 = 3 * HEIGHT_MAX as u32 + 10;

/// The maximum number of groups that may be open at once. Groups that add no height count too,
/// because each group copies its content when it is closed.
pub(super) const OPEN_GROUPS_MAX: usize = 1000;

/// The maximum number of instructions of an expression, by Go's estimate.
const INSTRUCTIONS_MAX: u64 = (128 << 20) / 40;

/// A class that contains no character.
pub(super) const EMPTY_CLASS: &str = r"[^\x{0}-\x{10FFFF}]";

/// A syntax error in a regular expression, with Go's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegexSyntaxError {
    go_error_text: &'static str,
    faulty_fragment: String,
}

impl RegexSyntaxError {
    pub(super) fn new(problem: &'static str, faulty_fragment: &str) -> Self {
        Self { go_error_text: problem, faulty_fragment: faulty_fragment.to_owned() }
    }

    /// The error for a pattern that is too large when compiled.
    pub(super) fn regex_too_large_error(pattern: &str) -> Self {
        Self::new("expression too large", pattern)
    }

    /// The error for a pattern that nests too deeply.
    pub(super) fn regex_too_deep_error(pattern: &str) -> Self {
        Self::new("expression nests too deeply", pattern)
    }
}

impl fmt::Display for RegexSyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error parsing regexp: {}: `{}`", self.go_error_text, self.faulty_fragment)
    }
}

/// An expression in the notation of the `regex` crate.
#[derive(Debug)]
pub(super) struct TranslatedRegex {
    pub(super) regex_text: String,
    /// The steps for parsing its character classes, in addition to those for its length.
    pub(super) class_parse_steps: usize,
}

impl TranslatedRegex {
    /// Reports whether a search may read an unbounded amount of text after the match.
    pub(super) fn has_unbounded_lookahead(&self) -> bool {
        self.regex_text.contains(['*', '+']) || self.regex_text.contains(",}")
    }
}

/// Translates a pattern. The errors are those of Go.
pub(super) fn translate_regex(pattern: &str) -> Result<TranslatedRegex, RegexSyntaxError> {
    let mut parser = RegexTranslator {
        pattern,
        regex_flags: RegexFlags::default(),
        outer_groups: Vec::new(),
        class_parse_steps: 0,
    };
    let mut top = OpenRegexGroup::new(RegexFlags::default(), false);
    parser.translate_pattern(&mut top)?;
    if !parser.outer_groups.is_empty() {
        return Err(RegexSyntaxError::new("missing closing )", pattern));
    }
    let text = parser.check_regex_piece_limits(top.into_regex_piece())?.regex_text;
    Ok(TranslatedRegex { regex_text: text, class_parse_steps: parser.class_parse_steps })
}

/// The flags that `(?i)` and the like set.
#[derive(Debug, Clone, Copy, Default)]
struct RegexFlags {
    is_case_insensitive: bool,
    is_multi_line: bool,
    does_dot_match_newline: bool,
    is_greediness_swapped: bool,
}

/// An open group, or the whole expression.
#[derive(Debug)]
struct OpenRegexGroup {
    regex_alternatives: Vec<RegexPiece>,
    items: Vec<RegexPiece>,
    /// The flags that apply after the group.
    flags_after_group: RegexFlags,
    is_capturing_group: bool,
}

#[derive(Debug)]
struct RegexTranslator<'p> {
    pattern: &'p str,
    regex_flags: RegexFlags,
    /// The groups around the current one.
    outer_groups: Vec<OpenRegexGroup>,
    /// The steps for parsing all classes.
    class_parse_steps: usize,
}

impl OpenRegexGroup {
    fn new(flags_after_group: RegexFlags, is_capturing: bool) -> Self {
        Self {
            regex_alternatives: Vec::new(),
            items: Vec::new(),
            flags_after_group,
            is_capturing_group: is_capturing,
        }
    }

    /// Ends the current alternative of the group at a `|`.
    fn end_regex_alternative(&mut self) {
        let items = std::mem::take(&mut self.items);
        self.regex_alternatives.push(RegexPiece::join_regex_pieces(
            items,
            RegexPieceKind::Concatenation,
            "",
        ));
    }

    /// The alternatives as one piece.
    fn into_regex_piece(mut self) -> RegexPiece {
        self.end_regex_alternative();
        let piece = RegexPiece::join_regex_pieces(
            self.regex_alternatives,
            RegexPieceKind::Alternation,
            "|",
        );
        if !self.is_capturing_group {
            return piece;
        }
        let (height, n_atom_copies) = (piece.regex_tree_height + 1, piece.n_atom_copies);
        let size = piece.size.saturating_add(2);
        RegexPiece {
            regex_text: piece.into_grouped_regex_text(),
            kind: RegexPieceKind::Atom,
            regex_tree_height: height,
            n_atom_copies,
            size,
        }
    }
}

impl<'p> RegexTranslator<'p> {
    /// Translates the pattern into `current`, which is always the innermost open group.
    fn translate_pattern(&mut self, current: &mut OpenRegexGroup) -> Result<(), RegexSyntaxError> {
        let mut rest = self.pattern;
        // The part of the pattern that begins with the repetition operator before `rest`.
        let mut previous: Option<&'p str> = None;
        while let Some(c) = rest.chars().next() {
            let after = rest.get(c.len_utf8()..).unwrap_or_default();
            let mut operator = None;
            match c {
                '(' => rest = self.open_regex_group(current, rest)?,
                ')' => {
                    self.close_regex_group(current)?;
                    rest = after;
                }
                '|' => {
                    current.end_regex_alternative();
                    rest = after;
                }
                '[' => {
                    let (class, left) = character_class::read_bracketed_class(rest)?;
                    current.items.push(self.translate_character_class(class));
                    rest = left;
                }
                '*' | '+' | '?' => {
                    operator = Some(rest);
                    let symbol = RepeatOperator::Symbol(c);
                    rest = self.apply_regex_repetition(current, symbol, rest, after, previous)?;
                }
                '{' => match read_counted_repetition(rest) {
                    Some((min, max, left)) => {
                        operator = Some(rest);
                        let count =
                            RepeatOperator::from_repeat_bounds(min, max).ok_or_else(|| {
                                RegexSyntaxError::new(
                                    "invalid repeat count",
                                    text_before_suffix(rest, left),
                                )
                            })?;
                        rest = self.apply_regex_repetition(current, count, rest, left, previous)?;
                    }
                    None => {
                        current.items.push(self.translate_regex_literal(u32::from(c)));
                        rest = after;
                    }
                },
                '\\' => rest = self.translate_regex_escape(current, rest)?,
                '^' | '$' | '.' => {
                    current.items.push(self.translate_anchor_or_dot(c));
                    rest = after;
                }
                _ => {
                    current.items.push(self.translate_regex_literal(u32::from(c)));
                    rest = after;
                }
            }
            previous = operator;
        }
        Ok(())
    }

    fn translate_anchor_or_dot(&self, c: char) -> RegexPiece {
        RegexPiece::new_regex_atom(match (c, self.regex_flags) {
            ('^', RegexFlags { is_multi_line: true, .. }) => "(?m:^)",
            ('^', _) => r"\A",
            ('$', RegexFlags { is_multi_line: true, .. }) => "(?m:$)",
            ('$', _) => r"\z",
            (_, RegexFlags { does_dot_match_newline: true, .. }) => "(?s:.)",
            _ => ".",
        })
    }

    fn translate_regex_literal(&self, code: u32) -> RegexPiece {
        let Some(c) = char::from_u32(code) else { return RegexPiece::new_regex_atom(EMPTY_CLASS) };
        let text = if c.is_ascii_alphanumeric() || !c.is_ascii() {
            c.to_string()
        } else {
            format!(r"\x{code:02X}")
        };
        let has_case = c.is_ascii_alphabetic() || !c.is_ascii();
        RegexPiece::new_regex_atom(if self.regex_flags.is_case_insensitive && has_case {
            format!("(?i:{text})")
        } else {
            text
        })
    }

    fn translate_character_class(&mut self, class: CharacterClass) -> RegexPiece {
        let CharacterClass { regex_text: text, class_parse_steps: weight } = class;
        if self.regex_flags.is_case_insensitive {
            self.class_parse_steps =
                self.class_parse_steps.saturating_add(weight.case_folded_steps);
            RegexPiece::new_regex_atom(format!("(?i:{text})"))
        } else {
            self.class_parse_steps =
                self.class_parse_steps.saturating_add(weight.case_sensitive_steps);
            RegexPiece::new_regex_atom(text)
        }
    }

    /// Reads `(` and the name or flags of the group. Returns the remaining pattern.
    fn open_regex_group(
        &mut self,
        current: &mut OpenRegexGroup,
        rest: &'p str,
    ) -> Result<&'p str, RegexSyntaxError> {
        let Some(perl) = rest.strip_prefix("(?") else {
            self.push_regex_group(current, true)?;
            return Ok(rest.get(1..).unwrap_or_default());
        };
        // `(?<` is a name only if at least one character follows.
        let named = perl.strip_prefix("P<").or_else(|| perl.strip_prefix('<'));
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let Some((name, left)) = named.split_once('>') else {
                return Err(RegexSyntaxError::new("invalid named capture", rest));
            };
            let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_word) {
                return Err(RegexSyntaxError::new(
                    "invalid named capture",
                    text_before_suffix(rest, left),
                ));
            }
            self.push_regex_group(current, true)?;
            return Ok(left);
        }
        self.read_perl_flags(current, rest, perl)
    }

    /// Reads flags up to `:`, which opens a group, or `)`, which sets them for the current one.
    fn read_perl_flags(
        &mut self,
        current: &mut OpenRegexGroup,
        rest: &'p str,
        perl: &'p str,
    ) -> Result<&'p str, RegexSyntaxError> {
        let mut flags = self.regex_flags;
        let mut value = true;
        let mut saw_flag = false;
        let mut chars = perl.chars();
        while let Some(c) = chars.next() {
            match c {
                'i' => flags.is_case_insensitive = value,
                'm' => flags.is_multi_line = value,
                's' => flags.does_dot_match_newline = value,
                'U' => flags.is_greediness_swapped = value,
                '-' if value => {
                    value = false;
                    saw_flag = false;
                    continue;
                }
                ':' | ')' if value || saw_flag => {
                    if c == ':' {
                        self.push_regex_group(current, false)?;
                    }
                    self.regex_flags = flags;
                    return Ok(chars.as_str());
                }
                _ => break,
            }
            saw_flag = true;
        }
        Err(RegexSyntaxError::new(
            "invalid or unsupported Perl syntax",
            text_before_suffix(rest, chars.as_str()),
        ))
    }

    fn push_regex_group(
        &mut self,
        current: &mut OpenRegexGroup,
        is_capturing: bool,
    ) -> Result<(), RegexSyntaxError> {
        if self.outer_groups.len() >= OPEN_GROUPS_MAX {
            return Err(RegexSyntaxError::regex_too_deep_error(self.pattern));
        }
        let inner = OpenRegexGroup::new(self.regex_flags, is_capturing);
        self.outer_groups.push(std::mem::replace(current, inner));
        Ok(())
    }

    fn close_regex_group(&mut self, current: &mut OpenRegexGroup) -> Result<(), RegexSyntaxError> {
        let Some(parent) = self.outer_groups.pop() else {
            return Err(RegexSyntaxError::new("unexpected )", self.pattern));
        };
        let group = std::mem::replace(current, parent);
        self.regex_flags = group.flags_after_group;
        current.items.push(self.check_regex_piece_limits(group.into_regex_piece())?);
        Ok(())
    }

    /// Replaces the last item by its repetition. `rest` begins with the operator; `after` begins
    /// after it. Returns the remaining pattern, after the `?` of a lazy repetition.
    fn apply_regex_repetition(
        &self,
        current: &mut OpenRegexGroup,
        repeat: RepeatOperator,
        rest: &'p str,
        after: &'p str,
        previous: Option<&'p str>,
    ) -> Result<&'p str, RegexSyntaxError> {
        let (after, other_greed) = match after.strip_prefix('?') {
            Some(left) => (left, true),
            None => (after, false),
        };
        if let Some(previous) = previous {
            let both = text_before_suffix(previous, after);
            return Err(RegexSyntaxError::new("invalid nested repetition operator", both));
        }
        let operator = text_before_suffix(rest, after);
        let Some(item) = current.items.pop() else {
            return Err(RegexSyntaxError::new("missing argument to repetition operator", operator));
        };
        let (height, size) = (item.regex_tree_height + 1, repeat.size(item.size));
        let n_atom_copies = repeat.multiply_atom_copies(item.n_atom_copies);
        let lazy = if other_greed != self.regex_flags.is_greediness_swapped { "?" } else { "" };
        let text = format!("{}{repeat}{lazy}", item.into_grouped_regex_text());
        let piece = RegexPiece {
            regex_text: text,
            kind: RegexPieceKind::Repetition,
            regex_tree_height: height,
            n_atom_copies,
            size,
        };
        current.items.push(self.check_regex_piece_limits(piece)?);
        if n_atom_copies > COPIES_MAX {
            return Err(RegexSyntaxError::new("invalid repeat count", operator));
        }
        Ok(after)
    }

    /// Reads an escape sequence outside of brackets.
    fn translate_regex_escape(
        &mut self,
        current: &mut OpenRegexGroup,
        rest: &'p str,
    ) -> Result<&'p str, RegexSyntaxError> {
        let mut chars = rest.chars();
        chars.next();
        let assertion = match chars.next() {
            Some('A') => Some(r"\A"),
            Some('b') => Some(r"(?-u:\b)"),
            Some('B') => Some(r"(?-u:\B)"),
            Some('z') => Some(r"\z"),
            Some('C') => {
                return Err(RegexSyntaxError::new("invalid escape sequence", r"\C"));
            }
            Some('Q') => {
                let quoted = chars.as_str();
                let (quoted, left) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
                current
                    .items
                    .extend(quoted.chars().map(|c| self.translate_regex_literal(u32::from(c))));
                return Ok(left);
            }
            _ => None,
        };
        if let Some(text) = assertion {
            current.items.push(RegexPiece::new_regex_atom(text));
            return Ok(chars.as_str());
        }
        if let Some((items, left)) = character_class::read_escaped_class(rest)? {
            let text = format!("[{}]", items.regex_text);
            current
                .items
                .push(self.translate_character_class(CharacterClass { regex_text: text, ..items }));
            return Ok(left);
        }
        let (code, left) = read_regex_escape(rest)?;
        current.items.push(self.translate_regex_literal(code));
        Ok(left)
    }

    fn check_regex_piece_limits(&self, piece: RegexPiece) -> Result<RegexPiece, RegexSyntaxError> {
        if piece.size > INSTRUCTIONS_MAX {
            return Err(RegexSyntaxError::regex_too_large_error(self.pattern));
        }
        if piece.regex_tree_height > HEIGHT_MAX {
            return Err(RegexSyntaxError::regex_too_deep_error(self.pattern));
        }
        Ok(piece)
    }
}
