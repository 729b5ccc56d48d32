//! Validating hooks: all at once, about one and the same object.

use std::collections::HashMap;
use std::time::Duration;

use admission::{Decisions, FailurePolicy, Hook};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use crate::annotations::Position;
use crate::answer::Answer;
use crate::call::{Call, Trouble};
use crate::failure::CallFailure;
use crate::observe::{CallReport, Phase, RejectionCause};
use crate::passage::Asking;
use crate::record::{Fate, Notepad, Verdict};
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
    asking: &Asking<'_>,
    time: &mut Time,
    notepad: &mut Notepad,
    decisions: &mut Decisions,
) -> Result<(), Refusal> {
    let mut chosen = Vec::new();
    for found in asking.snapshot.validating().matching(&asking.attributes) {
        let (index, hook) = (found.position, found.hook);
        let attributes = &asking.attributes;
        match select(asking, PHASE, &found, attributes, time.deadline, decisions).await? {
            Selection::Call(presented) => chosen.push(Chosen { index, hook, presented }),
            Selection::Skip(skip) => {
                notepad.event(PHASE, Position { round: 0, index }, hook, Fate::Skipped(skip));
            }
        }
    }
    if chosen.is_empty() {
        return Ok(());
    }
    if time.is_over(Instant::now()) {
        return Err(Refusal::deadline());
    }
    let outcomes = call_all(asking, &chosen, *time).await;
    let is_ignorable =
        |it: &&(&Chosen<'_>, &Outcome)| it.0.hook.failure_policy == FailurePolicy::Ignore;
    let ended: Vec<_> = chosen.iter().zip(&outcomes).collect();
    let slowest = ended.iter().filter(is_ignorable).map(|(_, outcome)| outcome.1).max();
    time.spend(FailurePolicy::Ignore, slowest.unwrap_or_default());
    let is_over = time.is_over(Instant::now());

    let mut first_refusal = None;
    let mut has_failures = false;
    for (place, (chosen, (outcome, duration))) in chosen.iter().zip(outcomes).enumerate() {
        let (verdict, end) = conclude(asking, chosen, place, outcome, duration, notepad);
        has_failures |= matches!(verdict, Verdict::FailOpen(_) | Verdict::FailClosed(_));
        let is_late = is_over && matches!(verdict, Verdict::FailClosed(_));
        let at = Position { round: 0, index: chosen.index };
        notepad.event(PHASE, at, chosen.hook, Fate::Called { duration, verdict });
        if let (Err(refusal), None) = (end, &first_refusal) {
            first_refusal = Some(if is_late { Refusal::deadline() } else { refusal });
        }
    }
    match first_refusal {
        Some(refusal) => Err(refusal),
        None if has_failures && is_over => Err(Refusal::deadline()),
        None => Ok(()),
    }
}

/// Calls all hooks, each in a task of its own, and waits for all of them. If nobody waits for this,
/// all calls end.
async fn call_all(asking: &Asking<'_>, chosen: &[Chosen<'_>], time: Time) -> Vec<Outcome> {
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    let mut places: HashMap<Id, usize> = HashMap::new();
    let mut outcomes: Vec<Option<Outcome>> = Vec::new();
    for (place, Chosen { index, hook, presented }) in chosen.iter().enumerate() {
        let ready = Call::new(PHASE, hook, &asking.attributes, presented)
            .and_then(|call| Ok((call, time.allot(hook, began)?)));
        outcomes.push(match ready {
            Err(trouble) => Some((Err(trouble), began.elapsed())),
            Ok((call, limit)) => {
                let connection = asking.connections.get(PHASE, *index).cloned();
                let task = async move {
                    let answer = call.send(connection, limit).await;
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
            Err(error) => (error.id(), (Err(lost()), began.elapsed())),
        };
        if let Some(slot) = places.get(&id).and_then(|place| outcomes.get_mut(*place)) {
            *slot = Some(outcome);
        }
    }
    let unknown = || (Err(lost()), began.elapsed());
    outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unknown)).collect()
}

/// A task that ended without saying how. A call says that also of a fault of ours.
fn lost() -> Trouble {
    Trouble::Failed(CallFailure::no_answer("the server is going down"))
}

/// Takes note of what a hook said, and tells what that means.
fn conclude(
    asking: &Asking<'_>,
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
    if let Verdict::FailOpen(_) = &verdict {
        asking.observe.failed_open(&hook.name, PHASE);
        let at = Position { round: 0, index: place };
        notepad.annotations.failed_open("validating", at, &hook.name);
    }
    (verdict, end)
}
