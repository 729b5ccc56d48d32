//! What expressions that are compiled together may take.

use std::fmt;

use crate::function::StepBudget;
use crate::library::regex::{Pattern, PatternCache, PatternError};

/// How much work it may be to make programs, without their patterns; steps are those of an
/// evaluation, so this is about a second. A file of a megabyte that says something plain takes half
/// of it; what takes more are macros that copy their operand, and types in types.
const STEPS_MAX: u64 = 8_000_000;

/// How much work a node of a tree is, from its parsing to its program.
const STEPS_PER_NODE: usize = 4;

/// What expressions that belong together, such as those of one configuration, may take together.
///
/// Each expression has limits of its own, but thousands of them fit into a file. They also share
/// their patterns: each is compiled once, however often it occurs. The budget is needed as long as
/// expressions are compiled; programs keep what they use.
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
    /// Compiles a pattern unless that has been done.
    pub(crate) fn compile_pattern(&mut self, source: &str) -> Result<Pattern, PatternError> {
        self.pattern_cache.compile(source)
    }

    /// Makes room for one more node of a tree.
    pub(crate) fn spend_on_node(&mut self) -> Result<(), BudgetExhausted> {
        self.step_budget.spend_steps(STEPS_PER_NODE).map_err(|_| BudgetExhausted)
    }
}

/// There is no room for an expression beside those that were compiled before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BudgetExhausted;

impl fmt::Display for BudgetExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this expression and those before it take too much work together")
    }
}
