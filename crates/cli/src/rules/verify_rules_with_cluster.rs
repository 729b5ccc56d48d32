//! Compares listed rules with the decisions of the cluster.

use authz::{Attributes, Namespace, Resource, Rules, Target, TraceRecorder, User, Verb, Verdict};

use crate::offline::OfflineAuthorizer;

/// Asks the cluster about each request that a rule names, if --verify is given. Returns a line for each disagreement.
///
/// A rule with `*` is compared as the request that has the `*` itself, which only such a rule allows. The function
/// compares the decision of our own chain about each request, not the rule itself, because some texts in a rule never
/// match a request.
pub(super) fn verify_rules_with_cluster(
    rules: &Rules,
    authorizer: &OfflineAuthorizer,
    user: &User,
    namespace: &str,
) -> Vec<String> {
    if !authorizer.verifies_answers() {
        return Vec::new();
    }
    let mut disagreements = Vec::new();
    let mut verify = |verb: &str, target: Target<'_>| {
        let attributes = Attributes { user: Some(user), verb: Verb::new(verb), target };
        let decision =
            authorizer.authorize(&attributes, TraceRecorder::disabled_recorder()).decision;
        disagreements.extend(
            authorizer.verify_with_cluster(&attributes, decision.verdict == Verdict::Allow),
        );
    };
    for rule in &rules.resource_rules {
        let all_names = [String::new()];
        let names = match rule.resource_names.as_slice() {
            [] => &all_names[..],
            names => names,
        };
        for verb in &rule.verbs {
            for api_group in &rule.api_groups {
                for resource in &rule.resources {
                    for name in names {
                        verify(verb, resource_target(api_group, resource, namespace, name));
                    }
                }
            }
        }
    }
    for rule in &rules.non_resource_rules {
        for verb in &rule.verbs {
            for path in &rule.non_resource_urls {
                verify(verb, Target::Path(path));
            }
        }
    }
    disagreements
}

fn resource_target<'a>(
    api_group: &'a str,
    resource: &'a str,
    namespace: &'a str,
    name: &'a str,
) -> Target<'a> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Target::Resource(Resource {
        api_group,
        api_version: "*",
        namespace: Namespace::new(namespace),
        resource,
        subresource,
        name,
        ..Resource::default()
    })
}
