//! Few rows that hold every pair of values of any two factors.

use std::collections::BTreeSet;

/// A value for each factor, by its number.
pub(super) type Row = Vec<usize>;

/// Every combination of values, where `sizes` are the numbers of values of the factors.
pub(super) fn product(sizes: &[usize]) -> Vec<Row> {
    sizes.iter().fold(vec![Row::new()], |rows, &size| {
        let extended = |row: Row| (0..size).map(move |value| [&row[..], &[value]].concat());
        rows.into_iter().flat_map(extended).collect()
    })
}

/// Rows such that each pair of values of two factors is in one of them: the row with the most pairs that
/// are not yet covered is taken again and again, which gives few rows, if not the fewest.
pub(super) fn all_pairs(sizes: &[usize]) -> Vec<Row> {
    let candidates = product(sizes);
    let mut uncovered: BTreeSet<Pair> = candidates.iter().flat_map(pairs).collect();
    let mut rows = Vec::new();
    while !uncovered.is_empty() {
        let n_new = |row: &&Row| pairs(row).filter(|pair| uncovered.contains(pair)).count();
        // There is one: each pair that is left is part of a candidate.
        let best = candidates.iter().max_by_key(n_new).unwrap();
        for pair in pairs(best) {
            uncovered.remove(&pair);
        }
        rows.push(best.clone());
    }
    rows
}

/// Two factors and their values.
type Pair = [(usize, usize); 2];

fn pairs(row: &Row) -> impl Iterator<Item = Pair> {
    let at = |factor: usize| (factor, row[factor]);
    (0..row.len()).flat_map(move |one| (0..one).map(move |two| [at(one), at(two)]))
}

#[test]
fn few_rows_hold_all_pairs() {
    for (sizes, n_max) in [(&[2, 3, 5, 3][..], 18), (&[2, 2], 4), (&[3, 3, 3], 11), (&[1, 1], 1)] {
        let rows = all_pairs(sizes);
        let product = product(sizes);
        assert_eq!(product.len(), sizes.iter().product::<usize>());
        let covered: BTreeSet<Pair> = rows.iter().flat_map(pairs).collect();
        let wanted: BTreeSet<Pair> = product.iter().flat_map(pairs).collect();
        assert_eq!(covered, wanted, "{sizes:?}");
        assert!(rows.len() <= n_max, "{sizes:?} take {} rows", rows.len());
    }
}
