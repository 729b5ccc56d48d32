//! All configurations at one moment, ready to be asked.

use std::sync::Arc;

use api_object::Tree;

use crate::attributes::{Attributes, Operation};
use crate::conditions::ConditionCompiler;
use crate::configuration::ConfigurationKind;
use crate::hook::Hook;
use crate::initializer::{Initializer, in_global_order};
use crate::matching::{Index, Match, MatchedHooks, MatchedName};
use crate::members::objects;

/// One configuration object, compiled. It is immutable and shared, so that a change of one object
/// compiles that object only.
#[derive(Debug)]
pub struct Configuration {
    kind: ConfigurationKind,
    name: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Initializers(Vec<Initializer>),
    Hooks(Vec<Arc<Hook>>),
}

impl Configuration {
    /// Compiles a stored object. That never fails: a part that can not be understood fails the
    /// requests that need it.
    #[must_use]
    pub fn compile(kind: ConfigurationKind, tree: &Tree) -> Self {
        let name = api_object::name(tree);
        let entries = objects(tree, kind.list());
        let content = match kind {
            ConfigurationKind::Initializer => Content::Initializers(Initializer::read_all(tree)),
            ConfigurationKind::ExternalHook => {
                let read = |entry: &Tree| Arc::new(Hook::read_v1alpha1(name, entry));
                Content::Hooks(entries.into_iter().map(read).collect())
            }
            ConfigurationKind::Mutating | ConfigurationKind::Validating => {
                let mut compiler = ConditionCompiler::default();
                let read = |entry: &Tree| Arc::new(Hook::read(name, entry, &mut compiler));
                Content::Hooks(entries.into_iter().map(read).collect())
            }
        };
        Self { kind, name: name.to_owned(), content }
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

/// What holds for a request, from its first phase to its last.
#[derive(Debug)]
pub struct Snapshot {
    mutating: HookList,
    validating: HookList,
    initializers: Vec<Initializer>,
    initializer_index: Index,
}

/// The hooks of one phase in their order (admission §1.7): by the name of their configuration, then
/// as listed there; in the validating phase those of v1alpha1 come first.
#[derive(Debug)]
pub struct HookList {
    hooks: Vec<Arc<Hook>>,
    index: Index,
}

impl Snapshot {
    /// Orders and indexes configurations.
    #[must_use]
    pub fn new(configurations: &[Arc<Configuration>]) -> Self {
        let mut all: Vec<&Configuration> = configurations.iter().map(Arc::as_ref).collect();
        // ExternalHook comes before Validating in the order of kinds.
        all.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        let mut mutating = Vec::new();
        let mut validating = Vec::new();
        let mut initializers = Vec::new();
        for configuration in all {
            match (&configuration.content, configuration.kind) {
                (Content::Initializers(own), _) => initializers.extend(own.iter().cloned()),
                (Content::Hooks(own), ConfigurationKind::Mutating) => {
                    mutating.extend(own.iter().cloned());
                }
                (Content::Hooks(own), _) => validating.extend(own.iter().cloned()),
            }
        }
        let initializers = in_global_order(initializers);
        let initializer_index = Index::new(initializers.iter().map(|it| it.rules.as_slice()));
        Self {
            mutating: HookList::new(mutating),
            validating: HookList::new(validating),
            initializers,
            initializer_index,
        }
    }

    /// The hooks that may change objects; they are called one after the other.
    #[must_use]
    pub fn mutating(&self) -> &HookList {
        &self.mutating
    }

    /// The hooks that only judge; they are called at the same time.
    #[must_use]
    pub fn validating(&self) -> &HookList {
        &self.validating
    }

    /// Matches a request against the rules of all hooks. Selectors and match conditions come later, since they
    /// depend on the object.
    #[must_use]
    pub fn match_hooks(&self, attributes: &Attributes<'_>) -> MatchedHooks {
        MatchedHooks::find(&self.mutating, &self.validating, attributes)
    }

    /// The initializer of this name.
    #[must_use]
    pub fn initializer(&self, name: &str) -> Option<&Initializer> {
        self.initializers.iter().find(|initializer| initializer.name == name)
    }

    /// The initializers that a new object has to wait for, in global order; see
    /// [`pending`](crate::pending).
    ///
    /// The caller asks only about objects that are stored and have metadata.
    #[must_use]
    pub fn initializers(&self, attributes: &Attributes<'_>) -> Vec<&Initializer> {
        let is_creation = attributes.operation == Operation::Create;
        if !is_creation || attributes.exemption().is_some() {
            return Vec::new();
        }
        let target = attributes.rule_target();
        let candidates = self.initializer_index.candidates(attributes).into_iter();
        let candidates = candidates.filter_map(|position| self.initializers.get(position as usize));
        candidates.filter(|it| it.rules.iter().any(|rule| rule.matches(&target))).collect()
    }
}

impl HookList {
    fn new(hooks: Vec<Arc<Hook>>) -> Self {
        let index = Index::new(hooks.iter().map(|hook| hook.rules.as_slice()));
        Self { hooks, index }
    }

    /// All hooks in order.
    #[must_use]
    pub fn hooks(&self) -> &[Arc<Hook>] {
        &self.hooks
    }

    /// The hooks one of whose rules matches, in order; none for exempt requests. Selectors and
    /// conditions come next.
    #[must_use]
    pub fn matching<'s, 'a>(&'s self, attributes: &Attributes<'a>) -> Vec<Match<'s, 'a>> {
        if attributes.exemption().is_some() {
            return Vec::new();
        }
        let found = self.match_rules(attributes).map(|(position, hook, name)| Match {
            position,
            hook,
            identity: name.resolve(attributes),
        });
        found.collect()
    }

    pub(crate) fn match_rules(
        &self,
        attributes: &Attributes<'_>,
    ) -> impl Iterator<Item = (usize, &Arc<Hook>, MatchedName)> {
        let candidates = match self.hooks.is_empty() {
            true => Vec::new(),
            false => self.index.candidates(attributes),
        };
        candidates.into_iter().filter_map(|position| {
            let position = position as usize;
            let hook = self.hooks.get(position)?;
            Some((position, hook, hook.match_rules(attributes)?))
        })
    }
}
