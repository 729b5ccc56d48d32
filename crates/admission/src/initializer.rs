//! Initializers: clients that act on a new object before it becomes visible.

use std::collections::HashSet;

use api_object::Tree;

use crate::configuration::ConfigurationKind;
use crate::hook::FailurePolicy;
use crate::json_members::{read_objects, read_owned_strings, read_string};
use crate::request_matching::Rule;

/// An entry of an InitializerConfiguration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initializer {
    /// The fully qualified name, which objects have in `metadata.initializers.pending`.
    pub name: String,
    /// The name of the configuration object that holds the initializer.
    pub configuration_name: String,
    /// The rules of the initializer. It applies only to new objects that match at least one of them.
    pub rules: Vec<Rule>,
    /// The effect on the object if the initializer does not act in time.
    pub failure_policy: FailurePolicy,
    /// The position of the initializer in the order in which initializers act.
    pub initializer_ordering: InitializerOrdering,
}

/// The position of an initializer in the order in which initializers act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitializerOrdering {
    /// The initializer acts after the previous sequential initializer.
    Sequential,
    /// The initializer acts after and before the initializers that it names.
    Graph {
        /// These initializers act before this one.
        after: Vec<String>,
        /// These initializers act after this one.
        before: Vec<String>,
    },
}

impl Initializer {
    /// Reads the initializers of a configuration in their order.
    pub(crate) fn read_initializers(configuration: &Tree) -> Vec<Self> {
        let entries =
            read_objects(configuration, ConfigurationKind::Initializer.entries_member_name());
        let read = |entry: &Tree| Self::read(api_object::name(configuration), entry);
        entries.into_iter().map(read).collect()
    }

    fn read(configuration_name: &str, entry: &Tree) -> Self {
        let rules = read_objects(entry, "rules");
        Self {
            name: read_string(entry, "name").unwrap_or_default().to_owned(),
            configuration_name: configuration_name.to_owned(),
            rules: rules.into_iter().map(Rule::read_initializer_rule).collect(),
            failure_policy: FailurePolicy::read_v1alpha1_failure_policy(entry),
            initializer_ordering: match read_string(entry, "orderingMode") {
                Some("Graph") => InitializerOrdering::Graph {
                    after: read_owned_strings(entry, "after"),
                    before: read_owned_strings(entry, "before"),
                },
                _ => InitializerOrdering::Sequential,
            },
        }
    }
}

/// Sorts initializers into the order that holds for all resources: by the name of their configuration, then as listed
/// there. Of several with the same name, only the first is kept.
pub(crate) fn sort_and_deduplicate_initializers(
    mut initializers: Vec<Initializer>,
) -> Vec<Initializer> {
    initializers.sort_by(|a, b| a.configuration_name.cmp(&b.configuration_name));
    let mut seen = HashSet::new();
    initializers.retain(|initializer| seen.insert(initializer.name.clone()));
    initializers
}
