//! A cache of the constant patterns of expressions that are compiled together.

use std::collections::HashMap;
use std::fmt;

use super::regex_pattern::Pattern;
use super::regex_translator::RegexSyntaxError;
use crate::function::StepBudget;

/// The maximum memory of all patterns of one cache. A pattern of a few characters can take
/// megabytes, and a configuration can have thousands of patterns. A typical pattern takes tens of
/// kilobytes.
const BYTES_MAX: usize = 80 << 20;

/// The maximum number of steps for compiling the patterns of one cache, including patterns that are
/// too large. They take about a second.
const STEPS_MAX: u64 = 8_000_000;

/// The compiled constant patterns of a group of expressions, by source.
#[derive(Debug)]
pub(crate) struct PatternCache {
    compiled_patterns: HashMap<Box<str>, Result<Pattern, RegexSyntaxError>>,
    step_budget: StepBudget,
    pattern_bytes_left: usize,
}

/// The reason why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatternError {
    /// The syntax of the pattern is invalid.
    Invalid(RegexSyntaxError),
    /// The cache has no memory or steps left for it.
    Exhausted,
}

impl Default for PatternCache {
    fn default() -> Self {
        Self {
            compiled_patterns: HashMap::new(),
            step_budget: StepBudget::new(STEPS_MAX),
            pattern_bytes_left: BYTES_MAX,
        }
    }
}

impl PatternCache {
    /// The memory of all patterns in the cache.
    pub(crate) fn cached_pattern_bytes(&self) -> usize {
        BYTES_MAX.saturating_sub(self.pattern_bytes_left)
    }

    /// Compiles a pattern, or returns the cached one. If a pattern does not fit into the remaining
    /// memory, a smaller one may still fit.
    pub(crate) fn compile_or_reuse_pattern(
        &mut self,
        source: &str,
    ) -> Result<Pattern, PatternError> {
        if let Some(outcome) = self.compiled_patterns.get(source) {
            return outcome.clone().map_err(PatternError::Invalid);
        }
        let outcome = Pattern::compile_pattern_within_memory(
            source,
            &mut self.step_budget,
            self.pattern_bytes_left,
        )
        .map_err(|_| PatternError::Exhausted)?;
        if let Ok(pattern) = &outcome {
            let left = self.pattern_bytes_left.checked_sub(pattern.pattern_memory_bytes());
            self.pattern_bytes_left = left.ok_or(PatternError::Exhausted)?;
        }
        self.compiled_patterns.insert(source.into(), outcome.clone());
        outcome.map_err(PatternError::Invalid)
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(f),
            Self::Exhausted => {
                f.write_str("this pattern and those before it take too much memory together")
            }
        }
    }
}
