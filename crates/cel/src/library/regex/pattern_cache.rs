//! The constant patterns of expressions that are compiled together.

use std::collections::HashMap;
use std::fmt;

use super::pattern::Pattern;
use crate::function::StepBudget;

/// How much memory the patterns of one set may take together. A few characters can be megabytes,
/// and a configuration has room for thousands of them; patterns as people write them take some
/// ten kilobytes.
const BYTES_MAX: usize = 80 << 20;

/// How much work it may be to compile the patterns of one set, including those that are then found
/// to be too large: about a second.
const STEPS_MAX: u64 = 8_000_000;

/// The constant patterns of expressions that are compiled together.
#[derive(Debug)]
pub(crate) struct PatternCache {
    compiled: HashMap<Box<str>, Result<Pattern, String>>,
    step_budget: StepBudget,
    bytes_left: usize,
}

/// Why a pattern can not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatternError {
    /// It is not a pattern; Go's message.
    Invalid(String),
    /// It might be one, but there is no room for it beside those that were compiled before.
    Exhausted,
}

impl Default for PatternCache {
    fn default() -> Self {
        Self {
            compiled: HashMap::new(),
            step_budget: StepBudget::new(STEPS_MAX),
            bytes_left: BYTES_MAX,
        }
    }
}

impl PatternCache {
    /// Compiles a pattern unless that has been done. When one finds no room, smaller ones still
    /// may.
    pub(crate) fn compile(&mut self, source: &str) -> Result<Pattern, PatternError> {
        if let Some(outcome) = self.compiled.get(source) {
            return outcome.clone().map_err(PatternError::Invalid);
        }
        let outcome = Pattern::compile_within(source, &mut self.step_budget, self.bytes_left)
            .map_err(|_| PatternError::Exhausted)?;
        if let Ok(pattern) = &outcome {
            let left = self.bytes_left.checked_sub(pattern.memory_bytes());
            self.bytes_left = left.ok_or(PatternError::Exhausted)?;
        }
        self.compiled.insert(source.into(), outcome.clone());
        outcome.map_err(PatternError::Invalid)
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(message) => f.write_str(message),
            Self::Exhausted => {
                f.write_str("this pattern and those before it take too much memory together")
            }
        }
    }
}
