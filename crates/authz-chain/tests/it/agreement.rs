//! An explained decision equals the decision without an explanation.

use authz::{Decision, Trace, TraceEvent, TraceRecorder};
use authz_chain::ChainDecision;
use proptest::prelude::*;

use crate::finish;
use crate::policy::{chain, question, user_with_groups};

fn show(outcome: &ChainDecision<'_>) -> String {
    let Decision { verdict, reason, error } = &outcome.decision;
    let error = error.as_ref().map(ToString::to_string);
    format!("{} {reason:?} {error:?} {:?}", verdict.name(), outcome.deciding_authorizer_name)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn an_explanation_ends_in_the_decision(
        chain in chain(),
        asked in prop::collection::vec((user_with_groups(), question()), 20),
    ) {
        for (user, question) in &asked {
            let attributes = question.attributes(Some(user));
            let decided = finish(chain.authorize(&attributes, TraceRecorder::disabled_recorder()));
            let mut trace = Trace::default();
            let explained = finish(chain.authorize(&attributes, TraceRecorder::new(&mut trace)));
            prop_assert_eq!(show(&decided), show(&explained));
            let authorizers = trace.trace_entries().iter().filter(|entry| entry.trace_depth == 0);
            let n_asked = authorizers.count();
            match decided.deciding_authorizer_name {
                Some(name) => {
                    let last = &trace.trace_entries().last().unwrap().trace_event;
                    prop_assert_eq!(last, &TraceEvent::verdict_trace_event(&decided.decision));
                    let position = chain.chain_members().position(|it| it.name() == name);
                    prop_assert_eq!(n_asked, position.map_or(1, |position| position + 2));
                }
                None => prop_assert_eq!(n_asked, chain.chain_members().count() + 1),
            }
        }
    }
}
