//! Checks that a PromQL query selects series that exist.

use std::collections::{BTreeMap, BTreeSet};

use crate::exported_metrics::ExportedMetrics;
use crate::promql::{self, PromqlError};

/// Labels that Prometheus adds to every series that it scrapes.
const SCRAPE_LABELS: [&str; 2] = ["instance", "job"];

/// The reason why a query cannot be parsed, or selects a series that is not exported.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum QueryError {
    /// The query is not PromQL, or uses a part of it that this parser does not know.
    #[error("{0}")]
    Syntax(PromqlError),
    /// No exported family has the series.
    #[error("no series `{0}`")]
    UnknownSeries(String),
    /// The series lacks a label that a matcher names.
    #[error("`{0}` has no `{1}`")]
    UnknownLabel(String, String),
    /// The label never has the value that a matcher names.
    #[error("`{1}` of `{0}` is never `{2}`")]
    UnknownValue(String, String, String),
    /// The query groups by, or the text mentions, a label that no selected series has.
    #[error("no series of the query has `{0}`")]
    UnusableLabel(String),
    /// The query is a constant.
    #[error("it selects no series")]
    NoSeries,
}

/// Checks a query, and the labels that a text beside it mentions.
///
/// # Errors
/// The query does not parse, or a series, a label or a value in it is not exported.
pub fn check_query(
    exported: &ExportedMetrics,
    query: &str,
    mentioned_labels: &[String],
) -> Result<(), QueryError> {
    let parsed = promql::parse_query(query).map_err(QueryError::Syntax)?;
    let mut known = BTreeSet::new();
    for selector in &parsed.selectors {
        let name = &selector.name;
        let labels =
            find_labels(exported, name).ok_or_else(|| QueryError::UnknownSeries(name.clone()))?;
        for (label, operator, value) in &selector.matchers {
            let values = labels
                .get(label)
                .ok_or_else(|| QueryError::UnknownLabel(name.clone(), label.clone()))?;
            let is_known =
                |value: &str| values.as_ref().is_none_or(|values| values.contains(value));
            let is_variable = value.starts_with('$');
            let alternatives: Vec<&str> = match operator.as_str() {
                "=~" | "!~" => value.split('|').collect(),
                _ => vec![value],
            };
            if !is_variable && !alternatives.into_iter().all(is_known) {
                return Err(QueryError::UnknownValue(name.clone(), label.clone(), value.clone()));
            }
        }
        known.extend(labels.into_keys());
    }
    let used = parsed.labels.iter().chain(mentioned_labels);
    match used.into_iter().find(|label| !known.contains(*label)) {
        Some(label) => Err(QueryError::UnusableLabel(label.clone())),
        None if parsed.selectors.is_empty() => Err(QueryError::NoSeries),
        None => Ok(()),
    }
}

/// Finds the labels in `{{name}}` and `{{ $labels.name }}`.
pub(crate) fn mentioned_labels(text: &str) -> Vec<String> {
    let inside = text.split("{{").skip(1).filter_map(|part| part.split("}}").next());
    inside.map(|part| part.trim().trim_start_matches("$labels.").to_owned()).collect()
}

/// Finds the labels of a series, with their values. A histogram has three series.
fn find_labels(
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
    fn queries_for_unexported_series_are_refused() {
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
            ("1 + 1", "", "it selects no series"),
        ] {
            let mentioned_labels: Vec<String> =
                mentioned_labels.split_whitespace().map(str::to_owned).collect();
            let error = check_query(&exported, query, &mentioned_labels).unwrap_err();
            assert_eq!(error.to_string(), want, "{query}");
        }
    }

    #[test]
    fn labels_mentioned_in_texts() {
        assert_eq!(mentioned_labels("{{name}} of {{ $labels.job }}: {{"), ["name", "job", ""]);
    }
}
