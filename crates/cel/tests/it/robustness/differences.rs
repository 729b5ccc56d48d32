//! Results that once differed from those of cel-go.

use super::{Answer, answer};

#[track_caller]
fn value(source: &str, expected: &str) {
    assert_eq!(answer(source).0, Answer::Value(expected.to_owned()), "{source}");
}

#[track_caller]
fn error(source: &str, expected: &str) {
    assert_eq!(answer(source).0, Answer::Error(expected.to_owned()), "{source}");
}

/// The checker resolves a call with `dyn` arguments to the first overload. The call then verifies
/// the run-time types.
#[test]
fn run_time_types_of_dyn_arguments_are_verified() {
    error(
        "dyn([timestamp('2020-01-01T00:00:00Z')]).distinct().min()",
        "no such overload: min(list)",
    );
    error("dyn([1.5]).distinct().sum()", "no such overload: sum(list)");
    error("dyn(['b', 'a']).reverse().isSorted()", "no such overload: isSorted(list)");
    error("dyn(['a']).slice(0, 1).max()", "no such overload: max(list)");
    value("dyn([2, 1]).distinct().min()", "int: 1");
    value("[timestamp('2020-01-01T00:00:00Z')].distinct().min() > timestamp(0)", "bool: true");
    value("dyn(['a']).distinct().map(v, [v]).map(w, w[0] + w[0])", "list: [aa]");
}

/// Addresses and networks as map keys are compared by value.
#[test]
fn equal_addresses_are_one_key() {
    for (a, b) in [("ip('1.1.1.1')", "ip('1.1.1.2')"), ("cidr('10.0.0.0/8')", "cidr('10.0.0.0/9')")]
    {
        value(&format!("{{{a}: 1, {a}: 2}}.size()"), "int: 1");
        value(&format!("{{{a}: 1, {b}: 2}}.size()"), "int: 2");
        value(&format!("{a} in {{{a}: 1}}"), "bool: true");
        value(&format!("{a} in {{{b}: 1}}"), "bool: false");
        value(&format!("{{{a}: 1}} == {{{a}: 1}}"), "bool: true");
    }
    error(
        "['a', 'b'].transformMapEntry(k, v, {ip('1.1.1.1'): v})",
        "insert failed: key 1.1.1.1 already exists",
    );
    value("['a', 'b'].transformMapEntry(k, v, {quantity('1'): v}).size()", "int: 2");
}

/// If the format of `format` is an error, the call ends before its arguments are evaluated. The
/// cost shows it.
#[test]
fn format_with_an_error_skips_its_arguments() {
    for (source, cost) in [
        ("string(0.0).charAt(-5).format([request.user])", 1),
        ("string(0.0).charAt(5).matches(request.user)", 5),
    ] {
        let (found, found_cost) = answer(source);
        assert!(matches!(found, Answer::Error(_)), "{source}: {found:?}");
        assert_eq!(found_cost, cost, "{source}");
    }
}

/// Comparing values that cannot be compared is an error. They count as equal inside lists and
/// maps, and as unequal in searches.
#[test]
fn incomparable_values() {
    for compared in
        ["dyn(quantity('1')) == dyn(1)", "optional.of(dyn(authorizer)) == optional.of(dyn(1))"]
    {
        error(compared, "no such overload");
        value(&compared.replace("==", "!="), "bool: true");
    }
    for equal in [
        "[dyn(quantity('1'))] == [dyn(1)]",
        "{'a': authorizer} == {'a': authorizer}",
        "[optional.of(authorizer)] == [optional.of(authorizer)]",
        "[dyn(quantity('1'))] in [[dyn(1)]]",
        "[[dyn(quantity('1'))]].includes([dyn(1)])",
    ] {
        value(equal, "bool: true");
    }
    for unequal in [
        "[dyn(1)] == [dyn(quantity('1'))]",
        "dyn(quantity('1')) in [dyn(1)]",
        "authorizer in [authorizer]",
        "authorizer == null",
        "[dyn(authorizer)] == [dyn(null)]",
    ] {
        value(unequal, "bool: false");
    }
    value("[[dyn(quantity('1'))]].indexOf([dyn(1)])", "int: 0");
    value("[authorizer, authorizer].distinct().size()", "int: 2");
}
