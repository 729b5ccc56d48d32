//! Reads the lines of a stream of any length, and skips lines that are too long.

use std::io::{self, BufRead, BufReader, Read};

/// Size of the read buffer.
const BUFFER_BYTES: usize = 64 << 10;

/// A line reader that skips lines of more than `line_bytes_max` bytes.
pub(super) struct BoundedLines<R> {
    buffered_reader: BufReader<R>,
    line_bytes_max: usize,
    line_number: usize,
    line_buffer: Vec<u8>,
}

/// One line without its line feed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BoundedLine<'b> {
    Text {
        /// The line number, counted from 1.
        number: usize,
        bytes: &'b [u8],
    },
    /// The line exceeds the limit; the reader skipped it.
    TooLong { number: usize },
}

impl<R: Read> BoundedLines<R> {
    pub(super) fn new(reader: R, bytes_max: usize) -> Self {
        let reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        Self {
            buffered_reader: reader,
            line_bytes_max: bytes_max,
            line_number: 0,
            line_buffer: Vec::new(),
        }
    }

    /// Reports whether the buffer contains the next line. If not, reading it may block until the
    /// writer sends it.
    pub(super) fn has_buffered_line(&self) -> bool {
        self.buffered_reader.buffer().contains(&b'\n')
    }

    /// Reads the next line; `None` at the end.
    ///
    /// # Errors
    /// Fails if the stream cannot be read.
    pub(super) fn next_line(&mut self) -> io::Result<Option<BoundedLine<'_>>> {
        self.line_buffer.clear();
        // One byte more than the maximum, and the line feed.
        let limit = u64::try_from(self.line_bytes_max).unwrap_or(u64::MAX).saturating_add(2);
        let n_bytes =
            (&mut self.buffered_reader).take(limit).read_until(b'\n', &mut self.line_buffer)?;
        if n_bytes == 0 {
            return Ok(None);
        }
        self.line_number += 1;
        let number = self.line_number;
        let has_end = self.line_buffer.last() == Some(&b'\n');
        if has_end {
            self.line_buffer.pop();
        }
        if self.line_buffer.len() > self.line_bytes_max {
            if !has_end {
                self.skip_line()?;
            }
            return Ok(Some(BoundedLine::TooLong { number }));
        }
        Ok(Some(BoundedLine::Text { number, bytes: &self.line_buffer }))
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let available = match self.buffered_reader.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let (n_bytes, is_end) = match available.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (available.len(), available.is_empty()),
            };
            self.buffered_reader.consume(n_bytes);
            if is_end {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, bytes_max: usize) -> Vec<String> {
        let mut lines = BoundedLines::new(text.as_bytes(), bytes_max);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push(match line {
                BoundedLine::Text { number, bytes } => {
                    format!("{number}: {}", String::from_utf8_lossy(bytes))
                }
                BoundedLine::TooLong { number } => format!("{number} is too long"),
            });
        }
        found
    }

    #[test]
    fn lines_are_numbered() {
        assert_eq!(all("", 9), Vec::<String>::new());
        assert_eq!(all("a\n\nb", 9), ["1: a", "2: ", "3: b"]);
        assert_eq!(all("a\n", 9), ["1: a"]);
    }

    #[test]
    fn a_long_line_is_skipped_and_no_other() {
        assert_eq!(all("abc\nab\n", 3), ["1: abc", "2: ab"]);
        assert_eq!(all("abcd\nab\n", 3), ["1 is too long", "2: ab"]);
        assert_eq!(all("abcde\nab", 3), ["1 is too long", "2: ab"]);
        let long = "x".repeat(3 * BUFFER_BYTES);
        assert_eq!(
            all(&format!("{long}\nab\n{long}"), 3),
            ["1 is too long", "2: ab", "3 is too long"]
        );
    }

    #[test]
    fn a_line_is_ready_when_its_end_is_here() {
        struct Pieces(Vec<&'static [u8]>);
        impl Read for Pieces {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let piece = self.0.pop().unwrap_or_default();
                buffer[..piece.len()].copy_from_slice(piece);
                Ok(piece.len())
            }
        }
        let mut lines = BoundedLines::new(Pieces(vec![b"c\n", b"a\nb\nhalf "]), 99);
        assert!(!lines.has_buffered_line());
        assert!(lines.next_line().unwrap().is_some());
        assert!(lines.has_buffered_line());
        assert!(lines.next_line().unwrap().is_some());
        assert!(!lines.has_buffered_line(), "half a line is none");
        let line = lines.next_line().unwrap();
        assert_eq!(line, Some(BoundedLine::Text { number: 3, bytes: b"half c" }));
    }
}
