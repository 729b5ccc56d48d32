//! The duplicate keys of a YAML document, searchable by path.

use document::DecodeProblem;
use document::yaml::DuplicateKey;

/// The duplicate keys of one document.
///
/// INVARIANT: sorted by path, so that a binary search finds those of an object.
#[derive(Debug, Default)]
pub(super) struct DuplicateKeys {
    keys_sorted_by_path: Vec<DuplicateKey>,
}

impl DuplicateKeys {
    /// Keeps the duplicates that are mistakes. A key that a merge key has set may be set again, as in files that
    /// kubectl applies.
    pub(super) fn new(mut duplicates: Vec<DuplicateKey>) -> Self {
        duplicates.retain(|duplicate| !duplicate.is_from_merge_key);
        duplicates.sort_by(|a, b| a.path.cmp(&b.path));
        Self { keys_sorted_by_path: duplicates }
    }

    pub(super) fn len(&self) -> usize {
        self.keys_sorted_by_path.len()
    }

    /// The duplicate keys inside the object at this path.
    pub(super) fn duplicates_inside_object(&self, at: &str) -> Vec<DecodeProblem> {
        let prefix = match at {
            "" => String::new(),
            at => format!("{at}."),
        };
        let first =
            self.keys_sorted_by_path.partition_point(|it| it.path.as_str() < prefix.as_str());
        let rest = self.keys_sorted_by_path.iter().skip(first);
        rest.take_while(|it| it.path.starts_with(&prefix))
            .cloned()
            .map(DecodeProblem::from)
            .collect()
    }

    /// The duplicate keys at exactly this path.
    pub(super) fn duplicates_at_path(&self, path: &str) -> Vec<DecodeProblem> {
        let first = self.keys_sorted_by_path.partition_point(|it| it.path.as_str() < path);
        let rest = self.keys_sorted_by_path.iter().skip(first);
        rest.take_while(|it| it.path == path).cloned().map(DecodeProblem::from).collect()
    }
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
            is_from_merge_key: false,
        };
        let paths =
            ["kind", "items", "items[1].kind", "items[10].kind", "items[1].a.b", "items[2].kind"];
        let keys = DuplicateKeys::new(paths.iter().map(|path| duplicate(path)).collect());
        let shown = |problems: Vec<DecodeProblem>| {
            problems.into_iter().map(|problem| problem.path).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(keys.duplicates_inside_object("items[1]")),
            ["items[1].a.b", "items[1].kind"]
        );
        assert_eq!(shown(keys.duplicates_inside_object("items[3]")), [""; 0]);
        assert_eq!(keys.duplicates_inside_object("").len(), 6);
        assert_eq!(shown(keys.duplicates_at_path("items")), ["items"]);
        assert_eq!(shown(keys.duplicates_at_path("item")), [""; 0]);
    }
}
