//! Which of many path prefixes cover a path, without looking at all of them.

/// All prefixes.
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
    /// The hash of the target.
    target: u64,
}

impl Prefixes {
    /// Prefixes from texts that are all different.
    pub(crate) fn new(mut given: Vec<(Box<str>, u64)>) -> Self {
        given.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut nodes: Vec<Node> = Vec::with_capacity(given.len());
        // The prefixes that the current one might begin with, longest last.
        let mut open: Vec<u32> = Vec::new();
        // INVARIANT on Policies: there are fewer policies than a u32 can count.
        for ((text, target), idx) in given.into_iter().zip(0_u32..) {
            let is_parent =
                |idx: &u32| at(&nodes, *idx).is_some_and(|node| text.starts_with(&*node.text));
            while open.last().is_some_and(|idx| !is_parent(idx)) {
                open.pop();
            }
            let parent = open.last().copied();
            open.push(idx);
            nodes.push(Node { text, parent, target });
        }
        Self { nodes: nodes.into() }
    }

    /// The longest prefix that `path` begins with. All others are its ancestors.
    ///
    /// Every such prefix stands, in the order of texts, at or before the path, and everything
    /// between it and the path begins with it too. So they are all ancestors of the last prefix
    /// that is not after the path, or that prefix itself.
    pub(crate) fn longest(&self, path: &str) -> Option<u32> {
        let after = self.nodes.partition_point(|node| *node.text <= *path);
        let mut idx = u32::try_from(after.checked_sub(1)?).ok()?;
        let mut node = at(&self.nodes, idx)?;
        let n_common = node.text.bytes().zip(path.bytes()).take_while(|(a, b)| a == b).count();
        while node.text.len() > n_common {
            idx = node.parent?;
            node = at(&self.nodes, idx)?;
        }
        Some(idx)
    }

    /// The hash of the prefix at a place, and the place of the longest other that it begins with.
    pub(crate) fn target(&self, idx: Option<u32>) -> Option<(u64, Option<u32>)> {
        at(&self.nodes, idx?).map(|node| (node.target, node.parent))
    }
}

fn at(nodes: &[Node], idx: u32) -> Option<&Node> {
    nodes.get(usize::try_from(idx).ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Prefixes that are numbered as they are given.
    fn prefixes<'a>(texts: impl IntoIterator<Item = &'a str>) -> Prefixes {
        let given = texts.into_iter().zip(0..);
        Prefixes::new(given.map(|(text, number)| (text.into(), number)).collect())
    }

    fn covering(prefixes: &Prefixes, path: &str) -> Vec<u64> {
        let first = prefixes.target(prefixes.longest(path));
        let all = std::iter::successors(first, |(_, parent)| prefixes.target(*parent));
        all.map(|(hash, _)| hash).collect()
    }

    #[test]
    fn all_covering_prefixes_are_found_longest_first() {
        let prefixes = prefixes(["/b/", "/a/x", "/a/", "", "/a/x/y"]);
        for (path, want) in [
            ("/a/x/y/z", &[4, 1, 2, 3][..]),
            ("/a/y", &[2, 3]),
            ("/a", &[3]),
            ("/b/", &[0, 3]),
            ("/c", &[3]),
            ("", &[3]),
            ("/a/x/", &[1, 2, 3]),
        ] {
            assert_eq!(covering(&prefixes, path), want, "{path}");
        }
    }

    #[test]
    fn a_path_before_all_prefixes_has_none() {
        let prefixes = prefixes(["/b"]);
        for path in ["/a", "", "/c", "/"] {
            assert_eq!(prefixes.longest(path), None, "{path}");
        }
        assert_eq!(Prefixes::default().longest("/a"), None);
    }

    proptest! {
        #[test]
        fn it_agrees_with_trying_every_prefix(
            texts in prop::collection::btree_set("[ab/ä]{0,5}", 0..12),
            path in "[ab/ä]{0,7}",
        ) {
            let texts: Vec<String> = texts.into_iter().collect();
            let prefixes = prefixes(texts.iter().map(String::as_str));
            let mut want: Vec<u64> =
                (0..).zip(&texts).filter(|(_, text)| path.starts_with(*text)).map(|(idx, _)| idx).collect();
            want.reverse();
            prop_assert_eq!(covering(&prefixes, &path), want);
        }
    }
}
