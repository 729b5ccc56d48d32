//! The place in a document where the tables are.

/// The document with new text between the two lines that belong to a benchmark.
///
/// # Errors
/// Fails if one of the lines is missing.
pub(crate) fn refresh(document: &str, bench: &str, text: &str) -> anyhow::Result<String> {
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
        let new = refresh(&document, "x", "new\n").unwrap();
        assert_eq!(new, format!("a\n{begin}\n\nnew\n\n{end}\nb\n"));
        assert_eq!(refresh(&new, "x", "new").unwrap(), new);
        assert!(refresh(&new, "y", "new").is_err());
        assert!(refresh("a", "x", "new").is_err());
        assert!(refresh(&format!("{end}{begin}"), "x", "new").is_err());
    }
}
