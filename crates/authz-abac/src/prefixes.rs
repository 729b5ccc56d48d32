//! Which of many path prefixes cover a path, without looking at all of them.

use crate::index::First;

/// The prefixes of one subject.
///
/// INVARIANT: sorted by text without duplicates, and the parent of each is the longest other
/// prefix that it begins with, which therefore stands before it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefixes {
    nodes: Box<[Node]>,
}

#[derive(Debug, Clone)]
struct Node {
    text: Box<str>,
    parent: Option<u32>,
    /// The first policies of this prefix and of all that it begins with.
    first: First,
}

impl Prefixes {
    pub(crate) fn new(mut given: Vec<(Box<str>, First)>) -> Self {
        given.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut nodes: Vec<Node> = Vec::new();
        // The prefixes that the current one might begin with, longest last.
        let mut open: Vec<u32> = Vec::new();
        for (text, first) in given {
            if let Some(last) = nodes.last_mut()
                && last.text == text
            {
                last.first = last.first.or_earlier(first);
                continue;
            }
            let is_parent =
                |idx: &u32| at(&nodes, *idx).is_some_and(|n| text.starts_with(&*n.text));
            while open.last().is_some_and(|idx| !is_parent(idx)) {
                open.pop();
            }
            let parent = open.last().copied();
            let inherited = parent.and_then(|idx| at(&nodes, idx)).map(|node| node.first);
            let first = inherited.map_or(first, |inherited| inherited.or_earlier(first));
            // INVARIANT on Policies: there are fewer policies than a u32 can count.
            open.push(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
            nodes.push(Node { text, parent, first });
        }
        Self { nodes: nodes.into() }
    }

    /// The first policies among all prefixes that `path` begins with.
    ///
    /// Every such prefix stands, in the order of texts, at or before the path, and everything
    /// between it and the path begins with it too. So they are all ancestors of the last prefix
    /// that is not after the path.
    pub(crate) fn first(&self, path: &str) -> Option<First> {
        let after = self.nodes.partition_point(|node| *node.text <= *path);
        let mut node = self.nodes.get(after.checked_sub(1)?)?;
        let n_common = node.text.bytes().zip(path.bytes()).take_while(|(a, b)| a == b).count();
        while node.text.len() > n_common {
            node = at(&self.nodes, node.parent?)?;
        }
        Some(node.first)
    }
}

fn at(nodes: &[Node], idx: u32) -> Option<&Node> {
    nodes.get(usize::try_from(idx).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_of_all_covering_prefixes_counts() {
        let given = ["/b/", "/a/x", "/a/", "", "/a/x/y", "/a/"];
        let prefixes = Prefixes::new(
            given
                .iter()
                .zip(0..)
                .map(|(text, idx)| ((*text).into(), First::new(idx, false)))
                .collect(),
        );
        for (path, want) in
            [("/a/x/y/z", 1), ("/a/y", 2), ("/a", 3), ("/b/", 0), ("/c", 3), ("", 3), ("/a/x/", 1)]
        {
            let first = prefixes.first(path).and_then(|first| first.of(true));
            assert_eq!(first, Some(want), "{path}");
        }
    }

    #[test]
    fn a_path_before_all_prefixes_has_none() {
        let prefixes = Prefixes::new(vec![("/b".into(), First::new(0, false))]);
        assert!(prefixes.first("/a").is_none());
        assert!(prefixes.first("").is_none());
        assert!(prefixes.first("/c").is_none());
        assert!(Prefixes::default().first("/a").is_none());
    }

    #[test]
    fn read_only_prefixes_do_not_hide_others_from_writes() {
        let prefixes = Prefixes::new(vec![
            ("/a".into(), First::new(0, true)),
            ("/".into(), First::new(1, false)),
        ]);
        let first = prefixes.first("/ab").unwrap();
        assert_eq!((first.of(true), first.of(false)), (Some(0), Some(1)));
    }
}
