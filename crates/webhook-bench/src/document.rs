//! The place in a document where the tables are.

/// The lines between which everything is replaced.
const BEGIN: &str = "<!-- begin: cargo xtask bench webhook -->";
const END: &str = "<!-- end: cargo xtask bench webhook -->";

/// The document with new text between the two lines.
///
/// # Errors
/// Fails if one of the lines is missing.
pub(crate) fn refresh(document: &str, text: &str) -> anyhow::Result<String> {
    let parts = document
        .split_once(BEGIN)
        .and_then(|(before, rest)| rest.split_once(END).map(|(_, after)| (before, after)));
    match parts {
        Some((before, after)) => {
            Ok(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", text.trim_end()))
        }
        None => anyhow::bail!("the document lacks `{BEGIN}` before `{END}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_lines_changes() {
        let document = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let new = refresh(&document, "new\n").unwrap();
        assert_eq!(new, format!("a\n{BEGIN}\n\nnew\n\n{END}\nb\n"));
        assert_eq!(refresh(&new, "new").unwrap(), new);
        assert!(refresh("a", "new").is_err());
        assert!(refresh(&format!("{END}{BEGIN}"), "new").is_err());
    }
}
