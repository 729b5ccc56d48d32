//! A CSV reader that agrees with RFC 4180 and with Go's `encoding/csv`.

use std::fmt;

/// The position of a CSV syntax error. It does not quote the text, which may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvError {
    /// The line on which the record begins, from 1.
    pub record_start_line_number: usize,
    /// The line of the fault, from 1.
    pub line_number: usize,
    /// The byte of the fault in its line, from 1.
    pub column_number: usize,
    /// The kind of syntax error.
    pub csv_fault: CsvFault,
}

/// The kinds of CSV syntax errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CsvFault {
    /// A quote within a field that does not begin with one.
    #[error("bare \" in non-quoted-field")]
    BareQuote,
    /// A quoted field that goes on after its closing quote, or has none.
    #[error("extraneous or missing \" in quoted-field")]
    Quote,
}

impl fmt::Display for CsvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            record_start_line_number: start_line,
            line_number: line,
            column_number: column,
            csv_fault: fault,
        } = self;
        if start_line != line {
            write!(f, "record on line {start_line}; ")?;
        }
        write!(f, "parse error on line {line}, column {column}: {fault}")
    }
}

impl std::error::Error for CsvError {}

/// An iterator over the records of a text. Records may differ in their number of fields; blank
/// lines are skipped.
pub(crate) struct CsvRecords<'t> {
    unread_text: &'t str,
    /// The number of the last line that was read.
    line_number: usize,
}

/// The unread part of a line.
struct LineRemainder<'t> {
    remaining_text: &'t str,
    /// The byte offset of this part in its line, from 1.
    column_number: usize,
    /// Whether a line feed ends the line, rather than the end of the file.
    ends_with_newline: bool,
}

/// The delimiter after a field.
enum FieldDelimiter {
    Comma,
    LineEnd,
}

/// Parses the records of a text.
pub(crate) fn parse_csv(text: &str) -> CsvRecords<'_> {
    CsvRecords { unread_text: text, line_number: 0 }
}

impl<'t> CsvRecords<'t> {
    fn parse_record(&mut self, mut remainder: LineRemainder<'t>) -> Result<Vec<String>, CsvError> {
        let start_line = self.line_number;
        let mut record = Vec::new();
        loop {
            let (field, after) = if remainder.remaining_text.starts_with('"') {
                self.parse_quoted_field(&mut remainder, start_line)?
            } else {
                remainder.parse_plain_field(start_line)?
            };
            record.push(field);
            match after {
                FieldDelimiter::Comma => {}
                FieldDelimiter::LineEnd => return Ok(record),
            }
        }
    }

    /// Parses a quoted field, which may span several lines.
    fn parse_quoted_field(
        &mut self,
        remainder: &mut LineRemainder<'t>,
        start_line: usize,
    ) -> Result<(String, FieldDelimiter), CsvError> {
        let mut field = String::new();
        remainder.skip_bytes(1);
        loop {
            if let Some((before, _)) = remainder.remaining_text.split_once('"') {
                field.push_str(before);
                remainder.skip_bytes(before.len() + 1);
                match remainder.remaining_text.as_bytes() {
                    [] => return Ok((field, FieldDelimiter::LineEnd)),
                    [b'"', ..] => {
                        field.push('"');
                        remainder.skip_bytes(1);
                    }
                    [b',', ..] => {
                        remainder.skip_bytes(1);
                        return Ok((field, FieldDelimiter::Comma));
                    }
                    [..] => {
                        let column = remainder.column_number - 1;
                        let fault = CsvFault::Quote;
                        return Err(CsvError {
                            record_start_line_number: start_line,
                            line_number: self.line_number,
                            column_number: column,
                            csv_fault: fault,
                        });
                    }
                }
            } else {
                field.push_str(remainder.remaining_text);
                if remainder.ends_with_newline {
                    field.push('\n');
                }
                let (line, column) = (self.line_number, remainder.end_column());
                let fault = CsvFault::Quote;
                *remainder = self.next_line().ok_or(CsvError {
                    record_start_line_number: start_line,
                    line_number: line,
                    column_number: column,
                    csv_fault: fault,
                })?;
            }
        }
    }

    /// The next line without its line feed and the carriage return before it.
    fn next_line(&mut self) -> Option<LineRemainder<'t>> {
        if self.unread_text.is_empty() {
            return None;
        }
        self.line_number += 1;
        let (text, ends_with_newline) = match self.unread_text.split_once('\n') {
            Some((line, rest)) => {
                self.unread_text = rest;
                (line, true)
            }
            None => (std::mem::take(&mut self.unread_text), false),
        };
        Some(LineRemainder {
            remaining_text: text.strip_suffix('\r').unwrap_or(text),
            column_number: 1,
            ends_with_newline,
        })
    }
}

impl Iterator for CsvRecords<'_> {
    type Item = Result<Vec<String>, CsvError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let remainder = self.next_line()?;
            if !remainder.remaining_text.is_empty() {
                return Some(self.parse_record(remainder));
            }
        }
    }
}

impl LineRemainder<'_> {
    fn parse_plain_field(&mut self, line: usize) -> Result<(String, FieldDelimiter), CsvError> {
        let (field, after) = match self.remaining_text.split_once(',') {
            Some((field, _)) => (field, FieldDelimiter::Comma),
            None => (self.remaining_text, FieldDelimiter::LineEnd),
        };
        if let Some(at) = field.find('"') {
            let (column, fault) = (self.column_number + at, CsvFault::BareQuote);
            return Err(CsvError {
                record_start_line_number: line,
                line_number: line,
                column_number: column,
                csv_fault: fault,
            });
        }
        let field = field.to_owned();
        self.skip_bytes(field.len() + 1);
        Ok((field, after))
    }

    fn skip_bytes(&mut self, n_bytes: usize) {
        self.remaining_text = self.remaining_text.get(n_bytes..).unwrap_or_default();
        self.column_number += n_bytes;
    }

    /// The column after the end of the line.
    fn end_column(&self) -> usize {
        self.column_number + self.remaining_text.len() + usize::from(self.ends_with_newline)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Vec<Vec<String>>, CsvError> {
        parse_csv(text).collect()
    }

    #[test]
    fn fields_and_records() {
        for (text, want) in [
            ("", vec![]),
            ("\n\r\n\n", vec![]),
            ("a,b\nc\n", vec![vec!["a", "b"], vec!["c"]]),
            ("a,b\r\nc,", vec![vec!["a", "b"], vec!["c", ""]]),
            (" a , b\r", vec![vec![" a ", " b"]]),
            ("\"a,b\",\"c\"\"d\"\n", vec![vec!["a,b", "c\"d"]]),
            ("\"a\r\nb\",\"\"\nc", vec![vec!["a\nb", ""], vec!["c"]]),
            ("\"\"", vec![vec![""]]),
            ("#a\n", vec![vec!["#a"]]),
        ] {
            let want: Vec<Vec<String>> =
                want.iter().map(|r| r.iter().map(|&f| f.to_owned()).collect()).collect();
            assert_eq!(read(text), Ok(want), "{text:?}");
        }
    }

    /// The messages are those of Go's `encoding/csv`.
    #[test]
    fn faults_say_where_and_not_what() {
        let quote = "extraneous or missing \" in quoted-field";
        for (text, want) in [
            ("tok,\"unterminated,uid\n", format!("parse error on line 1, column 23: {quote}")),
            ("a,\"", format!("parse error on line 1, column 4: {quote}")),
            ("\na,\"b\" ,c", format!("parse error on line 2, column 5: {quote}")),
            ("a\n\"b\nc\"d", format!("record on line 2; parse error on line 3, column 2: {quote}")),
            ("a,b\"c", "parse error on line 1, column 4: bare \" in non-quoted-field".to_owned()),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), want, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a,\"\r\n é]{0,40}") {
            let _ = read(&text);
        }

        #[test]
        fn what_is_quoted_comes_back(
            table in prop::collection::vec(prop::collection::vec("[a,\"\n é]{0,6}", 1..4), 0..4),
        ) {
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let line = |record: &Vec<String>| {
                record.iter().map(quoted).collect::<Vec<_>>().join(",") + "\r\n"
            };
            let text: String = table.iter().map(line).collect();
            prop_assert_eq!(read(&text), Ok(table));
        }
    }
}
