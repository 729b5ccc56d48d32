//! `portcullis check` reports the expected findings for each admission configuration of a list.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::program::{TESTDATA, run};

/// One admission configuration and the expected findings.
struct Case {
    about: String,
    manifest: Value,
    errors: Vec<String>,
    warnings: Vec<String>,
}

fn rule() -> Value {
    json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]})
}

/// The version, the kind, its list and a valid entry of it.
fn valid(kind: &str, bundle: &str) -> (&'static str, &'static str, &'static str, Value) {
    let mut hook_rule = rule();
    let webhook = |rule: Value| {
        json!({
            "name": "a.b.c", "clientConfig": {"url": "https://example.com"}, "rules": [rule],
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        })
    };
    match kind {
        "IC" => {
            let entry = json!({"name": "a.b.c", "rules": [rule()]});
            ("v1alpha1", "InitializerConfiguration", "initializers", entry)
        }
        "EH" => {
            hook_rule["verbs"] = json!(["CREATE"]);
            let client = json!({"service": {"namespace": "n", "name": "s"}, "caBundle": bundle});
            let entry = json!({"name": "a.b.c", "clientConfig": client, "rules": [hook_rule]});
            let kind = "ExternalAdmissionHookConfiguration";
            ("v1alpha1", kind, "externalAdmissionHooks", entry)
        }
        "MW" | "VW" => {
            hook_rule["operations"] = json!(["CREATE"]);
            let name = match kind {
                "MW" => "MutatingWebhookConfiguration",
                _ => "ValidatingWebhookConfiguration",
            };
            ("v1", name, "webhooks", webhook(hook_rule))
        }
        other => panic!("no kind is called {other}"),
    }
}

/// Changes members; null removes one.
fn change(tree: &mut Value, changes: &Value) {
    let tree = tree.as_object_mut().unwrap();
    for (name, value) in changes.as_object().into_iter().flatten() {
        match value {
            Value::Null => tree.shift_remove(name),
            value => tree.insert(name.clone(), value.clone()),
        };
    }
}

fn texts(case: &Map<String, Value>, name: &str, entry: &str) -> Vec<String> {
    let texts = case.get(name).and_then(Value::as_array).into_iter().flatten();
    texts.map(|text| text.as_str().unwrap().replace('@', entry)).collect()
}

fn read(case: &Map<String, Value>, bundle: &str) -> Case {
    let known =
        ["about", "kind", "name", "entry", "rule", "client", "entries", "errors", "warnings"];
    assert!(case.keys().all(|name| known.contains(&name.as_str())), "{case:?}");
    let (version, kind, list, mut entry) = valid(case["kind"].as_str().unwrap(), bundle);
    let changes = |name: &str| case.get(name).cloned().unwrap_or(Value::Null);
    if !changes("rule").is_null() {
        change(&mut entry["rules"][0], &changes("rule"));
    }
    if !changes("client").is_null() {
        change(&mut entry["clientConfig"], &changes("client"));
    }
    change(&mut entry, &changes("entry"));
    let entries = case.get("entries").cloned().unwrap_or_else(|| json!([entry]));
    let name = case.get("name").and_then(Value::as_str).unwrap_or("x");
    let manifest = json!({
        "apiVersion": format!("admissionregistration.k8s.io/{version}"),
        "kind": kind,
        "metadata": {"name": name},
        list: entries,
    });
    let first = format!("{list}[0]");
    Case {
        about: case["about"].as_str().unwrap().to_owned(),
        manifest,
        errors: texts(case, "errors", &first),
        warnings: texts(case, "warnings", &first),
    }
}

/// The cases of the file, two about the number of match conditions, and one about a generated name.
fn cases() -> Vec<Case> {
    let bytes = std::fs::read(format!("{TESTDATA}/admission/configurations.yaml")).unwrap();
    let file = document::yaml_to_json(&bytes).unwrap().value;
    let bundle = base64(fake_http::Authority::new("hooks").unwrap().pem().as_bytes());
    let read = |case: &Value| read(case.as_object().unwrap(), &bundle);
    let mut cases: Vec<Case> = file["cases"].as_array().unwrap().iter().map(read).collect();
    for (n, errors) in [
        (64, vec![]),
        (65, vec!["webhooks[0].matchConditions: Too many: 65: must have at most 64 items"]),
    ] {
        let condition = |n: usize| json!({"name": format!("c{n}"), "expression": "true"});
        let conditions: Vec<Value> = (0..n).map(condition).collect();
        let changes = json!({"matchConditions": conditions});
        let case = json!({"about": "the number of match conditions", "kind": "VW", "entry": changes, "errors": errors});
        cases.push(read(&case));
    }
    // A server completes the prefix to a name, so the dash at its end is valid.
    let mut generated = read(&json!({"about": "a generated name", "kind": "MW"}));
    generated.manifest["metadata"] = json!({"generateName": "x-"});
    cases.push(generated);
    cases
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The messages about a file.
fn told(report: &Value, class: &str, file: &Path) -> Vec<String> {
    let found = report[class].as_array().unwrap().iter();
    let own = found.filter(|finding| finding["file"] == file.to_str().unwrap());
    let place = |finding: &Value| finding["line"].as_u64().filter(|line| *line > 1);
    own.map(|finding| {
        assert!(place(finding).is_some(), "{finding}");
        finding["message"].as_str().unwrap().to_owned()
    })
    .collect()
}

#[track_caller]
fn assert_told(case: &Case, class: &str, found: Vec<String>, want: &[String]) {
    let mut missing: Vec<&String> = want.iter().collect();
    let mut surplus = found;
    surplus.retain(|message| {
        let is_it = |want: &&String| match want.strip_suffix('…') {
            Some(beginning) => message.starts_with(beginning),
            None => message == *want,
        };
        let at = missing.iter().position(is_it);
        at.map(|at| missing.remove(at)).is_none()
    });
    let Case { about, manifest, .. } = case;
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "{about}: {class}: missing {missing:#?}, not wanted {surplus:#?}, of {manifest:#}"
    );
}

/// Each manifest is checked by itself, so that no configuration affects another.
#[test]
fn every_configuration_has_the_expected_findings() {
    let folder = tempfile::tempdir().unwrap();
    for (idx, case) in cases().iter().enumerate() {
        let file = folder.path().join(format!("{idx}.json"));
        std::fs::write(&file, format!("{:#}", case.manifest)).unwrap();
        let found = run(&["check", "-o", "json", file.to_str().unwrap()]);
        let is_valid = case.errors.is_empty();
        assert_eq!(
            (found.code, found.stderr.as_str()),
            (i32::from(!is_valid), ""),
            "{}",
            case.about
        );
        let report: Value = serde_json::from_str(&found.stdout).unwrap();
        assert_eq!(report["valid"], is_valid, "{}", case.about);
        assert_told(case, "errors", told(&report, "errors", &file), &case.errors);
        assert_told(case, "warnings", told(&report, "warnings", &file), &case.warnings);
    }
}
