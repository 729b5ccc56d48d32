//! Limits on the work of compiling a group of expressions.

use std::fmt;

use crate::function::StepBudget;
use crate::library::regex::{Pattern, PatternCache, PatternError};

/// The maximum number of steps that compiling a group of expressions may take, not counting their patterns. A step
/// takes as long as a step of an evaluation, so the limit is about a second. A plain file of a megabyte takes half of
/// it; macros that copy their operand and deeply nested types take more.
const STEPS_MAX: u64 = 8_000_000;

/// The steps that are charged for each AST node, for parsing, checking and planning together.
const STEPS_PER_NODE: usize = 4;

/// The compile-time limits that a group of expressions shares, such as those of one configuration.
///
/// Each expression has limits of its own, but thousands of them fit into a file. The group also
/// shares compiled patterns: each pattern is compiled once. The budget can be dropped once all
/// expressions are compiled; programs hold references to the patterns that they use.
#[derive(Debug)]
pub struct CompileBudget {
    pub(crate) step_budget: StepBudget,
    pattern_cache: PatternCache,
}

impl Default for CompileBudget {
    fn default() -> Self {
        Self { step_budget: StepBudget::new(STEPS_MAX), pattern_cache: PatternCache::default() }
    }
}

impl CompileBudget {
    /// Compiles a pattern, or returns the cached one.
    pub(crate) fn compile_pattern(&mut self, source: &str) -> Result<Pattern, PatternError> {
        self.pattern_cache.compile_or_reuse_pattern(source)
    }

    /// The memory of all patterns that the group has compiled, which live as long as its programs.
    pub fn compiled_pattern_bytes(&self) -> usize {
        self.pattern_cache.cached_pattern_bytes()
    }

    /// Charges the steps for one more AST node.
    pub(crate) fn spend_for_ast_node(&mut self) -> Result<(), BudgetExhausted> {
        self.step_budget.spend_steps(STEPS_PER_NODE).map_err(|_| BudgetExhausted)
    }
}

/// The error of a group of expressions that has used up its [`CompileBudget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BudgetExhausted;

impl fmt::Display for BudgetExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this expression and those before it take too much work together")
    }
}
