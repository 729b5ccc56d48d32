//! Answers reviews with a chain.

use authz::{Decision, Trace, TraceRecorder, UnavailableCause, User, Verdict};
use authz_chain::Chain;
use serde_json::Value;

use crate::check_allowed::ForbiddenRequest;
use crate::prepare_review::PreparedReview;
use crate::review_error::AnswerError;

/// Answers a review and returns the body of the response.
///
/// The whole chain decides, with `system:masters`; only configured authorizers list rules.
///
/// # Errors
/// The caller lacks a further permission, or no authorizer could be consulted.
pub async fn answer_review(
    chain: &Chain,
    review: PreparedReview,
    caller: Option<&User>,
) -> Result<Value, AnswerError> {
    let caller_name = caller.map_or("", |user| &user.name);
    match review {
        PreparedReview::Answered(body) => Ok(body),
        PreparedReview::Access(review) => {
            let attributes = review.attributes();
            let outcome = chain
                .authorize_for_caller(caller_name, &attributes, TraceRecorder::disabled_recorder())
                .await;
            check_authorizers_consulted(&outcome.decision).map_err(AnswerError::Unavailable)?;
            Ok(review.into_response(&outcome.decision))
        }
        PreparedReview::Explanation(review) => {
            let mut trace = Trace::default();
            let recorder = TraceRecorder::new(&mut trace);
            let outcome =
                chain.authorize_for_caller(caller_name, &review.attributes(), recorder).await;
            check_authorizers_consulted(&outcome.decision).map_err(AnswerError::Unavailable)?;
            Ok(review.into_response(chain, &outcome, &trace))
        }
        PreparedReview::Rules(review) => {
            let rules = chain.rules_for(review.user(), review.namespace());
            Ok(review.into_response(&rules))
        }
        PreparedReview::Subjects(review) => {
            if let Some(permission) = review.required_permission(caller) {
                let decision =
                    chain.authorize(&permission, TraceRecorder::disabled_recorder()).await.decision;
                match (decision.verdict, &decision.error) {
                    (Verdict::Allow, _) => {}
                    (Verdict::Unavailable(why), _) => return Err(AnswerError::Unavailable(why)),
                    (Verdict::Deny | Verdict::NoOpinion, Some(error)) => {
                        return Err(AnswerError::PermissionCheck(error.clone()));
                    }
                    (Verdict::Deny | Verdict::NoOpinion, None) => {
                        let request = ForbiddenRequest::new(&permission, &decision.reason);
                        return Err(AnswerError::Forbidden(request));
                    }
                }
            }
            let subjects = chain.who_can(&review.attributes());
            Ok(review.into_response(&subjects))
        }
    }
}

/// Checks that the authorizers could be consulted, so that a review can report their decision.
///
/// # Errors
/// This server could not consult them.
pub fn check_authorizers_consulted(decision: &Decision) -> Result<(), UnavailableCause> {
    match decision.verdict {
        Verdict::Allow | Verdict::Deny | Verdict::NoOpinion => Ok(()),
        Verdict::Unavailable(why) => Err(why),
    }
}
