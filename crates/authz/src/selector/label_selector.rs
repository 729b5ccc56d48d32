//! Label selectors: `app=web,tier in (front,back),!legacy`.

mod label_lexer;

use std::fmt;

use field_errors::{FieldErrors, FieldPath, label_key_faults, label_value_faults};

use self::label_lexer::{LabelLexer, LabelToken};
use super::{ReviewSelectorOperator, SELECTOR_TERMS_MAX, SelectorError};

/// One requirement of a label selector.
///
/// Displays in the syntax it is parsed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRequirement {
    /// The key of the label.
    pub key: String,
    /// The relation that the label must have to the values. Operators of the same meaning are kept as they were
    /// written.
    pub operator: LabelOperator,
    /// The values, sorted and without repetition: none for [`LabelOperator::Exists`] and
    /// [`LabelOperator::DoesNotExist`], any number for sets, one for all others.
    pub values: Vec<String>,
}

/// The relation of a label to values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LabelOperator {
    /// The form `key=value` of a requirement.
    Equals,
    /// The form `key==value` of a requirement.
    DoubleEquals,
    /// The form `key!=value` of a requirement.
    NotEquals,
    /// The form `key in (a,b)` of a requirement.
    In,
    /// The form `key notin (a,b)` of a requirement.
    NotIn,
    /// The form `key` of a requirement.
    Exists,
    /// The form `!key` of a requirement.
    DoesNotExist,
    /// The form `key>1` of a requirement.
    GreaterThan,
    /// The form `key<1` of a requirement.
    LessThan,
}

impl LabelOperator {
    /// The operator's name in Kubernetes' selector library, which is its symbol where it has one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Exists => "exists",
            Self::DoesNotExist => "!",
            Self::GreaterThan => "gt",
            Self::LessThan => "lt",
        }
    }

    /// The operator in an access review. A review has no operators for
    /// comparisons; leaving one out only widens the request.
    pub const fn review_selector_operator(self) -> Option<ReviewSelectorOperator> {
        match self {
            Self::Equals | Self::DoubleEquals | Self::In => Some(ReviewSelectorOperator::In),
            Self::NotEquals | Self::NotIn => Some(ReviewSelectorOperator::NotIn),
            Self::Exists => Some(ReviewSelectorOperator::Exists),
            Self::DoesNotExist => Some(ReviewSelectorOperator::DoesNotExist),
            Self::GreaterThan | Self::LessThan => None,
        }
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, operator, values } = self;
        let values = values.join(",");
        match operator {
            LabelOperator::Equals => write!(f, "{key}={values}"),
            LabelOperator::DoubleEquals => write!(f, "{key}=={values}"),
            LabelOperator::NotEquals => write!(f, "{key}!={values}"),
            LabelOperator::In => write!(f, "{key} in ({values})"),
            LabelOperator::NotIn => write!(f, "{key} notin ({values})"),
            LabelOperator::Exists => f.write_str(key),
            LabelOperator::DoesNotExist => write!(f, "!{key}"),
            LabelOperator::GreaterThan => write!(f, "{key}>{values}"),
            LabelOperator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// Parses a label selector. The requirements are sorted by key, and those of one key stay in the
/// order of the text.
///
/// # Errors
/// Text outside of the grammar, keys or values that no label can have, a comparison with something
/// that is not an integer, or more than [`SELECTOR_TERMS_MAX`] requirements and values.
///
/// ```
/// let requirements = authz::parse_label_selector("tier in (b,a), !legacy, app=web").unwrap();
/// let texts: Vec<String> = requirements.iter().map(ToString::to_string).collect();
/// assert_eq!(texts, ["app=web", "!legacy", "tier in (a,b)"]);
/// ```
pub fn parse_label_selector(selector: &str) -> Result<Vec<LabelRequirement>, SelectorError> {
    let mut parser = LabelSelectorParser { lexer: LabelLexer::new(selector), n_selector_terms: 0 };
    let mut requirements = parser.parse_requirements()?;
    requirements.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(requirements)
}

struct LabelSelectorParser<'a> {
    lexer: LabelLexer<'a>,
    /// Requirements and values seen so far; never more than [`SELECTOR_TERMS_MAX`].
    n_selector_terms: usize,
}

impl<'a> LabelSelectorParser<'a> {
    fn parse_requirements(&mut self) -> Result<Vec<LabelRequirement>, SelectorError> {
        let mut requirements = Vec::new();
        match self.lexer.peek_token() {
            LabelToken::End => return Ok(requirements),
            token if begins_requirement(token) => {}
            token => return Err(expected_token_error(token, "!, identifier, or 'end of string'")),
        }
        loop {
            let requirement = self.parse_requirement().map_err(|error| {
                SelectorError::new(format!("unable to parse requirement: {error}"))
            })?;
            requirements.push(requirement);
            match self.lexer.next() {
                LabelToken::End => return Ok(requirements),
                LabelToken::Symbol(",") => {}
                token => return Err(expected_token_error(token, "',' or 'end of string'")),
            }
            let token = self.lexer.peek_token();
            if !begins_requirement(token) {
                return Err(expected_token_error(token, "identifier after ','"));
            }
        }
    }

    fn parse_requirement(&mut self) -> Result<LabelRequirement, SelectorError> {
        self.count_selector_term_within_limit()?;
        let is_negated = self.lexer.peek_token() == LabelToken::Symbol("!");
        if is_negated {
            self.lexer.next();
        }
        let key = match self.lexer.next() {
            LabelToken::Word(key) => key,
            token => return Err(expected_token_error(token, "identifier")),
        };
        let faults = label_key_faults(key);
        if !faults.is_empty() {
            let error = FieldPath::NOWHERE.invalid(key, &faults.join("; "));
            return Err(SelectorError::new(error.to_string()));
        }
        if is_negated {
            return build_label_requirement(key, LabelOperator::DoesNotExist, Vec::new());
        }
        if matches!(self.lexer.peek_token(), LabelToken::End | LabelToken::Symbol(",")) {
            return build_label_requirement(key, LabelOperator::Exists, Vec::new());
        }
        let operator = parse_operator(self.lexer.next())?;
        let values = match operator {
            LabelOperator::In | LabelOperator::NotIn => self.parse_value_set()?,
            _ => vec![self.parse_single_value()?],
        };
        build_label_requirement(key, operator, values)
    }

    /// Parses the value after an operator symbol. If no word follows, the value is empty.
    fn parse_single_value(&mut self) -> Result<&'a str, SelectorError> {
        if matches!(self.lexer.peek_token(), LabelToken::End | LabelToken::Symbol(",")) {
            return Ok("");
        }
        match self.lexer.next() {
            LabelToken::Word(value) => Ok(value),
            token => Err(expected_token_error(token, "identifier")),
        }
    }

    /// Parses a set such as `(a,b)`. Missing text between two commas, or between a comma and a parenthesis, is an
    /// empty value. `()` is a set of one empty value.
    fn parse_value_set(&mut self) -> Result<Vec<&'a str>, SelectorError> {
        match self.lexer.next() {
            LabelToken::Symbol("(") => {}
            // Kubernetes leaves out the comma in this message.
            token => return Err(SelectorError::new(format!("found '{token}' expected: '('"))),
        }
        let mut values = Vec::new();
        match self.lexer.peek_token() {
            LabelToken::Word(_) | LabelToken::Symbol(",") => {}
            LabelToken::Symbol(")") => values.push(""),
            token => return Err(expected_token_error(token, "',', ')' or identifier")),
        }
        loop {
            match self.lexer.next() {
                LabelToken::Symbol(")") => break,
                LabelToken::Word(value) => {
                    self.count_selector_term_within_limit()?;
                    values.push(value);
                    let token = self.lexer.peek_token();
                    if !matches!(token, LabelToken::Symbol("," | ")")) {
                        return Err(expected_token_error(token, "',' or ')'"));
                    }
                }
                LabelToken::Symbol(",") => {
                    let ends_item =
                        matches!(self.lexer.peek_token(), LabelToken::Symbol("," | ")"));
                    if values.is_empty() || ends_item {
                        self.count_selector_term_within_limit()?;
                        values.push("");
                    }
                }
                token => return Err(expected_token_error(token, "',', or identifier")),
            }
        }
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }

    fn count_selector_term_within_limit(&mut self) -> Result<(), SelectorError> {
        self.n_selector_terms += 1;
        if self.n_selector_terms > SELECTOR_TERMS_MAX {
            return Err(SelectorError::too_many_terms_error());
        }
        Ok(())
    }
}

fn begins_requirement(token: LabelToken<'_>) -> bool {
    matches!(token, LabelToken::Word(_) | LabelToken::Symbol("!"))
}

fn parse_operator(token: LabelToken<'_>) -> Result<LabelOperator, SelectorError> {
    match token {
        LabelToken::Symbol("=") => Ok(LabelOperator::Equals),
        LabelToken::Symbol("==") => Ok(LabelOperator::DoubleEquals),
        LabelToken::Symbol("!=") => Ok(LabelOperator::NotEquals),
        LabelToken::Symbol(">") => Ok(LabelOperator::GreaterThan),
        LabelToken::Symbol("<") => Ok(LabelOperator::LessThan),
        LabelToken::Word("in") => Ok(LabelOperator::In),
        LabelToken::Word("notin") => Ok(LabelOperator::NotIn),
        token => Err(expected_token_error(token, "in, notin, =, ==, !=, gt, lt")),
    }
}

/// Checks the values and builds the requirement. The key has been checked.
fn build_label_requirement(
    key: &str,
    operator: LabelOperator,
    values: Vec<&str>,
) -> Result<LabelRequirement, SelectorError> {
    let mut errors = FieldErrors::new();
    let at = FieldPath::root("values");
    if matches!(operator, LabelOperator::GreaterThan | LabelOperator::LessThan) {
        for (idx, value) in values.iter().enumerate() {
            if value.parse::<i64>().is_err() {
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(at.index(idx).invalid(*value, detail));
            }
        }
    }
    for (idx, value) in values.iter().enumerate() {
        let faults = label_value_faults(value);
        if !faults.is_empty() {
            errors.push(at.index(idx).key(key).invalid(*value, &faults.join("; ")));
        }
    }
    errors.into_result(()).map_err(|errors| SelectorError::new(errors.to_string()))?;
    let values = values.into_iter().map(str::to_owned).collect();
    Ok(LabelRequirement { key: key.to_owned(), operator, values })
}

fn expected_token_error(found: LabelToken<'_>, what: &str) -> SelectorError {
    SelectorError::new(format!("found '{found}', expected: {what}"))
}
