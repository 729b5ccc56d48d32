//! A fast path for predicates on borrowed strings, which builds no values.
//!
//! Nearly all match conditions compare fields of the request with constants. Such a predicate keeps
//! its general form. The fast path applies if every operand is present and is a borrowed string.
//! Otherwise it returns `None` before any cost is charged, and the general form runs. So errors,
//! optional values and other rare cases have one implementation only.

use crate::cost;
use crate::eval::LocalSlot;
use crate::ir::{
    Attribute, AttributeRoot, CallExpr, CompiledExpr, ConstantSet, QualifierKey, QuantifierExpr,
};
use crate::value::{RecordSource, Str, Value};

/// A string predicate and the general form of the same expression.
#[derive(Debug)]
pub(crate) struct FastPath {
    test: StringPredicate,
    pub(crate) fallback_expr: CompiledExpr,
}

#[derive(Debug, Clone)]
enum StringPredicate {
    /// The presence test `has(path)`.
    Has(RecordPath),
    /// `left == right`, `left.startsWith(right)` and the other comparisons.
    Compare { comparison: StringComparison, left: StringOperand, right: StringOperand },
    /// The test `item in list`.
    In { item: StringOperand, list: RecordPath },
    /// The test `item in [constants]`.
    Member { item: StringOperand, set: ConstantSet },
    /// The negation `!test` of a test.
    Not(Box<StringPredicate>),
    /// The conjunction `a && b` of any number of tests.
    All(Box<[StringPredicate]>),
    /// The disjunction `a || b` of any number of tests.
    Any(Box<[StringPredicate]>),
    /// `list.exists(x, test)`, which stops at true, or `list.all(x, test)`, which stops at false.
    Loop { list: RecordPath, slot: usize, test: Box<StringPredicate>, stopping_value: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringComparison {
    Equals,
    NotEquals,
    StartsWith,
    EndsWith,
    Contains,
}

/// An operand of a string predicate.
#[derive(Debug, Clone)]
enum StringOperand {
    Const {
        text: Box<str>,
        /// The cost of traversing it once.
        cost: u64,
    },
    Field(RecordPath),
    Slot(usize),
}

/// A path from a variable through record fields whose types the checker knows.
#[derive(Debug, Clone)]
struct RecordPath {
    variable_index: usize,
    record_field_indices: Box<[usize]>,
    last_field_index: usize,
}

/// Adds a fast path to an expression that allows one.
pub(crate) fn with_fast_path(fallback_expr: CompiledExpr) -> CompiledExpr {
    match string_predicate_from_expr(&fallback_expr) {
        Some(test) => CompiledExpr::FastPath(Box::new(FastPath { test, fallback_expr })),
        None => fallback_expr,
    }
}

/// The maximum number of leaf predicates in one fast path. Each operand of `&&` and `||` has a fast
/// path of its own, so without a limit the memory would grow quadratically.
const SINGLE_TESTS_MAX: usize = 16;

fn string_predicate_from_expr(expr: &CompiledExpr) -> Option<StringPredicate> {
    let test = match expr {
        CompiledExpr::Has(attr) => RecordPath::from_attribute(attr).map(StringPredicate::Has),
        CompiledExpr::Equal { sides, negated } => {
            let comparison =
                if *negated { StringComparison::NotEquals } else { StringComparison::Equals };
            let [left, right] = &**sides;
            string_predicate_from_comparison(comparison, left, right)
        }
        CompiledExpr::Member { item, set } => Some(StringPredicate::Member {
            item: StringOperand::string_operand_from_expr(item)?,
            set: set.clone(),
        }),
        CompiledExpr::Call(call) => string_predicate_from_call(call),
        CompiledExpr::Quantifier(quantifier) => string_predicate_from_quantifier(quantifier),
        CompiledExpr::Not(operand) => {
            Some(StringPredicate::Not(Box::new(string_predicate_from_operand(operand)?)))
        }
        CompiledExpr::And(terms) => Some(StringPredicate::All(
            terms.iter().map(string_predicate_from_operand).collect::<Option<_>>()?,
        )),
        CompiledExpr::Or(terms) => Some(StringPredicate::Any(
            terms.iter().map(string_predicate_from_operand).collect::<Option<_>>()?,
        )),
        _ => None,
    }?;
    (test.count_leaf_predicates() <= SINGLE_TESTS_MAX).then_some(test)
}

/// Returns the string predicate of an operand that has a fast path without loops.
fn string_predicate_from_operand(operand: &CompiledExpr) -> Option<StringPredicate> {
    match operand {
        CompiledExpr::FastPath(fast_path) if !fast_path.test.contains_loop() => {
            Some(fast_path.test.clone())
        }
        _ => None,
    }
}

fn string_predicate_from_call(call: &CallExpr) -> Option<StringPredicate> {
    let [left, right] = &*call.args else { return None };
    match call.name {
        "startsWith" => string_predicate_from_comparison(StringComparison::StartsWith, left, right),
        "endsWith" => string_predicate_from_comparison(StringComparison::EndsWith, left, right),
        "contains" => string_predicate_from_comparison(StringComparison::Contains, left, right),
        "@in" => match right {
            CompiledExpr::Attr(attr) => Some(StringPredicate::In {
                item: StringOperand::string_operand_from_expr(left)?,
                list: RecordPath::from_attribute(attr)?,
            }),
            _ => None,
        },
        _ => None,
    }
}

fn string_predicate_from_quantifier(quantifier: &QuantifierExpr) -> Option<StringPredicate> {
    let (CompiledExpr::Attr(range), None) =
        (&quantifier.iter_range, quantifier.second_variable_slot)
    else {
        return None;
    };
    Some(StringPredicate::Loop {
        list: RecordPath::from_attribute(range)?,
        slot: quantifier.first_variable_slot,
        test: Box::new(string_predicate_from_operand(&quantifier.predicate)?),
        stopping_value: quantifier.stopping_value,
    })
}

fn string_predicate_from_comparison(
    comparison: StringComparison,
    left: &CompiledExpr,
    right: &CompiledExpr,
) -> Option<StringPredicate> {
    Some(StringPredicate::Compare {
        comparison,
        left: StringOperand::string_operand_from_expr(left)?,
        right: StringOperand::string_operand_from_expr(right)?,
    })
}

impl FastPath {
    /// The result and its cost, or `None` if the general form must run. `variables` returns the
    /// records among the variables.
    #[inline]
    pub(crate) fn try_evaluate_fast_path<'a>(
        &'a self,
        variables: impl Fn(usize) -> Option<&'a dyn RecordSource>,
        slots: &[LocalSlot<'a>],
    ) -> Option<(bool, u64)> {
        let local = |slot: usize| match slots.get(slot)? {
            LocalSlot::Known(Ok(Value::String(Str::Borrowed(text)))) => Some(*text),
            LocalSlot::Known(_) | LocalSlot::Pending(_) => None,
        };
        match &self.test {
            StringPredicate::Loop { list, slot, test, stopping_value: stops_at } => {
                let texts = list
                    .resolve_containing_record(&variables)?
                    .string_list_field(list.last_field_index)?;
                let mut cost = 1 + list.n_path_fields();
                let condition = if *stops_at { 3 } else { 2 };
                let mut stopped = false;
                for text in texts {
                    cost += condition;
                    if stopped {
                        break;
                    }
                    let inner = |wanted: usize| {
                        if wanted == *slot { Some(text.as_str()) } else { local(wanted) }
                    };
                    let (outcome, step) = test.try_evaluate_predicate(&variables, &inner)?;
                    cost += 1 + step;
                    stopped = outcome == *stops_at;
                }
                Some((stopped == *stops_at, cost + 1))
            }
            test => test.try_evaluate_predicate(&variables, &local),
        }
    }
}

impl StringPredicate {
    fn count_leaf_predicates(&self) -> usize {
        match self {
            Self::Not(test) | Self::Loop { test, .. } => test.count_leaf_predicates(),
            Self::All(tests) | Self::Any(tests) => {
                tests.iter().map(Self::count_leaf_predicates).sum()
            }
            Self::Has(_) | Self::Compare { .. } | Self::In { .. } | Self::Member { .. } => 1,
        }
    }

    /// Nested loops have no fast path: they are rare and bind more than one variable.
    fn contains_loop(&self) -> bool {
        match self {
            Self::Loop { .. } => true,
            Self::Not(test) => test.contains_loop(),
            Self::All(tests) | Self::Any(tests) => tests.iter().any(Self::contains_loop),
            Self::Has(_) | Self::Compare { .. } | Self::In { .. } | Self::Member { .. } => false,
        }
    }

    /// Evaluates a predicate without loops.
    fn try_evaluate_predicate<'a>(
        &'a self,
        variables: &impl Fn(usize) -> Option<&'a dyn RecordSource>,
        local: &impl Fn(usize) -> Option<&'a str>,
    ) -> Option<(bool, u64)> {
        match self {
            Self::Has(path) => Some((
                path.resolve_containing_record(variables)?.has_field(path.last_field_index),
                path.n_path_fields(),
            )),
            Self::Compare { comparison, left, right } => {
                let a = left.get(variables, local)?;
                let b = right.get(variables, local)?;
                let (outcome, cost) = match comparison {
                    StringComparison::Equals => (a == b, cost::string_comparison_cost(a, b)),
                    StringComparison::NotEquals => (a != b, cost::string_comparison_cost(a, b)),
                    StringComparison::StartsWith => (a.starts_with(b), right.traversal_cost(b)),
                    StringComparison::EndsWith => (a.ends_with(b), right.traversal_cost(b)),
                    StringComparison::Contains => (
                        a.contains(b),
                        cost::text_traversal_cost(a).saturating_mul(right.traversal_cost(b)),
                    ),
                };
                Some((outcome, cost + left.operand_cost() + right.operand_cost()))
            }
            Self::In { item, list } => {
                let text = item.get(variables, local)?;
                let texts = list
                    .resolve_containing_record(variables)?
                    .string_list_field(list.last_field_index)?;
                let found = texts.iter().any(|candidate| candidate == text);
                Some((found, texts.len() as u64 + item.operand_cost() + 1 + list.n_path_fields()))
            }
            Self::Member { item, set } => {
                let text = item.get(variables, local)?;
                Some((set.contains_str(text), item.operand_cost()))
            }
            Self::Not(test) => {
                let (outcome, cost) = test.try_evaluate_predicate(variables, local)?;
                Some((!outcome, cost + 1))
            }
            Self::All(tests) => evaluate_short_circuit(tests, false, variables, local),
            Self::Any(tests) => evaluate_short_circuit(tests, true, variables, local),
            Self::Loop { .. } => None,
        }
    }
}

/// Evaluates predicates in order up to the first one with the result `stopping_value`.
fn evaluate_short_circuit<'a>(
    tests: &'a [StringPredicate],
    stopping_value: bool,
    variables: &impl Fn(usize) -> Option<&'a dyn RecordSource>,
    local: &impl Fn(usize) -> Option<&'a str>,
) -> Option<(bool, u64)> {
    let mut total = 0;
    for test in tests {
        let (outcome, cost) = test.try_evaluate_predicate(variables, local)?;
        total += cost;
        if outcome == stopping_value {
            return Some((stopping_value, total));
        }
    }
    Some((!stopping_value, total))
}

impl StringOperand {
    fn string_operand_from_expr(expr: &CompiledExpr) -> Option<Self> {
        match expr {
            CompiledExpr::Const(Value::String(text)) => {
                let text = text.as_str();
                Some(Self::Const { text: text.into(), cost: cost::text_traversal_cost(text) })
            }
            CompiledExpr::Attr(attr) => match &attr.attribute_root {
                AttributeRoot::Slot(slot) if attr.qualifiers.is_empty() => Some(Self::Slot(*slot)),
                AttributeRoot::Slot(_)
                | AttributeRoot::Variable(_)
                | AttributeRoot::Value(_)
                | AttributeRoot::Conditional(_) => {
                    RecordPath::from_attribute(attr).map(Self::Field)
                }
            },
            _ => None,
        }
    }

    #[inline]
    fn get<'a>(
        &'a self,
        variables: &impl Fn(usize) -> Option<&'a dyn RecordSource>,
        local: &impl Fn(usize) -> Option<&'a str>,
    ) -> Option<&'a str> {
        match self {
            Self::Const { text, .. } => Some(text),
            Self::Field(path) => {
                path.resolve_containing_record(variables)?.string_field(path.last_field_index)
            }
            Self::Slot(slot) => local(*slot),
        }
    }

    /// The cost of traversing the text once.
    #[inline]
    fn traversal_cost(&self, text: &str) -> u64 {
        match self {
            Self::Const { cost, .. } => *cost,
            Self::Field(_) | Self::Slot(_) => cost::text_traversal_cost(text),
        }
    }

    #[inline]
    fn operand_cost(&self) -> u64 {
        match self {
            Self::Const { .. } => 0,
            Self::Field(path) => 1 + path.n_path_fields(),
            Self::Slot(_) => 1,
        }
    }
}

impl RecordPath {
    fn from_attribute(attr: &Attribute) -> Option<Self> {
        let AttributeRoot::Variable(variable) = attr.attribute_root else { return None };
        let mut fields = Vec::with_capacity(attr.qualifiers.len());
        for qualifier in &attr.qualifiers {
            match &qualifier.key {
                QualifierKey::Field { index, .. } if !qualifier.is_optional_qualifier => {
                    fields.push(*index)
                }
                QualifierKey::Field { .. }
                | QualifierKey::Name(_)
                | QualifierKey::Const(_)
                | QualifierKey::Computed(_) => return None,
            }
        }
        let last = fields.pop()?;
        Some(Self {
            variable_index: variable,
            record_field_indices: fields.into(),
            last_field_index: last,
        })
    }

    /// The record that has the last field.
    #[inline]
    fn resolve_containing_record<'a>(
        &self,
        variables: &impl Fn(usize) -> Option<&'a dyn RecordSource>,
    ) -> Option<&'a dyn RecordSource> {
        let mut record = variables(self.variable_index)?;
        for index in &self.record_field_indices {
            record = record.nested_record_field(*index)?;
        }
        Some(record)
    }

    #[inline]
    fn n_path_fields(&self) -> u64 {
        self.record_field_indices.len() as u64 + 1
    }
}

#[cfg(test)]
mod tests;
