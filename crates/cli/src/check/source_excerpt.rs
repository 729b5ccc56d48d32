//! Extracts the lines of a file around some positions, up to a size limit.

use std::ops::Range;

use document::SourcePosition;

/// Maximum size of an excerpt in bytes. The renderer cuts lines to the width of a page; this limit bounds
/// its work on a line of a megabyte.
const EXCERPT_BYTES_MAX: usize = 16_384;

/// Consecutive lines of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceExcerpt {
    /// The lines, each with a line feed, without characters that control a terminal.
    pub(super) excerpt_text: String,
    /// The number of the first line.
    pub(super) first_line_number: usize,
    /// Each position as a range of the text, within one line.
    pub(super) highlight_ranges: Vec<Range<usize>>,
}

/// Returns the range of each line without its end (LF, CR LF or CR) and without a byte order mark.
pub(super) fn line_ranges(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut lines = Vec::new();
    let mut start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        let after = match byte {
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => at + 2,
            b'\r' | b'\n' => at + 1,
            _ => {
                at += 1;
                continue;
            }
        };
        lines.push(start..at);
        (start, at) = (after, after);
    }
    lines.push(start..bytes.len());
    lines
}

/// Returns the lines from the first to the last of `positions`, or `None` if they exceed the limit.
pub(super) fn extract_excerpt(
    text: &str,
    lines: &[Range<usize>],
    positions: &[SourcePosition],
) -> Option<SourceExcerpt> {
    let numbers = positions.iter().map(|position| position.line);
    let first_line = numbers.clone().min()?;
    let last_line = numbers.max()?;
    let shown = lines.get(first_line.checked_sub(1)?..last_line)?;
    if shown.iter().map(Range::len).sum::<usize>() > EXCERPT_BYTES_MAX {
        return None;
    }
    // The start of each line in the excerpt.
    let mut starts = Vec::with_capacity(shown.len());
    let mut excerpt = String::new();
    for line in shown {
        starts.push(excerpt.len());
        excerpt.extend(text.get(line.clone())?.chars().map(replace_c1_control));
        excerpt.push('\n');
    }
    let span = |position: &SourcePosition| {
        let idx = position.line - first_line;
        let (line, start) = (shown.get(idx)?, starts.get(idx)?);
        let translate = |at: usize| {
            let at = at.clamp(line.start, line.end) - line.start + start;
            // The renderer does not accept a position inside of a character.
            excerpt.floor_char_boundary(at)
        };
        Some(translate(position.start)..translate(position.end_offset))
    };
    let spans = positions.iter().map(span).collect::<Option<_>>()?;
    Some(SourceExcerpt {
        excerpt_text: excerpt,
        first_line_number: first_line,
        highlight_ranges: spans,
    })
}

/// Replaces a control character from U+0080 to U+009F, which the renderer does not replace, with `·`,
/// which is also two bytes in UTF-8.
fn replace_c1_control(c: char) -> char {
    if matches!(c, '\u{80}'..='\u{9f}') { '·' } else { c }
}

/// Returns a text as one line for a terminal, with visible replacements for control characters and line
/// feeds.
pub(crate) fn replace_control_characters(text: &str) -> String {
    let text = annotate_snippets::normalize_untrusted_str(text);
    text.chars().map(|c| if c == '\n' { '␊' } else { replace_c1_control(c) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(line: usize, start: usize, end: usize) -> SourcePosition {
        SourcePosition { line, column: 1, start, end_offset: end }
    }

    fn excerpt_of(text: &str, positions: &[SourcePosition]) -> Option<SourceExcerpt> {
        extract_excerpt(text, &line_ranges(text), positions)
    }

    #[test]
    fn lines_end_as_editors_end_them() {
        assert_eq!(line_ranges("a\r\nb\rc\n"), [0..1, 3..4, 5..6, 7..7]);
        assert_eq!(line_ranges("\n\r"), [0..0, 1..1, 2..2]);
        assert_eq!(line_ranges(""), [0..0; 1]);
        assert_eq!(line_ranges("\u{feff}a\n"), [3..4, 5..5]);
    }

    #[test]
    fn places_are_translated_line_by_line() {
        let positions = [position(2, 6, 8), position(3, 9, 20)];
        let found = excerpt_of("x\r\nab cd\rsecond\nlast", &positions).unwrap();
        assert_eq!(found.excerpt_text, "ab cd\nsecond\n");
        assert_eq!(found.first_line_number, 2);
        // The second position ends with its line, although it reaches into the next one.
        assert_eq!(found.highlight_ranges, [3..5, 6..12]);
    }

    #[test]
    fn places_inside_of_a_character_are_at_its_start() {
        assert_eq!(
            excerpt_of("a\u{fffd}b", &[position(1, 2, 3)]).unwrap().highlight_ranges,
            [1..1; 1]
        );
        assert_eq!(
            excerpt_of("a\u{fffd}b", &[position(1, 3, 5)]).unwrap().highlight_ranges,
            [1..5; 1]
        );
    }

    #[test]
    fn an_excerpt_has_a_size_limit() {
        for (n, is_shown) in [(EXCERPT_BYTES_MAX, true), (EXCERPT_BYTES_MAX + 1, false)] {
            let long = "a".repeat(n);
            assert_eq!(excerpt_of(&long, &[position(1, 9, 10)]).is_some(), is_shown);
            let (first, second) = long.split_at(n / 2);
            let text = format!("{first}\n{second}\n");
            let positions = [position(1, 0, 1), position(2, n / 2 + 1, n / 2 + 2)];
            assert_eq!(excerpt_of(&text, &positions).is_some(), is_shown);
            assert!(excerpt_of(&text, &positions[..1]).is_some());
        }
    }

    #[test]
    fn places_outside_of_the_text_have_no_excerpt() {
        assert_eq!(excerpt_of("a", &[position(7, 0, 1)]), None);
        assert_eq!(excerpt_of("a", &[position(0, 0, 1)]), None);
        assert_eq!(excerpt_of("a", &[]), None);
        assert_eq!(excerpt_of("a", &[position(1, 99, 3)]).unwrap().highlight_ranges[0], 1..1);
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(excerpt_of("\u{9b}31m", &[position(1, 0, 0)]).unwrap().excerpt_text, "·31m\n");
        assert_eq!(replace_control_characters("a\u{1b}[31m\u{9b}b\nc"), "a␛[31m·b␊c");
    }
}
