//! Maps positions inside an expression to bytes of the file.

use crate::node::SpannedText;
use crate::source::Span;

/// Returns the bytes of the character at `line` and `column` of an expression, both from 1. If no
/// character of the file corresponds to it, the span is the start of the value. The expression
/// begins at the offset `expression_start` of `text`.
pub fn span_of_expression_position(
    text: &SpannedText,
    expression_start: usize,
    (line, column): (usize, usize),
    value_span: Span,
) -> Span {
    let expression = text.as_str().get(expression_start..).unwrap_or_default();
    let offset = expression_start + offset_of_line_and_column(expression, line, column);
    let start = text.to_file_offset(offset).unwrap_or(value_span.start);
    let width = text.as_str().get(offset..).and_then(|rest| rest.chars().next());
    Span::new(start, start + width.map_or(0, char::len_utf8))
}

/// The offset of a line and column, both from 1; the end of the line if it is shorter.
fn offset_of_line_and_column(expression: &str, line: usize, column: usize) -> usize {
    let start: usize =
        expression.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = expression.get(start..).unwrap_or_default();
    let line = rest.split('\n').next().unwrap_or_default();
    let within = line.char_indices().nth(column.saturating_sub(1));
    start + within.map_or(line.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expression_positions_map_to_file_offsets() {
        let text = "a &&\nä == b";
        for (line, column, want) in [
            (1, 1, 0),
            (1, 3, 2),
            (1, 9, 4),
            (2, 1, 5),
            (2, 2, 7),
            (2, 99, 12),
            (9, 1, 12),
            (0, 0, 0),
        ] {
            assert_eq!(offset_of_line_and_column(text, line, column), want, "{line}:{column}");
        }
    }
}
