//! Checks Markdown tables that list metric families or alerts.

use std::collections::BTreeSet;

use crate::exported_metrics::ExportedMetrics;

/// One row of a Markdown table.
#[derive(Debug)]
pub(crate) struct Row<'t> {
    /// The header of the first column.
    pub(crate) header: &'t str,
    cells: Vec<&'t str>,
}

impl Row<'_> {
    /// The name of the family or alert: the first cell, if it is code.
    pub(crate) fn name(&self) -> Option<String> {
        let name = self.cells.first()?.strip_prefix('`')?.strip_suffix('`')?;
        Some(name.to_owned())
    }
}

/// The rows of all tables of a text.
pub(crate) fn table_rows(markdown: &str) -> impl Iterator<Item = Row<'_>> {
    let mut header = "";
    markdown.lines().filter_map(move |line| {
        let Some(row) = line.strip_prefix('|').and_then(|rest| rest.strip_suffix('|')) else {
            header = "";
            return None;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        if header.is_empty() {
            header = cells.first().copied().unwrap_or_default();
            return None;
        }
        Some(Row { header, cells })
    })
}

/// Lists the faults of the tables of families in a text: families that are not exported, that have another
/// type or other labels, or that are missing.
pub fn lint_tables(exported: &ExportedMetrics, markdown: &str) -> Vec<String> {
    let listed: BTreeSet<String> = table_rows(markdown)
        .filter(|row| row.header == "family")
        .filter_map(|row| match row.cells.as_slice() {
            [_, kind, labels, ..] => Some(line(&row.name()?, kind, &labels.replace('`', ""))),
            _ => None,
        })
        .collect();
    let exported: BTreeSet<String> = exported
        .iter()
        .map(|(name, family)| {
            let labels: Vec<&str> = family.labels.keys().map(String::as_str).collect();
            line(name, family.kind, &labels.join(", "))
        })
        .collect();
    let missing = exported.difference(&listed).map(|line| format!("not listed: {line}"));
    let excess = listed.difference(&exported).map(|line| format!("not exported: {line}"));
    missing.chain(excess).collect()
}

fn line(name: &str, kind: &str, labels: &str) -> String {
    format!("{name}, {kind} by [{labels}]")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::exported_metrics::Family;

    #[test]
    fn every_difference_is_found() {
        let labels = BTreeMap::from([("x".to_owned(), BTreeSet::new())]);
        let family = Family { kind: "gauge", labels, samples: BTreeMap::new() };
        let exported = BTreeMap::from([("a".to_owned(), family)]);
        let head = "text\n\n| family | type | labels | what |\n|---|---|---|---|\n";
        let other = "\n| alert | means |\n|---|---|\n| `b` | c |\n";
        let good = format!("{head}| `a` | gauge | `x` | w |\n{other}");
        assert_eq!(lint_tables(&exported, &good), [""; 0]);
        let bad = format!("{head}| `a` | gauge | | w |\n| `b` | gauge | | w |\n{other}");
        assert_eq!(
            lint_tables(&exported, &bad),
            [
                "not listed: a, gauge by [x]",
                "not exported: a, gauge by []",
                "not exported: b, gauge by []",
            ]
        );
    }
}
