//! Compares the tree with a plain map, and checks its shape.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use store::Revision;

use super::*;

/// Keys of different lengths. Some share more than their first eight bytes.
fn name(n: u16) -> String {
    match n % 4 {
        0 => format!("/{}", n / 4),
        1 => format!("/team/{}", "a".repeat(usize::from(n / 4 + 1))),
        2 => format!("/team/settings-settings-{:05}", n / 4),
        _ => format!("/team/settings-{:05}", n / 4),
    }
}

fn version(n: u16, mod_rev: u64) -> Arc<Version> {
    Arc::new(Version {
        key: Key::new(&name(n)).unwrap(),
        value: Bytes::new(),
        mod_rev: Revision::new(mod_rev),
        create_rev: Revision::new(mod_rev),
        expires_at_ms: None,
    })
}

/// Checks the shape: counts, order of bounds, equal depth, no node too wide or empty.
fn check(node: &Node, is_root: bool) -> (usize, usize) {
    assert!(node.n_entries() <= WIDTH);
    match node {
        Node::Leaf(entries) => {
            assert!(is_root || !entries.is_empty());
            (1, entries.len())
        }
        Node::Branch(TreeBranch { common_prefix_len, children }) => {
            assert!(!children.is_empty());
            let common = &children[0].first_key[..*common_prefix_len];
            for child in children {
                assert!(child.first_key.starts_with(common));
                assert_eq!(
                    child.key_head_number,
                    key_head_number(&child.first_key, *common_prefix_len)
                );
            }
            let parts: Vec<(usize, usize)> =
                children.iter().map(|child| check(&child.node, false)).collect();
            for (child, (depth, len)) in children.iter().zip(&parts) {
                assert_eq!((child.len, parts[0].0), (*len, *depth));
            }
            assert!(children.windows(2).all(|pair| pair[0].first_key < pair[1].first_key));
            (parts[0].0 + 1, parts.iter().map(|(_, len)| len).sum())
        }
    }
}

fn agree(tree: &VersionTree, model: &BTreeMap<String, Arc<Version>>, probe: u16) {
    assert_eq!(check(&tree.root, true).1, tree.len());
    assert_eq!(tree.len(), model.len());
    let from = name(probe);
    assert!(tree.iter_from(&from).eq(model.range(from.clone()..).map(|(_, version)| version)));
    assert_eq!(tree.count_keys_before(&from), model.range(..from.clone()).count());
    assert_eq!(tree.get(&from), model.get(&from));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_writes_agree_with_a_plain_map(
        steps in proptest::collection::vec((any::<bool>(), 0..400_u16), 1..1500),
        probe in 0..400_u16,
    ) {
        let mut tree = VersionTree::new();
        let mut model = BTreeMap::new();
        let mut old = None;
        for (at, (is_insert, n)) in steps.iter().enumerate() {
            let version = version(*n, at as u64);
            let key = version.key.to_string();
            if *is_insert {
                prop_assert_eq!(tree.insert(version.clone()), model.insert(key, version));
            } else {
                prop_assert_eq!(tree.remove(&key), model.remove(&key));
            }
            if at == steps.len() / 2 {
                old = Some((tree.clone(), model.clone()));
            }
        }
        agree(&tree, &model, probe);
        let (tree, model) = old.expect("there is a middle");
        agree(&tree, &model, probe);
    }
}

#[test]
fn many_levels_grow_and_shrink() {
    let mut tree = VersionTree::new();
    // Every fourth name in two unsorted orders; names with the same ending would be sorted.
    const N: u16 = 1 << 14;
    let shuffled = |stride: u16| (0..N).map(move |n| n.wrapping_mul(stride) % N * 4 + 2);
    for n in shuffled(7919) {
        tree.insert(version(n, 1));
    }
    let (depth, len) = check(&tree.root, true);
    assert!(depth >= 3 && len == usize::from(N), "{len} keys in {depth} levels");
    assert_eq!(tree.count_keys_before(&name(4 * 12_345 + 2)), 12_345);
    for (idx, n) in shuffled(5).enumerate() {
        assert!(tree.remove(&name(n)).is_some());
        if idx % 1000 == 0 {
            check(&tree.root, true);
        }
    }
    assert_eq!(check(&tree.root, true), (1, 0));
    assert!(tree.remove(&name(2)).is_none());
}
