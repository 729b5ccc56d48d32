//! The deepest expressions compile, run and are dropped on a small stack. Deeper ones do not
//! compile.

use cel::{COST_LIMIT, KnownDecisions};

use super::world::Request;
use super::{Answer, ENVIRONMENT, answer};

/// The default stack size of threads in bytes.
const STACK_BYTES: usize = 2 << 20;

/// A text that is nested repeatedly, and the greatest number of repetitions.
struct Nest {
    open: &'static str,
    inside: &'static str,
    close: &'static str,
    n_max: usize,
}

const fn nest(open: &'static str, inside: &'static str, close: &'static str, n_max: usize) -> Nest {
    Nest { open, inside, close, n_max }
}

/// The limits are those of the parser: on the levels of one kind of nesting, on the length of a
/// chain, on the depth of the AST with expanded macros, and on the number of its nodes.
const NESTS: &[Nest] = &[
    nest("(", "true", ")", 249),
    nest("[", "1", "]", 249),
    nest("{1: ", "2", "}", 249),
    nest("!(", "true", ")", 249),
    nest("-(", "1", ")", 249),
    nest("dyn(", "1", ")", 249),
    nest("size([", "'a'", "])", 124),
    nest("optional.of(", "1", ")", 249),
    nest("true ? 1 : ", "2", "", 249),
    nest("(true ? ", "request", " : request)", 248),
    nest("[1, 2][", "0", "]", 249),
    nest("strings.quote(", "request.user", ")", 249),
    nest("'%s'.format([", "request.groups", "])", 124),
    nest("request.groups.all(x, ", "true", ")", 149),
    nest("request.groups.exists(x, ", "x == 'none'", ")", 149),
    nest("[1].map(x, ", "x", ")", 99),
    nest("[2].sortBy(x, ", "x", ")[0]", 49),
    nest("{'k': 1}.transformMap(k, v, ", "v", ")", 149),
    nest("optional.of(1).optMap(x, ", "x", ")", 99),
    nest("", "1", " + 1", 250),
    nest("", "'a'", " + 'b'", 250),
    nest("", "[1]", " + [1]", 250),
    nest("", "1 == 1", " == true", 249),
    nest("", "'a'", ".trim()", 250),
    nest("", "request.groups", ".map(x, x)", 249),
    nest("", "request.groups", ".filter(x, x != '')", 249),
    nest("", "request.groups", ".reverse()", 249),
    nest("", "optional.of(1)", ".or(optional.none())", 249),
    nest("", "optional.of(1)", ".optMap(x, x + 1)", 13),
    nest("", "dyn(request)", ".user", 250),
    nest("", "dyn(request)", ".?user", 250),
    nest("", "dyn([1])", "[0]", 250),
    // The following texts do not nest.
    nest("!", "true", "", 10_000),
    nest("-", "1", "", 10_001),
    nest("", "true", " && request.user != ''", 3_000),
    nest("", "false", " || request.user == ''", 3_000),
];

fn nested(nest: &Nest, n: usize) -> String {
    format!("{}{}{}", nest.open.repeat(n), nest.inside, nest.close.repeat(n))
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn on_a_small_stack(run: fn()) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).unwrap();
    thread.join().unwrap();
}

#[test]
fn expressions_at_the_nesting_limit_run() {
    on_a_small_stack(|| {
        for nest in NESTS {
            let source = nested(nest, nest.n_max);
            let found = answer(&source).0;
            assert!(!matches!(found, Answer::Refused(_)), "{}{}: {found:?}", nest.open, nest.close);
        }
    });
}

/// Explaining a nested subexpression compiles and evaluates it within the recursion that reaches
/// it.
#[test]
fn expressions_at_the_nesting_limit_are_explained() {
    on_a_small_stack(|| {
        let request = Request::sample();
        for nest in NESTS {
            let source = nested(nest, nest.n_max);
            let explanation = ENVIRONMENT.explain(
                &source,
                &request.variables(&KnownDecisions::default()),
                COST_LIMIT,
            );
            let n_parts = explanation.map_or(0, |explanation| explanation.subexpressions.len());
            assert!(n_parts > 0, "{}{}", nest.open, nest.close);
        }
    });
}

#[test]
fn expressions_beyond_the_nesting_limit_do_not_compile() {
    on_a_small_stack(|| {
        for nest in NESTS.iter().filter(|nest| nest.n_max < 1_000) {
            let longest = 100_000 / (nest.open.len() + nest.close.len());
            for n in [nest.n_max + 1, 1_000, longest] {
                let found = answer(&nested(nest, n)).0;
                assert!(matches!(found, Answer::Refused(_)), "{}{}: {n}", nest.open, nest.close);
            }
        }
    });
}

/// Types nest as deep as list literals, and messages contain the whole types.
#[test]
fn deep_types_do_not_overflow_the_stack() {
    on_a_small_stack(|| {
        let list = nested(&nest("[", "1", "]", 0), 240);
        assert!(answer(&format!("{list} == {list}")).0.is_bool(true));
        let Answer::Refused(message) = answer(&format!("{list} == 1")).0 else {
            panic!("a list is no number");
        };
        let ty = nested(&nest("list(", "int", ")", 0), 240);
        assert!(message.contains(&format!("applied to '({ty}, int)'")), "{message}");
        // Several calls bind a type variable to such a type.
        let source = format!("[{list}].map(x, [x].map(y, y == x)).size() == 1");
        assert!(matches!(answer(&source).0, Answer::Value(_) | Answer::Refused(_)));
    });
}
