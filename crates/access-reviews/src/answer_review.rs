//! Answers reviews with a chain.

use api_object::Status;
use authz::{Decision, Recorder, Trace, User, Verdict};
use authz_chain::Chain;
use serde_json::Value;

use crate::prepare::PreparedReview;
use crate::refusal::forbidden_status;

/// Answers a review and returns the body of the response.
///
/// The whole chain decides, with `system:masters`; only configured authorizers list rules.
///
/// # Errors
/// 403 if the caller lacks a further permission; 500 if an authorizer failed to decide that; 429, 503 or 504 if this server
/// could not consult an authorizer.
pub async fn answer_review(
    chain: &Chain,
    review: PreparedReview,
    caller: Option<&User>,
) -> Result<Value, Status> {
    let caller_name = caller.map_or("", |user| &user.name);
    match review {
        PreparedReview::Answered(body) => Ok(body),
        PreparedReview::Access(review) => {
            let attributes = review.attributes();
            let outcome = chain.authorize_for(caller_name, &attributes, Recorder::disabled()).await;
            check_decided(&outcome.decision)?;
            Ok(review.respond(&outcome.decision))
        }
        PreparedReview::Explanation(review) => {
            let mut trace = Trace::default();
            let recorder = Recorder::new(&mut trace);
            let outcome = chain.authorize_for(caller_name, &review.attributes(), recorder).await;
            check_decided(&outcome.decision)?;
            Ok(review.respond(chain, &outcome, &trace))
        }
        PreparedReview::Rules(review) => {
            let rules = chain.rules_for(review.user(), review.namespace());
            Ok(review.respond(&rules))
        }
        PreparedReview::Subjects(review) => {
            if let Some(permission) = review.permission(caller) {
                let decision = chain.authorize(&permission, Recorder::disabled()).await.decision;
                match (decision.verdict, &decision.error) {
                    (Verdict::Allow, _) => {}
                    (Verdict::Unavailable(why), _) => return Err(Status::undecided(why)),
                    (Verdict::Deny | Verdict::NoOpinion, Some(error)) => {
                        return Err(Status::internal(&error.to_string()));
                    }
                    (Verdict::Deny | Verdict::NoOpinion, None) => {
                        return Err(forbidden_status(&permission, &decision.reason));
                    }
                }
            }
            let subjects = chain.who_can(&review.attributes());
            Ok(review.respond(&subjects))
        }
    }
}

/// Checks that the authorizers could be consulted, so that a review can report their decision.
///
/// # Errors
/// 429, 503 or 504 if this server could not consult them.
pub fn check_decided(decision: &Decision) -> Result<(), Status> {
    match decision.verdict {
        Verdict::Allow | Verdict::Deny | Verdict::NoOpinion => Ok(()),
        Verdict::Unavailable(why) => Err(Status::undecided(why)),
    }
}
