//! Pairs of equivalent expressions.

use proptest::prelude::*;

use super::expressions::Choices;
use super::{Answer, answer};

/// The kind of equivalence of two expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alike {
    /// The same value, or an error on both sides.
    Same,
    /// The same value if both have one. An operand that is an error may affect one side only.
    Agree,
}

use Alike::{Agree, Same};

/// Laws of two conditions `A` and `B`.
const CONDITIONS: &[(Alike, &str, &str)] = &[
    (Same, "A || true", "true"),
    (Same, "true || A", "true"),
    (Same, "A && false", "false"),
    (Same, "false && A", "false"),
    (Same, "A && B", "B && A"),
    (Same, "A || B", "B || A"),
    (Same, "!(A && B)", "!A || !B"),
    (Same, "!(A || B)", "!A && !B"),
    (Same, "!!A", "A"),
    (Same, "A && (A || B)", "A"),
    (Same, "A && A", "A"),
    (Same, "true ? A : B", "A"),
    (Same, "false ? A : B", "B"),
    (Same, "A ? B : false", "A ? B && true : A"),
    (Same, "[A].all(e, e)", "[A].exists(e, e)"),
    (Same, "A == B", "B == A"),
    (Agree, "(A && B) || (A && !B)", "A"),
    (Agree, "A != B", "(A || B) && !(A && B)"),
    (Agree, "optional.of(A).orValue(B)", "A"),
    (Agree, "[A, B].filter(e, e).size() == 2", "A && B"),
    (Agree, "dyn(A) == dyn(B)", "A == B"),
];

/// Laws of two lists of numbers `L` and `M`, a number `N`, and a condition `P` and a number `F`
/// about an element `e`.
const LISTS: &[(Alike, &str, &str)] = &[
    (Same, "L.map(e, e)", "L"),
    (Same, "L.filter(e, true)", "L"),
    (Same, "L.filter(e, false)", "L.slice(0, 0)"),
    (Same, "L.map(e, P, F)", "L.filter(e, P).map(e, F)"),
    (Same, "L.all(e, P)", "!L.exists(e, !P)"),
    (Same, "L.all(i, e, P)", "L.all(e, P)"),
    (Same, "L.transformList(i, e, F)", "L.map(e, F)"),
    (Same, "L.exists_one(e, P)", "L.filter(e, P).size() == 1"),
    (Agree, "L.exists(e, P)", "L.filter(e, P).size() > 0"),
    (Same, "L.size()", "L.map(e, 1).sum()"),
    (Same, "(L + M).size()", "L.size() + M.size()"),
    (Same, "(L + M).filter(e, P)", "L.filter(e, P) + M.filter(e, P)"),
    (Same, "[L, M].flatten()", "L + M"),
    (Same, "L.reverse().reverse()", "L"),
    (Same, "(L + M).reverse()", "M.reverse() + L.reverse()"),
    (Same, "L.sort()", "L.reverse().sort()"),
    (Same, "L.sort()", "L.sortBy(e, e)"),
    (Same, "L.sort().isSorted()", "L.size() >= 0"),
    (Same, "L.distinct().distinct()", "L.distinct()"),
    (Same, "L.slice(0, L.size())", "L"),
    (Same, "sets.equivalent(L, L.distinct())", "L.size() >= 0"),
    (Agree, "N in L", "L.exists(e, e == N)"),
    (Agree, "N in L", "L.includes(N)"),
    (Agree, "N in L", "L.indexOf(N) >= 0"),
    (Agree, "L.indexOf(N) < 0", "L.lastIndexOf(N) < 0"),
    (Agree, "N in L.distinct()", "N in L"),
    (Agree, "sets.contains(L, M)", "M.all(m, m in L)"),
    (Agree, "sets.intersects(L, M)", "M.exists(m, m in L)"),
    (Agree, "L == M", "L.size() == M.size() && L.all(i, e, e == M[i])"),
    (Agree, "L[N]", "L[?N].value()"),
    (Agree, "L[0]", "L.first().value()"),
    (Agree, "L.map(e, F).map(e, e)", "L.map(e, F)"),
    (Agree, "L.transformMapEntry(i, e, {i: F}).size()", "L.size()"),
];

proptest! {
    #[test]
    fn of_conditions(a in bytes(), b in bytes(), law in 0..CONDITIONS.len()) {
        let a = Choices::new(&a).expression('b');
        let b = Choices::new(&b).expression('b');
        check(CONDITIONS[law], &[('A', &a), ('B', &b)])?;
    }

    #[test]
    fn of_lists(
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
fn check(law: (Alike, &str, &str), parts: &[(char, &str)]) -> Result<(), TestCaseError> {
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
            alike == Agree
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
