//! cel-go's set functions, which compare lists without regard to order and repetition.

use crate::function::{CostFormula, EvalError, EvalResult, FunctionRegistry, Overload, StepBudget};
use crate::static_type::Type;
use crate::value::{List, Value};

/// Declares `sets.contains`, `sets.equivalent` and `sets.intersects`.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let lists = || {
        vec![Type::list_type_of(Type::type_param("T")), Type::list_type_of(Type::type_param("T"))]
    };
    functions.add_overloads(
        "sets.contains",
        vec![
            Overload::new_global_overload(
                "list_sets_contains_list",
                lists(),
                Type::Bool,
                sets_contains,
            )
            .with_cost_formula(CostFormula::Custom(cost_of_pairwise_comparison))
            .with_metered_implementation(sets_contains_metered),
        ],
    );
    functions.add_overloads(
        "sets.equivalent",
        vec![
            Overload::new_global_overload(
                "list_sets_equivalent_list",
                lists(),
                Type::Bool,
                sets_equivalent,
            )
            .with_cost_formula(CostFormula::Custom(cost_of_two_pairwise_comparisons))
            .with_metered_implementation(sets_equivalent_metered),
        ],
    );
    functions.add_overloads(
        "sets.intersects",
        vec![
            Overload::new_global_overload(
                "list_sets_intersects_list",
                lists(),
                Type::Bool,
                sets_intersects,
            )
            .with_cost_formula(CostFormula::Custom(cost_of_pairwise_comparison))
            .with_metered_implementation(sets_intersects_metered),
        ],
    );
}

fn sets_contains<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    sets_contains_metered(arguments, &mut StepBudget::default())
}

fn sets_equivalent<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    sets_equivalent_metered(arguments, &mut StepBudget::default())
}

fn sets_intersects<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    sets_intersects_metered(arguments, &mut StepBudget::default())
}

/// Reports whether all elements of the second list are in the first one.
fn sets_contains_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    let (whole, part) = two_list_arguments(arguments)?;
    contains_all_elements(whole, part, step_budget).map(Value::Bool)
}

fn sets_equivalent_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    let (a, b) = two_list_arguments(arguments)?;
    Ok(Value::Bool(
        contains_all_elements(a, b, step_budget)? && contains_all_elements(b, a, step_budget)?,
    ))
}

fn sets_intersects_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    let (a, b) = two_list_arguments(arguments)?;
    for item in a.iter() {
        if step_budget.find_element_index_metered(b, &item)?.is_some() {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn two_list_arguments<'v, 'a>(
    arguments: &'v [Value<'a>],
) -> Result<(&'v List<'a>, &'v List<'a>), EvalError> {
    match arguments {
        [Value::List(a), Value::List(b)] => Ok((a, b)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn contains_all_elements<'a>(
    whole: &List<'a>,
    part: &List<'a>,
    step_budget: &mut StepBudget,
) -> Result<bool, EvalError> {
    for item in part.iter() {
        if step_budget.find_element_index_metered(whole, &item)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn cost_of_pairwise_comparison<'a>(arguments: &[Value<'a>]) -> u64 {
    count_element_pairs(arguments).saturating_add(1)
}

fn cost_of_two_pairwise_comparisons<'a>(arguments: &[Value<'a>]) -> u64 {
    count_element_pairs(arguments).saturating_mul(2).saturating_add(1)
}

/// The number of pairs of elements. A value that is not a list counts as one element.
fn count_element_pairs(arguments: &[Value<'_>]) -> u64 {
    arguments.iter().map(|argument| argument.size().unwrap_or(1)).fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::operators::tests::implementation;

    fn list(items: &[i64]) -> Value<'static> {
        Value::owned_list_value(items.iter().copied().map(Value::Int).collect())
    }

    #[test]
    fn order_and_repetition_do_not_matter() {
        for (function, a, b, want) in [
            ("sets.contains", list(&[1, 2, 3]), list(&[3, 1, 1]), true),
            ("sets.contains", list(&[1, 2, 3]), list(&[4]), false),
            ("sets.contains", list(&[1]), list(&[]), true),
            ("sets.contains", list(&[]), list(&[1]), false),
            ("sets.equivalent", list(&[1, 2, 2]), list(&[2, 1]), true),
            ("sets.equivalent", list(&[1, 2]), list(&[2]), false),
            ("sets.equivalent", list(&[2]), list(&[1, 2]), false),
            ("sets.equivalent", list(&[]), list(&[]), true),
            ("sets.intersects", list(&[1, 2]), list(&[2, 3]), true),
            ("sets.intersects", list(&[1, 2]), list(&[3]), false),
            ("sets.intersects", list(&[]), list(&[]), false),
        ] {
            let got = implementation(function, "")(&[a.clone(), b.clone()]).unwrap();
            assert!(got.equals(&Value::Bool(want)), "{function}({a:?}, {b:?})");
        }
    }

    #[test]
    fn elements_are_equal_across_numeric_types() {
        let mixed = Value::owned_list_value(vec![Value::Uint(1), Value::Double(2.0)]);
        let got = implementation("sets.equivalent", "")(&[list(&[1, 2]), mixed]).unwrap();
        assert!(got.equals(&Value::Bool(true)));
    }

    #[test]
    fn cost_is_the_product_of_the_sizes() {
        let arguments = [list(&[1, 2]), list(&[1, 2, 3])];
        assert_eq!(cost_of_pairwise_comparison(&arguments), 7);
        assert_eq!(cost_of_two_pairwise_comparisons(&arguments), 13);
        assert_eq!(cost_of_pairwise_comparison(&[list(&[]), list(&[1])]), 1);
    }
}
