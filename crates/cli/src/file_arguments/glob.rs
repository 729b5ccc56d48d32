//! Patterns of paths, for `--exclude`.

use std::convert::Infallible;
use std::path::{Component, Path};
use std::str::FromStr;

/// A pattern of paths below a directory.
///
/// `?` stands for one character and `*` for any number of them, both within a name; `**` stands for any number of
/// directories. A pattern without a slash matches a name at any depth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    pattern_segments: Vec<String>,
    matches_at_any_depth: bool,
}

impl FromStr for Glob {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.strip_prefix("./").unwrap_or(text);
        let matches_at_any_depth = !text.trim_end_matches('/').contains('/');
        let segments = text.split('/').filter(|segment| !segment.is_empty());
        Ok(Self { pattern_segments: segments.map(str::to_owned).collect(), matches_at_any_depth })
    }
}

impl Glob {
    /// Reports whether the pattern matches a path, which is relative to the directory that an argument names.
    pub(crate) fn matches_path(&self, path: &Path) -> bool {
        let names: Vec<String> = path
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
                Component::Prefix(_)
                | Component::RootDir
                | Component::CurDir
                | Component::ParentDir => None,
            })
            .collect();
        match (self.matches_at_any_depth, self.pattern_segments.first(), names.last()) {
            (true, Some(pattern), Some(name)) => {
                matches_segment(pattern.as_bytes(), name.as_bytes())
            }
            (true, _, _) => false,
            (false, _, _) => matches_segments(&self.pattern_segments, &names),
        }
    }
}

fn matches_segments(pattern: &[String], names: &[String]) -> bool {
    match pattern.split_first() {
        None => names.is_empty(),
        Some((first, rest)) if first == "**" => {
            (0..=names.len()).any(|n| matches_segments(rest, names.get(n..).unwrap_or_default()))
        }
        Some((first, rest)) => match names.split_first() {
            Some((name, names)) => {
                matches_segment(first.as_bytes(), name.as_bytes()) && matches_segments(rest, names)
            }
            None => false,
        },
    }
}

/// Matches one name in time proportional to the product of the lengths: after a mismatch only the last `*` takes
/// one more character.
fn matches_segment(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut last_star = None;
    while let Some(byte) = name.get(n) {
        match pattern.get(p) {
            Some(b'*') => {
                last_star = Some((p + 1, n));
                p += 1;
            }
            Some(own) if own == byte || *own == b'?' => {
                p += 1;
                n += 1;
            }
            Some(_) | None => match last_star {
                Some((after, at)) => {
                    p = after;
                    n = at + 1;
                    last_star = Some((after, at + 1));
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_paths() {
        for (pattern, path, want) in [
            ("values.yaml", "values.yaml", true),
            ("values.yaml", "charts/a/values.yaml", true),
            ("values*.yaml", "charts/values-prod.yaml", true),
            ("templates", "charts/a/templates", true),
            ("templates/", "templates", true),
            ("*.json", "a.yaml", false),
            ("charts/*/templates", "charts/a/templates", true),
            ("charts/*/templates", "charts/a/b/templates", false),
            ("charts/**/templates", "charts/a/b/templates", true),
            ("**/test/*.yaml", "test/a.yaml", true),
            ("./a/b.yaml", "a/b.yaml", true),
            ("a?.yaml", "ab.yaml", true),
            ("a?.yaml", "a.yaml", false),
            ("*a*b*c", "xaybzc", true),
            ("*a*b*c", "xaybz", false),
            ("", "a", false),
        ] {
            let glob: Glob = pattern.parse().unwrap();
            assert_eq!(glob.matches_path(Path::new(path)), want, "{pattern} {path}");
        }
    }
}
