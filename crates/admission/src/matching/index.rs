//! Finding the few among many whose rules can match a request.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::rule::{ANY, Rule, Subresource};
use crate::attributes::{Attributes, Operation};

/// Which holders of rules speak of which operation, group, resource and subresource.
///
/// A request is looked up under its own names and under the wildcard in each place, so that the work
/// depends on how many rules speak of it and not on how many there are. Versions and scopes are left
/// to the rules themselves.
#[derive(Debug)]
pub(crate) struct Index {
    /// The texts that occur in rules. A text of a request that does not occur matches wildcards only.
    symbols: HashMap<Box<str>, Symbol, RandomState>,
    /// One table for each operation.
    tables: [HashMap<Key, Vec<u32>, RandomState>; Operation::ALL.len()],
}

type Symbol = u32;

/// Group, resource and subresource.
type Key = (Symbol, Symbol, Symbol);

/// The most pairs of group and resource that one rule is found under. One with more is found under
/// the wildcards, which takes time for each request but no memory.
const KEYS_PER_RULE_MAX: usize = 1024;

/// The wildcard.
const ANY_SYMBOL: Symbol = 0;

impl Index {
    /// Indexes the rules of each holder, who are known by their positions.
    pub(crate) fn new<'r>(holders: impl Iterator<Item = &'r [Rule]>) -> Self {
        let mut index = Self {
            symbols: HashMap::from_iter([(ANY.into(), ANY_SYMBOL)]),
            tables: Default::default(),
        };
        for (position, rules) in (0..).zip(holders) {
            rules.iter().for_each(|rule| index.add(position, rule));
        }
        index
    }

    fn add(&mut self, position: u32, rule: &Rule) {
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
                    Subresource::Exactly(own) => own,
                    Subresource::All | Subresource::AllAndNone => ANY,
                };
                let (group, resource) = (self.symbol(group), self.symbol(&pattern.resource));
                let key = (group, resource, self.symbol(subresource));
                self.insert(position, &operations, key);
            }
        }
    }

    fn insert(&mut self, position: u32, operations: &[Operation], key: Key) {
        for operation in operations {
            let positions = self.table_mut(*operation).entry(key).or_default();
            // Positions grow, so that a repetition is always the last one.
            if positions.last() != Some(&position) {
                positions.push(position);
            }
        }
    }

    /// The positions of those whose rules can match, in order: all that do, and seldom another.
    pub(crate) fn candidates(&self, attributes: &Attributes<'_>) -> Vec<u32> {
        let mut found = Vec::new();
        let own = (attributes.resource.group, attributes.resource.resource);
        self.collect(attributes, own, &mut found);
        let mut before = own;
        for other in attributes.equivalents {
            // Most equivalents are other versions of the same resource, one after the other.
            let names = (other.resource.group, other.resource.resource);
            if names != own && names != before {
                self.collect(attributes, names, &mut found);
            }
            before = names;
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn collect(&self, attributes: &Attributes<'_>, names: (&str, &str), found: &mut Vec<u32>) {
        let table = self.table(attributes.operation);
        let symbols = |name: &str| [Some(ANY_SYMBOL), self.symbols.get(name).copied()];
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

    fn symbol(&mut self, name: &str) -> Symbol {
        if let Some(symbol) = self.symbols.get(name) {
            return *symbol;
        }
        let symbol = Symbol::try_from(self.symbols.len()).unwrap_or(Symbol::MAX);
        self.symbols.insert(name.into(), symbol);
        symbol
    }

    fn table(&self, operation: Operation) -> &HashMap<Key, Vec<u32>, RandomState> {
        let [create, update, delete, connect] = &self.tables;
        match operation {
            Operation::Create => create,
            Operation::Update => update,
            Operation::Delete => delete,
            Operation::Connect => connect,
        }
    }

    fn table_mut(&mut self, operation: Operation) -> &mut HashMap<Key, Vec<u32>, RandomState> {
        let [create, update, delete, connect] = &mut self.tables;
        match operation {
            Operation::Create => create,
            Operation::Update => update,
            Operation::Delete => delete,
            Operation::Connect => connect,
        }
    }
}
