//! Kubernetes' quantity library: `quantity`, `isQuantity`, comparison and arithmetic.

use crate::function::{
    CostFormula, EvalError, EvalResult, FunctionImpl, FunctionRegistry, Overload,
};
use crate::static_type::Type;
use crate::value::{OpaqueValue, Quantity, QuantityError, Value};

/// Declares the functions of Kubernetes' quantity library.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let quantity = || Type::Opaque(OpaqueValue::QUANTITY);
    let text = || vec![Type::String];
    let read =
        Overload::new_global_overload("string_to_quantity", text(), quantity(), string_to_quantity);
    functions.add_overloads("quantity", vec![read.with_cost_formula(CostFormula::Scan(0))]);
    let test = Overload::new_global_overload("is_quantity_string", text(), Type::Bool, is_quantity);
    functions.add_overloads("isQuantity", vec![test.with_cost_formula(CostFormula::Scan(0))]);
    // `sign` is a global function; all other functions of a quantity are members.
    let sign =
        Overload::new_global_overload("quantity_sign", vec![quantity()], Type::Int, quantity_sign);
    functions.add_overloads("sign", vec![sign]);
    let one: [(_, _, _, FunctionImpl); 3] = [
        ("asApproximateFloat", "quantity_get_float", Type::Double, quantity_as_approximate_float),
        ("asInteger", "quantity_get_int", Type::Int, quantity_as_integer),
        ("isInteger", "quantity_is_integer", Type::Bool, quantity_is_integer),
    ];
    for (name, id, result, implementation) in one {
        let overload = Overload::new_member_overload(id, vec![quantity()], result, implementation);
        functions.add_overloads(name, vec![overload]);
    }
    let two: [(_, _, _, _, FunctionImpl); 7] = [
        (
            "isGreaterThan",
            "quantity_is_greater_than",
            quantity(),
            Type::Bool,
            quantity_is_greater_than,
        ),
        ("isLessThan", "quantity_is_less_than", quantity(), Type::Bool, quantity_is_less_than),
        ("compareTo", "quantity_compare_to", quantity(), Type::Int, quantity_compare_to),
        ("add", "quantity_add", quantity(), quantity(), quantity_add),
        ("add", "quantity_add_int", Type::Int, quantity(), quantity_add),
        ("sub", "quantity_sub", quantity(), quantity(), quantity_subtract),
        ("sub", "quantity_sub_int", Type::Int, quantity(), quantity_subtract),
    ];
    for (name, id, other, result, implementation) in two {
        let overload =
            Overload::new_member_overload(id, vec![quantity(), other], result, implementation);
        functions.add_overloads(name, vec![overload]);
    }
}

fn string_to_quantity<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::String(text)] => to_quantity_value(Quantity::parse(text.as_str())),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn is_quantity<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::String(text)] => Ok(Value::Bool(Quantity::parse(text.as_str()).is_ok())),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn quantity_sign<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_quantity(arguments, |quantity| Ok(Value::Int(quantity.signum())))
}

fn quantity_as_approximate_float<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_quantity(arguments, |quantity| Ok(Value::Double(quantity.to_approximate_float())))
}

fn quantity_as_integer<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_quantity(arguments, |quantity| match quantity.as_int() {
        Some(value) => Ok(Value::Int(value)),
        None => Err(EvalError::new("cannot convert value to integer")),
    })
}

fn quantity_is_integer<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_quantity(arguments, |quantity| Ok(Value::Bool(quantity.as_int().is_some())))
}

fn quantity_is_greater_than<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_two_quantities(arguments, |a, b| Ok(Value::Bool(a.compare(b).is_gt())))
}

fn quantity_is_less_than<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_two_quantities(arguments, |a, b| Ok(Value::Bool(a.compare(b).is_lt())))
}

fn quantity_compare_to<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_two_quantities(arguments, |a, b| Ok(Value::Int(a.compare(b) as i64)))
}

fn quantity_add<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [quantity, Value::Int(other)] => {
            to_quantity_value(as_quantity(quantity)?.add(&Quantity::from_int(*other)))
        }
        _ => apply_to_two_quantities(arguments, |a, b| to_quantity_value(a.add(b))),
    }
}

fn quantity_subtract<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [quantity, Value::Int(other)] => {
            to_quantity_value(as_quantity(quantity)?.subtract(&Quantity::from_int(*other)))
        }
        _ => apply_to_two_quantities(arguments, |a, b| to_quantity_value(a.subtract(b))),
    }
}

fn to_quantity_value<'a>(result: Result<Quantity, QuantityError>) -> EvalResult<'a> {
    match result {
        Ok(quantity) => Ok(Value::opaque_value(OpaqueValue::Quantity(quantity))),
        Err(error) => Err(EvalError::new(error.to_string())),
    }
}

fn apply_to_quantity<'a>(
    arguments: &[Value<'a>],
    answer: fn(&Quantity) -> EvalResult<'a>,
) -> EvalResult<'a> {
    match arguments {
        [quantity] => answer(as_quantity(quantity)?),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn apply_to_two_quantities<'a>(
    arguments: &[Value<'a>],
    answer: fn(&Quantity, &Quantity) -> EvalResult<'a>,
) -> EvalResult<'a> {
    match arguments {
        [a, b] => answer(as_quantity(a)?, as_quantity(b)?),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn as_quantity<'v>(value: &'v Value<'_>) -> Result<&'v Quantity, EvalError> {
    if let Value::Opaque(value) = value
        && let OpaqueValue::Quantity(quantity) = &**value
    {
        return Ok(quantity);
    }
    Err(EvalError::no_such_overload())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::operators::tests::{assert_outcome, implementation};

    fn quantity(text: &'static str) -> Value<'static> {
        string_to_quantity(&[Value::borrowed_string(text)]).unwrap()
    }

    #[test]
    fn functions_of_one_quantity() {
        let no_integer = || Err("cannot convert value to integer");
        for (name, text, want) in [
            ("sign", "-1n", Ok(Value::Int(-1))),
            ("isInteger", "50k", Ok(Value::Bool(true))),
            ("isInteger", "50m", Ok(Value::Bool(false))),
            ("asInteger", "50k", Ok(Value::Int(50_000))),
            ("asInteger", "9999999999999999999999", no_integer()),
            ("asApproximateFloat", "50500m", Ok(Value::Double(50.5))),
        ] {
            let arguments = [quantity(text)];
            assert_outcome(&arguments, &implementation(name, "quantity_")(&arguments), &want);
        }
    }

    #[test]
    fn functions_of_two_quantities() {
        for (name, text, other, want) in [
            ("isGreaterThan", "1Gi", quantity("1G"), Value::Bool(true)),
            ("isGreaterThan", "1", quantity("1"), Value::Bool(false)),
            ("isLessThan", "1G", quantity("1Gi"), Value::Bool(true)),
            ("isLessThan", "1", quantity("1"), Value::Bool(false)),
            ("compareTo", "1", quantity("2"), Value::Int(-1)),
            ("compareTo", "2", quantity("2"), Value::Int(0)),
            ("compareTo", "2", quantity("1"), Value::Int(1)),
        ] {
            let arguments = [quantity(text), other];
            assert_outcome(&arguments, &implementation(name, "quantity_")(&arguments), &Ok(want));
        }
        for (name, text, other, want) in [
            ("add", "1", quantity("500m"), "1.5"),
            ("add", "1", Value::Int(2), "3"),
            ("sub", "1", quantity("500m"), "0.5"),
            ("sub", "1", Value::Int(2), "-1"),
        ] {
            let arguments = [quantity(text), other];
            let got = implementation(name, "quantity_")(&arguments).unwrap();
            assert!(got.equals(&quantity(want)), "{arguments:?}: {got:?}");
        }
    }

    #[test]
    fn malformed_quantities_are_refused() {
        for (text, want) in
            [("1.5Gi", Ok(Value::Bool(true))), ("1K", Err("unable to parse quantity's suffix"))]
        {
            let arguments = [Value::borrowed_string(text)];
            let is_quantity = Ok(Value::Bool(want.is_ok()));
            assert_outcome(&arguments, &implementation("isQuantity", "")(&arguments), &is_quantity);
            if want.is_err() {
                assert_outcome(&arguments, &implementation("quantity", "")(&arguments), &want);
            }
        }
    }
}
