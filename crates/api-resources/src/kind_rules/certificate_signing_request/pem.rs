//! Reads PEM as Go does: text outside complete blocks is ignored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// One PEM block with its decoded contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kind_rules) struct PemBlock {
    /// The type of its contents, such as `CERTIFICATE`.
    pub(in crate::kind_rules) pem_label: String,
    pub(in crate::kind_rules) has_headers: bool,
    pub(in crate::kind_rules) decoded_contents: Vec<u8>,
}

/// Reports whether every PEM reader finds the same block in a text, or none. Readers differ in which
/// characters count as whitespace, and therefore in which blocks they ignore.
pub(in crate::kind_rules) fn is_unambiguous_pem(text: &[u8]) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    let marker = b"-----BEGIN";
    let n_blocks = text.windows(marker.len()).filter(|window| window == marker).count();
    text.iter().all(is_plain) && n_blocks <= 1
}

/// Reads the blocks of a text, in order.
pub(in crate::kind_rules) fn read_pem_blocks(text: &[u8]) -> impl Iterator<Item = PemBlock> {
    let text = String::from_utf8_lossy(text).into_owned();
    let lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(line) = lines.get(at) {
            at += 1;
            let label = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(DASHES));
            let Some(label) = label else { continue };
            let rest = lines.get(at..).unwrap_or_default();
            let end = format!("{END}{label}{DASHES}");
            // A block without its end marker is ignored, even if another block begins before.
            let is_edge = |line: &String| line.starts_with(END) || line.starts_with(BEGIN);
            let Some(n_lines) = rest.iter().position(is_edge) else { continue };
            if rest.get(n_lines) != Some(&end) {
                continue;
            }
            let body = rest.get(..n_lines).unwrap_or_default();
            let n_headers = body.iter().take_while(|line| line.contains(':')).count();
            let encoded: String = body.get(n_headers..).unwrap_or_default().concat();
            let encoded: String = encoded.split_whitespace().collect();
            let Ok(contents) = STANDARD.decode(encoded) else { continue };
            at += n_lines + 1;
            return Some(PemBlock {
                pem_label: label.to_owned(),
                has_headers: n_headers > 0,
                decoded_contents: contents,
            });
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_readers_take_for_different_blocks() {
        let block = "-----BEGIN A-----\neA==\n-----END A-----\n";
        for (text, want) in [
            (block.to_owned(), true),
            (format!("junk: \t\r\n{block}"), true),
            (String::new(), true),
            (format!("{block}{block}"), false),
            (block.replace("-----\ne", "-----\u{c}\ne"), false),
            (block.replace("eA", "e\u{2003}A"), false),
            (block.replace("eA", "e\u{a0}A"), false),
            (format!("{block}\0"), false),
        ] {
            assert_eq!(is_unambiguous_pem(text.as_bytes()), want, "{text:?}");
        }
    }

    #[test]
    fn whole_blocks_are_found() {
        let block = |label: &str, body: &str| {
            format!("{BEGIN}{label}{DASHES}\n{body}\n{END}{label}{DASHES}\n")
        };
        for (text, want) in [
            (String::new(), vec![]),
            ("x".to_owned(), vec![]),
            (block("A", "eA=="), vec![("A", false, "x")]),
            (
                format!("junk\n{}junk\n{}", block("A", "eA=="), block("B", "eQ==")),
                vec![("A", false, "x"), ("B", false, "y")],
            ),
            (block("A", "K: v\n\neA=="), vec![("A", true, "x")]),
            (block("A", "e\nA=\n="), vec![("A", false, "x")]),
            (block("A", "%"), vec![]),
            (format!("{BEGIN}A{DASHES}\neA=="), vec![]),
            (format!("{BEGIN}A{DASHES}\neA==\n{}", block("B", "eQ==")), vec![("B", false, "y")]),
            (format!("{BEGIN}A{DASHES}\neA==\n{END}B{DASHES}"), vec![]),
        ] {
            let found: Vec<PemBlock> = read_pem_blocks(text.as_bytes()).collect();
            let found: Vec<(&str, bool, &str)> = found
                .iter()
                .map(|own| {
                    let contents = std::str::from_utf8(&own.decoded_contents).unwrap();
                    (own.pem_label.as_str(), own.has_headers, contents)
                })
                .collect();
            assert_eq!(found, want, "{text}");
        }
    }
}
