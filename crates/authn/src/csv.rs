//! Records of comma-separated fields, as RFC 4180 and Go read them.

use std::fmt;

/// Where a text is not CSV. Says nothing of what stands there, which may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvError {
    /// The line on which the record begins, from 1.
    pub record_line: usize,
    /// The line of the fault, from 1.
    pub line: usize,
    /// The byte of the fault in its line, from 1.
    pub column: usize,
    /// What is wrong.
    pub fault: CsvFault,
}

/// What can be wrong with a field.
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
        let Self { record_line, line, column, fault } = self;
        if record_line != line {
            write!(f, "record on line {record_line}; ")?;
        }
        write!(f, "parse error on line {line}, column {column}: {fault}")
    }
}

impl std::error::Error for CsvError {}

/// The records of a text, which may differ in their numbers of fields. Blank lines are none.
pub(crate) struct Records<'t> {
    rest: &'t str,
    /// The number of the line read last.
    line: usize,
}

/// What is left of a line.
struct Place<'t> {
    text: &'t str,
    /// The byte at which it begins, from 1.
    column: usize,
    /// Whether a line feed ends it, rather than the end of the file.
    has_newline: bool,
}

/// What follows a field.
enum After {
    Field,
    Nothing,
}

/// Reads the records of a text.
pub(crate) fn records(text: &str) -> Records<'_> {
    Records { rest: text, line: 0 }
}

impl<'t> Records<'t> {
    fn record(&mut self, mut place: Place<'t>) -> Result<Vec<String>, CsvError> {
        let record_line = self.line;
        let mut record = Vec::new();
        loop {
            let (field, after) = if place.text.starts_with('"') {
                self.quoted_field(&mut place, record_line)?
            } else {
                place.plain_field(record_line)?
            };
            record.push(field);
            match after {
                After::Field => {}
                After::Nothing => return Ok(record),
            }
        }
    }

    /// Reads a field in quotes, which may reach over several lines.
    fn quoted_field(
        &mut self,
        place: &mut Place<'t>,
        record_line: usize,
    ) -> Result<(String, After), CsvError> {
        let mut field = String::new();
        place.skip(1);
        loop {
            if let Some((before, _)) = place.text.split_once('"') {
                field.push_str(before);
                place.skip(before.len() + 1);
                match place.text.as_bytes() {
                    [] => return Ok((field, After::Nothing)),
                    [b'"', ..] => {
                        field.push('"');
                        place.skip(1);
                    }
                    [b',', ..] => {
                        place.skip(1);
                        return Ok((field, After::Field));
                    }
                    [..] => {
                        let column = place.column - 1;
                        let fault = CsvFault::Quote;
                        return Err(CsvError { record_line, line: self.line, column, fault });
                    }
                }
            } else {
                field.push_str(place.text);
                if place.has_newline {
                    field.push('\n');
                }
                let (line, column) = (self.line, place.end());
                let fault = CsvFault::Quote;
                *place = self.next_line().ok_or(CsvError { record_line, line, column, fault })?;
            }
        }
    }

    /// The next line without what ends it, which is a line feed, alone or after a carriage return.
    fn next_line(&mut self) -> Option<Place<'t>> {
        if self.rest.is_empty() {
            return None;
        }
        self.line += 1;
        let (text, has_newline) = match self.rest.split_once('\n') {
            Some((line, rest)) => {
                self.rest = rest;
                (line, true)
            }
            None => (std::mem::take(&mut self.rest), false),
        };
        Some(Place { text: text.strip_suffix('\r').unwrap_or(text), column: 1, has_newline })
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Vec<String>, CsvError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let place = self.next_line()?;
            if !place.text.is_empty() {
                return Some(self.record(place));
            }
        }
    }
}

impl Place<'_> {
    fn plain_field(&mut self, line: usize) -> Result<(String, After), CsvError> {
        let (field, after) = match self.text.split_once(',') {
            Some((field, _)) => (field, After::Field),
            None => (self.text, After::Nothing),
        };
        if let Some(at) = field.find('"') {
            let (column, fault) = (self.column + at, CsvFault::BareQuote);
            return Err(CsvError { record_line: line, line, column, fault });
        }
        let field = field.to_owned();
        self.skip(field.len() + 1);
        Ok((field, after))
    }

    fn skip(&mut self, n_bytes: usize) {
        self.text = self.text.get(n_bytes..).unwrap_or_default();
        self.column += n_bytes;
    }

    /// The byte after the line.
    fn end(&self) -> usize {
        self.column + self.text.len() + usize::from(self.has_newline)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Vec<Vec<String>>, String> {
        records(text).map(|record| record.map_err(|error| error.to_string())).collect()
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
            assert_eq!(read(text), Err(want), "{text:?}");
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
