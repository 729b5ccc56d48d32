//! Compares `&&`, `||`, `!` and `? :` with a simple reference implementation.

use proptest::prelude::*;

use super::{Answer, answer};

/// A formula whose leaves are true, false or errors.
#[derive(Debug, Clone)]
enum Formula {
    Known(bool),
    Fails,
    Not(Box<Formula>),
    And(Box<[Formula; 2]>),
    Or(Box<[Formula; 2]>),
    If(Box<[Formula; 3]>),
    /// The macro `exists` over a list of elements with these truth values.
    Exists(Vec<Option<bool>>),
    /// The macro `all` over a list of elements with these truth values.
    All(Vec<Option<bool>>),
}

impl Formula {
    /// The truth value of the formula; `None` for an error.
    fn truth(&self) -> Option<bool> {
        match self {
            Self::Known(truth) => Some(*truth),
            Self::Fails => None,
            Self::Not(inner) => inner.truth().map(|truth| !truth),
            Self::And(sides) => both(sides[0].truth(), sides[1].truth()),
            Self::Or(sides) => either(sides[0].truth(), sides[1].truth()),
            Self::If(parts) => match parts[0].truth()? {
                true => parts[1].truth(),
                false => parts[2].truth(),
            },
            Self::Exists(truths) => truths.iter().copied().fold(Some(false), either),
            Self::All(truths) => truths.iter().copied().fold(Some(true), both),
        }
    }

    /// The formula as an expression. Half of the leaves are constants, which compile to other code.
    fn source(&self) -> String {
        match self {
            Self::Known(true) => "(request.user == 'alice')".to_owned(),
            Self::Known(false) => "false".to_owned(),
            Self::Fails => "(request.groups[9] == '')".to_owned(),
            Self::Not(inner) => format!("!{}", inner.source()),
            Self::And(sides) => format!("({} && {})", sides[0].source(), sides[1].source()),
            Self::Or(sides) => format!("({} || {})", sides[0].source(), sides[1].source()),
            Self::If(parts) => {
                format!("({} ? {} : {})", parts[0].source(), parts[1].source(), parts[2].source())
            }
            Self::Exists(truths) => format!("{}.exists(n, 1 / n == 1)", divisors(truths)),
            Self::All(truths) => format!("{}.all(n, 1 / n == 1)", divisors(truths)),
        }
    }
}

fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        (None, _) | (_, None) => None,
    }
}

fn either(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    both(a.map(|a| !a), b.map(|b| !b)).map(|neither| !neither)
}

/// Numbers `n` for which `1 / n == 1` is true, false or an error.
fn divisors(truths: &[Option<bool>]) -> String {
    let numbers: Vec<&str> = truths
        .iter()
        .map(|truth| match truth {
            Some(true) => "1",
            Some(false) => "2",
            None => "0",
        })
        .collect();
    format!("[{}]", numbers.join(", "))
}

fn formulas() -> impl Strategy<Value = Formula> {
    let truths = || proptest::collection::vec(any::<Option<bool>>(), 0..4);
    let leaf = prop_oneof![
        any::<bool>().prop_map(Formula::Known),
        Just(Formula::Fails),
        truths().prop_map(Formula::Exists),
        truths().prop_map(Formula::All),
    ];
    leaf.prop_recursive(6, 40, 3, |inner| {
        let pair = || [inner.clone(), inner.clone()].prop_map(Box::new);
        prop_oneof![
            inner.clone().prop_map(|formula| Formula::Not(Box::new(formula))),
            pair().prop_map(Formula::And),
            pair().prop_map(Formula::Or),
            [inner.clone(), inner.clone(), inner.clone()]
                .prop_map(|parts| Formula::If(Box::new(parts))),
        ]
    })
}

proptest! {
    #[test]
    fn logical_operators_absorb_errors(formula in formulas()) {
        let source = formula.source();
        let (found, _) = answer(&source);
        match formula.truth() {
            Some(truth) => prop_assert!(found.is_bool(truth), "{source}: {found:?}, not {truth}"),
            None => prop_assert!(matches!(found, Answer::Error(_)), "{source}: {found:?}"),
        }
    }
}
