//! The rules that hold for every node alike: those of the cluster role `system:node`.

use authz::{Attributes, Event, NonResourceRule, Recorder, Resource, ResourceRule, Target};

/// What every node may do. Rules are few and fixed, so they are tried in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeRules {
    /// With resources.
    pub resource_rules: Vec<ResourceRule>,
    /// With paths.
    pub non_resource_rules: Vec<NonResourceRule>,
}

impl NodeRules {
    /// Reports whether some rule allows the request, and notes which, or which nearly did.
    pub(crate) fn allow(&self, attributes: &Attributes<'_>, recorder: &mut Recorder<'_>) -> bool {
        match &attributes.target {
            Target::Resource(resource) => self.allow_resource(attributes.verb, resource, recorder),
            Target::Path(path) => self.allow_path(attributes.verb, path, recorder),
        }
    }

    fn allow_resource(&self, verb: &str, of: &Resource<'_>, recorder: &mut Recorder<'_>) -> bool {
        for (idx, rule) in self.resource_rules.iter().enumerate() {
            if !covers_resource(rule, of) {
                continue;
            }
            let has_verb = has(&rule.verbs, verb);
            let has_name = rule.resource_names.is_empty()
                || rule.resource_names.iter().any(|name| name == of.name);
            if has_verb && has_name {
                recorder.note(|| describe(rule, idx).with("matches", true));
                return true;
            }
            recorder.note(|| {
                let missing = match (has_verb, has_name) {
                    (false, true) => "verb",
                    (true, _) => "name",
                    (false, false) => "verb and name",
                };
                describe(rule, idx).with("matches", false).with("missing", missing)
            });
        }
        false
    }

    fn allow_path(&self, verb: &str, path: &str, recorder: &mut Recorder<'_>) -> bool {
        for (idx, rule) in self.non_resource_rules.iter().enumerate() {
            if !rule.non_resource_urls.iter().any(|url| covers_path(url, path)) {
                continue;
            }
            let matches = has(&rule.verbs, verb);
            recorder.note(|| {
                Event::new("rule")
                    .with("index", idx)
                    .with("verbs", rule.verbs.clone())
                    .with("nonResourceURLs", rule.non_resource_urls.clone())
                    .with("matches", matches)
            });
            if matches {
                return true;
            }
        }
        false
    }
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

fn covers_resource(rule: &ResourceRule, of: &Resource<'_>) -> bool {
    has(&rule.api_groups, of.api_group)
        && rule.resources.iter().any(|own| own == "*" || is_resource(own, of))
}

/// Whether the text is `resource`, `resource/subresource` or `*/subresource`, as asked for. The
/// resource itself may contain slashes, when somebody asks so.
fn is_resource(text: &str, of: &Resource<'_>) -> bool {
    if of.subresource.is_empty() {
        return text == of.resource;
    }
    text.strip_suffix(of.subresource)
        .and_then(|text| text.strip_suffix('/'))
        .is_some_and(|resource| resource == "*" || resource == of.resource)
}

/// Whether the text is `*`, the path, or a beginning of the path followed by `*`.
fn covers_path(text: &str, path: &str) -> bool {
    text == path || (text.ends_with('*') && path.starts_with(text.trim_end_matches('*')))
}

fn describe(rule: &ResourceRule, idx: usize) -> Event {
    Event::new("rule")
        .with("index", idx)
        .with("verbs", rule.verbs.clone())
        .with("apiGroups", rule.api_groups.clone())
        .with("resources", rule.resources.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(resource: &'static str, subresource: &'static str) -> Resource<'static> {
        Resource { resource, subresource, ..Resource::default() }
    }

    #[test]
    fn resources_match_whole() {
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
            assert_eq!(is_resource(text, &asked(resource, subresource)), want, "{text}");
        }
    }

    #[test]
    fn paths_match_whole_or_by_their_beginning() {
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
