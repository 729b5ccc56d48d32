//! Validating hooks: all at once, about one and the same object.

use std::collections::HashMap;
use std::time::Duration;

use admission::{AuthorizerDecisions, Hook};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use crate::annotations::Position;
use crate::answer::Answer;
use crate::call::{Call, Trouble};
use crate::failure::FailOpenCause;
use crate::observe::{CallReport, Phase, RejectionCause};
use crate::passage::HookRequest;
use crate::record::{Fate, Notepad, SkipReason, Verdict};
use crate::refusal::Refusal;
use crate::select::{Presented, Selection, select};
use crate::time::Time;
use crate::trouble::{counts, settle};

const PHASE: Phase = Phase::Validating;

/// A hook that is called. Its place among those is what the audit log shows.
struct Chosen<'a> {
    index: usize,
    hook: &'a Hook,
    presented: Box<Presented<'a>>,
}

/// What a hook says, and how long it took.
type Outcome = (Result<Answer, Trouble>, Duration);

/// Asks all hooks that match.
///
/// 1. All are selected before any is called; an error there refuses the request.
/// 2. All are called at once, and all calls end.
/// 3. The first in the list that refuses is the one that is reported. The others are in the notes.
pub(crate) async fn run(
    asking: &HookRequest<'_>,
    time: Time,
    notepad: &mut Notepad,
    decisions: &mut AuthorizerDecisions,
) -> Result<(), Refusal> {
    let mut chosen = Vec::new();
    for found in asking.snapshot.validating().match_hooks(&asking.attributes) {
        let (index, hook) = (found.position, found.hook);
        let attributes = &asking.attributes;
        match select(asking, PHASE, &found, attributes, time.deadline, decisions).await? {
            Selection::Call(presented) => chosen.push(Chosen { index, hook, presented }),
            Selection::Skip(skip) => {
                let at = Position { round: 0, index };
                if let SkipReason::ConditionError(_) = &skip {
                    let cause = FailOpenCause::MatchCondition;
                    notepad.fail_open(asking.observe, PHASE, at, hook, cause);
                }
                notepad.event(PHASE, at, hook, Fate::Skipped(skip));
            }
        }
    }
    if chosen.is_empty() {
        return Ok(());
    }
    if time.is_over(Instant::now()) {
        return Err(Refusal::deadline());
    }
    let mut first_refusal = Ok(());
    let outcomes = call_all(asking, &chosen, time).await;
    for (place, (chosen, (outcome, duration))) in chosen.iter().zip(outcomes).enumerate() {
        let (verdict, end) = conclude(asking, chosen, place, outcome, duration, notepad);
        let at = Position { round: 0, index: chosen.index };
        notepad.event(PHASE, at, chosen.hook, Fate::Called { duration, verdict });
        first_refusal = first_refusal.and(end);
    }
    first_refusal
}

/// Calls all hooks, each in a task of its own, and waits for all of them. If nobody waits for this,
/// all calls end.
async fn call_all(asking: &HookRequest<'_>, chosen: &[Chosen<'_>], time: Time) -> Vec<Outcome> {
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    let mut places: HashMap<Id, usize> = HashMap::new();
    let mut outcomes: Vec<Option<Outcome>> = Vec::new();
    for (place, Chosen { index, hook, presented }) in chosen.iter().enumerate() {
        outcomes.push(match Call::new(PHASE, hook, &asking.attributes, presented, time) {
            Err(trouble) => Some((Err(trouble), began.elapsed())),
            Ok(call) => {
                let target = asking.connections.get(PHASE, *index).cloned();
                let task = async move {
                    let answer = call.send(target, time).await;
                    (answer, began.elapsed())
                };
                places.insert(tasks.spawn(task).id(), place);
                None
            }
        });
    }
    while let Some(ended) = tasks.join_next_with_id().await {
        let (id, outcome) = match ended {
            Ok(ended) => ended,
            Err(error) => (error.id(), (Err(Trouble::shutdown()), began.elapsed())),
        };
        if let Some(slot) = places.get(&id).and_then(|place| outcomes.get_mut(*place)) {
            *slot = Some(outcome);
        }
    }
    // A task says how it ended, also of a fault of ours, unless the server stops.
    let unknown = || (Err(Trouble::shutdown()), began.elapsed());
    outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unknown)).collect()
}

/// Takes note of what a hook said, and tells what that means.
fn conclude(
    asking: &HookRequest<'_>,
    chosen: &Chosen<'_>,
    place: usize,
    outcome: Result<Answer, Trouble>,
    duration: Duration,
    notepad: &mut Notepad,
) -> (Verdict, Result<(), Refusal>) {
    let hook = chosen.hook;
    let (code, rejection, verdict, end) = match outcome {
        Ok(answer) => {
            notepad.hear(&hook.name, &answer);
            if answer.is_allowed {
                (200, None, Verdict::Allow, Ok(()))
            } else {
                let refusal = Refusal::denial(&hook.name, answer.status);
                let verdict = Verdict::Deny(refusal.message.clone());
                (refusal.code, Some(RejectionCause::Denial), verdict, Err(refusal))
            }
        }
        Err(trouble) => {
            let (code, rejection) = counts(hook, &trouble);
            let (verdict, end) = settle(hook, trouble);
            (code, rejection, verdict, end)
        }
    };
    let operation = asking.attributes.operation;
    let report = CallReport::new(hook, PHASE, operation, duration, code, rejection);
    asking.observe.called(&report);
    if let Verdict::FailOpen { cause, .. } = &verdict {
        let at = Position { round: 0, index: place };
        notepad.fail_open(asking.observe, PHASE, at, hook, *cause);
    }
    (verdict, end)
}
