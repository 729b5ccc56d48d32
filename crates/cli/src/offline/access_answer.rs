//! The answer to an access question: its JSON form and its exit code.

use access_reviews::review_parsing::AccessQuestion;
use authz::Verdict;
use authz_chain::ChainDecision;
use serde_json::{Map, Value};

use super::webhook_stand_in::is_webhook_not_called;
use crate::exit::Exit;

/// The decision of a chain, in the terms of a SubjectAccessReview status.
#[derive(Debug)]
pub(crate) struct AccessAnswer<'c> {
    pub(crate) chain_decision: ChainDecision<'c>,
    pub(crate) evaluation_error: Option<String>,
    /// Whether the decision depends on a webhook that was not called.
    pub(crate) is_undecided: bool,
}

impl<'c> AccessAnswer<'c> {
    pub(crate) fn new(question: &AccessQuestion<'_>, outcome: ChainDecision<'c>) -> Self {
        let failure = outcome.decision.error.as_ref();
        let evaluation_error = question.evaluation_error(failure);
        let is_undecided = is_webhook_not_called(failure);
        Self { chain_decision: outcome, evaluation_error, is_undecided }
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.chain_decision.decision.verdict == Verdict::Allow
    }

    /// Reports whether an authorizer denied the request. An undecided request is neither allowed nor
    /// denied.
    pub(crate) fn is_denied(&self) -> bool {
        self.chain_decision.decision.verdict == Verdict::Deny && !self.is_undecided
    }

    pub(crate) fn exit_code(&self) -> Exit {
        match (self.is_allowed(), self.is_undecided) {
            (true, _) => Exit::Clean,
            (false, true) => Exit::Undecided,
            (false, false) => Exit::Findings,
        }
    }

    /// Returns the answer as one line of text.
    pub(crate) fn to_human_line(&self) -> String {
        let verdict = match (self.is_allowed(), self.is_undecided) {
            (true, _) => "yes",
            (false, true) => "unknown",
            (false, false) => "no",
        };
        let reason = self.chain_decision.decision.reason.to_string();
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        let decided_by =
            self.chain_decision.deciding_authorizer_name.map(|name| format!("decided by {name}"));
        let why = [reason.or(decided_by), self.evaluation_error.clone()];
        let why: Vec<String> = why.into_iter().flatten().collect();
        match why.as_slice() {
            [] => verdict.to_owned(),
            why => format!("{verdict}: {}", why.join("; ")),
        }
    }

    /// Appends the answer to `line`, as one line of JSON.
    pub(crate) fn append_json_line(&self, line: &mut Vec<u8>) {
        let is_allowed: &[u8] =
            if self.is_allowed() { b"{\"allowed\":true" } else { b"{\"allowed\":false" };
        line.extend_from_slice(is_allowed);
        if self.is_denied() {
            line.extend_from_slice(b",\"denied\":true");
        }
        let reason = self.chain_decision.decision.reason.to_string();
        let texts = [
            (&b",\"reason\":"[..], Some(reason.as_str()).filter(|reason| !reason.is_empty())),
            (b",\"evaluationError\":", self.evaluation_error.as_deref()),
            (b",\"decidedBy\":", self.chain_decision.deciding_authorizer_name),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                line.extend_from_slice(name);
                // Writing to memory does not fail.
                let _ = serde_json::to_writer(&mut *line, text);
            }
        }
        line.extend_from_slice(b"}\n");
    }

    /// Returns the same fields as a map, to which `explain` adds fields.
    pub(crate) fn to_json_map(&self) -> Map<String, Value> {
        let mut map = Map::new();
        map.insert("allowed".to_owned(), self.is_allowed().into());
        if self.is_denied() {
            map.insert("denied".to_owned(), true.into());
        }
        let reason = self.chain_decision.decision.reason.to_string();
        let texts = [
            ("reason", Some(reason.as_str()).filter(|reason| !reason.is_empty())),
            ("evaluationError", self.evaluation_error.as_deref()),
            ("decidedBy", self.chain_decision.deciding_authorizer_name),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                map.insert(name.to_owned(), text.into());
            }
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use authz::{Decision, EvaluationErrors};

    fn question() -> AccessQuestion<'static> {
        let line = r#"{"user":"u","nonResourceAttributes":{"path":"/","verb":"get"}}"#;
        access_reviews::review_parsing::read_review_line("", 1, line).unwrap()
    }

    #[track_caller]
    fn assert_answer(decision: Decision, decided_by: Option<&str>, want: &str, exit: Exit) {
        let answer = AccessAnswer::new(&question(), ChainDecision::new(decision, decided_by));
        let mut line = Vec::new();
        answer.append_json_line(&mut line);
        assert_eq!(String::from_utf8(line).unwrap(), format!("{want}\n"));
        assert_eq!(Value::Object(answer.to_json_map()).to_string(), want);
        assert_eq!(answer.exit_code(), exit);
    }

    #[test]
    fn people_read_one_line() {
        let line = |decision, by| {
            AccessAnswer::new(&question(), ChainDecision::new(decision, by)).to_human_line()
        };
        assert_eq!(line(Decision::allow(""), Some("node")), "yes: decided by node");
        assert_eq!(line(Decision::no_opinion(""), None), "no");
        assert_eq!(line(Decision::deny("because"), Some("w")), "no: because");
    }

    #[test]
    fn empty_fields_are_left_out() {
        assert_answer(Decision::allow(""), None, r#"{"allowed":true}"#, Exit::Clean);
        assert_answer(Decision::no_opinion(""), None, r#"{"allowed":false}"#, Exit::Findings);
        assert_answer(
            Decision::deny("say \"no\"").with_error(EvaluationErrors::message("e")),
            Some("w"),
            r#"{"allowed":false,"denied":true,"reason":"say \"no\"","evaluationError":"e","decidedBy":"w"}"#,
            Exit::Findings,
        );
    }
}
