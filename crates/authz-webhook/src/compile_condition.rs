//! Compiles match conditions and reports what is wrong with an expression.

use std::sync::{Arc, LazyLock};

use cel::{CheckedExpression, CompileBudget, Environment, Issues, Type};

use crate::condition_hints;
use crate::match_conditions::MatchCondition;
use crate::review_spec::cel_request_type;

/// An expression cannot be a match condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionError {
    /// The expression does not compile, or its type is not bool. `detail` is Kubernetes' text.
    Invalid {
        /// The whole text, such as `compilation failed: ERROR: <input>:1:1: ...`.
        detail: String,
        /// Each issue with its position inside the expression.
        issues: Vec<ConditionIssue>,
    },
    /// The expression compiles but no program can be made of it (a constant part fails).
    Internal {
        /// The whole text, such as `program instantiation failed: ...`.
        detail: String,
    },
}

/// One compiler issue inside an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionIssue {
    /// The line within the expression, from 1.
    pub line: u32,
    /// The column in code points, from 1.
    pub column: u32,
    /// The message of the compiler, without the position.
    pub message: String,
    /// A suggestion for the author of the expression.
    pub hint: Option<String>,
}

/// The environment of all match conditions: one variable, `request`.
pub(crate) static ENVIRONMENT: LazyLock<Environment> =
    LazyLock::new(|| Environment::for_stored_expressions(vec![("request", cel_request_type())]));

/// The maximum total length of all error messages about one configuration, in bytes. The compiler repeats the line for
/// each of up to a hundred issues, so its messages can be a hundred times as long as the file.
const DETAIL_BYTES_MAX: usize = 8 << 20;

/// The maximum length in bytes of each further message, after the total length has been reached.
const SHORT_DETAIL_BYTES_MAX: usize = 1 << 10;

/// Compiles the conditions of one configuration. Their total size and work are limited, because a file may contain
/// thousands of large ones.
#[derive(Debug)]
pub struct ConditionCompiler {
    compile_budget: CompileBudget,
    error_detail_bytes_left: usize,
}

impl Default for ConditionCompiler {
    fn default() -> Self {
        Self { compile_budget: CompileBudget::default(), error_detail_bytes_left: DETAIL_BYTES_MAX }
    }
}

impl ConditionCompiler {
    /// Compiles one expression; it must be of type bool.
    pub fn compile_condition(
        &mut self,
        expression: &str,
    ) -> Result<MatchCondition, ConditionError> {
        let error =
            match ENVIRONMENT.parse_and_check_within_budget(expression, &mut self.compile_budget) {
                Err(issues) => compile_error(expression, &issues),
                Ok(checked) if *checked.output_type() != Type::Bool => {
                    not_bool_error(expression, &checked)
                }
                Ok(checked) => match checked.into_program() {
                    Ok(program) => return Ok(MatchCondition::new(expression, Arc::new(program))),
                    Err(cause) => ConditionError::Internal {
                        detail: format!("program instantiation failed: {cause}"),
                    },
                },
            };
        Err(self.limit_error_size(error))
    }

    /// Truncates the error if the errors together are too long.
    fn limit_error_size(&mut self, mut error: ConditionError) -> ConditionError {
        let (detail, issues) = match &mut error {
            ConditionError::Invalid { detail, issues } => (detail, Some(issues)),
            ConditionError::Internal { detail } => (detail, None),
        };
        match self.error_detail_bytes_left.checked_sub(detail.len()) {
            Some(left) => self.error_detail_bytes_left = left,
            None => {
                *detail = format!("{}...", truncate_error_detail(detail));
                if let Some(issues) = issues {
                    issues.truncate(1);
                }
            }
        }
        error
    }
}

fn truncate_error_detail(text: &str) -> &str {
    field_errors::truncate_to_bytes(text, SHORT_DETAIL_BYTES_MAX)
}

fn compile_error(expression: &str, issues: &Issues) -> ConditionError {
    ConditionError::Invalid {
        detail: format!("compilation failed: {issues}"),
        issues: issues
            .iter()
            .map(|issue| ConditionIssue {
                line: issue.line.unwrap_or(1),
                column: issue.column.max(1),
                message: issue.message.clone(),
                hint: condition_hints::hint_for_issue(expression, issue),
            })
            .collect(),
    }
}

fn not_bool_error(expression: &str, checked: &CheckedExpression<'_>) -> ConditionError {
    let found = checked.output_type().runtime_type_name();
    let detail = format!("must evaluate to bool but got {found}");
    let hint = condition_hints::hint_for_output_type(expression, checked.output_type());
    let issue = ConditionIssue {
        line: 1,
        column: 1,
        message: truncate_error_detail(&detail).to_owned(),
        hint,
    };
    ConditionError::Invalid { detail, issues: vec![issue] }
}
