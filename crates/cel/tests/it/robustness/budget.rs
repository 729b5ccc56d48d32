//! Limits on the work of compiling a group of expressions, and a single short expression.

use cel::CompileBudget;

use super::{Answer, ENVIRONMENT, answer};

/// The issue of an expression that exceeds the budget; `None` if it compiles.
fn refusal(source: &str, budget: &mut CompileBudget) -> Option<String> {
    let checked = match ENVIRONMENT.parse_and_check_within_budget(source, budget) {
        Ok(checked) => checked,
        Err(issues) => return issues.iter().next().map(|issue| issue.message.clone()),
    };
    checked.into_program().err().map(|error| error.to_string())
}

const NO_ROOM_FOR_PATTERN: &str = "this pattern and those before it take too much memory together";

/// A17: expressions that are compiled together share patterns and the memory limit of patterns.
#[test]
fn patterns_of_several_expressions_are_bounded_together() {
    let matches = |n: usize| format!("request.user.matches('\\\\pL{{{n}}}')");
    let mut budget = CompileBudget::default();
    for _ in 0..100 {
        assert_eq!(refusal(&matches(150), &mut budget), None, "the same one again");
    }
    let refused: Vec<_> = (180..191).filter_map(|n| refusal(&matches(n), &mut budget)).collect();
    assert!((1..11).contains(&refused.len()), "{}", refused.len());
    assert!(refused.iter().all(|complaint| complaint == NO_ROOM_FOR_PATTERN), "{refused:?}");
    // A cached pattern needs no further memory, and a small pattern still fits.
    assert_eq!(refusal(&matches(150), &mut budget), None);
    assert_eq!(refusal("request.user.matches('^system:')", &mut budget), None);
    // Patterns of functions other than `matches` count as well.
    let found = refusal("request.user.find('\\\\pL{201}') == ''", &mut budget);
    assert_eq!(found.as_deref(), Some(NO_ROOM_FOR_PATTERN));
}

/// Patterns that are invalid or too large take steps too.
#[test]
fn refused_patterns_count_against_the_budget() {
    let mut budget = CompileBudget::default();
    let too_large = |n: usize| format!("request.user.matches('\\\\pL{{1000}}{n}')");
    let complaints: Vec<_> = (0..40).filter_map(|n| refusal(&too_large(n), &mut budget)).collect();
    assert_eq!(complaints.first().map(String::as_str), Some("invalid matches argument"));
    assert_eq!(complaints.last().map(String::as_str), Some(NO_ROOM_FOR_PATTERN));
}

/// A pattern of a few bytes can make the compiler look up the case folding of every character,
/// which takes milliseconds.
#[test]
fn patterns_that_are_slow_to_read_are_refused() {
    for part in [r"[\\x00-\\x{10FFFF}]", r"[\\W_]", r"\\pL", r"[[:^alpha:]a]"] {
        let source = format!("request.user.matches('(?i){}')", part.repeat(500));
        assert!(matches!(answer(&source).0, Answer::Refused(_)), "{part}");
        let source = format!("request.user.matches('(?i){part}')");
        assert!(matches!(answer(&source).0, Answer::Value(_)), "{part}");
    }
    let many = r"\\pL".repeat(20_000);
    assert!(matches!(answer(&format!("'a'.matches('{many}')")).0, Answer::Refused(_)));
}

/// A configuration of ordinary size with many ordinary patterns fits.
#[test]
fn thousands_of_ordinary_patterns_fit() {
    let mut budget = CompileBudget::default();
    for n in 0..64 * 64 {
        let pattern = match n % 16 {
            0 => format!(r"^\\pL+-{n}$"),
            1 => format!("(?i)^admin-{n}@"),
            2 => format!(r"^\\w+:\\d{{1,5}}-{n}(dev|test|prod)$"),
            3 => format!(".*-{n}@[^@]+"),
            _ => format!("^system:serviceaccount:[a-z0-9-]+:name-{n}-[a-z0-9-]+$"),
        };
        let source = format!("request.user.matches('{pattern}')");
        assert_eq!(refusal(&source, &mut budget), None, "{source}");
    }
}

/// Macros that copy their operand create large trees from short texts.
#[test]
fn nodes_of_several_expressions_are_bounded_together() {
    let mut budget = CompileBudget::default();
    let copied = |n: usize| format!("optional.of({n}){}.hasValue()", ".optMap(x, x)".repeat(12));
    let refused: Vec<_> = (0..400).filter_map(|n| refusal(&copied(n), &mut budget)).collect();
    let complaint = "this expression and those before it take too much work together";
    assert!((1..390).contains(&refused.len()), "{}", refused.len());
    assert!(refused.iter().all(|found| found == complaint), "{refused:?}");
}

/// Nested types can be much larger than the text of the expression.
#[test]
fn large_types_are_refused() {
    let doubled = |n: usize| format!("[1]{} == []", ".map(x, {x: x})".repeat(n));
    assert!(matches!(answer(&doubled(8)).0, Answer::Value(_)));
    let Answer::Refused(message) = answer(&doubled(40)).0 else { panic!("2^40 parts") };
    assert!(message.contains("the types of this expression are too large"), "{message}");
    // Messages about such types are truncated.
    let shown = format!("[1]{} == 1", ".map(x, {x: x})".repeat(14));
    let Answer::Refused(message) = answer(&shown).0 else { panic!("a list is not a number") };
    assert!(message.len() < 20_000, "{}", message.len());
}
