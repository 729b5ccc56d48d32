//! Warns of policies that grant resources to a subject and not the paths of discovery.

use std::collections::HashSet;

use authz::{Attributes, Target, TraceRecorder, User, Verb, Verdict};
use authz_abac::{Policy, Snapshot};
use document::{LineIndex, Source, Span, Warning, WarningCode};

use super::policy_line::V1BETA1;

/// The paths that kubectl asks for before it asks for a resource.
const DISCOVERY_PATHS: [&str; 2] = ["/api", "/apis"];

/// The group of every user who is not anonymous.
const AUTHENTICATED_GROUP: &str = "system:authenticated";

/// Warns if the policies grant resources to a subject that may not read the paths of discovery. kubectl then fails before it
/// asks for a resource, unless another authorizer grants these paths, as the default roles of RBAC do.
///
/// There is one warning, at the first such line.
pub fn warn_of_ungranted_discovery_paths(
    source: &Source<'_>,
    snapshot: &Snapshot,
) -> Option<Warning> {
    let mut lacking = HashSet::new();
    let mut first = None;
    for policy in snapshot.policies() {
        let spec = policy.spec();
        let subject = (spec.user.as_str(), spec.group.as_str());
        let grants_resources = !spec.resource.is_empty() && subject != ("", "");
        if !grants_resources
            || lacking.contains(&subject)
            || may_read_discovery_paths(snapshot, policy)
        {
            continue;
        }
        lacking.insert(subject);
        first.get_or_insert(policy);
    }
    let policy = first?;
    let spec = policy.spec();
    let (part, name) = match spec.user.as_str() {
        "" => ("group", &spec.group),
        _ => ("user", &spec.user),
    };
    let others = match lacking.len() - 1 {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let line = format!(
        "{{\"apiVersion\":\"{V1BETA1}\",\"kind\":\"Policy\",\"spec\":{{\"{part}\":{},\
         \"readonly\":true,\"nonResourcePath\":\"*\"}}}}",
        serde_json::Value::from(name.as_str())
    );
    let text = source.text();
    let position = LineIndex::new(&text).position_of_span(line_span(&text, policy.line_number()));
    Some(Warning {
        code: WarningCode::NoDiscovery,
        field: String::new(),
        message: format!(
            "no line lets {part} `{name}`{others} read /api and /apis, which kubectl asks for first"
        ),
        file_name: source.name.to_owned(),
        position,
        hint: Some(format!("unless another authorizer grants these paths, add {line}")),
    })
}

/// Reports whether the subject of a policy may read the paths of discovery.
fn may_read_discovery_paths(snapshot: &Snapshot, policy: &Policy) -> bool {
    let spec = policy.spec();
    let groups = [AUTHENTICATED_GROUP, spec.group.as_str()].map(str::to_owned).to_vec();
    let user = User { name: spec.user.clone(), groups, ..User::default() };
    DISCOVERY_PATHS.into_iter().all(|path| {
        let request = Attributes { user: Some(&user), verb: Verb::GET, target: Target::Path(path) };
        snapshot.authorize(&request, TraceRecorder::disabled_recorder()).verdict == Verdict::Allow
    })
}

/// The bytes of a line, counted from 1.
fn line_span(text: &str, number: usize) -> Span {
    let before = text.split_inclusive('\n').take(number.saturating_sub(1));
    let start = before.map(str::len).sum();
    let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    Span::new(start, start + line.len())
}
