//! Tests on plain text, without making values.
//!
//! Nearly all conditions that people write compare fields of the request with constants. Such a
//! test keeps its general form beside it: the quick form answers when every operand is present
//! and is borrowed text, and otherwise declines before anything is charged, so that errors,
//! optional values and everything unusual have one implementation only.

use crate::cost;
use crate::eval::Slot;
use crate::ir::{Attr, Call, ConstantSet, Expr, Key, Quantifier, Root};
use crate::value::{Record, Str, Value};

/// A test and its general form.
#[derive(Debug)]
pub(crate) struct Quick {
    test: Test,
    pub(crate) general: Expr,
}

#[derive(Debug, Clone)]
enum Test {
    /// `has(path)`
    Has(FieldPath),
    /// `left == right`, `left.startsWith(right)` and their kin.
    Compare { comparison: Comparison, left: Text, right: Text },
    /// `item in list`
    In { item: Text, list: FieldPath },
    /// `item in [constants]`
    Member { item: Text, set: ConstantSet },
    /// `!test`
    Not(Box<Test>),
    /// `a && b`
    All(Box<[Test]>),
    /// `a || b`
    Any(Box<[Test]>),
    /// `list.exists(x, test)`, which stops at true, or `list.all(x, test)`, which stops at false.
    Loop { list: FieldPath, slot: usize, test: Box<Test>, stops_at: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equals,
    NotEquals,
    StartsWith,
    EndsWith,
    Contains,
}

/// Where a text comes from.
#[derive(Debug, Clone)]
enum Text {
    Const {
        text: Box<str>,
        /// The cost of traversing it once.
        cost: u64,
    },
    Field(FieldPath),
    Slot(usize),
}

/// Fields of records from a variable on, all known to the checker.
#[derive(Debug, Clone)]
struct FieldPath {
    variable: usize,
    records: Box<[usize]>,
    last: usize,
}

/// Gives an expression its quick form, if it has one.
pub(crate) fn quick(general: Expr) -> Expr {
    match test_of(&general) {
        Some(test) => Expr::Quick(Box::new(Quick { test, general })),
        None => general,
    }
}

/// The largest number of single tests in a quick form. Each part of a chain has a form of its own,
/// so without a bound long chains would take quadratic room.
const SINGLE_TESTS_MAX: usize = 16;

fn test_of(expr: &Expr) -> Option<Test> {
    let test = match expr {
        Expr::Has(attr) => FieldPath::of(attr).map(Test::Has),
        Expr::Equal { sides, negated } => {
            let comparison = if *negated { Comparison::NotEquals } else { Comparison::Equals };
            compare(comparison, &sides[0], &sides[1])
        }
        Expr::Member { item, set } => {
            Some(Test::Member { item: Text::of(item)?, set: set.clone() })
        }
        Expr::Call(call) => call_of(call),
        Expr::Quantifier(quantifier) => loop_of(quantifier),
        Expr::Not(operand) => Some(Test::Not(Box::new(part_of(operand)?))),
        Expr::And(terms) => Some(Test::All(terms.iter().map(part_of).collect::<Option<_>>()?)),
        Expr::Or(terms) => Some(Test::Any(terms.iter().map(part_of).collect::<Option<_>>()?)),
        _ => None,
    }?;
    (test.n_single() <= SINGLE_TESTS_MAX).then_some(test)
}

/// The test of an operand that has one.
fn part_of(operand: &Expr) -> Option<Test> {
    match operand {
        Expr::Quick(quick) if !quick.test.has_loop() => Some(quick.test.clone()),
        _ => None,
    }
}

fn call_of(call: &Call) -> Option<Test> {
    let [left, right] = &*call.args else { return None };
    match call.name {
        "startsWith" => compare(Comparison::StartsWith, left, right),
        "endsWith" => compare(Comparison::EndsWith, left, right),
        "contains" => compare(Comparison::Contains, left, right),
        "@in" => match right {
            Expr::Attr(attr) => {
                Some(Test::In { item: Text::of(left)?, list: FieldPath::of(attr)? })
            }
            _ => None,
        },
        _ => None,
    }
}

fn loop_of(quantifier: &Quantifier) -> Option<Test> {
    let (Expr::Attr(range), None) = (&quantifier.range, quantifier.second) else { return None };
    Some(Test::Loop {
        list: FieldPath::of(range)?,
        slot: quantifier.slot,
        test: Box::new(part_of(&quantifier.predicate)?),
        stops_at: quantifier.stops_at,
    })
}

fn compare(comparison: Comparison, left: &Expr, right: &Expr) -> Option<Test> {
    Some(Test::Compare { comparison, left: Text::of(left)?, right: Text::of(right)? })
}

impl Quick {
    /// The outcome and its cost, or `None` when the general form must be asked. `variables` gives
    /// the records among the variables.
    #[inline]
    pub(crate) fn answer<'a>(
        &'a self,
        variables: impl Fn(usize) -> Option<&'a dyn Record>,
        slots: &[Slot<'a>],
    ) -> Option<(bool, u64)> {
        let local = |slot: usize| match slots.get(slot)? {
            Slot::Known(Ok(Value::String(Str::Borrowed(text)))) => Some(*text),
            _ => None,
        };
        match &self.test {
            Test::Loop { list, slot, test, stops_at } => {
                let texts = list.record(&variables)?.texts(list.last)?;
                let mut cost = 1 + list.steps();
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
                    let (outcome, step) = test.answer(&variables, &inner)?;
                    cost += 1 + step;
                    stopped = outcome == *stops_at;
                }
                Some((stopped == *stops_at, cost + 1))
            }
            test => test.answer(&variables, &local),
        }
    }
}

impl Test {
    fn n_single(&self) -> usize {
        match self {
            Self::Not(test) | Self::Loop { test, .. } => test.n_single(),
            Self::All(tests) | Self::Any(tests) => tests.iter().map(Self::n_single).sum(),
            Self::Has(_) | Self::Compare { .. } | Self::In { .. } | Self::Member { .. } => 1,
        }
    }

    /// Loops in loops, or as parts of other tests, are rare and bind more than one variable.
    fn has_loop(&self) -> bool {
        match self {
            Self::Loop { .. } => true,
            Self::Not(test) => test.has_loop(),
            Self::All(tests) | Self::Any(tests) => tests.iter().any(Self::has_loop),
            Self::Has(_) | Self::Compare { .. } | Self::In { .. } | Self::Member { .. } => false,
        }
    }

    /// The outcome of a test without loops.
    fn answer<'a>(
        &'a self,
        variables: &impl Fn(usize) -> Option<&'a dyn Record>,
        local: &impl Fn(usize) -> Option<&'a str>,
    ) -> Option<(bool, u64)> {
        match self {
            Self::Has(path) => Some((path.record(variables)?.has(path.last), path.steps())),
            Self::Compare { comparison, left, right } => {
                let a = left.get(variables, local)?;
                let b = right.get(variables, local)?;
                let (outcome, cost) = match comparison {
                    Comparison::Equals => (a == b, cost::strings(a, b)),
                    Comparison::NotEquals => (a != b, cost::strings(a, b)),
                    Comparison::StartsWith => (a.starts_with(b), right.traversal(b)),
                    Comparison::EndsWith => (a.ends_with(b), right.traversal(b)),
                    Comparison::Contains => {
                        (a.contains(b), cost::text(a).saturating_mul(right.traversal(b)))
                    }
                };
                Some((outcome, cost + left.cost() + right.cost()))
            }
            Self::In { item, list } => {
                let text = item.get(variables, local)?;
                let texts = list.record(variables)?.texts(list.last)?;
                let found = texts.iter().any(|candidate| candidate == text);
                Some((found, texts.len() as u64 + item.cost() + 1 + list.steps()))
            }
            Self::Member { item, set } => {
                let text = item.get(variables, local)?;
                Some((set.contains_text(text), item.cost()))
            }
            Self::Not(test) => {
                let (outcome, cost) = test.answer(variables, local)?;
                Some((!outcome, cost + 1))
            }
            Self::All(tests) => chain(tests, false, variables, local),
            Self::Any(tests) => chain(tests, true, variables, local),
            Self::Loop { .. } => None,
        }
    }
}

/// Asks each test until one has the outcome that decides.
fn chain<'a>(
    tests: &'a [Test],
    decides: bool,
    variables: &impl Fn(usize) -> Option<&'a dyn Record>,
    local: &impl Fn(usize) -> Option<&'a str>,
) -> Option<(bool, u64)> {
    let mut total = 0;
    for test in tests {
        let (outcome, cost) = test.answer(variables, local)?;
        total += cost;
        if outcome == decides {
            return Some((decides, total));
        }
    }
    Some((!decides, total))
}

impl Text {
    fn of(expr: &Expr) -> Option<Self> {
        match expr {
            Expr::Const(Value::String(text)) => {
                let text = text.as_str();
                Some(Self::Const { text: text.into(), cost: cost::text(text) })
            }
            Expr::Attr(attr) => match &attr.root {
                Root::Slot(slot) if attr.qualifiers.is_empty() => Some(Self::Slot(*slot)),
                _ => FieldPath::of(attr).map(Self::Field),
            },
            _ => None,
        }
    }

    #[inline]
    fn get<'a>(
        &'a self,
        variables: &impl Fn(usize) -> Option<&'a dyn Record>,
        local: &impl Fn(usize) -> Option<&'a str>,
    ) -> Option<&'a str> {
        match self {
            Self::Const { text, .. } => Some(text),
            Self::Field(path) => path.record(variables)?.text(path.last),
            Self::Slot(slot) => local(*slot),
        }
    }

    /// The cost of traversing the text once.
    #[inline]
    fn traversal(&self, text: &str) -> u64 {
        match self {
            Self::Const { cost, .. } => *cost,
            Self::Field(_) | Self::Slot(_) => cost::text(text),
        }
    }

    #[inline]
    fn cost(&self) -> u64 {
        match self {
            Self::Const { .. } => 0,
            Self::Field(path) => 1 + path.steps(),
            Self::Slot(_) => 1,
        }
    }
}

impl FieldPath {
    fn of(attr: &Attr) -> Option<Self> {
        let Root::Variable(variable) = attr.root else { return None };
        let mut fields = Vec::with_capacity(attr.qualifiers.len());
        for qualifier in &attr.qualifiers {
            match &qualifier.key {
                Key::Field { index, .. } if !qualifier.optional => fields.push(*index),
                _ => return None,
            }
        }
        let last = fields.pop()?;
        Some(Self { variable, records: fields.into(), last })
    }

    /// The record that has the last field.
    #[inline]
    fn record<'a>(
        &self,
        variables: &impl Fn(usize) -> Option<&'a dyn Record>,
    ) -> Option<&'a dyn Record> {
        let mut record = variables(self.variable)?;
        for index in &self.records {
            record = record.record(*index)?;
        }
        Some(record)
    }

    #[inline]
    fn steps(&self) -> u64 {
        self.records.len() as u64 + 1
    }
}

#[cfg(test)]
mod tests;
