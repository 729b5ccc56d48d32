//! Checks alerting rules of Prometheus.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::exported_metrics::ExportedMetrics;
use crate::query::{check_query, mentioned_labels};
use crate::tables::table_rows;

/// The severities that an alert may have.
const SEVERITIES: [&str; 2] = ["critical", "warning"];

/// Lists the faults of a file of alerting rules: queries that select nothing, rules without a summary,
/// a description or a severity, and differences from the table of alerts in `explanation`.
pub fn lint_alerts(exported: &ExportedMetrics, yaml: &str, explanation: &str) -> Vec<String> {
    let tree = match document::yaml_to_json(yaml.as_bytes()) {
        Ok(tree) => tree,
        Err(error) => return vec![error.to_string()],
    };
    let mut faults: Vec<String> = tree
        .duplicate_keys
        .iter()
        .map(|duplicate| format!("it stands twice: {duplicate:?}"))
        .collect();
    let mut names = BTreeSet::new();
    for group in tree.value["groups"].as_array().into_iter().flatten() {
        for rule in group["rules"].as_array().into_iter().flatten() {
            let name = text(rule, "alert");
            if !names.insert(name) {
                faults.push(format!("{name}: it stands twice"));
            }
            faults.extend(lint_rule(exported, rule).map(|fault| format!("{name}: {fault}")));
        }
    }
    let explained = table_rows(explanation).filter(|row| row.header == "alert");
    let explained: BTreeSet<String> = explained.filter_map(|row| row.name()).collect();
    let explained: BTreeSet<&str> = explained.iter().map(String::as_str).collect();
    faults.extend(names.difference(&explained).map(|name| format!("{name}: no table has it")));
    faults.extend(explained.difference(&names).map(|name| format!("{name}: no rule has it")));
    faults
}

fn lint_rule(exported: &ExportedMetrics, rule: &Value) -> impl Iterator<Item = String> + use<> {
    let (summary, description) =
        (text(&rule["annotations"], "summary"), text(&rule["annotations"], "description"));
    let silent = summary.is_empty() || description.is_empty();
    let silent = silent.then(|| "it does not say what has happened".to_owned());
    let is_severe = SEVERITIES.contains(&text(&rule["labels"], "severity"));
    let severity = (!is_severe).then(|| "it does not say how bad that is".to_owned());
    let labels = mentioned_labels(&format!("{summary}{description}"));
    let query =
        check_query(exported, text(rule, "expr"), &labels).err().map(|error| error.to_string());
    silent.into_iter().chain(severity).chain(query)
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::exported_metrics::Family;

    #[test]
    fn every_fault_is_found() {
        let family = Family { kind: "gauge", labels: BTreeMap::new(), samples: BTreeMap::new() };
        let exported = BTreeMap::from([("a".to_owned(), family)]);
        let rule = |name: &str, query: &str| {
            format!(
                "{{alert: {name}, expr: '{query}', labels: {{severity: warning}}, annotations: \
                 {{summary: s, description: '{{{{ $labels.job }}}}'}}}}"
            )
        };
        let file = |rules: &[String]| format!("groups: [{{rules: [{}]}}]", rules.join(", "));
        let table = "| alert | means |\n|---|---|\n| `A` | a |\n";
        let good = file(&[rule("A", "max by (job) (a)")]);
        assert_eq!(lint_alerts(&exported, &good, table), [""; 0]);

        let bad = file(&[rule("B", "b"), rule("B", "a"), "{alert: C, expr: a}".to_owned()]);
        assert_eq!(
            lint_alerts(&exported, &bad, table),
            [
                "B: no series `b`",
                "B: it stands twice",
                "C: it does not say what has happened",
                "C: it does not say how bad that is",
                "B: no table has it",
                "C: no table has it",
                "A: no rule has it",
            ]
        );
        assert_eq!(lint_alerts(&exported, "[", table).len(), 1);
    }
}
