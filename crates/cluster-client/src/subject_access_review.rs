//! Asks the API server of a cluster for its own decision.

use bytes::Bytes;
use serde_json::Value;

use crate::api_error::ClusterError;
use crate::client::ClusterClient;

const PATH: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// The decision of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewAnswer {
    /// Whether the cluster allows the request.
    pub is_allowed: bool,
    /// The reason, which may be empty.
    pub reason: String,
    /// An error while the cluster decided, which may be empty.
    pub evaluation_error: String,
}

/// Posts a SubjectAccessReview of version v1, which `review` encodes.
///
/// # Errors
///
/// The server does not answer, or the user may not create reviews.
pub async fn post_subject_access_review(
    client: &ClusterClient,
    review: Bytes,
) -> Result<ReviewAnswer, ClusterError> {
    let answer = client.post_json(PATH, review).await?;
    let status = answer.get("status");
    let text = |name: &str| {
        let text = status.and_then(|status| status.get(name)).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let is_allowed = status.and_then(|status| status.get("allowed")).and_then(Value::as_bool);
    let is_allowed = is_allowed.ok_or_else(|| ClusterError::NotKubernetes {
        path: PATH.to_owned(),
        expected: "a SubjectAccessReview with a status",
    })?;
    Ok(ReviewAnswer {
        is_allowed,
        reason: text("reason"),
        evaluation_error: text("evaluationError"),
    })
}
