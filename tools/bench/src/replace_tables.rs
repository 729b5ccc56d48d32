//! Replaces the tables of a benchmark in a document.

/// Replaces the text between the begin and end lines of a benchmark.
///
/// # Errors
/// One of the lines is missing.
pub(crate) fn replace_tables(document: &str, bench: &str, text: &str) -> anyhow::Result<String> {
    let begin = format!("<!-- begin: cargo xtask bench {bench} -->");
    let end = format!("<!-- end: cargo xtask bench {bench} -->");
    let parts = document
        .split_once(&begin)
        .and_then(|(before, rest)| rest.split_once(&end).map(|(_, after)| (before, after)));
    match parts {
        Some((before, after)) => {
            Ok(format!("{before}{begin}\n\n{}\n\n{end}{after}", text.trim_end()))
        }
        None => anyhow::bail!("the document lacks `{begin}` before `{end}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_lines_changes() {
        let (begin, end) =
            ("<!-- begin: cargo xtask bench x -->", "<!-- end: cargo xtask bench x -->");
        let document = format!("a\n{begin}\nold\n{end}\nb\n");
        let new = replace_tables(&document, "x", "new\n").unwrap();
        assert_eq!(new, format!("a\n{begin}\n\nnew\n\n{end}\nb\n"));
        assert_eq!(replace_tables(&new, "x", "new").unwrap(), new);
        assert!(replace_tables(&new, "y", "new").is_err());
        assert!(replace_tables("a", "x", "new").is_err());
        assert!(replace_tables(&format!("{end}{begin}"), "x", "new").is_err());
    }
}
