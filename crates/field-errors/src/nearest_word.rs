//! Suggestions: the known word that is closest to a misspelled one.

/// Words longer than this are not compared: the comparison is quadratic.
const WORD_BYTES_MAX: usize = 64;

/// Returns the candidate closest to `word`, if it is close: equal except for case, or with at most one wrong
/// letter in four.
///
/// ```
/// assert_eq!(field_errors::nearest_word("webhok", ["name", "webhook"]), Some("webhook"));
/// assert_eq!(field_errors::nearest_word("RBAC", ["rbac"]), Some("rbac"));
/// assert_eq!(field_errors::nearest_word("volume", ["name", "webhook"]), None);
/// ```
pub fn nearest_word<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    if word.is_empty() || word.len() > WORD_BYTES_MAX {
        return None;
    }
    let word = word.to_ascii_lowercase();
    // The distance is at least the difference of the lengths, so this filter skips most long candidates.
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
    // Row `i` of the table holds the distances of the first `i` bytes of `a` to every prefix of `b`.
    let mut row_before_last: Vec<usize> = Vec::new();
    let mut last_row: Vec<usize> = (0..=b.len()).collect();
    let mut last_of_a = None;
    for (i, of_a) in a.bytes().enumerate() {
        let mut left = i + 1;
        let mut row = vec![left];
        let mut last_of_b = None;
        let above = last_row.iter().zip(last_row.iter().skip(1));
        // The first two cells of a row have no cell two columns to the left.
        let two_back = std::iter::once(None).chain(row_before_last.iter().map(Some));
        let two_back = two_back.chain(std::iter::repeat(None));
        for (((diagonal, up), of_b), swapped) in above.zip(b.bytes()).zip(two_back) {
            let change = diagonal + usize::from(of_a != of_b);
            let mut best = change.min(up + 1).min(left + 1);
            if let Some(swapped) = swapped
                && last_of_a == Some(of_b)
                && last_of_b == Some(of_a)
            {
                best = best.min(swapped + 1);
            }
            row.push(best);
            left = best;
            last_of_b = Some(of_b);
        }
        row_before_last = std::mem::replace(&mut last_row, row);
        last_of_a = Some(of_a);
    }
    last_row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances() {
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
    fn distant_words_are_not_suggested() {
        assert_eq!(nearest_word("", ["a"]), None);
        assert_eq!(nearest_word("x", ["name", "type"]), None);
        assert_eq!(nearest_word(&"a".repeat(WORD_BYTES_MAX + 1), ["a"]), None);
        assert_eq!(nearest_word("tpye", ["name", "type"]), Some("type"));
    }
}
