//! The recorded answers of Kubernetes for a webhook that stands alone, played without a network.
//!
//! The conformance suite plays all of them over real connections. This test plays those that need neither
//! other authorizers nor a broken connection, with a simulated clock.

use std::path::Path;
use std::time::Duration;

use authz::{
    Attributes, Namespace, Resource, Selector, Target, User, Verb, parse_field_selector,
    parse_label_selector,
};
use authz_webhook::{
    CacheSettings, FailurePolicy, HttpResponse, MatchConditions, ReviewVersion, Timeout,
    WebhookLimits, WebhookSettings,
};
use serde_json::Value;

use crate::peer::{Scene, Step, conditions, settings};

#[tokio::test(start_paused = true)]
async fn webhooks_answer_as_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/chain.jsonl");
    let vectors = std::fs::read_to_string(path).unwrap();
    let mut n_played = 0;
    for line in vectors.lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        if let Some(settings) = lone_webhook(&vector) {
            play(&vector, settings).await;
            n_played += 1;
        }
    }
    assert!(n_played > 100, "{n_played}");
}

/// The settings, if the chain is one webhook and all its answers are complete and in time.
fn lone_webhook(vector: &Value) -> Option<WebhookSettings> {
    let [authorizer] = vector["config"]["authorizers"].as_array()?.as_slice() else { return None };
    let webhook = authorizer.get("webhook")?;
    let is_simple =
        |response: &Value| response.get("mode").is_none() && response.get("delayMillis").is_none();
    if !responses(vector).iter().all(is_simple) {
        return None;
    }
    let texts: Vec<&str> = webhook["matchConditions"]
        .as_array()
        .map(|conditions| conditions.iter().map(|c| c["expression"].as_str().unwrap()).collect())
        .unwrap_or_default();
    let caching = |ttl: &str, switch: &str, default: u64| {
        let ttl = duration(&webhook[ttl]).unwrap_or(Duration::from_secs(default));
        CacheSettings::new(ttl, webhook[switch].as_bool().unwrap_or(true))
    };
    let version = webhook["subjectAccessReviewVersion"].as_str()?;
    let policy = webhook["failurePolicy"].as_str()?;
    Some(WebhookSettings {
        timeout: Timeout::new(duration(&webhook["timeout"])?).unwrap(),
        authorized_cache_settings: caching("authorizedTTL", "cacheAuthorizedRequests", 300),
        unauthorized_cache_settings: caching("unauthorizedTTL", "cacheUnauthorizedRequests", 30),
        subject_access_review_version: ReviewVersion::from_version_name(version).unwrap(),
        failure_policy: FailurePolicy::from_policy_name(policy).unwrap(),
        match_conditions: if texts.is_empty() {
            MatchConditions::Unversioned
        } else {
            conditions(&texts)
        },
        ..settings()
    })
}

fn duration(value: &Value) -> Option<Duration> {
    let nanos = go_compat::parse_duration(value.as_str()?).unwrap();
    Some(Duration::from_nanos(u64::try_from(nanos).unwrap()))
}

fn responses(vector: &Value) -> &[Value] {
    let webhooks = vector["webhooks"].as_object().unwrap();
    assert_eq!(webhooks.len(), 1);
    webhooks.values().next().unwrap()["responses"].as_array().unwrap()
}

fn step(response: &Value) -> Step {
    let padding = "x".repeat(response["padReason"].as_u64().unwrap_or(0) as usize);
    let body = response["body"].as_str().unwrap_or("").replace("PAD", &padding);
    let content_type = match response["contentType"].as_str() {
        Some("none") => None,
        Some(other) => Some(other.to_owned()),
        None => Some("application/json".to_owned()),
    };
    let retry_after = response["headers"]["Retry-After"].as_str().map(str::to_owned);
    let status = response["status"].as_u64().unwrap_or(200) as u16;
    // A response with this status code has no body on the wire, even if the script has one.
    let body = if status == 204 || status == 304 { String::new() } else { body };
    Step::HttpResponse(HttpResponse { status, content_type, retry_after, body: body.into() })
}

async fn play(vector: &Value, settings: WebhookSettings) {
    let scene = Scene::with(
        settings,
        WebhookLimits::without_in_flight_limit(),
        responses(vector).iter().map(step),
    );
    let mut n_before = 0;
    for (number, step) in vector["steps"].as_array().unwrap().iter().enumerate() {
        let place = format!("{} step {number}", vector["id"]);
        let expect = &step["expect"];
        if let Some(wait) = step["waitMillis"].as_u64() {
            tokio::time::advance(Duration::from_millis(wait)).await;
        }
        let asked = Question::read(&step["attributes"]);
        if asked.user.as_ref().is_some_and(|user| user.is_in_group("system:masters")) {
            continue; // That is answered before the webhook is asked.
        }
        let decision = scene.ask(&asked.attributes()).await;
        check_calls(expect, &scene.peer.bodies()[n_before..], &place);
        n_before = scene.peer.n_calls();
        if asked.user.is_none() {
            continue; // Others have something to say about that.
        }
        assert_eq!(decision.verdict.name(), expect["decision"].as_str().unwrap(), "{place}");
        if let Some(reason) = expect["reason"].as_str() {
            // A chain prefixes the reason of an abstention with the name of the authorizer.
            let name = &vector["config"]["authorizers"][0]["name"].as_str().unwrap();
            let own = reason.strip_prefix(&format!("{name}: ")).unwrap_or(reason);
            assert_eq!(decision.reason, *own, "{place}");
        }
        let error = decision.error.map(|error| error.to_string());
        if expect["errorKind"] != "transport" {
            let want = expect["error"].as_str().map(|it| without_body(it, vector));
            assert_eq!(error, want, "{place}");
        } else {
            let error = error.unwrap();
            assert!(error.ends_with("context deadline exceeded"), "{place}: {error}");
        }
    }
}

/// The recorded error without the body that it repeats, which is the agreed difference
/// `webhook-body-in-error`.
fn without_body(error: &str, vector: &Value) -> String {
    let bodies = responses(vector).iter().filter_map(|response| response["body"].as_str());
    let quoted = bodies.map(|body| format!("an error on the server ({body:?})"));
    let unquoted = "an error on the server (\"unknown\")";
    quoted.fold(error.to_owned(), |error, quoted| error.replace(&quoted, unquoted))
}

fn check_calls(expect: &Value, bodies: &[Value], place: &str) {
    let calls = expect["calls"].as_array().unwrap();
    let n_calls: u64 = calls.iter().map(|call| call["attempts"].as_u64().unwrap()).sum();
    assert_eq!(bodies.len() as u64, n_calls, "{place}");
    for body in bodies {
        assert_eq!(*body, calls[0]["body"], "{place}");
    }
}

/// The attributes of a step, with owned texts.
struct Question<'v> {
    given: &'v Value,
    user: Option<User>,
    field_selector: Option<Selector<authz::FieldRequirement>>,
    label_selector: Option<Selector<authz::LabelRequirement>>,
}

impl<'v> Question<'v> {
    fn read(given: &'v Value) -> Self {
        let selector = |name: &str| given[name].as_str();
        Self {
            given,
            user: given.get("user").filter(|user| !user.is_null()).map(user),
            field_selector: selector("fieldSelector")
                .and_then(|text| Selector::from_selector_parse_result(parse_field_selector(text))),
            label_selector: selector("labelSelector")
                .and_then(|text| Selector::from_selector_parse_result(parse_label_selector(text))),
        }
    }

    fn attributes(&self) -> Attributes<'_> {
        let text = |owner: &'v Value, name: &str| owner[name].as_str().unwrap_or("");
        let path = text(self.given, "path");
        let target = match self.given.get("resource") {
            Some(resource) => Target::Resource(Resource {
                path,
                api_group: text(resource, "group"),
                api_version: text(resource, "version"),
                namespace: Namespace::new(text(resource, "namespace")),
                resource: text(resource, "resource"),
                subresource: text(resource, "subresource"),
                name: text(resource, "name"),
                field_selector: self.field_selector.as_ref(),
                label_selector: self.label_selector.as_ref(),
            }),
            None => Target::Path(path),
        };
        Attributes { user: self.user.as_ref(), verb: Verb::new(text(self.given, "verb")), target }
    }
}

fn user(given: &Value) -> User {
    let texts = |value: &Value| -> Vec<String> {
        let texts = value.as_array().map(Vec::as_slice).unwrap_or_default();
        texts.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let extra = given["extra"]
        .as_object()
        .map(|members| members.iter().map(|(key, values)| (key.clone(), texts(values))).collect());
    User {
        name: given["name"].as_str().unwrap_or("").to_owned(),
        uid: given["uid"].as_str().unwrap_or("").to_owned(),
        groups: texts(&given["groups"]),
        extra: extra.unwrap_or_default(),
    }
}
