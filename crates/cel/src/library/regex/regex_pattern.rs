//! Compiled regular expressions, and the steps and memory that they take.

use std::ops::Range;

use regex_automata::meta;
use regex_automata::util::syntax as engine_syntax;

use super::super::strings::{STEPS_PER_SLICE, slice_text};
use super::regex_translator::{self, RegexSyntaxError};
use crate::function::{EvalError, EvalResult, StepBudget};
use crate::value::{Str, Value};

/// The size classes of compiled patterns, from small to large. A pattern is compiled in the
/// smallest class that it fits into, so that a small pattern takes few steps and little memory. The
/// last class limits the size of all patterns. It also bounds the time of a call with a pattern
/// that is not constant, because such a pattern is compiled for each call and costs by its length
/// only. Go allows larger patterns that repeat Unicode classes, such as `\pL{500}`; all other
/// patterns exceed Go's own limits first.
const SIZE_CLASSES: [PatternSizeClass; 4] = [
    PatternSizeClass {
        regex_program_bytes_max: 8 << 10,
        regex_compile_steps: 1_000,
        lazy_dfa_cache_bytes_max: 64 << 10,
    },
    PatternSizeClass {
        regex_program_bytes_max: 64 << 10,
        regex_compile_steps: 5_000,
        lazy_dfa_cache_bytes_max: 256 << 10,
    },
    PatternSizeClass {
        regex_program_bytes_max: 1 << 20,
        regex_compile_steps: 80_000,
        lazy_dfa_cache_bytes_max: 1 << 20,
    },
    PatternSizeClass {
        regex_program_bytes_max: 10 << 20,
        regex_compile_steps: 800_000,
        lazy_dfa_cache_bytes_max: 2 << 20,
    },
];

/// The limits of compiled patterns of one size.
struct PatternSizeClass {
    /// The maximum memory of the program for one search direction.
    regex_program_bytes_max: usize,
    /// The steps that are charged for compiling a pattern of this size.
    regex_compile_steps: usize,
    /// The maximum memory of each of the two lazy automata that a thread builds while it searches. A full automaton is
    /// cleared. If this happens often, the search continues without it.
    lazy_dfa_cache_bytes_max: usize,
}

/// The steps that are charged for each byte of a pattern.
const STEPS_PER_BYTE: usize = 2;

/// The maximum number of steps for parsing a pattern before it is compiled. It also bounds the memory of the parser,
/// about 10 bytes for each step.
const PARSE_STEPS_MAX: usize = 2_000_000;

/// The memory of a compiled pattern in addition to its programs.
const OVERHEAD_BYTES: usize = 6 << 10;

/// A compiled regular expression; a copy shares everything with the original.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    compiled_regex: meta::Regex,
    /// Whether a search may read an unbounded amount of text after the match.
    has_unbounded_lookahead: bool,
}

impl Pattern {
    /// Compiles an expression. The outer error means that the step budget is used up, the inner
    /// error that the expression is invalid.
    pub(super) fn compile_pattern(
        source: &str,
        step_budget: &mut StepBudget,
    ) -> Result<Result<Self, RegexSyntaxError>, EvalError> {
        Self::compile_pattern_within_memory(source, step_budget, usize::MAX)
    }

    /// As [`compile`](Self::compile), but stops if the pattern takes more than `pattern_bytes_left` of
    /// memory.
    pub(super) fn compile_pattern_within_memory(
        source: &str,
        step_budget: &mut StepBudget,
        pattern_bytes_left: usize,
    ) -> Result<Result<Self, RegexSyntaxError>, EvalError> {
        step_budget.spend_steps(source.len().saturating_mul(STEPS_PER_BYTE))?;
        let translated = match regex_translator::translate_regex(source) {
            Ok(translated) => translated,
            Err(error) => return Ok(Err(error)),
        };
        let byte_steps = translated.regex_text.len().saturating_mul(STEPS_PER_BYTE);
        let n_parse_steps = translated.class_parse_steps.saturating_add(byte_steps);
        if n_parse_steps > PARSE_STEPS_MAX {
            return Ok(Err(RegexSyntaxError::regex_too_large_error(source)));
        }
        step_budget.spend_steps(n_parse_steps)?;
        let config = engine_syntax::Config::new().nest_limit(regex_translator::NESTING_MAX);
        let Ok(tree) = engine_syntax::parse_with(&translated.regex_text, &config) else {
            return Ok(Err(RegexSyntaxError::regex_too_deep_error(source)));
        };
        for size in SIZE_CLASSES {
            step_budget.spend_steps(size.regex_compile_steps)?;
            let config = meta::Config::new()
                .nfa_size_limit(Some(size.regex_program_bytes_max))
                .hybrid_cache_capacity(size.lazy_dfa_cache_bytes_max);
            if let Ok(regex) = meta::Builder::new().configure(config).build_from_hir(&tree) {
                return Ok(Ok(Self {
                    compiled_regex: regex,
                    has_unbounded_lookahead: translated.has_unbounded_lookahead(),
                }));
            }
            if size.regex_program_bytes_max > pattern_bytes_left {
                return Err(EvalError::CostLimit);
            }
        }
        Ok(Err(RegexSyntaxError::regex_too_large_error(source)))
    }

    /// The memory of the pattern without the caches for searches.
    pub(super) fn pattern_memory_bytes(&self) -> usize {
        self.compiled_regex.memory_usage().saturating_add(OVERHEAD_BYTES)
    }

    /// Reports whether the expression matches somewhere in the text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.compiled_regex.is_match(text)
    }

    /// The first match, or the empty text.
    pub(crate) fn find_first_match<'a>(&self, text: &Str<'a>) -> Value<'a> {
        let found = self.compiled_regex.find(text.as_str());
        slice_text(text, found.map_or(0..0, |found| found.range()))
    }

    /// The matches from left to right, at most `limit` of them unless it is negative.
    ///
    /// Each match may scan all of the text that follows it, so the time is not linear.
    pub(crate) fn find_all_matches<'a>(
        &self,
        text: &Str<'a>,
        limit: i64,
        step_budget: &mut StepBudget,
    ) -> EvalResult<'a> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut found: Vec<Range<usize>> = Vec::new();
        for range in
            self.compiled_regex.find_iter(text.as_str()).take(limit).map(|found| found.range())
        {
            step_budget.spend_steps(STEPS_PER_SLICE)?;
            if self.has_unbounded_lookahead {
                step_budget.spend_for_text(text.as_str().len().saturating_sub(range.end))?;
            }
            found.push(range);
        }
        Ok(Value::owned_list_value(
            found.into_iter().map(|range| slice_text(text, range)).collect(),
        ))
    }
}
