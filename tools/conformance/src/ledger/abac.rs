//! Differences in the reading of ABAC policy files.

use serde_json::{Map, Value, json};

use crate::suites::{AnswerPair, answer_for_policy, load_error_answer};
use crate::vectors::Vector;

const V1BETA1: &str = "abac.authorization.kubernetes.io/v1beta1";
const V0: &str = "abac.authorization.kubernetes.io/v0";
/// Values of `apiVersion` that are not versions of the file format, but that Kubernetes accepts.
const INTERNAL: [&str; 2] = ["abac.authorization.kubernetes.io/__internal", "/"];
const AUTHENTICATED: &str = "system:authenticated";

/// Kubernetes accepts a line that it does not understand. Portcullis refuses the file at the first such line.
pub(super) fn fail_open_line(vector: &Vector, _: &AnswerPair, want: &mut Value) -> bool {
    let Ok(policy) = vector.text("policy") else { return false };
    let overlooked = lines(policy).find(|(_, text)| match object(text) {
        None => true,
        Some(line) => match member(&line, "apiVersion") {
            "" => line.contains_key("spec"),
            V0 => member(&line, "kind").is_empty(),
            api_version => INTERNAL.contains(&api_version),
        },
    });
    match (overlooked, want["errorLine"].as_u64()) {
        (Some((number, _)), known) if known.is_none_or(|known| number < known) => {
            *want = load_error_answer(policy, number);
            true
        }
        _ => false,
    }
}

/// A line with the field names of the proposal has the same effect as the line with the current names.
pub(super) fn proposal_names(vector: &Vector, _: &AnswerPair, want: &mut Value) -> bool {
    let Ok(policy) = vector.text("policy") else { return false };
    let modern: Vec<String> =
        policy.lines().map(|text| modern_line(text).unwrap_or_else(|| text.to_owned())).collect();
    let modern = modern.join("\n");
    if modern == policy.lines().collect::<Vec<_>>().join("\n") {
        return false;
    }
    match answer_for_policy(&modern, vector) {
        Ok(answer) => {
            *want = answer;
            true
        }
        Err(_) => false,
    }
}

/// Paths have no namespace, so their rules are listed for every namespace.
pub(super) fn path_rules(vector: &Vector, _: &AnswerPair, want: &mut Value) -> bool {
    let (Ok(policy), Ok(asked)) = (vector.text("policy"), vector.list("rules")) else {
        return false;
    };
    let Some(listed) = want["rules"].as_array_mut() else { return false };
    let mut has_changed = false;
    for (asked, listed) in asked.iter().zip(listed) {
        let rules = lines(policy).filter_map(|(_, text)| {
            let modern = modern_line(text);
            path_rule(&object(modern.as_deref().unwrap_or(text))?, &asked["user"])
        });
        let rules: Vec<Value> = rules.collect();
        if listed["nonResourceRules"].as_array().map_or(0, Vec::len) < rules.len() {
            listed["nonResourceRules"] = Value::from(rules);
            has_changed = true;
        }
    }
    has_changed
}

/// The lines that are neither blank nor comments, with their numbers.
fn lines(policy: &str) -> impl Iterator<Item = (u64, &str)> {
    let text = policy.strip_prefix('\u{feff}').unwrap_or(policy);
    (1..).zip(text.lines()).filter(|(_, line)| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    })
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

/// Returns a text member. An absent or null member is an empty text.
fn member<'o>(object: &'o Map<String, Value>, key: &str) -> &'o str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Replaces the field names of the proposal in a line by the current names. Returns `None` if the line has none.
fn modern_line(text: &str) -> Option<String> {
    let mut line = object(text)?;
    let is_unversioned = member(&line, "apiVersion").is_empty();
    let kind = member(&line, "kind").to_owned();
    if member(&line, "apiVersion") == V1BETA1 {
        return None;
    }
    let mut has_changed = false;
    if is_unversioned && !kind.is_empty() && kind != "Policy" {
        line.remove("kind");
        line.insert("resource".to_owned(), Value::String(kind.to_ascii_lowercase()));
        has_changed = true;
    }
    if let Some(namespace) = line.remove("ns") {
        line.insert("namespace".to_owned(), namespace);
        has_changed = true;
    }
    has_changed.then(|| Value::Object(line).to_string())
}

/// The rule about paths that a line grants to a user.
fn path_rule(line: &Map<String, Value>, user: &Value) -> Option<Value> {
    let none = Map::new();
    let is_v1beta1 = member(line, "apiVersion") == V1BETA1;
    let spec = if is_v1beta1 {
        line.get("spec").and_then(Value::as_object).unwrap_or(&none)
    } else {
        line
    };
    let path = match is_v1beta1 {
        true => member(spec, "nonResourcePath"),
        false if member(spec, "namespace").is_empty() && member(spec, "resource").is_empty() => "*",
        false => "",
    };
    let (name, group) = match (member(spec, "user"), member(spec, "group")) {
        ("*", _) | (_, "*") => ("", AUTHENTICATED),
        ("", "") if !is_v1beta1 => ("", AUTHENTICATED),
        subject => subject,
    };
    let is_named = name.is_empty() || user["name"] == name;
    let groups = user["groups"].as_array().into_iter().flatten();
    let is_member = group.is_empty() || groups.into_iter().any(|own| own == group);
    if path.is_empty() || (name.is_empty() && group.is_empty()) || !is_named || !is_member {
        return None;
    }
    let is_readonly = spec.get("readonly").and_then(Value::as_bool).unwrap_or_default();
    let verbs = if is_readonly { json!(["get", "list", "watch"]) } else { json!(["*"]) };
    Some(json!({ "verbs": verbs, "nonResourceURLs": [path] }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LEDGER, Suite, VectorOutcome, judge};

    fn outcome(body: Value) -> VectorOutcome {
        let Value::Object(body) = body else { panic!("the body is an object") };
        let vector = Vector { id: "v".to_owned(), feature: "f".to_owned(), body };
        judge(Suite::Abac, &vector, LEDGER).unwrap().outcome
    }

    fn get(user: &str, namespace: &str, decision: &str) -> Value {
        let reason = if decision == "allow" { "" } else { "No policy matched." };
        json!({
            "attributes": {
                "user": {"name": user, "groups": ["system:authenticated"]}, "verb": "get",
                "resource": {"namespace": namespace, "resource": "pods"},
            },
            "decision": decision, "reason": reason,
        })
    }

    #[test]
    fn lines_that_kubernetes_misreads_are_refused() {
        let without_kind = format!("{{\"apiVersion\":\"{V0}\"}}");
        let internal = format!("{{\"apiVersion\":\"{}\",\"kind\":\"Policy\"}}", INTERNAL[0]);
        let spec = "{\"spec\":{\"user\":\"bob\"}}";
        for line in ["null", "---", "user: bob", spec, &without_kind, &internal] {
            let policy = format!("{{}}\n{line}");
            let checks = [get("eve", "a", "allow")];
            let body = json!({"policy": policy, "load": "ok", "policies": 2, "checks": checks});
            assert_eq!(outcome(body), VectorOutcome::Agreed(vec!["abac-fail-open-line"]), "{line}");
        }
        // The file is refused at this line, even if Kubernetes refuses a later line.
        let body = json!({
            "policy": "---\n{", "load": "error", "errorLine": 2,
            "error": "error reading policy file POLICY_FILE, line 2: {: x",
        });
        assert_eq!(outcome(body), VectorOutcome::Agreed(vec!["abac-fail-open-line"]));
        // The rule does not apply to a file that can be read.
        let body = json!({"policy": "{\"user\":\"bob\"}", "load": "error", "errorLine": 1});
        assert!(matches!(outcome(body), VectorOutcome::Failed(_)));
    }

    #[test]
    fn field_names_of_the_proposal_are_accepted() {
        let ns = "{\"user\":\"bob\",\"ns\":\"a\"}";
        let body = json!({
            "policy": ns, "load": "ok", "policies": 1,
            "checks": [get("bob", "a", "allow"), get("bob", "b", "allow")],
        });
        assert_eq!(outcome(body), VectorOutcome::Agreed(vec!["abac-proposal-names"]));
        let asked = json!({
            "user": {"name": "bob"}, "namespace": "b",
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        });
        let body = json!({"policy": ns, "load": "ok", "policies": 1, "rules": [asked]});
        assert_eq!(outcome(body), VectorOutcome::Agreed(vec!["abac-proposal-names"]));
        let kind = "{\"user\":\"bob\",\"kind\":\"Pods\"}";
        let error = format!("error reading policy file POLICY_FILE, line 1: {kind}: no kind");
        let body = json!({"policy": kind, "load": "error", "errorLine": 1, "error": error});
        assert_eq!(outcome(body), VectorOutcome::Agreed(vec!["abac-proposal-names"]));
    }

    #[test]
    fn path_rules_are_listed_in_every_namespace() {
        let policy = format!(
            "{{\"apiVersion\":\"{V1BETA1}\",\"kind\":\"Policy\",\
             \"spec\":{{\"user\":\"bob\",\"nonResourcePath\":\"/x\"}}}}"
        );
        let rules = |user: &str, listed: Value| {
            let asked =
                json!({"user": {"name": user}, "namespace": "a", "nonResourceRules": listed});
            json!({"policy": policy, "load": "ok", "policies": 1, "rules": [asked]})
        };
        assert_eq!(
            outcome(rules("bob", json!([]))),
            VectorOutcome::Agreed(vec!["abac-path-rules"])
        );
        assert_eq!(outcome(rules("eve", json!([]))), VectorOutcome::Passed);
        let more = json!([{"verbs": ["*"], "nonResourceURLs": ["/y"]}]);
        assert!(matches!(outcome(rules("bob", more)), VectorOutcome::Failed(_)));
    }
}
