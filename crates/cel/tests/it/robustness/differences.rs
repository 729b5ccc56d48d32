//! Answers of cel-go that were once others here.

use super::{Answer, answer};

#[track_caller]
fn value(source: &str, expected: &str) {
    assert_eq!(answer(source).0, Answer::Value(expected.to_owned()), "{source}");
}

#[track_caller]
fn error(source: &str, expected: &str) {
    assert_eq!(answer(source).0, Answer::Error(expected.to_owned()), "{source}");
}

/// The checker takes the first function for values that it knows nothing of; whether it was the
/// right one is seen when it is called.
#[test]
fn types_that_uses_decide_about_are_checked_again() {
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

/// Addresses and networks are keys by what they are, as numbers and texts are.
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
