//! All configurations of admission at one moment, sorted and indexed.

use std::sync::Arc;

use api_object::Tree;

use crate::attributes::{Attributes, Operation};
use crate::configuration::ConfigurationKind;
use crate::hook::Hook;
use crate::initializer::{Initializer, sort_and_deduplicate_initializers};
use crate::json_members::read_objects;
use crate::match_conditions::ConditionCompiler;
use crate::request_matching::{HookMatch, MatchedHooks, MatchedResourceName, RuleIndex};

/// A compiled configuration object. It is immutable and shared, so a change of one object compiles that object only.
#[derive(Debug)]
pub struct Configuration {
    kind: ConfigurationKind,
    name: String,
    hooks_or_initializers: ConfigurationEntries,
    compiled_regex_bytes: usize,
}

#[derive(Debug)]
enum ConfigurationEntries {
    Initializers(Vec<Initializer>),
    Hooks(Vec<Arc<Hook>>),
}

impl Configuration {
    /// Compiles a stored object. Compilation never fails: a part that cannot be used fails the requests that need it.
    #[must_use]
    pub fn compile_configuration(kind: ConfigurationKind, tree: &Tree) -> Self {
        let name = api_object::name(tree);
        let entries = read_objects(tree, kind.entries_member_name());
        let mut pattern_bytes = 0;
        let content = match kind {
            ConfigurationKind::Initializer => {
                ConfigurationEntries::Initializers(Initializer::read_initializers(tree))
            }
            ConfigurationKind::ExternalHook => {
                let read = |entry: &Tree| Arc::new(Hook::read_v1alpha1_hook(name, entry));
                ConfigurationEntries::Hooks(entries.into_iter().map(read).collect())
            }
            ConfigurationKind::Mutating | ConfigurationKind::Validating => {
                let mut compiler = ConditionCompiler::default();
                let read = |entry: &Tree| Arc::new(Hook::read(name, entry, &mut compiler));
                let hooks = entries.into_iter().map(read).collect();
                pattern_bytes = compiler.compiled_regex_bytes();
                ConfigurationEntries::Hooks(hooks)
            }
        };
        Self {
            kind,
            name: name.to_owned(),
            hooks_or_initializers: content,
            compiled_regex_bytes: pattern_bytes,
        }
    }

    /// The bytes of memory that the compiled regular expressions in the match conditions take.
    #[must_use]
    pub fn compiled_regex_bytes(&self) -> usize {
        self.compiled_regex_bytes
    }

    /// The kind of the object.
    #[must_use]
    pub fn kind(&self) -> ConfigurationKind {
        self.kind
    }

    /// The name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The hooks and initializers that one request is admitted by, in both phases.
#[derive(Debug)]
pub struct Snapshot {
    mutating_hooks: HookList,
    validating_hooks: HookList,
    initializers: Vec<Initializer>,
    initializer_index: RuleIndex,
}

/// The hooks of one phase, ordered by the name of their configuration and then as listed there. In the validating phase,
/// hooks of `v1alpha1` come first.
#[derive(Debug)]
pub struct HookList {
    hooks: Vec<Arc<Hook>>,
    index: RuleIndex,
}

impl Snapshot {
    /// Sorts and indexes configurations.
    #[must_use]
    pub fn new(configurations: &[Arc<Configuration>]) -> Self {
        let mut all: Vec<&Configuration> = configurations.iter().map(Arc::as_ref).collect();
        // ExternalHook comes before Validating in the order of kinds.
        all.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        let mut mutating = Vec::new();
        let mut validating = Vec::new();
        let mut initializers = Vec::new();
        for configuration in all {
            match (&configuration.hooks_or_initializers, configuration.kind) {
                (ConfigurationEntries::Initializers(own), _) => {
                    initializers.extend(own.iter().cloned())
                }
                (ConfigurationEntries::Hooks(own), ConfigurationKind::Mutating) => {
                    mutating.extend(own.iter().cloned());
                }
                (ConfigurationEntries::Hooks(own), _) => validating.extend(own.iter().cloned()),
            }
        }
        let initializers = sort_and_deduplicate_initializers(initializers);
        let initializer_index = RuleIndex::new(initializers.iter().map(|it| it.rules.as_slice()));
        Self {
            mutating_hooks: HookList::new(mutating),
            validating_hooks: HookList::new(validating),
            initializers,
            initializer_index,
        }
    }

    /// The mutating hooks, which are called one after the other.
    #[must_use]
    pub fn mutating_hooks(&self) -> &HookList {
        &self.mutating_hooks
    }

    /// The validating hooks, which are called at the same time.
    #[must_use]
    pub fn validating_hooks(&self) -> &HookList {
        &self.validating_hooks
    }

    /// Matches a request against the rules of all hooks. Selectors and match conditions come later, since they
    /// depend on the object.
    #[must_use]
    pub fn match_hooks(&self, attributes: &Attributes<'_>) -> MatchedHooks {
        MatchedHooks::match_hooks_of_both_phases(
            &self.mutating_hooks,
            &self.validating_hooks,
            attributes,
        )
    }

    /// Finds an initializer by name.
    #[must_use]
    pub fn find_initializer(&self, name: &str) -> Option<&Initializer> {
        self.initializers.iter().find(|initializer| initializer.name == name)
    }

    /// Finds the initializers whose rules match a new object, in global order; see
    /// [`order_pending_initializers`](crate::order_pending_initializers).
    ///
    /// The caller must pass only objects that are stored and have metadata.
    #[must_use]
    pub fn match_initializers(&self, attributes: &Attributes<'_>) -> Vec<&Initializer> {
        let is_creation = attributes.operation == Operation::Create;
        if !is_creation || attributes.exemption().is_some() {
            return Vec::new();
        }
        let target = attributes.rule_target();
        let candidates = self.initializer_index.find_candidates(attributes).into_iter();
        let candidates = candidates.filter_map(|position| self.initializers.get(position as usize));
        candidates.filter(|it| it.rules.iter().any(|rule| rule.matches(&target))).collect()
    }
}

impl HookList {
    fn new(hooks: Vec<Arc<Hook>>) -> Self {
        let index = RuleIndex::new(hooks.iter().map(|hook| hook.rules.as_slice()));
        Self { hooks, index }
    }

    /// All hooks of the phase, in order.
    #[must_use]
    pub fn hooks(&self) -> &[Arc<Hook>] {
        &self.hooks
    }

    /// Finds the hooks of this phase whose rules match, in order; none for exempt requests. Selectors and match
    /// conditions come later.
    #[must_use]
    pub fn match_hooks<'s, 'a>(&'s self, attributes: &Attributes<'a>) -> Vec<HookMatch<'s, 'a>> {
        if attributes.exemption().is_some() {
            return Vec::new();
        }
        let found =
            self.find_hooks_with_matching_rules(attributes).map(|(position, hook, name)| {
                HookMatch {
                    hook_list_position: position,
                    hook,
                    matched_resource: name.to_matched_resource(attributes),
                }
            });
        found.collect()
    }

    pub(crate) fn find_hooks_with_matching_rules(
        &self,
        attributes: &Attributes<'_>,
    ) -> impl Iterator<Item = (usize, &Arc<Hook>, MatchedResourceName)> {
        let candidates = match self.hooks.is_empty() {
            true => Vec::new(),
            false => self.index.find_candidates(attributes),
        };
        candidates.into_iter().filter_map(|position| {
            let position = position as usize;
            let hook = self.hooks.get(position)?;
            Some((position, hook, hook.match_rules(attributes)?))
        })
    }
}
