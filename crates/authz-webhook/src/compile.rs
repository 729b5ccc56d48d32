//! From the text of a match condition to a program, or to what is wrong with it.

use std::sync::{Arc, LazyLock};

use cel::{CheckedExpression, CompileBudget, Environment, Issues, Type};

use crate::conditions::MatchCondition;
use crate::hints;
use crate::review::request_type;

/// Why an expression can not be a match condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionError {
    /// The expression does not compile, or its type is not bool. `detail` is Kubernetes' text.
    Invalid {
        /// The whole text, such as `compilation failed: ERROR: <input>:1:1: ...`.
        detail: String,
        /// Each issue with its place inside the expression.
        issues: Vec<Issue>,
    },
    /// The expression compiles but no program can be made of it (a constant part fails).
    Internal {
        /// The whole text, such as `program instantiation failed: ...`.
        detail: String,
    },
}

/// One compiler issue inside an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// 1-based line of the expression.
    pub line: u32,
    /// 1-based column in code points.
    pub column: u32,
    /// The compiler's message without position.
    pub message: String,
    /// What the author probably meant.
    pub hint: Option<String>,
}

/// The environment of all match conditions: one variable, `request`.
pub(crate) static ENVIRONMENT: LazyLock<Environment> =
    LazyLock::new(|| Environment::kubernetes(vec![("request", request_type())]));

/// How much text there may be about the faults of one configuration in full. The compiler shows
/// the line for each of a hundred issues, so it can say a hundred times as much as the file does.
const DETAIL_BYTES_MAX: usize = 8 << 20;

/// How much of a text is told when there is too much of it.
const SHORT_DETAIL_BYTES_MAX: usize = 1 << 10;

/// Compiles the conditions of one configuration. What they take together is bounded: thousands of
/// them fit into a file, and each may be large.
#[derive(Debug)]
pub struct ConditionCompiler {
    budget: CompileBudget,
    detail_bytes_left: usize,
}

impl Default for ConditionCompiler {
    fn default() -> Self {
        Self { budget: CompileBudget::default(), detail_bytes_left: DETAIL_BYTES_MAX }
    }
}

impl ConditionCompiler {
    /// Compiles one expression; it must be of type bool.
    pub fn compile(&mut self, expression: &str) -> Result<MatchCondition, ConditionError> {
        let error = match ENVIRONMENT.check_within_budget(expression, &mut self.budget) {
            Err(issues) => invalid(expression, &issues),
            Ok(checked) if *checked.output_type() != Type::Bool => not_bool(expression, &checked),
            Ok(checked) => match checked.into_program() {
                Ok(program) => return Ok(MatchCondition::new(expression, Arc::new(program))),
                Err(cause) => ConditionError::Internal {
                    detail: format!("program instantiation failed: {cause}"),
                },
            },
        };
        Err(self.bounded(error))
    }

    /// The error in full, or the beginning of it when that would be too much.
    fn bounded(&mut self, mut error: ConditionError) -> ConditionError {
        let (detail, issues) = match &mut error {
            ConditionError::Invalid { detail, issues } => (detail, Some(issues)),
            ConditionError::Internal { detail } => (detail, None),
        };
        match self.detail_bytes_left.checked_sub(detail.len()) {
            Some(left) => self.detail_bytes_left = left,
            None => {
                *detail = format!("{}...", shortened(detail));
                if let Some(issues) = issues {
                    issues.truncate(1);
                }
            }
        }
        error
    }
}

fn shortened(text: &str) -> &str {
    text.get(..text.floor_char_boundary(SHORT_DETAIL_BYTES_MAX)).unwrap_or(text)
}

fn invalid(expression: &str, issues: &Issues) -> ConditionError {
    ConditionError::Invalid {
        detail: format!("compilation failed: {issues}"),
        issues: issues
            .iter()
            .map(|issue| Issue {
                line: issue.line.unwrap_or(1),
                column: issue.column.max(1),
                message: issue.message.clone(),
                hint: hints::hint(expression, issue),
            })
            .collect(),
    }
}

fn not_bool(expression: &str, checked: &CheckedExpression<'_>) -> ConditionError {
    let found = checked.output_type().runtime_name();
    let detail = format!("must evaluate to bool but got {found}");
    let hint = hints::not_bool(expression, checked.output_type());
    let issue = Issue { line: 1, column: 1, message: shortened(&detail).to_owned(), hint };
    ConditionError::Invalid { detail, issues: vec![issue] }
}
