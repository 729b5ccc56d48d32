//! The differences between Kubernetes, which this crate follows, and the CEL project's tests.

use super::case::{Answer, Case};

/// A reason why a result is not the expected one.
///
/// Rules do not apply to tests with the expected result.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) kubernetes: Kubernetes,
    pub(crate) explains: fn(&Case, &Answer) -> bool,
}

/// The result of Kubernetes for the tests of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kubernetes {
    /// Kubernetes has the same result as this crate.
    Same,
    /// Kubernetes has another result: this crate differs from Kubernetes.
    Other,
}

/// All rules. The first rule that explains a result applies.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "container",
        reason: "Kubernetes resolves names in the root container only, and there is no way to set \
                 another one.",
        kubernetes: Kubernetes::Same,
        explains: |case, _| !case.container.is_empty(),
    },
    Rule {
        name: "declared function",
        reason: "The functions are those of the Kubernetes libraries; a test cannot declare its \
                 own.",
        kubernetes: Kubernetes::Same,
        explains: |case, _| !case.functions.is_empty(),
    },
    Rule {
        name: "unchecked",
        reason: "The test evaluates an expression that does not type-check. Kubernetes refuses it.",
        kubernetes: Kubernetes::Same,
        explains: |case, answer| case.disable_check && compile_error(answer).is_some(),
    },
    Rule {
        name: "absent extension",
        reason: "Kubernetes does not enable cel-go's extensions `cel.bind`, `cel.block`, `base64` \
                 and `math`.",
        kubernetes: Kubernetes::Same,
        explains: |case, answer| {
            const FILES: [&str; 4] = ["bindings_ext", "block_ext", "encoders_ext", "math_ext"];
            FILES.contains(&case.file.as_str()) && compile_error(answer).is_some()
        },
    },
    Rule {
        name: "homogeneous literals",
        reason: "Kubernetes demands that all elements of a list literal have one type, and so the \
                 keys and the values of a map literal.",
        kubernetes: Kubernetes::Same,
        explains: |_, answer| {
            compile_error(answer).is_some_and(|error| {
                error.contains(": expected type '") && error.contains("' but found '")
            })
        },
    },
    Rule {
        name: "literal validators",
        reason: "`duration` and `timestamp` of a text that they cannot read is refused when it is \
                 compiled. The test expects the error when it is evaluated.",
        kubernetes: Kubernetes::Same,
        explains: |case, answer| {
            case.expect.errors.is_some()
                && compile_error(answer).is_some_and(|error| {
                    error.contains(": invalid duration argument")
                        || error.contains(": invalid timestamp argument")
                })
        },
    },
    Rule {
        name: "strings version 2",
        reason: "Kubernetes pins version 2 of the strings extension. Its `format` writes lists, \
                 maps, infinities and exponents in another way and takes no double for `%d`; \
                 its `indexOf` and `lastIndexOf` find nothing beyond the end, where the test \
                 expects an error.",
        kubernetes: Kubernetes::Same,
        explains: |case, _| {
            case.file == "string_ext"
                && (case.expr.contains(".format(") || case.expr.contains("ndexOf("))
        },
    },
    Rule {
        name: "repeated key",
        reason: "cel-go takes the last of several equal keys in a map literal. The test expects an \
                 error.",
        kubernetes: Kubernetes::Same,
        explains: |case, _| expects_error(case, "repeated key"),
    },
    Rule {
        name: "optional field of a scalar",
        reason: "In cel-go a field that is selected after `.?` or `[?]` from something that has no \
                 fields is absent. The test expects an error.",
        kubernetes: Kubernetes::Same,
        explains: |case, answer| {
            let is_optional = case.expr.contains(".?") || case.expr.contains("[?");
            is_optional
                && expects_error(case, "no such key")
                && matches!(answer, Answer::Value { .. })
        },
    },
    Rule {
        name: "index that is no key",
        reason: "cel-go makes no program from an index that is a constant and cannot be a key, \
                 even where a logical operator would absorb the error.",
        kubernetes: Kubernetes::Same,
        explains: |_, answer| matches!(answer, Answer::Program { error, .. } if error.starts_with("invalid qualifier type")),
    },
    Rule {
        name: "milliseconds of a duration",
        reason: "In cel-go `getMilliseconds` of a duration tells the whole duration, as `getHours` \
                 and the others do. The test expects the part below a second.",
        kubernetes: Kubernetes::Same,
        explains: |case, _| case.expr.ends_with(".getMilliseconds()"),
    },
    Rule {
        name: "`google.protobuf.Any`",
        reason: "A literal of this message needs a registry of message types, which this crate \
                 has not got: it does not compile. In Kubernetes it compiles, and fails when it is \
                 evaluated unless a well-known message is inside.",
        kubernetes: Kubernetes::Other,
        explains: |case, answer| {
            case.expr.contains("google.protobuf.Any{") && compile_error(answer).is_some()
        },
    },
];

fn compile_error(answer: &Answer) -> Option<&str> {
    match answer {
        Answer::Compile { error } => Some(error),
        _ => None,
    }
}

fn expects_error(case: &Case, part: &str) -> bool {
    case.expect.errors.iter().flatten().any(|message| message.contains(part))
}
