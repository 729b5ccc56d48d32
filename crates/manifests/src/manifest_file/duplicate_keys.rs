//! Keys that occur twice in a YAML document, by the objects that they are in.

use document::DecodeProblem;
use document::yaml::DuplicateKey;

/// INVARIANT: sorted by path, so that those of an object are found without looking at all.
#[derive(Debug, Default)]
pub(super) struct DuplicateKeys {
    sorted: Vec<DuplicateKey>,
}

impl DuplicateKeys {
    pub(super) fn new(mut duplicates: Vec<DuplicateKey>) -> Self {
        duplicates.sort_by(|a, b| a.path.cmp(&b.path));
        Self { sorted: duplicates }
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The duplicate keys inside the object at this path.
    pub(super) fn within(&self, at: &str) -> Vec<DecodeProblem> {
        let prefix = match at {
            "" => String::new(),
            at => format!("{at}."),
        };
        let first = self.sorted.partition_point(|it| it.path.as_str() < prefix.as_str());
        let rest = self.sorted.iter().skip(first);
        rest.take_while(|it| it.path.starts_with(&prefix)).map(problem).collect()
    }

    /// The duplicate keys at exactly this path.
    pub(super) fn at(&self, path: &str) -> Vec<DecodeProblem> {
        let first = self.sorted.partition_point(|it| it.path.as_str() < path);
        let rest = self.sorted.iter().skip(first);
        rest.take_while(|it| it.path == path).map(problem).collect()
    }
}

fn problem(duplicate: &DuplicateKey) -> DecodeProblem {
    let DuplicateKey { message, path, span } = duplicate.clone();
    DecodeProblem { path, message, span, hint: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::Span;

    #[test]
    fn keys_are_found_by_object() {
        let duplicate = |path: &str| DuplicateKey {
            message: String::new(),
            path: path.to_owned(),
            span: Span::default(),
        };
        let paths =
            ["kind", "items", "items[1].kind", "items[10].kind", "items[1].a.b", "items[2].kind"];
        let keys = DuplicateKeys::new(paths.iter().map(|path| duplicate(path)).collect());
        let shown = |problems: Vec<DecodeProblem>| {
            problems.into_iter().map(|problem| problem.path).collect::<Vec<_>>()
        };
        assert_eq!(shown(keys.within("items[1]")), ["items[1].a.b", "items[1].kind"]);
        assert_eq!(shown(keys.within("items[3]")), [""; 0]);
        assert_eq!(keys.within("").len(), 6);
        assert_eq!(shown(keys.at("items")), ["items"]);
        assert_eq!(shown(keys.at("item")), [""; 0]);
    }
}
