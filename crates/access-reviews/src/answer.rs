//! Asking a chain what a review asks.

use api_object::Status;
use authz::{Decision, Recorder, Trace, User, Verdict};
use authz_chain::Chain;
use serde_json::Value;

use crate::prepare::Review;
use crate::refusal::forbidden;

/// The body of the answer.
///
/// The whole chain is asked, superusers included, but for rules, which only configured authorizers
/// list.
///
/// # Errors
/// 403 if the caller may post the review and not ask this with it; 500 if nobody can say; 429, 503 or 504
/// if this server failed to ask.
pub async fn answer(chain: &Chain, review: Review, caller: Option<&User>) -> Result<Value, Status> {
    let caller_name = caller.map_or("", |user| &user.name);
    match review {
        Review::Answered(body) => Ok(body),
        Review::Access(review) => {
            let attributes = review.attributes();
            let outcome = chain.authorize_for(caller_name, &attributes, Recorder::off()).await;
            check_decided(&outcome.decision)?;
            Ok(review.respond(&outcome.decision))
        }
        Review::Explanation(review) => {
            let mut trace = Trace::default();
            let recorder = Recorder::on(&mut trace);
            let outcome = chain.authorize_for(caller_name, &review.attributes(), recorder).await;
            check_decided(&outcome.decision)?;
            Ok(review.respond(chain, &outcome, &trace))
        }
        Review::Rules(review) => {
            let rules = chain.rules_for(review.user(), review.namespace());
            Ok(review.respond(&rules))
        }
        Review::Subjects(review) => {
            if let Some(permission) = review.permission(caller) {
                let decision = chain.authorize(&permission, Recorder::off()).await.decision;
                match (decision.verdict, &decision.error) {
                    (Verdict::Allow, _) => {}
                    (Verdict::Unavailable(why), _) => return Err(Status::undecided(why)),
                    (Verdict::Deny | Verdict::NoOpinion, Some(error)) => {
                        return Err(Status::internal(&error.to_string()));
                    }
                    (Verdict::Deny | Verdict::NoOpinion, None) => {
                        return Err(forbidden(&permission, &decision.reason));
                    }
                }
            }
            let subjects = chain.who_can(&review.attributes());
            Ok(review.respond(&subjects))
        }
    }
}

/// A review tells what authorizers answer, and nothing if this server failed to ask them.
///
/// # Errors
/// 429, 503 or 504 if it did.
pub fn check_decided(decision: &Decision) -> Result<(), Status> {
    match decision.verdict {
        Verdict::Allow | Verdict::Deny | Verdict::NoOpinion => Ok(()),
        Verdict::Unavailable(why) => Err(Status::undecided(why)),
    }
}
