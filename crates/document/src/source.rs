//! A source file, and positions in it.

use std::borrow::Cow;

/// The largest configuration file that is read, in bytes.
///
/// Kubernetes has no limit here. Real files are a few kilobytes; a megabyte leaves room for
/// hundreds of webhooks with the full 64 conditions each, and bounds the work on a wrong file.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// The name and the bytes of a file.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The name in messages: a path, or `-` for standard input.
    pub name: &'a str,
    /// The whole content of the file.
    pub file_bytes: &'a [u8],
}

impl<'a> Source<'a> {
    /// The content as text; byte offsets of every [`SourcePosition`] refer to it.
    ///
    /// UTF-16 with a byte order mark is converted. Each byte that is not UTF-8 becomes U+FFFD, as
    /// in Go, so that a message can still show the line.
    pub fn text(&self) -> Cow<'a, str> {
        self.decode_text().0
    }

    /// Reports whether the file is JSON and not YAML, by its first character. Kubernetes compares
    /// bytes, so JSON behind a byte order mark counts as YAML.
    pub fn is_json(&self) -> bool {
        let rest = self.file_bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        rest.trim_start().starts_with('{')
    }

    /// Decodes the bytes to text. The second value is the offset of the first U+FFFD that replaced
    /// something malformed.
    pub fn decode_text(&self) -> (Cow<'a, str>, Option<usize>) {
        let (text, malformed) = match self.file_bytes {
            [0xFF, 0xFE, rest @ ..] => decode_utf16(rest, u16::from_le_bytes),
            [0xFE, 0xFF, rest @ ..] => decode_utf16(rest, u16::from_be_bytes),
            bytes => match std::str::from_utf8(bytes) {
                Ok(text) => return (Cow::Borrowed(text), None),
                Err(_) => decode_utf8(bytes),
            },
        };
        (Cow::Owned(text), malformed)
    }
}

/// Position of a value in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
    /// Line number, counted from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// First byte in the text of the source.
    pub start: usize,
    /// The byte after the last byte of the value.
    pub end_offset: usize,
}

/// A range of bytes in the text of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end_offset: usize,
}

impl Span {
    /// Builds a span; an end before the start counts as the start.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end_offset: end.max(start) }
    }
}

/// Finds lines and columns in one text.
///
/// A line ends with LF, CR LF or CR, as editors count them. A file may be one long line with many
/// faults, so characters are counted from the nearest checkpoint and not from the start of a line.
pub struct LineIndex<'t> {
    text: Cow<'t, str>,
    /// Offset of the first byte of each line. INVARIANT: the first is 0.
    line_starts: Vec<usize>,
    /// Number of characters before each multiple of [`CHECKPOINT_BYTES`].
    char_counts_at_checkpoints: Vec<usize>,
}

const CHECKPOINT_BYTES: usize = 1024;

const BYTE_ORDER_MARK: char = '\u{feff}';

impl<'t> LineIndex<'t> {
    /// Indexes the lines of a text.
    pub fn new(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|&(at, &byte)| {
            byte == b'\n' || (byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'))
        });
        let line_starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        let mut n_chars = 0;
        let mut char_checkpoints = vec![0];
        for chunk in bytes.chunks(CHECKPOINT_BYTES) {
            n_chars += count_chars(chunk);
            char_checkpoints.push(n_chars);
        }
        Self {
            text: Cow::Borrowed(text),
            line_starts,
            char_counts_at_checkpoints: char_checkpoints,
        }
    }

    /// Returns the text that is indexed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Copies the text, so that the index can outlive the file's bytes.
    pub fn into_owned(self) -> LineIndex<'static> {
        let Self { text, line_starts, char_counts_at_checkpoints: char_checkpoints } = self;
        LineIndex {
            text: Cow::Owned(text.into_owned()),
            line_starts,
            char_counts_at_checkpoints: char_checkpoints,
        }
    }

    /// Finds the line and the column of a span.
    pub fn position_of_span(&self, span: Span) -> SourcePosition {
        let start = self.char_boundary_before(span.start);
        let end = self.char_boundary_before(span.end_offset).max(start);
        let line = self.line_starts.partition_point(|&first| first <= start);
        let first = self.line_starts.get(line.wrapping_sub(1)).copied().unwrap_or(0);
        let mut column = self.count_chars_before(start) - self.count_chars_before(first) + 1;
        if line == 1 && column > 1 && self.text.starts_with(BYTE_ORDER_MARK) {
            column -= 1;
        }
        SourcePosition { line, column, start, end_offset: end }
    }

    fn count_chars_before(&self, offset: usize) -> usize {
        let checkpoint = offset / CHECKPOINT_BYTES;
        let bytes = self.text.as_bytes().get(checkpoint * CHECKPOINT_BYTES..offset);
        self.char_counts_at_checkpoints.get(checkpoint).copied().unwrap_or_default()
            + bytes.map_or(0, count_chars)
    }

    /// Returns the nearest character boundary at or before `offset`.
    fn char_boundary_before(&self, offset: usize) -> usize {
        let mut at = offset.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

/// Counts the characters that begin in these bytes.
fn count_chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

fn decode_utf8(bytes: &[u8]) -> (String, Option<usize>) {
    let mut text = String::with_capacity(bytes.len());
    let mut malformed = None;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            malformed.get_or_insert(text.len());
        }
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    (text, malformed)
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> (String, Option<usize>) {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    let mut malformed = None;
    for c in char::decode_utf16(pairs.iter().map(|&pair| unit(pair))) {
        text.push(c.unwrap_or_else(|_| {
            malformed.get_or_insert(text.len());
            char::REPLACEMENT_CHARACTER
        }));
    }
    if !rest.is_empty() {
        malformed.get_or_insert(text.len());
        text.push(char::REPLACEMENT_CHARACTER);
    }
    (text, malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters() {
        let lines = LineIndex::new("a\r\nbä\rc\n");
        let at = |offset| {
            let position = lines.position_of_span(Span::new(offset, offset));
            (position.line, position.column)
        };
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(3), (2, 1));
        assert_eq!(at(6), (2, 3));
        assert_eq!(at(7), (3, 1));
        assert_eq!(at(9), (4, 1));
        assert_eq!(at(99), (4, 1), "past the end is the end");
        assert_eq!(at(5), (2, 2), "inside a character is its start");
    }

    #[test]
    fn a_byte_order_mark_has_no_column() {
        let lines = LineIndex::new("\u{feff}ab\nc");
        let columns: Vec<_> = [0, 3, 4, 6]
            .iter()
            .map(|&at| lines.position_of_span(Span::new(at, at)).column)
            .collect();
        assert_eq!(columns, [1, 1, 2, 1]);
    }

    #[test]
    fn columns_of_long_lines() {
        let text = "ä".repeat(3000);
        let lines = LineIndex::new(&text);
        for column in [1, 511, 512, 513, 514, 1024, 1025, 2999, 3001] {
            let at = (column - 1) * 2;
            assert_eq!(lines.position_of_span(Span::new(at, at)).column, column);
        }
    }

    #[test]
    fn json_is_detected_from_the_first_character() {
        let is_json = |bytes| Source { name: "-", file_bytes: bytes }.is_json();
        assert!(is_json(b" \t\r\n{"));
        assert!(is_json("\u{2028}\u{a0}{".as_bytes()));
        assert!(is_json(b"{\xff"));
        for bytes in [&b""[..], b"[{", b"# {", b"\xff\xfe{\0", b"\xff{"] {
            assert!(!is_json(bytes), "{bytes:?}");
        }
        assert!(!is_json("\u{feff}{".as_bytes()));
    }

    #[test]
    fn other_encodings_become_text() {
        let decode = |bytes| {
            let (text, malformed) = Source { name: "-", file_bytes: bytes }.decode_text();
            (text.into_owned(), malformed)
        };
        assert_eq!(decode(b"\xff\xfea\0\xe4\0"), ("aä".into(), None));
        assert_eq!(decode(b"\xfe\xff\0a\xd8\x3d\xde\x00x"), ("a😀\u{fffd}".into(), Some(5)));
        assert_eq!(decode(b"\xfe\xff\xdc\0\0a"), ("\u{fffd}a".into(), Some(0)));
        assert_eq!(decode(b"a\xe4\xffb"), ("a\u{fffd}\u{fffd}b".into(), Some(1)));
        assert_eq!(decode("a\u{fffd}".as_bytes()), ("a\u{fffd}".into(), None));
    }
}
