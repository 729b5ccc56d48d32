//! Whether a query can find anything.

use std::collections::{BTreeMap, BTreeSet};

use crate::exported_metrics::ExportedMetrics;
use crate::promql;

/// Labels that Prometheus adds to whatever it scrapes.
const SCRAPE_LABELS: [&str; 2] = ["instance", "job"];

/// Checks a query, and the labels that a text beside it mentions.
///
/// # Errors
/// What is not exported: a series, a label of it, or a value of that label.
pub fn check_query(
    exported: &ExportedMetrics,
    query: &str,
    mentioned_labels: &[String],
) -> Result<(), String> {
    let parsed = promql::parse_query(query)?;
    let mut known = BTreeSet::new();
    for selector in &parsed.selectors {
        let name = &selector.name;
        let labels = labels_of(exported, name).ok_or_else(|| format!("no series `{name}`"))?;
        for (label, operator, value) in &selector.matchers {
            let values = labels.get(label).ok_or_else(|| format!("`{name}` has no `{label}`"))?;
            let is_known =
                |value: &str| values.as_ref().is_none_or(|values| values.contains(value));
            let is_variable = value.starts_with('$');
            let alternatives: Vec<&str> = match operator.as_str() {
                "=~" | "!~" => value.split('|').collect(),
                _ => vec![value],
            };
            if !is_variable && !alternatives.into_iter().all(is_known) {
                return Err(format!("`{label}` of `{name}` is never `{value}`"));
            }
        }
        known.extend(labels.into_keys());
    }
    let used = parsed.labels.iter().chain(mentioned_labels);
    match used.into_iter().find(|label| !known.contains(*label)) {
        Some(label) => Err(format!("no series of the query has `{label}`")),
        None if parsed.selectors.is_empty() => Err("it looks at nothing".to_owned()),
        None => Ok(()),
    }
}

/// The labels in `{{name}}` and `{{ $labels.name }}`.
pub(crate) fn mentioned_labels(text: &str) -> Vec<String> {
    let inside = text.split("{{").skip(1).filter_map(|part| part.split("}}").next());
    inside.map(|part| part.trim().trim_start_matches("$labels.").to_owned()).collect()
}

/// The labels of a series of that name, with their values; of a histogram there are three.
fn labels_of(
    exported: &ExportedMetrics,
    series: &str,
) -> Option<BTreeMap<String, Option<BTreeSet<String>>>> {
    let (family, is_bucket) = match exported.get(series) {
        Some(family) if family.kind != "histogram" => (family, false),
        _ => {
            let parts = ["_bucket", "_count", "_sum"].into_iter();
            let (base, part) =
                parts.filter_map(|part| Some((series.strip_suffix(part)?, part))).next()?;
            let family = exported.get(base).filter(|family| family.kind == "histogram")?;
            (family, part == "_bucket")
        }
    };
    let own = family.labels.iter().map(|(name, values)| (name.clone(), Some(values.clone())));
    let others = SCRAPE_LABELS.into_iter().chain(is_bucket.then_some("le"));
    Some(own.chain(others.map(|name| (name.to_owned(), None))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exported_metrics::Family;

    fn family(kind: &'static str, label: &str, value: &str) -> Family {
        let labels = BTreeMap::from([(label.to_owned(), BTreeSet::from([value.to_owned()]))]);
        Family { kind, labels, samples: BTreeMap::new() }
    }

    #[test]
    fn a_query_for_what_is_not_exported_is_noticed() {
        let exported = BTreeMap::from([
            ("attempts_total".to_owned(), family("counter", "result", "allowed")),
            ("duration_seconds".to_owned(), family("histogram", "result", "allowed")),
        ]);
        for query in [
            "sum by (result, job) (rate(attempts_total{result=\"allowed\"}[5m]))",
            "histogram_quantile(0.5, sum by (le) (duration_seconds_bucket{result=~\"$result\"}))",
        ] {
            check_query(&exported, query, &["result".to_owned()]).unwrap();
        }
        for (query, mentioned_labels, want) in [
            ("no_such_total", "", "no series `no_such_total`"),
            ("duration_seconds", "", "no series `duration_seconds`"),
            ("attempts_total_count", "", "no series `attempts_total_count`"),
            ("attempts_total{name=\"a\"}", "", "`attempts_total` has no `name`"),
            (
                "attempts_total{result=\"refused\"}",
                "",
                "`result` of `attempts_total` is never `refused`",
            ),
            (
                "attempts_total{result=~\"allowed|refused\"}",
                "",
                "`result` of `attempts_total` is never `allowed|refused`",
            ),
            ("sum by (le) (attempts_total)", "", "no series of the query has `le`"),
            ("attempts_total", "name", "no series of the query has `name`"),
            ("1 + 1", "", "it looks at nothing"),
        ] {
            let mentioned_labels: Vec<String> =
                mentioned_labels.split_whitespace().map(str::to_owned).collect();
            assert_eq!(
                check_query(&exported, query, &mentioned_labels),
                Err(want.to_owned()),
                "{query}"
            );
        }
    }

    #[test]
    fn labels_in_texts() {
        assert_eq!(mentioned_labels("{{name}} of {{ $labels.job }}: {{"), ["name", "job", ""]);
    }
}
