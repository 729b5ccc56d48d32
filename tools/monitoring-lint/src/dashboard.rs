//! Checks a Grafana dashboard.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::exported_metrics::ExportedMetrics;
use crate::query::{check_query, mentioned_labels};

/// Lists the faults of a dashboard: queries that select nothing, panels without a description, and families
/// that no panel shows.
pub fn lint_dashboard(exported: &ExportedMetrics, json: &str) -> Vec<String> {
    let dashboard: Value = match serde_json::from_str(json) {
        Ok(dashboard) => dashboard,
        Err(error) => return vec![error.to_string()],
    };
    let mut faults = Vec::new();
    let mut used = String::new();
    let mut ids = BTreeSet::new();
    for panel in items(&dashboard["panels"]) {
        let title = text(panel, "title");
        if !panel["id"].as_u64().is_some_and(|id| ids.insert(id)) {
            faults.push(format!("{title}: it has no id of its own"));
        }
        if text(panel, "type") == "row" {
            continue;
        }
        if text(panel, "description").is_empty() {
            faults.push(format!("{title}: it does not say what it shows"));
        }
        let targets = items(&panel["targets"]);
        if targets.is_empty() {
            faults.push(format!("{title}: it shows nothing"));
        }
        for target in targets {
            let query = text(target, "expr");
            let legend = mentioned_labels(text(target, "legendFormat"));
            if let Err(fault) = check_query(exported, query, &legend) {
                faults.push(format!("{title}: {fault} in {query}"));
            }
            used += query;
        }
    }
    faults.extend(lint_variables(exported, &dashboard));
    let forgotten = exported.keys().filter(|family| !used.contains(family.as_str()));
    faults.extend(forgotten.map(|family| format!("no panel shows {family}")));
    faults
}

/// Lists the faults of variables, which take their values from the labels of a series.
fn lint_variables(exported: &ExportedMetrics, dashboard: &Value) -> Vec<String> {
    let queries = items(&dashboard["templating"]["list"]).iter();
    let queries = queries.filter_map(|variable| variable["query"]["query"].as_str());
    let fault = |query: &str| {
        let arguments = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        let Some((series, label)) = arguments.and_then(|both| both.split_once(", ")) else {
            return Some(format!("no variable: {query}"));
        };
        let checked = check_query(exported, series, &[label.to_owned()]);
        checked.err().map(|fault| format!("{fault} in {query}"))
    };
    queries.filter_map(fault).collect()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::exported_metrics::Family;

    #[test]
    fn every_fault_is_found() {
        let family = Family { kind: "gauge", labels: BTreeMap::new(), samples: BTreeMap::new() };
        let exported = BTreeMap::from([("a".to_owned(), family.clone()), ("b".to_owned(), family)]);
        let good = json!({
            "id": 1, "title": "A", "type": "x", "description": "d",
            "targets": [{"expr": "a", "legendFormat": "{{job}}"}, {"expr": "max(b)"}],
        });
        let variable = |query: &str| json!({"query": {"query": query}});
        let dashboard = json!({
            "panels": [{"id": 7, "type": "row"}, good],
            "templating": {"list": [variable("label_values(a, instance)"), {"query": "x"}]},
        });
        assert_eq!(lint_dashboard(&exported, &dashboard.to_string()), [""; 0]);

        let bad = json!({"id": 7, "title": "B", "type": "x", "targets": [{"expr": "c"}]});
        let dashboard = json!({
            "panels": [{"id": 7, "type": "row"}, bad, {"id": 8, "title": "C", "description": "d"}],
            "templating": {"list": [variable("label_values(a, c)"), variable("a")]},
        });
        assert_eq!(
            lint_dashboard(&exported, &dashboard.to_string()),
            [
                "B: it has no id of its own",
                "B: it does not say what it shows",
                "B: no series `c` in c",
                "C: it shows nothing",
                "no series of the query has `c` in label_values(a, c)",
                "no variable: a",
                "no panel shows a",
                "no panel shows b",
            ]
        );
        assert_eq!(lint_dashboard(&exported, "{").len(), 1);
    }
}
