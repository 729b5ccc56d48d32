//! The files under `docs/monitoring` speak only of what is exported.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::everything;
use crate::exposed::{self, Exposed};
use crate::promql;

/// Labels that Prometheus adds to whatever it scrapes.
const OF_THE_SCRAPE: [&str; 2] = ["instance", "job"];

fn read(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitoring/");
    std::fs::read_to_string(format!("{folder}{name}")).unwrap()
}

fn exported() -> Exposed {
    let (registry, _metrics, _kept) = everything::happened();
    exposed::look(&registry)
}

/// The labels of a series of that name, with their values; of a histogram there are three.
fn labels_of(
    exported: &Exposed,
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
    let others = OF_THE_SCRAPE.into_iter().chain(is_bucket.then_some("le"));
    Some(own.chain(others.map(|name| (name.to_owned(), None))).collect())
}

/// Checks a query and the labels that a text beside it mentions.
fn check(exported: &Exposed, query: &str, mentioned: &[String]) -> Result<(), String> {
    let looked = promql::look(query)?;
    let mut known = BTreeSet::new();
    for selector in &looked.selectors {
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
    let used = looked.labels.iter().chain(mentioned);
    match used.into_iter().find(|label| !known.contains(*label)) {
        Some(label) => Err(format!("no series of the query has `{label}`")),
        None if looked.selectors.is_empty() => Err("it looks at nothing".to_owned()),
        None => Ok(()),
    }
}

/// The labels in `{{name}}` and `{{ $labels.name }}`.
fn mentioned(text: &str) -> Vec<String> {
    let inside = text.split("{{").skip(1).filter_map(|part| part.split("}}").next());
    inside.map(|part| part.trim().trim_start_matches("$labels.").to_owned()).collect()
}

#[test]
fn the_dashboard_uses_what_is_exported() {
    let exported = exported();
    let dashboard: Value = serde_json::from_str(&read("grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    let mut used = String::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title} has the id of another panel");
        if panel["type"] == "row" {
            continue;
        }
        assert!(panel["description"].as_str().is_some_and(|text| !text.is_empty()), "{title}");
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{title}");
        for target in targets {
            let query = target["expr"].as_str().unwrap();
            let legend = target["legendFormat"].as_str().unwrap_or_default();
            check(&exported, query, &mentioned(legend))
                .unwrap_or_else(|error| panic!("{title}: {error} in {query}"));
            used += query;
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let Some(query) = variable["query"]["query"].as_str() else { continue };
        let arguments = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        let (series, label) = arguments.unwrap().split_once(", ").unwrap();
        check(&exported, series, &[label.to_owned()])
            .unwrap_or_else(|error| panic!("{error} in {query}"));
    }
    let forgotten: Vec<&String> =
        exported.keys().filter(|family| !used.contains(family.as_str())).collect();
    assert!(forgotten.is_empty(), "no panel shows {forgotten:?}");
}

#[test]
fn the_alerts_use_what_is_exported_and_are_explained() {
    let exported = exported();
    let alerts = api::yaml_tree(read("alerts.yaml").as_bytes()).unwrap();
    assert!(alerts.duplicates.is_empty(), "{:?}", alerts.duplicates);
    let readme = read("README.md");
    let mut names = BTreeSet::new();
    for group in alerts.value["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            let name = rule["alert"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} stands twice");
            let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
            let annotations = &rule["annotations"];
            let (summary, description) =
                (text(annotations, "summary"), text(annotations, "description"));
            assert!(!summary.is_empty() && !description.is_empty(), "{name}");
            assert!(
                ["critical", "warning"].contains(&&*text(&rule["labels"], "severity")),
                "{name}"
            );
            let mentioned = mentioned(&(summary + &description));
            check(&exported, &text(rule, "expr"), &mentioned)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    let explained: BTreeSet<String> = cells(&readme)
        .filter_map(|cells| Some(cells.first()?.trim_matches('`').to_owned()))
        .filter(|cell| cell.starts_with("Authorization"))
        .collect();
    assert_eq!(explained, names);
}

#[test]
fn the_tables_list_what_is_exported() {
    let listed: BTreeMap<String, (String, String)> = cells(&read("README.md"))
        .filter_map(|cells| match cells.as_slice() {
            [family, kind, labels, _what] if family.starts_with('`') => {
                Some((family.replace('`', ""), (kind.clone(), labels.replace('`', ""))))
            }
            _ => None,
        })
        .collect();
    let exported: BTreeMap<String, (String, String)> = exported()
        .into_iter()
        .map(|(name, family)| {
            let labels: Vec<String> = family.labels.into_keys().collect();
            (name, (family.kind.to_owned(), labels.join(", ")))
        })
        .collect();
    assert_eq!(listed, exported);
}

/// The rows of all tables.
fn cells(markdown: &str) -> impl Iterator<Item = Vec<String>> {
    markdown.lines().filter_map(|line| {
        let row = line.strip_prefix('|')?.strip_suffix('|')?;
        Some(row.split('|').map(|cell| cell.trim().to_owned()).collect())
    })
}

#[test]
fn a_query_for_what_is_not_exported_is_noticed() {
    let exported = exported();
    for (query, mentioned, want) in [
        ("no_such_total", "", "no series `no_such_total`"),
        ("authorization_duration_seconds", "", "no series `authorization_duration_seconds`"),
        (
            "authorization_attempts_total_count",
            "",
            "no series `authorization_attempts_total_count`",
        ),
        (
            "authorization_attempts_total{name=\"a\"}",
            "",
            "`authorization_attempts_total` has no `name`",
        ),
        (
            "authorization_attempts_total{result=\"refused\"}",
            "",
            "`result` of `authorization_attempts_total` is never `refused`",
        ),
        ("sum by (le) (authorization_attempts_total)", "", "no series of the query has `le`"),
        ("authorization_attempts_total", "name", "no series of the query has `name`"),
        ("1 + 1", "", "it looks at nothing"),
    ] {
        let mentioned: Vec<String> = mentioned.split_whitespace().map(str::to_owned).collect();
        assert_eq!(check(&exported, query, &mentioned), Err(want.to_owned()), "{query}");
    }
}
