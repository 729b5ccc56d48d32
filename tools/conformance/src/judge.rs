//! Compares our answer to one vector with the recorded one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

use crate::compare::{Comparison, Difference, TextCounts, compare};
use crate::ledger::Rule;
use crate::suites::{AnswerPair, Suite};
use crate::vectors::{UnusableVector, Vector};

/// The relation of our answer to the recorded one.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorOutcome {
    /// The answer is the recorded one.
    Passed,
    /// The answer differs exactly as these rules of the ledger say.
    Agreed(Vec<&'static str>),
    /// The answer differs in these places.
    Failed(Vec<Difference>),
}

/// The outcome of a vector and the counts of its texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Whether the vector passed.
    pub outcome: VectorOutcome,
    /// The counts of texts whose wording is free.
    pub texts: TextCounts,
}

/// Runs one vector and compares the answers.
///
/// 1. The suite computes our answer; a panic counts as a wrong answer.
/// 2. If it is the recorded one, the vector passed.
/// 3. Otherwise each rule of the ledger may change the expected answer, and the answers are compared again. So a rule
///    explains one difference and excuses no other.
///
/// An error means that the vector is malformed.
pub fn judge(suite: Suite, vector: &Vector, ledger: &[Rule]) -> Result<Judgement, UnusableVector> {
    let exact_length = |path: &str, text: &str| suite.exact_length(path, text);
    let answer = match catch_unwind(AssertUnwindSafe(|| suite.answer_vector(vector))) {
        Ok(answer) => answer?,
        Err(panic) => AnswerPair {
            want: vector.body.get("expect").cloned().unwrap_or_default(),
            got: json!({ "panic": panic_text(panic.as_ref()) }),
            warnings: Vec::new(),
        },
    };
    let Comparison { differences, texts } = compare(&answer.want, &answer.got, &exact_length);
    if differences.is_empty() {
        return Ok(Judgement { outcome: VectorOutcome::Passed, texts });
    }
    let mut want = answer.want.clone();
    let rules: Vec<&'static str> = ledger
        .iter()
        .filter(|rule| rule.suite == suite && (rule.amend)(vector, &answer, &mut want))
        .map(|rule| rule.name)
        .collect();
    let is_explained =
        !rules.is_empty() && compare(&want, &answer.got, &exact_length).differences.is_empty();
    let outcome = if is_explained {
        VectorOutcome::Agreed(rules)
    } else {
        VectorOutcome::Failed(differences)
    };
    Ok(Judgement { outcome, texts })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> Value {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    Value::String(text.unwrap_or_else(|| "without a message".to_owned()))
}
