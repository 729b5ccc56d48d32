//! Reads the `headers` of a vector.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::vectors::{UnusableVector, Vector};

/// Reads the headers in order. Each is a list of a name and a value; HTTP ignores blanks around a value, so they are
/// removed.
pub(super) fn parse_headers(vector: &Vector) -> Result<HeaderMap, UnusableVector> {
    let mut headers = HeaderMap::new();
    for line in vector.list("headers")? {
        let (Some(name), Some(value)) = (line[0].as_str(), line[1].as_str()) else {
            return Err(UnusableVector::new(format!(
                "`headers` has a line that is not a name and a value: {line}"
            )));
        };
        let name: HeaderName =
            name.parse().map_err(|_| UnusableVector::new(format!("`{name}` names no header")))?;
        let value = HeaderValue::from_bytes(value.trim_matches([' ', '\t']).as_bytes());
        headers.append(
            name,
            value.map_err(|_| UnusableVector::new("a header has a value that HTTP forbids"))?,
        );
    }
    Ok(headers)
}

/// The name of a header as Go writes it: each word between dashes begins with a capital.
pub(super) fn canonical_header_name(name: &str) -> String {
    let mut is_first = true;
    name.chars()
        .map(|c| {
            let c = if is_first { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
            is_first = c == '-';
            c
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_headers_are_written_like_gos() {
        assert_eq!(canonical_header_name("x-remote-extra-a.b%2fc-d"), "X-Remote-Extra-A.b%2fc-D");
    }
}
