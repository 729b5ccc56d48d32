use super::*;
use crate::value::Timestamp;

/// Compares the result of a call with a value or the message of an error.
#[track_caller]
pub(in crate::library) fn assert_outcome<'a>(
    arguments: &[Value<'a>],
    actual: &EvalResult<'a>,
    expected: &Result<Value<'a>, &str>,
) {
    let agree = match (actual, expected) {
        (Ok(Value::Double(a)), Ok(Value::Double(b))) => a.to_bits() == b.to_bits(),
        (Ok(a), Ok(b)) => a.type_name() == b.type_name() && a.equals(b),
        (Err(EvalError::Error(a)), Err(b)) => **a == **b,
        _ => false,
    };
    assert!(agree, "{arguments:?}: {actual:?}, expected {expected:?}");
}

/// The implementation of an operator or a function. All overloads whose ids begin with `id` share
/// it.
pub(in crate::library) fn implementation(name: &str, id: &str) -> FunctionImpl {
    let functions =
        crate::library::kubernetes_functions(crate::library::LibrarySet::StoredExpressions);
    let function = functions.get(name).unwrap();
    function.overloads.iter().find(|overload| overload.id.starts_with(id)).unwrap().implementation
}

fn time(text: &str) -> Value<'static> {
    Value::Timestamp(text.parse::<Timestamp>().unwrap())
}

#[test]
fn comparison_crosses_the_numeric_types() {
    let nan = || Value::Double(f64::NAN);
    let cases = [
        ("_<_", Value::Int(1), Value::Uint(2), Ok(true)),
        ("_<_", Value::Int(-1), Value::Uint(0), Ok(true)),
        ("_>_", Value::Uint(u64::MAX), Value::Int(i64::MAX), Ok(true)),
        ("_<_", Value::Int(1), Value::Double(1.5), Ok(true)),
        ("_>=_", Value::Double(2.0), Value::Uint(2), Ok(true)),
        ("_>_", Value::Double(-0.5), Value::Uint(0), Ok(false)),
        ("_<=_", Value::Double(0.0), Value::Double(-0.0), Ok(true)),
        // Large integers are compared as doubles.
        ("_<=_", Value::Double(9_007_199_254_740_992.0), Value::Int((1 << 53) + 1), Ok(true)),
        ("_>=_", Value::Double(9_007_199_254_740_992.0), Value::Int((1 << 53) + 1), Ok(true)),
        ("_<_", Value::Int(i64::MAX), Value::Double(1e19), Ok(true)),
        ("_<_", Value::Bool(false), Value::Bool(true), Ok(true)),
        ("_<_", Value::borrowed_string("Z"), Value::borrowed_string("a"), Ok(true)),
        ("_<_", Value::borrowed_string("a"), Value::borrowed_string("aa"), Ok(true)),
        ("_>_", Value::borrowed_string("é"), Value::borrowed_string("z"), Ok(true)),
        ("_<_", Value::Duration(-1), Value::Duration(0), Ok(true)),
        ("_<=_", time("2020-01-01T00:00:00+02:00"), time("2019-12-31T22:00:00Z"), Ok(true)),
        ("_<_", nan(), Value::Double(1.0), Err("NaN values cannot be ordered")),
        ("_<_", Value::Int(1), nan(), Err("NaN values cannot be ordered")),
        ("_<_", nan(), Value::borrowed_string("a"), Err("NaN values cannot be ordered")),
        ("_<_", Value::borrowed_string("a"), nan(), Err("no such overload")),
        ("_<_", Value::Int(1), Value::borrowed_string("a"), Err("no such overload")),
        ("_<_", Value::Bool(true), Value::Int(1), Err("no such overload")),
        ("_<_", Value::Null, Value::Int(1), Err("no such overload: _<_")),
        (
            "_>=_",
            Value::owned_list_value(vec![]),
            Value::owned_list_value(vec![]),
            Err("no such overload: _>=_"),
        ),
    ];
    for (operator, left, right, expected) in cases {
        let arguments = [left, right];
        let actual = implementation(operator, "")(&arguments);
        assert_outcome(&arguments, &actual, &expected.map(Value::Bool));
    }
}

#[test]
fn equality_crosses_the_numeric_types_and_no_others() {
    let cases = [
        (Value::Int(1), Value::Uint(1), true),
        (Value::Int(1), Value::Double(1.0), true),
        (Value::Uint(1), Value::Double(1.5), false),
        (Value::Double(f64::NAN), Value::Double(f64::NAN), false),
        (Value::Int(1), Value::borrowed_string("1"), false),
        (Value::Null, Value::Null, true),
        (time("2020-01-01T00:00:00+02:00"), time("2019-12-31T22:00:00Z"), true),
        (
            Value::owned_list_value(vec![Value::Int(1)]),
            Value::owned_list_value(vec![Value::Double(1.0)]),
            true,
        ),
        (Value::optional_some(Value::Int(1)), Value::optional_none(), false),
    ];
    for (left, right, equal) in cases {
        let arguments = [left, right];
        let actual = implementation("_==_", "")(&arguments);
        assert_outcome(&arguments, &actual, &Ok(Value::Bool(equal)));
        let actual = implementation("_!=_", "")(&arguments);
        assert_outcome(&arguments, &actual, &Ok(Value::Bool(!equal)));
    }
}

#[test]
fn logical_operators_short_circuit() {
    let (yes, no, other) = (Value::Bool(true), Value::Bool(false), Value::Int(1));
    let cases: [(&str, Vec<Value<'_>>, Result<Value<'_>, &str>); 9] = [
        ("_&&_", vec![yes.clone(), no.clone()], Ok(no.clone())),
        ("_&&_", vec![other.clone(), no.clone()], Ok(no.clone())),
        ("_&&_", vec![other.clone(), yes.clone()], Err("no such overload")),
        ("_||_", vec![other.clone(), yes.clone()], Ok(yes.clone())),
        ("_||_", vec![no.clone(), other.clone()], Err("no such overload")),
        ("!_", vec![yes.clone()], Ok(no.clone())),
        ("!_", vec![other.clone()], Err("no such overload")),
        ("_?_:_", vec![no.clone(), yes.clone(), other.clone()], Ok(other.clone())),
        ("@not_strictly_false", vec![other.clone()], Ok(yes.clone())),
    ];
    for (operator, arguments, expected) in cases {
        let actual = implementation(operator, "")(&arguments);
        assert_outcome(&arguments, &actual, &expected);
    }
}

/// The checker tries overloads in this order and lists them so in messages.
#[test]
fn overloads_keep_their_order() {
    let functions =
        crate::library::kubernetes_functions(crate::library::LibrarySet::StoredExpressions);
    let ids = |name: &str| -> Vec<&str> {
        functions.get(name).unwrap().overloads.iter().map(|overload| overload.id).collect()
    };
    assert_eq!(
        ids("_-_"),
        [
            "subtract_double",
            "subtract_duration_duration",
            "subtract_int64",
            "subtract_timestamp_duration",
            "subtract_timestamp_timestamp",
            "subtract_uint64",
        ]
    );
    for name in ["_<_", "_<=_", "_>_", "_>=_"] {
        let function = functions.get(name).unwrap();
        for overload in &function.overloads {
            let types: Vec<_> = overload.param_types.iter().map(operand_name).collect();
            let expected = if types[0] == types[1] {
                types[0].clone()
            } else {
                format!("{}_{}", types[0], types[1])
            };
            assert!(overload.id.ends_with(&format!("_{expected}")), "{}", overload.id);
        }
    }
}

fn operand_name(operand: &Type) -> std::string::String {
    match operand {
        Int | Uint => format!("{operand}64"),
        other => other.to_string(),
    }
}
