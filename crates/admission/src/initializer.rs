//! Initializers: who has to act before an object is there for everybody.

use std::collections::HashSet;

use api_object::Tree;

use crate::configuration::ConfigurationKind;
use crate::hook::FailurePolicy;
use crate::matching::Rule;
use crate::members::{objects, owned_texts, text};

/// An entry of an InitializerConfiguration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initializer {
    /// Fully qualified; what objects carry in their pending list.
    pub name: String,
    /// The name of the object that holds it.
    pub configuration: String,
    /// A new object that matches none of them is no matter of the initializer.
    pub rules: Vec<Rule>,
    /// What happens if it does not act in time.
    pub failure_policy: FailurePolicy,
    /// When it may act.
    pub ordering: Ordering,
}

/// When an initializer may act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ordering {
    /// After the sequential one before it.
    Sequential,
    /// When those that it names are done, and before others that it names.
    Graph {
        /// Must be done first.
        after: Vec<String>,
        /// Must wait for this one.
        before: Vec<String>,
    },
}

impl Initializer {
    /// Reads the initializers of a configuration in their order.
    pub(crate) fn read_all(configuration: &Tree) -> Vec<Self> {
        let entries = objects(configuration, ConfigurationKind::Initializer.list());
        let read = |entry: &Tree| Self::read(api_object::name(configuration), entry);
        entries.into_iter().map(read).collect()
    }

    fn read(configuration: &str, entry: &Tree) -> Self {
        let rules = objects(entry, "rules");
        Self {
            name: text(entry, "name").unwrap_or_default().to_owned(),
            configuration: configuration.to_owned(),
            rules: rules.into_iter().map(Rule::read_for_initializer).collect(),
            failure_policy: FailurePolicy::read_v1alpha1(entry),
            ordering: match text(entry, "orderingMode") {
                Some("Graph") => Ordering::Graph {
                    after: owned_texts(entry, "after"),
                    before: owned_texts(entry, "before"),
                },
                _ => Ordering::Sequential,
            },
        }
    }
}

/// Brings initializers into the one order that holds for all resources: by the name of their
/// configuration, then as listed there. Of several with the same name the first one counts
/// (admission §1.7).
pub(crate) fn in_global_order(mut initializers: Vec<Initializer>) -> Vec<Initializer> {
    initializers.sort_by(|a, b| a.configuration.cmp(&b.configuration));
    let mut seen = HashSet::new();
    initializers.retain(|initializer| seen.insert(initializer.name.clone()));
    initializers
}
