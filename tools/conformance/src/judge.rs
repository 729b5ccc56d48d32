//! The verdict on one vector.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

use crate::compare::{Comparison, Difference, Texts, compare};
use crate::ledger::Rule;
use crate::suites::{Answer, Suite};
use crate::vectors::Vector;

/// How our answer relates to the recorded one.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The answer is the recorded one.
    Passed,
    /// Another answer, exactly as these rules of the ledger say it is.
    Agreed(Vec<&'static str>),
    /// The answer differs in these places.
    Failed(Vec<Difference>),
}

/// The outcome and what was seen on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Whether the vector passed.
    pub outcome: Outcome,
    /// About texts whose wording does not decide.
    pub texts: Texts,
}

/// Runs one vector and compares.
///
/// 1. The suite computes our answer; a panic in there is an answer too, a wrong one.
/// 2. If it is the recorded one, the vector passed.
/// 3. Otherwise each rule of the ledger may change what is wanted, and the answers are compared
///    again. So a rule explains one difference without excusing others.
///
/// An error means that the vector can not be understood.
pub fn judge(suite: Suite, vector: &Vector, ledger: &[Rule]) -> Result<Judgement, String> {
    let exact_length = |path: &str, text: &str| suite.exact_length(path, text);
    let answer = match catch_unwind(AssertUnwindSafe(|| suite.answer(vector))) {
        Ok(answer) => answer?,
        Err(panic) => Answer {
            want: vector.body.get("expect").cloned().unwrap_or_default(),
            got: json!({ "panic": panic_text(panic.as_ref()) }),
            warnings: Vec::new(),
        },
    };
    let Comparison { differences, texts } = compare(&answer.want, &answer.got, &exact_length);
    if differences.is_empty() {
        return Ok(Judgement { outcome: Outcome::Passed, texts });
    }
    let mut want = answer.want.clone();
    let rules: Vec<&'static str> = ledger
        .iter()
        .filter(|rule| rule.suite == suite && (rule.amend)(vector, &answer, &mut want))
        .map(|rule| rule.name)
        .collect();
    let is_explained =
        !rules.is_empty() && compare(&want, &answer.got, &exact_length).differences.is_empty();
    let outcome = if is_explained { Outcome::Agreed(rules) } else { Outcome::Failed(differences) };
    Ok(Judgement { outcome, texts })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> Value {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    Value::String(text.unwrap_or_else(|| "without a message".to_owned()))
}
