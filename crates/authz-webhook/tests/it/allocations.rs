//! A cached answer is returned without an allocation.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use authz::{
    Attributes, Decision, Namespace, Resource, Selector, Target, TraceRecorder, User, Verb,
};
use authz::{parse_field_selector, parse_label_selector};
use authz_webhook::{WebhookLimits, WebhookSettings};

use crate::peer::{ALLOW, Scene, conditions, says, settings};

fn user() -> User {
    User {
        name: "system:serviceaccount:kube-system:deployer".to_owned(),
        uid: "f9cf138f".to_owned(),
        groups: (0..20).map(|n| format!("group{n}")).collect(),
        extra: BTreeMap::from([("key".to_owned(), vec!["a".to_owned(), "b".to_owned()])]),
    }
}

/// Checks a request whose answer is cached. The future is ready after one poll.
fn ask_at_once(scene: &Scene, attributes: &Attributes<'_>) -> Decision {
    let asking =
        std::pin::pin!(scene.webhook.authorize(attributes, TraceRecorder::disabled_recorder()));
    match asking.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answered) => answered.decision,
        Poll::Pending => panic!("it is not known"),
    }
}

#[tokio::test]
async fn a_hit_allocates_nothing() {
    let user = user();
    let fields = Selector::from_selector_parse_result(parse_field_selector("metadata.name=web"));
    let labels = Selector::from_selector_parse_result(parse_label_selector("app in (a,b),!legacy"));
    let resource = Resource {
        api_group: "apps",
        api_version: "v1",
        namespace: Namespace::new("prod"),
        resource: "deployments",
        field_selector: fields.as_ref(),
        label_selector: labels.as_ref(),
        ..Resource::default()
    };
    let asked =
        Attributes { user: Some(&user), verb: Verb::LIST, target: Target::Resource(resource) };
    let condition = "has(request.resourceAttributes) && \
                     request.resourceAttributes.namespace == 'prod'";
    let settings = WebhookSettings { match_conditions: conditions(&[condition]), ..settings() };
    let scene = Scene::with(settings, WebhookLimits::default(), [says(ALLOW)]);
    let webhook = authz_webhook::Webhook::new(
        "unobserved",
        scene.webhook.settings().clone(),
        std::sync::Arc::clone(&scene.peer) as _,
        WebhookLimits::default(),
        std::sync::Arc::new(authz_webhook::NoObserver),
    );
    let scene = Scene { webhook: std::sync::Arc::new(webhook), ..scene };
    let _ = scene.ask(&asked).await;
    let mut decision = None;
    let counted = allocation_counter::measure(|| {
        for _ in 0..100 {
            decision = Some(ask_at_once(&scene, &asked));
        }
    });
    assert_eq!(counted.count_total, 0);
    assert_eq!(decision.map(|decision| decision.verdict.name()), Some("allow"));
    assert_eq!(scene.peer.n_calls(), 1);
}
