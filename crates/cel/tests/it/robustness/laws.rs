//! Pairs of equivalent expressions.

use proptest::prelude::*;

use super::expressions::Choices;
use super::{Answer, answer};

/// The kind of equivalence of two expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Equivalence {
    /// The same value, or an error on both sides.
    SameOutcome,
    /// The same value if both have one. An operand that is an error may affect one side only.
    SameValue,
}

use Equivalence::{SameOutcome, SameValue};

/// Laws of two conditions `A` and `B`.
const CONDITIONS: &[(Equivalence, &str, &str)] = &[
    (SameOutcome, "A || true", "true"),
    (SameOutcome, "true || A", "true"),
    (SameOutcome, "A && false", "false"),
    (SameOutcome, "false && A", "false"),
    (SameOutcome, "A && B", "B && A"),
    (SameOutcome, "A || B", "B || A"),
    (SameOutcome, "!(A && B)", "!A || !B"),
    (SameOutcome, "!(A || B)", "!A && !B"),
    (SameOutcome, "!!A", "A"),
    (SameOutcome, "A && (A || B)", "A"),
    (SameOutcome, "A && A", "A"),
    (SameOutcome, "true ? A : B", "A"),
    (SameOutcome, "false ? A : B", "B"),
    (SameOutcome, "A ? B : false", "A ? B && true : A"),
    (SameOutcome, "[A].all(e, e)", "[A].exists(e, e)"),
    (SameOutcome, "A == B", "B == A"),
    (SameValue, "(A && B) || (A && !B)", "A"),
    (SameValue, "A != B", "(A || B) && !(A && B)"),
    (SameValue, "optional.of(A).orValue(B)", "A"),
    (SameValue, "[A, B].filter(e, e).size() == 2", "A && B"),
    (SameValue, "dyn(A) == dyn(B)", "A == B"),
];

/// Laws of two lists of numbers `L` and `M`, a number `N`, and a condition `P` and a number `F`
/// about an element `e`.
const LISTS: &[(Equivalence, &str, &str)] = &[
    (SameOutcome, "L.map(e, e)", "L"),
    (SameOutcome, "L.filter(e, true)", "L"),
    (SameOutcome, "L.filter(e, false)", "L.slice(0, 0)"),
    (SameOutcome, "L.map(e, P, F)", "L.filter(e, P).map(e, F)"),
    (SameOutcome, "L.all(e, P)", "!L.exists(e, !P)"),
    (SameOutcome, "L.all(i, e, P)", "L.all(e, P)"),
    (SameOutcome, "L.transformList(i, e, F)", "L.map(e, F)"),
    (SameOutcome, "L.exists_one(e, P)", "L.filter(e, P).size() == 1"),
    (SameValue, "L.exists(e, P)", "L.filter(e, P).size() > 0"),
    (SameOutcome, "L.size()", "L.map(e, 1).sum()"),
    (SameOutcome, "(L + M).size()", "L.size() + M.size()"),
    (SameOutcome, "(L + M).filter(e, P)", "L.filter(e, P) + M.filter(e, P)"),
    (SameOutcome, "[L, M].flatten()", "L + M"),
    (SameOutcome, "L.reverse().reverse()", "L"),
    (SameOutcome, "(L + M).reverse()", "M.reverse() + L.reverse()"),
    (SameOutcome, "L.sort()", "L.reverse().sort()"),
    (SameOutcome, "L.sort()", "L.sortBy(e, e)"),
    (SameOutcome, "L.sort().isSorted()", "L.size() >= 0"),
    (SameOutcome, "L.distinct().distinct()", "L.distinct()"),
    (SameOutcome, "L.slice(0, L.size())", "L"),
    (SameOutcome, "sets.equivalent(L, L.distinct())", "L.size() >= 0"),
    (SameValue, "N in L", "L.exists(e, e == N)"),
    (SameValue, "N in L", "L.includes(N)"),
    (SameValue, "N in L", "L.indexOf(N) >= 0"),
    (SameValue, "L.indexOf(N) < 0", "L.lastIndexOf(N) < 0"),
    (SameValue, "N in L.distinct()", "N in L"),
    (SameValue, "sets.contains(L, M)", "M.all(m, m in L)"),
    (SameValue, "sets.intersects(L, M)", "M.exists(m, m in L)"),
    (SameValue, "L == M", "L.size() == M.size() && L.all(i, e, e == M[i])"),
    (SameValue, "L[N]", "L[?N].value()"),
    (SameValue, "L[0]", "L.first().value()"),
    (SameValue, "L.map(e, F).map(e, e)", "L.map(e, F)"),
    (SameValue, "L.transformMapEntry(i, e, {i: F}).size()", "L.size()"),
];

proptest! {
    #[test]
    fn laws_of_conditions(a in bytes(), b in bytes(), law in 0..CONDITIONS.len()) {
        let a = Choices::new(&a).expression('b');
        let b = Choices::new(&b).expression('b');
        check(CONDITIONS[law], &[('A', &a), ('B', &b)])?;
    }

    #[test]
    fn laws_of_lists(
        l in bytes(),
        m in bytes(),
        body in bytes(),
        law in 0..LISTS.len(),
    ) {
        let l = Choices::new(&l).expression('I');
        let m = Choices::new(&m).expression('I');
        let mut body = Choices::new(&body);
        let p = body.expression_about('b', ('i', "e"));
        let f = body.expression_about('i', ('i', "e"));
        let n = body.expression('i');
        let parts = [('L', &l), ('M', &m), ('N', &n), ('P', &p), ('F', &f)];
        check(LISTS[law], &parts.map(|(name, text)| (name, text.as_str())))?;
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..60)
}

/// Replaces the placeholders of a law and compares both sides.
fn check(law: (Equivalence, &str, &str), parts: &[(char, &str)]) -> Result<(), TestCaseError> {
    let (alike, left, right) = law;
    let filled = |side: &str| -> String {
        side.chars()
            .map(|c| match parts.iter().find(|(name, _)| *name == c) {
                Some((_, text)) => format!("({text})"),
                None => c.to_string(),
            })
            .collect()
    };
    let (left, right) = (filled(left), filled(right));
    let holds = match (answer(&left).0, answer(&right).0) {
        // An invalid constant fails to compile on any side, and one side of a law may cost more
        // than the other.
        (Answer::Refused(_), _) | (_, Answer::Refused(_)) => true,
        (Answer::CostLimit, _) | (_, Answer::CostLimit) => true,
        (Answer::Value(left), Answer::Value(right)) => left == right,
        (Answer::Error(_), Answer::Error(_)) => true,
        (Answer::Value(_), Answer::Error(_)) | (Answer::Error(_), Answer::Value(_)) => {
            alike == SameValue
        }
    };
    prop_assert!(holds, "{left}\n  {:?}\n{right}\n  {:?}", answer(&left).0, answer(&right).0);
    Ok(())
}

/// The laws are a useful test only if most generated expressions have a value.
#[test]
fn most_generated_expressions_compile_and_many_have_a_value() {
    let mut n_values = 0;
    for seed in 0..400_u32 {
        let scattered =
            |n: u32| n.wrapping_mul(seed + 7).wrapping_mul(2_654_435_761).to_be_bytes()[0];
        let bytes: Vec<u8> = (1..60).map(scattered).collect();
        let source = Choices::new(&bytes).expression(['b', 'I', 's', 'i'][seed as usize % 4]);
        match answer(&source).0 {
            Answer::Value(_) => n_values += 1,
            Answer::Error(_) | Answer::CostLimit => {}
            Answer::Refused(message) => {
                // Some constants are not valid as a pattern, a date or a format.
                assert!(!message.contains("Syntax error"), "{source}: {message}");
                assert!(!message.contains("undeclared reference"), "{source}: {message}");
            }
        }
    }
    assert!(n_values > 200, "{n_values} of 400");
}
