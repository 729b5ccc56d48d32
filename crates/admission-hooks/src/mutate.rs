//! Mutating hooks: one after the other, each on what the ones before have left.

use std::borrow::Cow;
use std::time::Duration;

use admission::{Attributes, AuthorizerDecisions, Hook, HookMatch};
use api_object::Tree;
use serde_json::Value;
use tokio::time::Instant;

use crate::annotations::Position;
use crate::call::{Call, Trouble};
use crate::failure::{CallFailure, FailOpenCause};
use crate::identity;
use crate::kinds::as_kind;
use crate::observe::{CallReport, Phase, RejectionCause};
use crate::passage::HookRequest;
use crate::patching;
use crate::record::{Fate, Notepad, SkipReason, Verdict};
use crate::refusal::Refusal;
use crate::reinvocation::Reinvocation;
use crate::select::{Presented, Selection, select};
use crate::time::Time;
use crate::trouble::{counts, settle};

const PHASE: Phase = Phase::Mutating;

/// What a hook makes of an object.
enum Outcome {
    /// It allows it as it is.
    Allow,
    /// It allows it with changes; the object is of the request's kind again.
    Patch { patch: Value, object: Tree, has_changed: bool },
    /// It does not allow it.
    Deny(Refusal),
}

/// Runs one round.
///
/// For each hook in order:
/// 1. Whether it matches is decided on the object as it is now.
/// 2. In the second round, it must also have been called before something changed.
/// 3. It is called, and its patch applied.
/// 4. The first that refuses ends the round.
pub(crate) async fn run(
    asking: &HookRequest<'_>,
    mut object: Option<Tree>,
    time: Time,
    reinvocation: &mut Reinvocation,
    notepad: &mut Notepad,
    decisions: &mut AuthorizerDecisions,
) -> Result<Option<Tree>, Refusal> {
    for found in asking.snapshot.mutating().match_hooks(&asking.attributes) {
        let (index, hook) = (found.position, found.hook);
        let at = Position { round: reinvocation.round(), index };
        let attributes = Attributes { object: object.as_ref(), ..asking.attributes };
        let selection = select(asking, PHASE, &found, &attributes, time.deadline, decisions);
        let presented = match selection.await? {
            Selection::Skip(skip) => {
                if let SkipReason::ConditionError(_) = &skip {
                    let cause = FailOpenCause::MatchCondition;
                    notepad.fail_open(asking.observe, PHASE, at, hook, cause);
                }
                notepad.event(PHASE, at, hook, Fate::Skipped(skip));
                continue;
            }
            Selection::Call(_) if !reinvocation.calls(index) => {
                notepad.event(PHASE, at, hook, Fate::Skipped(SkipReason::NotAgain));
                continue;
            }
            Selection::Call(presented) => presented,
        };
        if time.is_over(Instant::now()) {
            return Err(Refusal::deadline());
        }
        let began = Instant::now();
        let outcome = ask(asking, &found, &attributes, &presented, time, notepad).await;
        let duration = began.elapsed();
        asking.observe.called(&report(asking, hook, duration, &outcome));

        let has_changed = matches!(&outcome, Ok(Outcome::Patch { has_changed: true, .. }));
        reinvocation.called(index, hook, has_changed);
        if let Ok(Outcome::Patch { patch, .. }) = &outcome {
            notepad.annotations.patch(at, &hook.configuration_name, &hook.name, patch);
        }
        notepad.annotations.mutation(at, &hook.configuration_name, &hook.name, has_changed);
        let (verdict, patched) = conclude(hook, outcome);
        if let Verdict::FailOpen { cause, .. } = &verdict {
            notepad.fail_open(asking.observe, PHASE, at, hook, *cause);
        }
        notepad.event(PHASE, at, hook, Fate::Called { duration, verdict });
        if let Some(patched) = patched? {
            object = Some(patched);
        }
    }
    reinvocation.ended(object.as_ref());
    Ok(object)
}

/// Calls a hook and applies what it says.
async fn ask(
    asking: &HookRequest<'_>,
    found: &HookMatch<'_, '_>,
    attributes: &Attributes<'_>,
    presented: &Presented<'_>,
    time: Time,
    notepad: &mut Notepad,
) -> Result<Outcome, Trouble> {
    let hook = found.hook;
    let call = Call::new(PHASE, hook, attributes, presented, time)?;
    let target = asking.connections.get(PHASE, found.position).cloned();
    let answer = call.send(target, time).await?;
    notepad.hear(&hook.name, &answer);
    if !answer.is_allowed {
        return Ok(Outcome::Deny(Refusal::denial(&hook.name, answer.status)));
    }
    let Some(patch) = patching::read(&answer.patch)? else { return Ok(Outcome::Allow) };
    let Some(object) = &presented.object else {
        let name = go_compat::quote(&hook.name);
        return Err(Trouble::internal(&format!(
            "admission webhook {name} attempted to modify the object, which is not supported for \
             this operation"
        )));
    };
    if let Some(odd) = &answer.odd_patch_type {
        let message = format!("unsupported patch type {}", go_compat::quote(odd));
        let cause = FailOpenCause::BadAnswer;
        return Err(CallFailure { message, code: 400, cause }.into());
    }
    let patched = patching::apply(object, &patch).map_err(|why| Trouble::internal(&why))?;
    identity::check(object, &patched)
        .map_err(|change| Trouble::internal(&change.text(&hook.name)))?;
    let patched =
        asking.kinds.settle(patched, &presented.kind).map_err(|why| Trouble::internal(&why))?;
    let has_changed = patched != **object;
    let patched = Cow::Owned(patched);
    let patched = as_kind(asking.kinds, patched, &presented.kind, &attributes.kind)
        .map_err(|why| Trouble::internal(&why))?;
    Ok(Outcome::Patch { patch, object: patched.into_owned(), has_changed })
}

/// What became of a call: for the record, and for the request. The object is there if it is another.
fn conclude(
    hook: &Hook,
    outcome: Result<Outcome, Trouble>,
) -> (Verdict, Result<Option<Tree>, Refusal>) {
    match outcome {
        Ok(Outcome::Allow) => (Verdict::Allow, Ok(None)),
        Ok(Outcome::Patch { patch, object, has_changed }) => {
            (Verdict::Patch { patch, changed: has_changed }, Ok(Some(object)))
        }
        Ok(Outcome::Deny(refusal)) => (Verdict::Deny(refusal.message.clone()), Err(refusal)),
        Err(trouble) => {
            let (verdict, end) = settle(hook, trouble);
            (verdict, end.map(|()| None))
        }
    }
}

fn report<'a>(
    asking: &HookRequest<'_>,
    hook: &'a Hook,
    duration: Duration,
    outcome: &Result<Outcome, Trouble>,
) -> CallReport<'a> {
    let (code, rejection) = match outcome {
        Ok(Outcome::Allow | Outcome::Patch { .. }) => (200, None),
        Ok(Outcome::Deny(refusal)) => (refusal.code, Some(RejectionCause::Denial)),
        Err(trouble) => counts(hook, trouble),
    };
    let operation = asking.attributes.operation;
    CallReport::new(hook, PHASE, operation, duration, code, rejection)
}
