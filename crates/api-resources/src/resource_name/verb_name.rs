//! Recognizes the verbs that requests have.

/// The verbs of requests for resources, and those that only policies have.
const RESOURCE_VERBS: [&str; 17] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "proxy",
    "use",
    "bind",
    "escalate",
    "impersonate",
    "approve",
    "sign",
    "attest",
    "request-serviceaccounts-token-audience",
];

/// The verbs of requests for paths: the methods of HTTP in lower case.
const PATH_VERBS: [&str; 7] = ["get", "head", "post", "put", "patch", "delete", "options"];

/// Whether a verb belongs to a request for a resource or for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerbTarget {
    /// The request is for a resource.
    Resource,
    /// The request is for a path such as `/healthz`.
    Path,
}

/// No request of Kubernetes has the verb. A policy may still have it, because verbs are an open set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownVerb {
    verb: String,
    nearest_verb: Option<&'static str>,
}

impl std::fmt::Display for UnknownVerb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no request of Kubernetes has the verb `{}`", self.verb)?;
        match self.nearest_verb {
            Some(nearest) => write!(f, ", did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

/// Returns a warning about a verb that no request of Kubernetes has. `*` is a verb of policies, and a verb with a
/// colon belongs to an extension, such as `impersonate:user-info`.
#[must_use]
pub fn check_verb(verb: &str, target: VerbTarget) -> Option<UnknownVerb> {
    let known: &'static [&'static str] = match target {
        VerbTarget::Resource => &RESOURCE_VERBS,
        VerbTarget::Path => &PATH_VERBS,
    };
    if verb == "*" || verb.contains(':') || known.contains(&verb) {
        return None;
    }
    let nearest = field_errors::nearest_word(verb, known.iter().copied())
        .or_else(|| nearest_short_verb(verb, known));
    Some(UnknownVerb { verb: verb.to_owned(), nearest_verb: nearest })
}

/// Finds a verb with the same letters in another order. A verb of three letters has too few for the general
/// comparison.
fn nearest_short_verb(verb: &str, known: &[&'static str]) -> Option<&'static str> {
    let sorted = |word: &str| {
        let mut letters: Vec<char> = word.to_ascii_lowercase().chars().collect();
        letters.sort_unstable();
        letters
    };
    known.iter().copied().find(|own| sorted(own) == sorted(verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_verbs_have_a_near_miss() {
        for (verb, target, want) in [
            ("get", VerbTarget::Resource, None),
            ("*", VerbTarget::Resource, None),
            ("impersonate:user-info", VerbTarget::Resource, None),
            ("post", VerbTarget::Path, None),
            ("gte", VerbTarget::Resource, Some(Some("get"))),
            ("GET", VerbTarget::Resource, Some(Some("get"))),
            ("delte", VerbTarget::Resource, Some(Some("delete"))),
            ("deletecolection", VerbTarget::Resource, Some(Some("deletecollection"))),
            ("read", VerbTarget::Resource, Some(None)),
            ("list", VerbTarget::Path, Some(None)),
        ] {
            let found = check_verb(verb, target).map(|unknown| unknown.nearest_verb);
            assert_eq!(found, want, "{verb}");
        }
    }
}
