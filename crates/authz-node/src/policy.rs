//! The policy that holds for every node: the rules of the cluster role `system:node`, and feature gates.

use authz::{
    Attributes, NonResourceRule, Resource, ResourceRule, Target, TraceEvent, TraceRecorder, Verb,
};

/// The rules that hold for every node. There are few and they do not change, so they are tried in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeRules {
    /// The rules that allow nodes verbs on resources.
    pub resource_rules: Vec<ResourceRule>,
    /// The rules that allow nodes verbs on URL paths.
    pub non_resource_rules: Vec<NonResourceRule>,
}

/// The feature gates of Kubernetes that change what nodes may do. The defaults are those of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeFeatureGates {
    /// `KubeletServiceAccountTokenForCredentialProviders`: nodes read the service accounts of
    /// their pods.
    pub service_account_token_for_credential_providers: bool,
    /// `PodCertificateRequest`: nodes request certificates for their pods, and read the service
    /// accounts of their pods.
    pub is_pod_certificate_request_enabled: bool,
    /// `CSIVolumeHealth`: nodes report the health of volumes in the status of their CSINode.
    pub is_csi_volume_health_enabled: bool,
}

impl Default for NodeFeatureGates {
    fn default() -> Self {
        Self {
            service_account_token_for_credential_providers: true,
            is_pod_certificate_request_enabled: true,
            is_csi_volume_health_enabled: false,
        }
    }
}

impl NodeRules {
    /// Reports whether some rule allows the request. Records that rule. If no rule allows it, records the
    /// rules that cover the resource but lack the verb or the name.
    pub(crate) fn allows(
        &self,
        attributes: &Attributes<'_>,
        recorder: &mut TraceRecorder<'_>,
    ) -> bool {
        match &attributes.target {
            Target::Resource(resource) => self.allows_resource(attributes.verb, resource, recorder),
            Target::Path(path) => self.allows_path(attributes.verb, path, recorder),
        }
    }

    fn allows_resource(
        &self,
        verb: Verb<'_>,
        resource: &Resource<'_>,
        recorder: &mut TraceRecorder<'_>,
    ) -> bool {
        for (idx, rule) in self.resource_rules.iter().enumerate() {
            if !covers_resource(rule, resource) {
                continue;
            }
            let has_verb = contains_or_wildcard(&rule.verbs, verb.as_str());
            let has_name = rule.resource_names.is_empty()
                || rule.resource_names.iter().any(|name| name == resource.name);
            if has_verb && has_name {
                recorder.record_trace_event(|| {
                    rule_trace_event(rule, idx).with_trace_event_value("matches", true)
                });
                return true;
            }
            recorder.record_trace_event(|| {
                let missing = match (has_verb, has_name) {
                    (false, true) => "verb",
                    (true, _) => "name",
                    (false, false) => "verb and name",
                };
                rule_trace_event(rule, idx)
                    .with_trace_event_value("matches", false)
                    .with_trace_event_value("missing", missing)
            });
        }
        false
    }

    fn allows_path(&self, verb: Verb<'_>, path: &str, recorder: &mut TraceRecorder<'_>) -> bool {
        for (idx, rule) in self.non_resource_rules.iter().enumerate() {
            if !rule.non_resource_urls.iter().any(|url| covers_path(url, path)) {
                continue;
            }
            let matches = contains_or_wildcard(&rule.verbs, verb.as_str());
            recorder.record_trace_event(|| {
                TraceEvent::new("rule")
                    .with_trace_event_value("index", idx)
                    .with_trace_event_value("verbs", rule.verbs.clone())
                    .with_trace_event_value("nonResourceURLs", rule.non_resource_urls.clone())
                    .with_trace_event_value("matches", matches)
            });
            if matches {
                return true;
            }
        }
        false
    }
}

fn contains_or_wildcard(list: &[String], value: &str) -> bool {
    list.iter().any(|item| item == "*" || item == value)
}

fn covers_resource(rule: &ResourceRule, resource: &Resource<'_>) -> bool {
    contains_or_wildcard(&rule.api_groups, resource.api_group)
        && rule
            .resources
            .iter()
            .any(|pattern| pattern == "*" || matches_resource(pattern, resource))
}

/// Reports whether the text is `resource`, `resource/subresource` or `*/subresource` of the request. The
/// resource of a request may contain slashes.
fn matches_resource(text: &str, resource: &Resource<'_>) -> bool {
    if resource.subresource.is_empty() {
        return text == resource.resource;
    }
    text.strip_suffix(resource.subresource)
        .and_then(|text| text.strip_suffix('/'))
        .is_some_and(|name| name == "*" || name == resource.resource)
}

/// Reports whether the text is `*`, the path, or a prefix of the path followed by `*`.
fn covers_path(text: &str, path: &str) -> bool {
    text == path || (text.ends_with('*') && path.starts_with(text.trim_end_matches('*')))
}

fn rule_trace_event(rule: &ResourceRule, idx: usize) -> TraceEvent {
    TraceEvent::new("rule")
        .with_trace_event_value("index", idx)
        .with_trace_event_value("verbs", rule.verbs.clone())
        .with_trace_event_value("apiGroups", rule.api_groups.clone())
        .with_trace_event_value("resources", rule.resources.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(resource: &'static str, subresource: &'static str) -> Resource<'static> {
        Resource { resource, subresource, ..Resource::default() }
    }

    #[test]
    fn resource_names_match_exactly() {
        for (text, resource, subresource, want) in [
            ("pods", "pods", "", true),
            ("pods", "pods", "log", false),
            ("pods/log", "pods", "log", true),
            ("pods/log", "pods", "", false),
            ("pods/log", "pods/log", "", true),
            ("*/log", "pods", "log", true),
            ("*/log", "pods", "", false),
            ("pods/*", "pods", "log", false),
            ("pods/*", "pods", "*", true),
            ("podslog", "pods", "log", false),
            ("xlog", "", "log", false),
        ] {
            assert_eq!(matches_resource(text, &request(resource, subresource)), want, "{text}");
        }
    }

    #[test]
    fn paths_match_exactly_or_by_prefix() {
        for (text, path, want) in [
            ("*", "/any", true),
            ("*", "", true),
            ("/a", "/a", true),
            ("/a", "/a/b", false),
            ("/a/*", "/a/b", true),
            ("/a/*", "/a", false),
            ("/a**", "/ab", true),
            ("/a*b", "/axb", false),
            ("", "", true),
        ] {
            assert_eq!(covers_path(text, path), want, "{text} {path}");
        }
    }
}
