//! A rule that somebody holds, in a form in which entries are found quickly.

use crate::policy::PolicyRule;
use crate::rules::RulePart;

/// What a rule grants, list by list.
#[derive(Debug)]
pub(crate) struct Owned<'o> {
    pub(crate) verbs: Values<'o>,
    pub(crate) api_groups: Values<'o>,
    pub(crate) resources: Values<'o>,
    /// What follows `*/` in resources such as `*/scale`, in order.
    pub(crate) any_with_subresource: Vec<&'o str>,
    /// In order; none stand for all.
    pub(crate) resource_names: Vec<&'o str>,
    urls: Vec<&'o str>,
    /// The URLs that end in stars, without them, in order; none is the beginning of another.
    url_prefixes: Vec<&'o str>,
}

/// A list in which `*` stands for everything.
#[derive(Debug)]
pub(crate) struct Values<'o> {
    pub(crate) is_any: bool,
    /// In order, each once.
    pub(crate) values: Vec<&'o str>,
}

impl<'o> Owned<'o> {
    pub(crate) fn new(rule: &'o PolicyRule) -> Self {
        let resources = Values::new(&rule.resources);
        let subresources = resources.values.iter().filter_map(|entry| entry.strip_prefix("*/"));
        Self {
            verbs: Values::new(&rule.verbs),
            api_groups: Values::new(&rule.api_groups),
            // Without their common beginning they are in the same order.
            any_with_subresource: subresources.collect(),
            resources,
            resource_names: sorted(rule.resource_names.iter().map(String::as_str)),
            urls: sorted(rule.non_resource_urls.iter().map(String::as_str)),
            url_prefixes: prefixes(&rule.non_resource_urls),
        }
    }

    pub(crate) fn has_urls(&self) -> bool {
        !self.urls.is_empty()
    }

    /// Reports whether the rule has an entry that grants this one.
    pub(crate) fn grants(&self, part: RulePart, wanted: &str) -> bool {
        match part {
            RulePart::Verb => self.verbs.has(wanted),
            RulePart::ApiGroup => self.api_groups.has(wanted),
            RulePart::Resource => {
                self.resources.has(wanted)
                    || wanted
                        .split_once('/')
                        .is_some_and(|(_, own)| has(&self.any_with_subresource, own))
            }
            RulePart::ResourceName => {
                self.resource_names.is_empty() || has(&self.resource_names, wanted)
            }
            RulePart::Path => has(&self.urls, wanted) || self.has_prefix_of(wanted),
        }
    }

    /// Of prefixes none of which begins another, the last one in order that is not after a text is the
    /// only one that the text can begin with.
    fn has_prefix_of(&self, url: &str) -> bool {
        let n_before = self.url_prefixes.partition_point(|prefix| *prefix <= url);
        let last = n_before.checked_sub(1).and_then(|at| self.url_prefixes.get(at));
        last.is_some_and(|prefix| url.starts_with(prefix))
    }
}

impl<'o> Values<'o> {
    fn new(list: &'o [String]) -> Self {
        let values = sorted(list.iter().map(String::as_str));
        Self { is_any: has(&values, "*"), values }
    }

    fn has(&self, wanted: &str) -> bool {
        self.is_any || has(&self.values, wanted)
    }
}

fn sorted<'o>(list: impl Iterator<Item = &'o str>) -> Vec<&'o str> {
    let mut list: Vec<&str> = list.collect();
    list.sort_unstable();
    list.dedup();
    list
}

fn has(sorted: &[&str], wanted: &str) -> bool {
    sorted.binary_search(&wanted).is_ok()
}

fn prefixes(urls: &[String]) -> Vec<&str> {
    let starred = urls.iter().filter(|url| url.ends_with('*'));
    let mut prefixes = sorted(starred.map(|url| url.trim_end_matches('*')));
    // What begins with another comes right after it, or after others that do.
    prefixes.dedup_by(|own, kept| own.starts_with(*kept));
    prefixes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::matches_path;

    #[test]
    fn prefixes_are_found_as_entries_are_matched() {
        let entries = ["/a*", "/a/b/*", "/ab", "/b/**", "/c/*/d*", "/ba*", "/b/c*", "", "/z"];
        let urls: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
        let rule = PolicyRule { non_resource_urls: urls.clone(), ..PolicyRule::default() };
        let owned = Owned::new(&rule);
        let mut n_granted = 0;
        for url in ["/a", "/", "", "/b", "/b/", "/b/x", "/bb", "/c/*/d", "/c/x/d", "/zz", "/*", "*"]
        {
            let want = urls.iter().any(|entry| matches_path(entry, url));
            assert_eq!(owned.grants(RulePart::Path, url), want, "{url}");
            n_granted += usize::from(want);
        }
        assert_eq!(n_granted, 5);
    }
}
