//! Does a rule allow a request?

use authz::{Attributes, Resource, Target};

use crate::policy::PolicyRule;

/// What a rule asks of a request, part by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Verb,
    ApiGroup,
    Resource,
    ResourceName,
    Path,
}

impl Part {
    /// The field of a rule that speaks of this part.
    pub(crate) const fn field(self) -> &'static str {
        match self {
            Self::Verb => "verbs",
            Self::ApiGroup => "apiGroups",
            Self::Resource => "resources",
            Self::ResourceName => "resourceNames",
            Self::Path => "nonResourceURLs",
        }
    }

    /// What a rule says of this part.
    pub(crate) fn of(self, rule: &PolicyRule) -> &[String] {
        match self {
            Self::Verb => &rule.verbs,
            Self::ApiGroup => &rule.api_groups,
            Self::Resource => &rule.resources,
            Self::ResourceName => &rule.resource_names,
            Self::Path => &rule.non_resource_urls,
        }
    }
}

const RESOURCE_PARTS: &[Part] = &[Part::Verb, Part::ApiGroup, Part::Resource, Part::ResourceName];
const PATH_PARTS: &[Part] = &[Part::Verb, Part::Path];

/// The parts of a request that a rule has to have.
pub(crate) const fn parts_of(attributes: &Attributes<'_>) -> &'static [Part] {
    match attributes.target {
        Target::Resource(_) => RESOURCE_PARTS,
        Target::Path(_) => PATH_PARTS,
    }
}

impl PolicyRule {
    /// Reports whether the rule allows the request, whoever asks.
    ///
    /// A request for a resource needs the verb, the group, the resource and the name; any other
    /// needs the verb and the path. Selectors are not looked at.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        parts_of(attributes).iter().all(|part| self.has(*part, attributes))
    }

    /// Reports whether the rule has this part of the request.
    pub(crate) fn has(&self, part: Part, attributes: &Attributes<'_>) -> bool {
        match (part, &attributes.target) {
            (Part::Verb, _) => contains(&self.verbs, attributes.verb) || is_any(&self.verbs),
            (Part::ApiGroup, Target::Resource(resource)) => {
                contains(&self.api_groups, resource.api_group) || is_any(&self.api_groups)
            }
            (Part::Resource, Target::Resource(resource)) => {
                self.resources.iter().any(|entry| matches_resource(entry, resource))
            }
            (Part::ResourceName, Target::Resource(resource)) => {
                self.resource_names.is_empty() || contains(&self.resource_names, resource.name)
            }
            (Part::Path, Target::Path(path)) => {
                self.non_resource_urls.iter().any(|entry| matches_path(entry, path))
            }
            (Part::ApiGroup | Part::Resource | Part::ResourceName, Target::Path(_))
            | (Part::Path, Target::Resource(_)) => false,
        }
    }
}

fn contains(list: &[String], wanted: &str) -> bool {
    list.iter().any(|entry| entry == wanted)
}

fn is_any(list: &[String]) -> bool {
    contains(list, "*")
}

/// `*` is everything, subresources included; `*/scale` is that subresource of everything. All else
/// is literal, so `pods` is not `pods/log`, and `pods/*` is a subresource that is called `*`.
pub(crate) fn matches_resource(entry: &str, resource: &Resource<'_>) -> bool {
    if entry == "*" {
        return true;
    }
    if resource.subresource.is_empty() {
        return entry == resource.resource;
    }
    let Some(head) = entry.strip_suffix(resource.subresource).and_then(|s| s.strip_suffix('/'))
    else {
        return false;
    };
    head == resource.resource || head == "*"
}

/// An entry that ends in `*` means every path that begins with what is left without the stars.
pub(crate) fn matches_path(entry: &str, path: &str) -> bool {
    entry == path || (entry.ends_with('*') && path.starts_with(entry.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|&entry| entry.to_owned()).collect()
    }

    fn resource_rule(resources: &[&str], names: &[&str]) -> PolicyRule {
        PolicyRule {
            verbs: list(&["get"]),
            api_groups: list(&[""]),
            resources: list(resources),
            resource_names: list(names),
            ..PolicyRule::default()
        }
    }

    fn allows(rule: &PolicyRule, verb: &str, path: &str, name: &str) -> bool {
        let (resource, subresource) = path.split_once('/').unwrap_or((path, ""));
        let resource = Resource { resource, subresource, name, ..Resource::default() };
        rule.allows(&Attributes { user: None, verb, target: Target::Resource(resource) })
    }

    #[test]
    fn resources_are_literal_but_for_two_stars() {
        for (entry, asked, want) in [
            ("pods", "pods", true),
            ("pods", "pods/log", false),
            ("pods/log", "pods/log", true),
            ("pods/log", "pods", false),
            ("*", "pods/log", true),
            ("*/scale", "anything/scale", true),
            ("*/scale", "anything/scales", false),
            ("*/scale", "scale", false),
            ("pods/*", "pods/log", false),
            ("pods/*", "pods/*", true),
            ("Pods", "pods", false),
        ] {
            assert_eq!(allows(&resource_rule(&[entry], &[]), "get", asked, ""), want, "{entry}");
        }
        assert!(!allows(&resource_rule(&[], &[]), "get", "pods", ""));
    }

    #[test]
    fn a_named_rule_needs_the_name() {
        let rule = resource_rule(&["pods"], &["a"]);
        assert!(allows(&rule, "get", "pods", "a"));
        assert!(!allows(&rule, "get", "pods", "b"));
        assert!(!allows(&rule, "get", "pods", ""));
        assert!(!allows(&rule, "GET", "pods", "a"));
    }

    #[test]
    fn paths_end_in_stars_or_are_equal() {
        for (entry, path, want) in [
            ("/apis", "/apis", true),
            ("/apis", "/apis/v1", false),
            ("/apis/*", "/apis/v1/foobar", true),
            ("/apis/*", "/apis", false),
            ("/apis/**", "/apis/", true),
            ("*", "", true),
            ("/read*z", "/readyz", false),
            ("/foo/*", "/notfoo/bar", false),
        ] {
            assert_eq!(matches_path(entry, path), want, "{entry} {path}");
        }
    }

    #[test]
    fn rules_for_paths_and_for_resources_do_not_mix() {
        let everything = list(&["*"]);
        let paths = PolicyRule {
            verbs: everything.clone(),
            non_resource_urls: everything.clone(),
            ..PolicyRule::default()
        };
        assert!(!allows(&paths, "get", "pods", ""));
        let resources = PolicyRule {
            verbs: everything.clone(),
            api_groups: everything.clone(),
            resources: everything,
            ..PolicyRule::default()
        };
        let version = Attributes { user: None, verb: "get", target: Target::Path("/version") };
        assert!(!resources.allows(&version));
        assert!(paths.allows(&version));
    }
}
