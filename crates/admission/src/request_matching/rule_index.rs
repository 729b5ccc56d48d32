//! An index over the rules of all hooks or initializers.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::rule::{ANY, Rule, SubresourcePattern};
use crate::attributes::{Attributes, Operation};

/// Finds the hooks or initializers whose rules can match a request, by operation, group, resource and subresource.
///
/// A request is looked up under its own names and under the wildcard of each part. So the cost depends on the number of
/// rules that match, not on the number of all rules. Versions and scopes are checked by the rules themselves.
#[derive(Debug)]
pub(crate) struct RuleIndex {
    /// The texts that occur in rules. A text of a request that does not occur here matches wildcards only.
    interned_names: HashMap<Box<str>, InternedName, RandomState>,
    /// Positions by key, one table for each operation.
    positions_by_operation: [HashMap<Key, Vec<u32>, RandomState>; Operation::ALL.len()],
}

type InternedName = u32;

/// Group, resource and subresource.
type Key = (InternedName, InternedName, InternedName);

/// The maximum number of pairs of group and resource under which one rule is indexed. A rule with more is indexed under
/// the wildcards, which costs time for each request but no memory.
const KEYS_PER_RULE_MAX: usize = 1024;

/// The symbol of the wildcard.
const ANY_SYMBOL: InternedName = 0;

impl RuleIndex {
    /// Indexes lists of rules by their positions.
    pub(crate) fn new<'r>(rule_lists: impl Iterator<Item = &'r [Rule]>) -> Self {
        let mut index = Self {
            interned_names: HashMap::from_iter([(ANY.into(), ANY_SYMBOL)]),
            positions_by_operation: Default::default(),
        };
        for (position, rules) in (0..).zip(rule_lists) {
            rules.iter().for_each(|rule| index.add_rule(position, rule));
        }
        index
    }

    fn add_rule(&mut self, position: u32, rule: &Rule) {
        let operations = Operation::ALL.into_iter().filter(|operation| {
            rule.operations.iter().any(|own| own == ANY || own == operation.name())
        });
        let operations: Vec<Operation> = operations.collect();
        if rule.groups.len().saturating_mul(rule.resources.len()) > KEYS_PER_RULE_MAX {
            self.insert(position, &operations, (ANY_SYMBOL, ANY_SYMBOL, ANY_SYMBOL));
            return;
        }
        for group in &rule.groups {
            for pattern in &rule.resources {
                let subresource = match &pattern.subresource {
                    SubresourcePattern::Exactly(own) => own,
                    SubresourcePattern::All | SubresourcePattern::AllAndNone => ANY,
                };
                let (group, resource) =
                    (self.intern_name(group), self.intern_name(&pattern.resource));
                let key = (group, resource, self.intern_name(subresource));
                self.insert(position, &operations, key);
            }
        }
    }

    fn insert(&mut self, position: u32, operations: &[Operation], key: Key) {
        for operation in operations {
            let positions = self.positions_of_operation_mut(*operation).entry(key).or_default();
            // Positions are added in ascending order, so a duplicate is always the last one.
            if positions.last() != Some(&position) {
                positions.push(position);
            }
        }
    }

    /// Returns the positions of lists whose rules can match, in order. The result contains all lists that match,
    /// and seldom another one.
    pub(crate) fn find_candidates(&self, attributes: &Attributes<'_>) -> Vec<u32> {
        let mut found = Vec::new();
        let own = (attributes.resource.group, attributes.resource.resource);
        self.collect_candidates(attributes, own, &mut found);
        let mut before = own;
        for other in attributes.equivalent_resources {
            // Most equivalents are other versions of the same resource, one after the other.
            let names = (other.resource.group, other.resource.resource);
            if names != own && names != before {
                self.collect_candidates(attributes, names, &mut found);
            }
            before = names;
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn collect_candidates(
        &self,
        attributes: &Attributes<'_>,
        names: (&str, &str),
        found: &mut Vec<u32>,
    ) {
        let table = self.positions_of_operation(attributes.operation);
        let symbols = |name: &str| [Some(ANY_SYMBOL), self.interned_names.get(name).copied()];
        let (groups, resources) = (symbols(names.0), symbols(names.1));
        let subresources = symbols(attributes.subresource);
        for group in groups.into_iter().flatten() {
            for resource in resources.into_iter().flatten() {
                for subresource in subresources.into_iter().flatten() {
                    if let Some(positions) = table.get(&(group, resource, subresource)) {
                        found.extend_from_slice(positions);
                    }
                }
            }
        }
    }

    fn intern_name(&mut self, name: &str) -> InternedName {
        if let Some(symbol) = self.interned_names.get(name) {
            return *symbol;
        }
        let symbol = InternedName::try_from(self.interned_names.len()).unwrap_or(InternedName::MAX);
        self.interned_names.insert(name.into(), symbol);
        symbol
    }

    fn positions_of_operation(&self, operation: Operation) -> &HashMap<Key, Vec<u32>, RandomState> {
        let [create, update, delete, connect] = &self.positions_by_operation;
        match operation {
            Operation::Create => create,
            Operation::Update => update,
            Operation::Delete => delete,
            Operation::Connect => connect,
        }
    }

    fn positions_of_operation_mut(
        &mut self,
        operation: Operation,
    ) -> &mut HashMap<Key, Vec<u32>, RandomState> {
        let [create, update, delete, connect] = &mut self.positions_by_operation;
        match operation {
            Operation::Create => create,
            Operation::Update => update,
            Operation::Delete => delete,
            Operation::Connect => connect,
        }
    }
}
