//! Semantic versions, parsed like the Go library that Kubernetes uses.

use std::borrow::Cow;
use std::cmp::Ordering;

use go_compat::quote;

/// A semantic version without build metadata, which the parser checks and drops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Semver {
    major_version: u64,
    minor_version: u64,
    patch_version: u64,
    pre_release: Vec<PreReleaseIdentifier>,
}

/// The reason why a text is not a semantic version, with Kubernetes' message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SemverError {
    /// The text is empty.
    #[error("Version string empty")]
    Empty,
    /// The text has fewer than three numbers.
    #[error("No Major.Minor.Patch elements found")]
    TooFewNumbers,
    /// A version that leaves out numbers has a pre-release or build metadata.
    #[error("short version cannot contain PreRelease/Build meta data")]
    ShortWithSuffix,
    /// One of the three numbers has other characters than digits.
    #[error("Invalid character(s) found in {} number {}", .part.name(), quote(.text))]
    NumberCharacters {
        /// The number that is wrong.
        part: SemverPart,
        /// The text of the number.
        text: String,
    },
    /// One of the three numbers begins with a zero.
    #[error("{} number must not contain leading zeroes {}", .part.capitalized_part_name(), quote(.text))]
    NumberLeadingZeros {
        /// The number that is wrong.
        part: SemverPart,
        /// The text of the number.
        text: String,
    },
    /// A number has no digits.
    #[error("strconv.ParseUint: parsing \"\": invalid syntax")]
    EmptyNumber,
    /// A number does not fit into 64 bits.
    #[error("strconv.ParseUint: parsing {}: value out of range", quote(.0))]
    NumberTooLarge(String),
    /// An identifier of the pre-release is empty.
    #[error("Prerelease is empty")]
    EmptyPreRelease,
    /// A numeric identifier of the pre-release begins with a zero.
    #[error("Numeric PreRelease version must not contain leading zeroes {}", quote(.0))]
    PreReleaseLeadingZeros(String),
    /// An identifier of the pre-release has characters that are not allowed.
    #[error("Invalid character(s) found in prerelease {}", quote(.0))]
    PreReleaseCharacters(String),
    /// An identifier of the build metadata is empty.
    #[error("Build meta data is empty")]
    EmptyBuild,
    /// An identifier of the build metadata has characters that are not allowed.
    #[error("Invalid character(s) found in build meta data {}", quote(.0))]
    BuildCharacters(String),
}

/// One of the three numbers of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SemverPart {
    /// The first number of a version.
    Major,
    /// The second number of a version.
    Minor,
    /// The third number of a version.
    Patch,
}

impl SemverPart {
    fn name(self) -> &'static str {
        match self {
            Self::Major => "major",
            Self::Minor => "minor",
            Self::Patch => "patch",
        }
    }

    fn capitalized_part_name(self) -> &'static str {
        match self {
            Self::Major => "Major",
            Self::Minor => "Minor",
            Self::Patch => "Patch",
        }
    }
}

/// One identifier of a pre-release. Numbers come before texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PreReleaseIdentifier {
    Number(u64),
    Text(Box<str>),
}

impl Semver {
    /// Reads `major.minor.patch[-pre.release][+build.metadata]`.
    ///
    /// # Errors
    /// Returns an error for any other text.
    pub fn parse(text: &str) -> Result<Self, SemverError> {
        if text.is_empty() {
            return Err(SemverError::Empty);
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(SemverError::TooFewNumbers);
        };
        let (rest, build) = split_at_separator(rest, '+');
        let (patch, pre_release) = split_at_separator(rest, '-');
        let version = Self {
            major_version: parse_version_number(SemverPart::Major, major)?,
            minor_version: parse_version_number(SemverPart::Minor, minor)?,
            patch_version: parse_version_number(SemverPart::Patch, patch)?,
            pre_release: match pre_release {
                Some(text) => {
                    text.split('.').map(parse_pre_release_identifier).collect::<Result<_, _>>()?
                }
                None => Vec::new(),
            },
        };
        build.map_or(Ok(()), |build| build.split('.').try_for_each(check_build_metadata))?;
        Ok(version)
    }

    /// The approximate number of bytes of the text that the version was parsed from.
    pub(crate) fn approx_text_len(&self) -> usize {
        // Comparing one identifier takes as much work as comparing some bytes of text.
        const OCTETS_PER_IDENTIFIER: usize = 16;
        self.pre_release.len() * OCTETS_PER_IDENTIFIER
    }

    /// Parses a version that may begin with `v`, omit its patch or minor number, and have leading
    /// zeros.
    ///
    /// # Errors
    /// As [`Semver::parse`], and for a version that omits numbers but has a pre-release.
    pub fn parse_tolerant_version(text: &str) -> Result<Self, SemverError> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<_> = text.splitn(3, '.').map(strip_leading_zeros).collect();
        let is_short = parts.len() < 3;
        if is_short && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err(SemverError::ShortWithSuffix);
        }
        parts.resize(3, Cow::Borrowed("0"));
        Self::parse(&parts.join("."))
    }

    /// Returns the major version, the first number.
    pub fn major_version(&self) -> u64 {
        self.major_version
    }

    /// Returns the minor version, the second number.
    pub fn minor_version(&self) -> u64 {
        self.minor_version
    }

    /// Returns the patch version, the third number.
    pub fn patch_version(&self) -> u64 {
        self.patch_version
    }
}

/// Orders versions by precedence. A pre-release comes before its release, and before longer
/// pre-releases that begin with it.
impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers =
            |version: &Self| (version.major_version, version.minor_version, version.patch_version);
        let is_release = |version: &Self| version.pre_release.is_empty();
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| is_release(self).cmp(&is_release(other)))
            .then_with(|| self.pre_release.cmp(&other.pre_release))
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn split_at_separator(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.split_once(separator) {
        Some((head, tail)) => (head, Some(tail)),
        None => (text, None),
    }
}

/// Reads one of the three numbers.
fn parse_version_number(part: SemverPart, text: &str) -> Result<u64, SemverError> {
    if !is_numeric(text) {
        return Err(SemverError::NumberCharacters { part, text: text.to_owned() });
    }
    if has_leading_zeros(text) {
        return Err(SemverError::NumberLeadingZeros { part, text: text.to_owned() });
    }
    parse_semver_number(text)
}

fn parse_pre_release_identifier(text: &str) -> Result<PreReleaseIdentifier, SemverError> {
    if text.is_empty() {
        Err(SemverError::EmptyPreRelease)
    } else if is_numeric(text) && has_leading_zeros(text) {
        Err(SemverError::PreReleaseLeadingZeros(text.to_owned()))
    } else if is_numeric(text) {
        parse_semver_number(text).map(PreReleaseIdentifier::Number)
    } else if is_alphanumeric(text) {
        Ok(PreReleaseIdentifier::Text(text.into()))
    } else {
        Err(SemverError::PreReleaseCharacters(text.to_owned()))
    }
}

fn check_build_metadata(text: &str) -> Result<(), SemverError> {
    if text.is_empty() {
        Err(SemverError::EmptyBuild)
    } else if is_alphanumeric(text) {
        Ok(())
    } else {
        Err(SemverError::BuildCharacters(text.to_owned()))
    }
}

/// Reads a text that is numeric or empty.
fn parse_semver_number(text: &str) -> Result<u64, SemverError> {
    text.parse().map_err(|_| match text {
        "" => SemverError::EmptyNumber,
        _ => SemverError::NumberTooLarge(text.to_owned()),
    })
}

fn is_numeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_leading_zeros(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

/// Drops leading zeros, but keeps one zero if no digit follows. A text without digits gets a zero,
/// which the error message then shows.
fn strip_leading_zeros(text: &str) -> Cow<'_, str> {
    if text.len() <= 1 {
        return Cow::Borrowed(text);
    }
    let trimmed = text.trim_start_matches('0');
    if trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        Cow::Borrowed(trimmed)
    } else {
        Cow::Owned(format!("0{trimmed}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_versions_by_precedence() {
        let ascending = [
            "0.0.0",
            "0.0.1",
            "1.0.0-0",
            "1.0.0-9",
            "1.0.0-10",
            "1.0.0--",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.10.0",
            "2.0.0",
            "18446744073709551615.0.0",
        ];
        let versions = ascending.map(|text| Semver::parse(text).unwrap());
        for (i, a) in versions.iter().enumerate() {
            for (j, b) in versions.iter().enumerate() {
                assert_eq!(a.cmp(b), i.cmp(&j), "{} {}", ascending[i], ascending[j]);
                assert_eq!(a == b, i == j);
            }
        }
        assert_eq!(Semver::parse("1.2.3+a.b"), Semver::parse("1.2.3+c"));
    }

    #[test]
    fn malformed_versions_have_kubernetes_messages() {
        for (text, want) in [
            ("", "Version string empty"),
            ("x", "No Major.Minor.Patch elements found"),
            ("1.2", "No Major.Minor.Patch elements found"),
            (".0.0", r#"strconv.ParseUint: parsing "": invalid syntax"#),
            ("v1.0.0", r#"Invalid character(s) found in major number "v1""#),
            ("1.+.0", r#"Invalid character(s) found in minor number "+""#),
            ("1.2.3.4", r#"Invalid character(s) found in patch number "3.4""#),
            ("01.2.3", r#"Major number must not contain leading zeroes "01""#),
            ("1.02.3", r#"Minor number must not contain leading zeroes "02""#),
            ("1.2.03", r#"Patch number must not contain leading zeroes "03""#),
            (
                "1.2.18446744073709551616",
                r#"strconv.ParseUint: parsing "18446744073709551616": value out of range"#,
            ),
            ("1.2.3-", "Prerelease is empty"),
            ("1.2.3-a..b", "Prerelease is empty"),
            ("1.2.3-01", r#"Numeric PreRelease version must not contain leading zeroes "01""#),
            (
                "1.2.3-99999999999999999999",
                r#"strconv.ParseUint: parsing "99999999999999999999": value out of range"#,
            ),
            ("1.2.3-\u{e9}", "Invalid character(s) found in prerelease \"\u{e9}\""),
            ("1.2.3-_+", r#"Invalid character(s) found in prerelease "_""#),
            ("1.2.3+", "Build meta data is empty"),
            ("1.2.3+a+b", r#"Invalid character(s) found in build meta data "a+b""#),
        ] {
            assert_eq!(Semver::parse(text).unwrap_err().to_string(), want, "{text}");
        }
    }

    #[test]
    fn tolerant_parsing_normalizes_versions() {
        for (text, want) in [
            ("v1.2.3", "1.2.3"),
            ("1", "1.0.0"),
            ("v1.2", "1.2.0"),
            ("01.002.0003", "1.2.3"),
            ("00.0.000-1+b", "0.0.0-1"),
            ("1.2.3-01a", "1.2.3-01a"),
        ] {
            assert_eq!(Semver::parse_tolerant_version(text), Semver::parse(want), "{text}");
        }
        for (text, want) in [
            ("", r#"strconv.ParseUint: parsing "": invalid syntax"#),
            ("v", r#"strconv.ParseUint: parsing "": invalid syntax"#),
            ("vv1", r#"Invalid character(s) found in major number "0v1""#),
            ("1.2-a", "short version cannot contain PreRelease/Build meta data"),
            ("1+a", "short version cannot contain PreRelease/Build meta data"),
            ("v00.0a.03-1", r#"Invalid character(s) found in minor number "0a""#),
            ("00\u{e9}.1", "Invalid character(s) found in major number \"0\u{e9}\""),
        ] {
            assert_eq!(
                Semver::parse_tolerant_version(text).unwrap_err().to_string(),
                want,
                "{text}"
            );
        }
    }
}
