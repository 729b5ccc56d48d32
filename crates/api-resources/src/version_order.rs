//! The order of the versions of a group.

use std::cmp::Ordering;

/// The maturity in the name of a version. The later variant comes first in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum VersionMaturity {
    Alpha,
    Beta,
    Stable,
}

/// Orders versions as a group shows them: stable before beta before alpha, higher numbers first,
/// and names that are no versions of this form last, in the order of the alphabet.
pub(crate) fn compare_versions(left: &str, right: &str) -> Ordering {
    match (parse_version(left), parse_version(right)) {
        (Some(left), Some(right)) => right.cmp(&left),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => left.cmp(right),
    }
}

/// Splits a version into its maturity and numbers: `v2beta3` is `(Beta, 2, 3)`.
fn parse_version(version: &str) -> Option<(VersionMaturity, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    for (word, stage) in [("alpha", VersionMaturity::Alpha), ("beta", VersionMaturity::Beta)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stage, parse_digits(major)?, parse_digits(minor)?));
        }
    }
    Some((VersionMaturity::Stable, parse_digits(rest)?, 0))
}

/// Parses a number that consists of digits only. `str::parse` would also accept a leading `+`.
fn parse_digits(text: &str) -> Option<u64> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_sorted_by_maturity_then_number() {
        let want = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "+v1",
            "foo1",
            "foo10",
            "v",
            "v+1",
            "v1beta",
        ];
        let mut sorted = want;
        sorted.reverse();
        sorted.sort_by(|left, right| compare_versions(left, right));
        assert_eq!(sorted, want);
    }
}
