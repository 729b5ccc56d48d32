//! Compares the answer to a question with the decision of a cluster.

use cluster_client::ReviewAnswer;

/// Returns a line for standard error if the decisions differ, or if the cluster decided with an error.
///
/// A cluster reports an error if an authorizer failed, for example a webhook. Its next decision about the same request
/// may be another one, so equal decisions confirm nothing.
pub(super) fn describe_difference(
    request: &str,
    is_allowed: bool,
    answer: &ReviewAnswer,
) -> Option<String> {
    let words = |is_allowed| if is_allowed { "allowed" } else { "not allowed" };
    let ReviewAnswer { is_allowed: is_allowed_by_cluster, reason, evaluation_error } = answer;
    if *is_allowed_by_cluster != is_allowed {
        return Some(format!(
            "disagreement: {request} is {} here and {} in the cluster: {}",
            words(is_allowed),
            words(*is_allowed_by_cluster),
            [reason.as_str(), evaluation_error].join(" ").trim()
        ));
    }
    (!evaluation_error.is_empty()).then(|| {
        format!(
            "error: {request} is {} here and in the cluster, but an authorizer of the cluster failed: \
             {evaluation_error}",
            words(is_allowed)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_errors_of_the_cluster_are_described() {
        for (is_allowed, is_allowed_by_cluster, reason, evaluation_error, want) in [
            (true, true, "RBAC: allowed", "", None),
            (false, false, "", "", None),
            (
                true,
                false,
                "",
                "",
                Some("disagreement: R is allowed here and not allowed in the cluster: "),
            ),
            (
                false,
                true,
                "yes",
                "webhook: timeout",
                Some(
                    "disagreement: R is not allowed here and allowed in the cluster: yes webhook: timeout",
                ),
            ),
            (
                false,
                false,
                "",
                "webhook: timeout",
                Some(
                    "error: R is not allowed here and in the cluster, but an authorizer of the cluster failed: webhook: \
                     timeout",
                ),
            ),
            (
                true,
                true,
                "RBAC: allowed",
                "webhook: timeout",
                Some(
                    "error: R is allowed here and in the cluster, but an authorizer of the cluster failed: webhook: timeout",
                ),
            ),
        ] {
            let answer = ReviewAnswer {
                is_allowed: is_allowed_by_cluster,
                reason: reason.to_owned(),
                evaluation_error: evaluation_error.to_owned(),
            };
            let found = describe_difference("R", is_allowed, &answer);
            assert_eq!(found.as_deref(), want, "{answer:?}");
        }
    }
}
