//! Prints rows in aligned columns.

use std::io::{self, Write};

use super::load_failure::replace_control_characters;

/// Maximum width of a column in characters. A longer cell shifts only its own row.
const CELL_CHARS_MAX: usize = 60;

/// Number of spaces between two columns.
const GAP: usize = 2;

/// A table with a heading. INVARIANT: each row has as many cells as the heading.
#[derive(Debug)]
pub(crate) struct TextTable {
    column_headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    pub(crate) fn new<const N: usize>(heading: [&'static str; N]) -> Self {
        Self::with_column_headings(heading.map(str::to_owned).into())
    }

    /// Makes a table whose columns are known only at run time.
    pub(crate) fn with_column_headings(heading: Vec<String>) -> Self {
        Self { column_headings: heading, rows: Vec::new() }
    }

    pub(crate) fn push<const N: usize>(&mut self, row: [&str; N]) {
        self.push_row(&row);
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn push_row(&mut self, cells: &[&str]) {
        self.rows.push(cells.iter().map(|cell| replace_control_characters(cell)).collect());
    }

    /// Writes heading and rows, with each column as wide as its cells need.
    ///
    /// # Errors
    /// Fails if the table cannot be written.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut widths: Vec<usize> =
            self.column_headings.iter().map(|cell| cell.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count().min(CELL_CHARS_MAX));
            }
        }
        for row in std::iter::once(&self.column_headings).chain(&self.rows) {
            let mut line = String::new();
            for (width, cell) in widths.iter().zip(row) {
                let n_missing = width.saturating_sub(cell.chars().count());
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', n_missing + GAP));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need_to_be() {
        let mut table = TextTable::new(["KIND", "NAME", "X"]);
        table.push(["User", "größe", "1"]);
        table.push(["ServiceAccount", "", ""]);
        let long = "a".repeat(CELL_CHARS_MAX + 1);
        table.push(["U", &long, "2"]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("{:16}{:62}X", "KIND", "NAME"));
        assert_eq!(lines[1], format!("{:16}{:62}1", "User", "größe"));
        assert_eq!(lines[2], "ServiceAccount");
        assert_eq!(lines[3], format!("{:16}{long}  2", "U"));
    }

    #[test]
    fn control_characters_are_replaced() {
        let mut table = TextTable::new(["A"]);
        table.push(["\u{1b}[31m\n"]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "A\n␛[31m␊\n");
    }
}
