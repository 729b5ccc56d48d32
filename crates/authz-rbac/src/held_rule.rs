//! A rule that a user holds, with sorted lists.

use crate::policy::PolicyRule;
use crate::rules::RulePart;

/// The lists of a rule, sorted.
#[derive(Debug)]
pub(crate) struct HeldRule<'o> {
    pub(crate) verbs: RuleValueSet<'o>,
    pub(crate) api_groups: RuleValueSet<'o>,
    pub(crate) resources: RuleValueSet<'o>,
    /// The subresource of each resource such as `*/scale`, sorted.
    pub(crate) wildcard_subresources: Vec<&'o str>,
    /// The resource names, sorted. An empty list stands for all names.
    pub(crate) resource_names: Vec<&'o str>,
    non_resource_urls: Vec<&'o str>,
    /// The URLs that end in `*`, without the stars, sorted. INVARIANT: none is a prefix of another.
    non_resource_url_prefixes: Vec<&'o str>,
}

/// A list in which `*` stands for everything.
#[derive(Debug)]
pub(crate) struct RuleValueSet<'o> {
    pub(crate) has_wildcard: bool,
    /// The values, sorted, without duplicates.
    pub(crate) values: Vec<&'o str>,
}

impl<'o> HeldRule<'o> {
    pub(crate) fn new(rule: &'o PolicyRule) -> Self {
        let resources = RuleValueSet::new(&rule.resources);
        let subresources = resources.values.iter().filter_map(|entry| entry.strip_prefix("*/"));
        Self {
            verbs: RuleValueSet::new(&rule.verbs),
            api_groups: RuleValueSet::new(&rule.api_groups),
            // The subresources stay sorted, because all lose the same prefix.
            wildcard_subresources: subresources.collect(),
            resources,
            resource_names: sort_and_deduplicate(rule.resource_names.iter().map(String::as_str)),
            non_resource_urls: sort_and_deduplicate(
                rule.non_resource_urls.iter().map(String::as_str),
            ),
            non_resource_url_prefixes: collect_url_prefixes(&rule.non_resource_urls),
        }
    }

    pub(crate) fn has_non_resource_urls(&self) -> bool {
        !self.non_resource_urls.is_empty()
    }

    /// Reports whether the rule has an element that grants this one.
    pub(crate) fn grants_rule_part_element(&self, part: RulePart, requested: &str) -> bool {
        match part {
            RulePart::Verb => self.verbs.contains(requested),
            RulePart::ApiGroup => self.api_groups.contains(requested),
            RulePart::Resource => {
                self.resources.contains(requested)
                    || requested.split_once('/').is_some_and(|(_, own)| {
                        sorted_list_contains(&self.wildcard_subresources, own)
                    })
            }
            RulePart::ResourceName => {
                self.resource_names.is_empty()
                    || sorted_list_contains(&self.resource_names, requested)
            }
            RulePart::Path => {
                sorted_list_contains(&self.non_resource_urls, requested)
                    || self.has_url_prefix_for(requested)
            }
        }
    }

    /// Reports whether a URL begins with one of the prefixes. No prefix is a prefix of another, so only the last
    /// prefix that sorts before or equal to the URL can match.
    fn has_url_prefix_for(&self, url: &str) -> bool {
        let n_before = self.non_resource_url_prefixes.partition_point(|prefix| *prefix <= url);
        let last = n_before.checked_sub(1).and_then(|at| self.non_resource_url_prefixes.get(at));
        last.is_some_and(|prefix| url.starts_with(prefix))
    }
}

impl<'o> RuleValueSet<'o> {
    fn new(list: &'o [String]) -> Self {
        let values = sort_and_deduplicate(list.iter().map(String::as_str));
        Self { has_wildcard: sorted_list_contains(&values, "*"), values }
    }

    fn contains(&self, requested: &str) -> bool {
        self.has_wildcard || sorted_list_contains(&self.values, requested)
    }
}

fn sort_and_deduplicate<'o>(list: impl Iterator<Item = &'o str>) -> Vec<&'o str> {
    let mut list: Vec<&str> = list.collect();
    list.sort_unstable();
    list.dedup();
    list
}

fn sorted_list_contains(sort_and_deduplicate: &[&str], requested: &str) -> bool {
    sort_and_deduplicate.binary_search(&requested).is_ok()
}

fn collect_url_prefixes(urls: &[String]) -> Vec<&str> {
    let starred = urls.iter().filter(|url| url.ends_with('*'));
    let mut collect_url_prefixes =
        sort_and_deduplicate(starred.map(|url| url.trim_end_matches('*')));
    // In sorted order, all texts with a common prefix directly follow that prefix.
    collect_url_prefixes.dedup_by(|own, kept| own.starts_with(*kept));
    collect_url_prefixes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::matches_path;

    #[test]
    fn url_prefixes_match_like_rule_entries() {
        let entries = ["/a*", "/a/b/*", "/ab", "/b/**", "/c/*/d*", "/ba*", "/b/c*", "", "/z"];
        let urls: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
        let rule = PolicyRule { non_resource_urls: urls.clone(), ..PolicyRule::default() };
        let held_rule = HeldRule::new(&rule);
        let mut n_granted = 0;
        for url in ["/a", "/", "", "/b", "/b/", "/b/x", "/bb", "/c/*/d", "/c/x/d", "/zz", "/*", "*"]
        {
            let want = urls.iter().any(|entry| matches_path(entry, url));
            assert_eq!(held_rule.grants_rule_part_element(RulePart::Path, url), want, "{url}");
            n_granted += usize::from(want);
        }
        assert_eq!(n_granted, 5);
    }
}
