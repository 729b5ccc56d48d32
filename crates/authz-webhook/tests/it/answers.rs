//! The decisions that follow from the webhook's answers.

use authz_webhook::{HttpResponse, ReviewVersion, WebhookLimits, WebhookSettings};

use crate::peer::{ALLOW, DENY, NEITHER, Scene, Step, failing_closed, line, reply, says, settings};

async fn meaning(step: Step) -> String {
    let scene = Scene::with(settings(), WebhookLimits::default(), [step]);
    let meaning = line(&scene.ask_as("ana").await);
    assert_eq!(scene.peer.n_calls(), 1);
    meaning
}

#[tokio::test]
async fn well_formed_answers() {
    for (body, want) in [
        (ALLOW, "allow [yes]"),
        (DENY, "deny [no]"),
        (NEITHER, "noOpinion [who knows]"),
        (
            r#"{"status":{"allowed":true,"denied":true,"reason":"r"}}"#,
            "deny [r] ! webhook subject access review returned both allow and deny response",
        ),
        (r#"{"apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}"#, "allow []"),
        (r#"{"status":{"allowed":true}}"#, "allow []"),
        (r#"{"status":{"Allowed":true}}"#, "noOpinion []"),
        (r#"{"status":{"allowed":true,"evaluationError":"e"}}"#, "allow []"),
    ] {
        assert_eq!(meaning(says(body)).await, want, "{body}");
    }
    assert_eq!(meaning(Step::HttpResponse(reply(201, ALLOW))).await, "allow [yes]");
}

#[tokio::test]
async fn answers_that_are_failures() {
    let beta = r#"{"apiVersion":"authorization.k8s.io/v1beta1","status":{"allowed":true}}"#;
    for (step, want) in [
        (
            says(beta),
            "converting (v1beta1.SubjectAccessReview) to (v1.SubjectAccessReview): unknown \
             conversion",
        ),
        (
            says(r#"{"apiVersion":"v1","kind":"Pod","status":{"allowed":true}}"#),
            "converting (v1.Pod) to (v1.SubjectAccessReview): unknown conversion",
        ),
        (
            says("error response"),
            "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go \
             value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
             string \"json:\\\"kind,omitempty\\\"\" }",
        ),
        (says(""), "0-length response with status code: 200 and content type: application/json"),
        (
            says(r#"{"status":{"allowed":"true"}}"#),
            "json: cannot unmarshal string into Go struct field \
             SubjectAccessReviewStatus.status.allowed of type bool",
        ),
        (
            Step::HttpResponse(reply(302, ALLOW)),
            "the server responded with the status code 302 but did not return more information",
        ),
    ] {
        assert_eq!(meaning(step).await, format!("noOpinion [] ! {want}"));
    }
}

#[tokio::test]
async fn a_failure_is_counted_and_the_policy_decides() {
    let open = Scene::new([says("error response")]);
    let _ = open.ask_as("ana").await;
    let events = ["cache miss", "attempt error", "fail-open by bad_answer", "fail-open error"];
    assert_eq!(open.tally.events(), events);

    let closed = Scene::with(failing_closed(), WebhookLimits::default(), [says("error response")]);
    let decision = closed.ask_as("ana").await;
    assert_eq!((decision.verdict.name(), decision.error.is_some()), ("deny", true));
    assert_eq!(closed.tally.events(), ["cache miss", "attempt error"]);
    // The failure policy does not change the meaning of a well-formed answer.
    let closed = Scene::with(failing_closed(), WebhookLimits::default(), [says(NEITHER)]);
    assert_eq!(line(&closed.ask_as("ana").await), "noOpinion [who knows]");
}

#[tokio::test]
async fn a_webhook_of_the_other_version_answers_in_it() {
    let settings =
        WebhookSettings { subject_access_review_version: ReviewVersion::V1beta1, ..settings() };
    let beta = r#"{"apiVersion":"authorization.k8s.io/v1beta1","status":{"allowed":true}}"#;
    let v1 = r#"{"apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}"#;
    let scene = Scene::with(settings, WebhookLimits::default(), [says(v1), says(beta)]);
    assert_eq!(scene.ask_as("ana").await.verdict.name(), "noOpinion");
    assert_eq!(scene.ask_as("ana").await.verdict.name(), "allow");
}

#[tokio::test]
async fn content_types_do_not_matter_if_they_are_any() {
    for content_type in [None, Some("text/html; charset=x"), Some("a"), Some("")] {
        let content_type = content_type.map(str::to_owned);
        let step = Step::HttpResponse(HttpResponse { content_type, ..reply(200, ALLOW) });
        assert_eq!(meaning(step).await, "allow [yes]");
    }
}
