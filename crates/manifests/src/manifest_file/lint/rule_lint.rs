//! Warnings about rules, or parts of rules, that match no request.

use authz_rbac::{PolicyRule, Role};
use document::WarningCode;

use super::LintContext;
use super::built_in_resources::BUILT_IN_RESOURCES;
use crate::rbac::check_role_limits;

/// HTTP methods that are not verbs of resources, each with the verb that corresponds to it.
const METHOD_VERBS: [(&str, &str); 3] = [("post", "create"), ("put", "update"), ("head", "get")];

/// Verbs of resources that are not HTTP methods, and therefore not verbs of paths.
const RESOURCE_VERBS: [&str; 5] = ["list", "watch", "create", "update", "deletecollection"];

/// A message about a value that matches no request, and a hint.
type LintFault = (String, Option<String>);

pub(super) fn lint_rules(role: &Role, ctx: &mut LintContext<'_>) {
    // The rules of an aggregated role come from other roles and are linted there.
    if role.aggregation_rule.is_some() {
        return;
    }
    for fault in check_role_limits(role, None) {
        ctx.warn_at_field(
            WarningCode::OversizedRole,
            &fault.path,
            fault.message_without_path(),
            None,
        );
    }
    for (idx, rule) in role.rules.iter().enumerate() {
        let is_for_paths = !rule.non_resource_urls.is_empty();
        let mut each =
            |code, field: &str, values: &[String], lint: &dyn Fn(&str) -> Option<LintFault>| {
                for (item, value) in values.iter().enumerate() {
                    if let Some((message, hint)) = lint(value) {
                        ctx.warn_at_field(
                            code,
                            &format!("rules[{idx}].{field}[{item}]"),
                            message,
                            hint,
                        );
                    }
                }
            };
        each(WarningCode::UnmatchedVerb, "verbs", &rule.verbs, &|value| {
            lint_verb(value, is_for_paths)
        });
        each(WarningCode::UnmatchedApiGroup, "apiGroups", &rule.api_groups, &lint_api_group);
        each(WarningCode::UnmatchedResource, "resources", &rule.resources, &|value| {
            lint_resource(value, &rule.api_groups)
        });
        each(WarningCode::UnmatchedUrl, "nonResourceURLs", &rule.non_resource_urls, &lint_url);
        each(WarningCode::CreateByName, "verbs", &rule.verbs, &|value| {
            lint_create_by_name(value, rule)
        });
    }
}

fn lint_verb(verb: &str, is_for_paths: bool) -> Option<LintFault> {
    let lower = verb.trim().to_ascii_lowercase();
    if lower != verb {
        let message =
            format!("no request has the verb {}: verbs are lower case", go_compat::quote(verb));
        return Some((message, Some(format!("write `{lower}`"))));
    }
    if is_for_paths {
        return RESOURCE_VERBS.contains(&verb).then(|| {
            let message = format!("no request for a path has the verb `{verb}`");
            let hint = "the verb of a path is the method of HTTP in lower case".to_owned();
            (message, Some(hint))
        });
    }
    let (_, name) = METHOD_VERBS.iter().find(|(method, _)| *method == verb)?;
    let message = format!("no request for a resource has the verb `{verb}`");
    Some((message, Some(format!("for resources it is `{name}`"))))
}

fn lint_api_group(group: &str) -> Option<LintFault> {
    let message = || format!("no resource is in the API group {}", go_compat::quote(group));
    let is_version = |text: &str| {
        let rest = text.strip_prefix('v').unwrap_or_default();
        rest.starts_with(|c: char| c.is_ascii_digit())
    };
    if group == "core" || is_version(group) {
        let hint = "the group of pods, services and secrets is `\"\"`".to_owned();
        return Some((message(), Some(hint)));
    }
    if let Some((name, _)) = group.split_once('/') {
        return Some((message(), Some(format!("write `{name}` without a version"))));
    }
    let tidy = group.trim().to_ascii_lowercase();
    (tidy != group).then(|| (message(), Some(format!("write `{tidy}`"))))
}

fn lint_resource(resource: &str, api_groups: &[String]) -> Option<LintFault> {
    let message = |why: &str| format!("{} matches nothing: {why}", go_compat::quote(resource));
    let lower = resource.trim().to_ascii_lowercase();
    if lower != resource {
        let why = "resources are lower case and without spaces";
        return Some((message(why), Some(format!("write `{lower}`"))));
    }
    let (name, subresource) = match resource.split_once('/') {
        None => (resource, None),
        Some((name, subresource)) => (name, Some(subresource)),
    };
    match (name, subresource) {
        ("", _) => {
            let hint = subresource.map(|own| format!("`*/{own}` is for all resources"));
            Some((message("there is no resource in it"), hint))
        }
        (_, Some("")) => {
            Some((message("there is no subresource in it"), Some(format!("write `{name}`"))))
        }
        ("*", Some("*")) => {
            let why = "`*` alone is everything";
            Some((message(why), Some("write `*`".to_owned())))
        }
        (_, Some("*")) => {
            let why = "`*` does not stand for all subresources";
            let hint = format!("name them, such as `{name}/status`, or use `*/<subresource>`");
            Some((message(why), Some(hint)))
        }
        ("*", _) => None,
        (name, Some(subresource)) if subresource.contains('/') => {
            let why = "a subresource has no further parts";
            let first = subresource.split('/').next().unwrap_or_default();
            Some((message(why), Some(format!("did you mean `{name}/{first}`?"))))
        }
        (name, _) => {
            let fault = BUILT_IN_RESOURCES.explain_resource_not_in_groups(name, api_groups)?;
            Some((message(&fault.reason), Some(fault.hint)))
        }
    }
}

fn lint_url(url: &str) -> Option<LintFault> {
    let message = |why: &str| format!("{} matches nothing: {why}", go_compat::quote(url));
    if url != "*" && !url.starts_with('/') {
        let hint = (!url.is_empty()).then(|| format!("did you mean `/{url}`?"));
        return Some((message("paths begin with `/`"), hint));
    }
    let prefix = url.trim_end_matches('*');
    prefix.contains('*').then(|| {
        let why = "`*` stands for any rest at the end only";
        let first = prefix.split('*').next().unwrap_or_default();
        (message(why), Some(format!("did you mean `{first}*`?")))
    })
}

/// Warns about `create` in a rule with names. A request that creates an object has no name; a request that
/// creates a subresource such as `pods/exec` has one.
fn lint_create_by_name(verb: &str, rule: &PolicyRule) -> Option<LintFault> {
    let is_named = !rule.resource_names.is_empty();
    let is_plain = rule.resources.iter().all(|resource| !resource.contains('/') && resource != "*");
    (verb == "create" && is_named && is_plain).then(|| {
        let message = "`create` matches nothing in a rule with `resourceNames`".to_owned();
        (message, Some("give `create` a rule of its own, without names".to_owned()))
    })
}
