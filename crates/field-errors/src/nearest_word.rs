//! Suggestions: the known word that is closest to a misspelled one.

/// Words longer than this are not compared: the comparison is quadratic.
const WORD_BYTES_MAX: usize = 64;

/// The candidate closest to `word`, if it is close: the same but for case, or at most one letter
/// in four off.
///
/// ```
/// assert_eq!(field_errors::nearest("webhok", ["name", "webhook"]), Some("webhook"));
/// assert_eq!(field_errors::nearest("RBAC", ["rbac"]), Some("rbac"));
/// assert_eq!(field_errors::nearest("volume", ["name", "webhook"]), None);
/// ```
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if word.is_empty() || word.len() > WORD_BYTES_MAX {
        return None;
    }
    let word = word.to_ascii_lowercase();
    // Words differ at least by what one is longer, so most long candidates need no look.
    let is_near_in_length =
        |candidate: &&str| word.len().abs_diff(candidate.len()) <= candidate.len().div_ceil(4);
    candidates
        .into_iter()
        .filter(is_near_in_length)
        .map(|candidate| (edit_distance(&word, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(4))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The Damerau-Levenshtein distance in bytes: changes, insertions, deletions and swaps of neighbours.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, want) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("webhok", "webhook", 1),
            ("ab", "ba", 1),
            ("authorzers", "authorizers", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edit_distance(a, b), want, "{a} {b}");
        }
    }

    #[test]
    fn far_words_have_no_hint() {
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(nearest("x", ["name", "type"]), None);
        assert_eq!(nearest(&"a".repeat(WORD_BYTES_MAX + 1), ["a"]), None);
        assert_eq!(nearest("tpye", ["name", "type"]), Some("type"));
    }
}
