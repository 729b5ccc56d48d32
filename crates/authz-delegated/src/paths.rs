//! The paths that everybody may use, such as those of health checks.

use std::collections::BTreeSet;

use authz::{Attributes, Decision, Target};

/// Allows requests for certain paths, whoever sends them.
///
/// A rule is a path, or the beginning of one if its last character is `*`. One leading slash is
/// optional, in rules and in requests. Nothing else is cleaned up: `/foo/` is not `/foo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paths {
    /// Whole paths, without their leading slash.
    exact: BTreeSet<String>,
    /// Beginnings of paths, without their leading slash.
    prefixes: Vec<String>,
}

/// A rule for paths is none: a `*` stands elsewhere than at its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("only trailing * allowed in {rule:?}")]
pub struct PathError {
    /// The rule, without its leading slash.
    pub rule: String,
}

impl Paths {
    pub(crate) fn new(rules: &[String]) -> Result<Self, PathError> {
        let mut paths = Self { exact: BTreeSet::new(), prefixes: Vec::new() };
        for rule in rules {
            let rule = without_slash(rule);
            let prefix = rule.strip_suffix('*');
            if prefix.unwrap_or(rule).contains('*') {
                return Err(PathError { rule: rule.to_owned() });
            }
            match prefix {
                Some(prefix) => paths.prefixes.push(prefix.to_owned()),
                None => drop(paths.exact.insert(rule.to_owned())),
            }
        }
        Ok(paths)
    }

    /// Allows what the rules say and abstains otherwise. No rule is about resources.
    pub(crate) fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        match attributes.target {
            Target::Path(path) if self.matches(path) => Decision::allow(""),
            Target::Path(_) | Target::Resource(_) => Decision::no_opinion(""),
        }
    }

    fn matches(&self, path: &str) -> bool {
        let path = without_slash(path);
        self.exact.contains(path) || self.prefixes.iter().any(|prefix| path.starts_with(prefix))
    }
}

/// The path without one leading slash.
fn without_slash(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use authz::{Resource, Verdict};

    use super::*;

    fn paths(rule: &str) -> Paths {
        Paths::new(&[rule.to_owned()]).unwrap()
    }

    #[track_caller]
    fn check(rule: &str, allowed: &[&str], not_allowed: &[&str]) {
        for (requests, want) in [(allowed, Verdict::Allow), (not_allowed, Verdict::NoOpinion)] {
            for path in requests {
                let attributes = Attributes { user: None, verb: "get", target: Target::Path(path) };
                let decision = paths(rule).authorize(&attributes);
                assert_eq!(decision.verdict, want, "{rule} {path}");
                assert_eq!(decision.reason, "", "{rule} {path}");
            }
        }
    }

    /// Row CHN-34.
    #[test]
    fn a_star_stands_at_the_end() {
        for (rule, without_slash) in [
            ("/foo*bar", "foo*bar"),
            ("/foo**", "foo**"),
            ("foo*/", "foo*/"),
            ("/**", "**"),
            ("//*a", "/*a"),
        ] {
            let rules = ["/healthz".to_owned(), rule.to_owned()];
            let error = Paths::new(&rules).unwrap_err().to_string();
            assert_eq!(error, format!("only trailing * allowed in \"{without_slash}\""));
        }
    }

    /// Row CHN-35.
    #[test]
    fn a_path_is_compared_exactly() {
        for rule in ["/foo", "foo"] {
            check(rule, &["/foo", "foo"], &["/", "", "/foo/", "/fooooo", "//foo", "/Foo", "/fo"]);
        }
        check("/", &["/", ""], &["//", "/a"]);
        check("", &["/", ""], &["//", "/a"]);
        check("//foo", &["//foo"], &["/foo", "foo"]);
    }

    /// Row CHN-36.
    #[test]
    fn a_trailing_star_means_a_prefix() {
        check("/foo/*", &["/foo/", "/foo/bar/bla", "foo/*"], &["/foo", "/", "/foobar", "//foo/"]);
        check("/foo*", &["/foo", "/foobar", "/foo/bar"], &["/fo", "/bar/foo"]);
    }

    /// Row CHN-37.
    #[test]
    fn a_star_alone_allows_every_path() {
        for rule in ["/*", "*"] {
            check(rule, &["/", "", "/foo", "//foo", "/apis/a/b"], &[]);
        }
    }

    #[test]
    fn resources_have_no_path() {
        let resource = Resource { path: "/api/v1/pods", resource: "pods", ..Resource::default() };
        let target = Target::Resource(resource);
        let attributes = Attributes { user: None, verb: "get", target };
        for rule in ["/*", "/api/v1/pods"] {
            assert_eq!(paths(rule).authorize(&attributes).verdict, Verdict::NoOpinion);
        }
    }
}
