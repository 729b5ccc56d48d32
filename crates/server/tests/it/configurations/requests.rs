//! Responses to invalid input, and the behaviour that all four kinds have in common.

use admission::ConfigurationKind;
use http::Method;
use serde_json::{Value, json};

use super::{create, object, path_of, warnings};
use crate::cluster::Cluster;

/// An object of any of the kinds that says as little as it may.
fn simple(kind: ConfigurationKind, name: &str) -> Value {
    let entries = match kind {
        ConfigurationKind::Initializer => json!([{"name": "a.b.c"}]),
        ConfigurationKind::ExternalHook => json!([]),
        ConfigurationKind::Mutating | ConfigurationKind::Validating => json!([{
            "name": "a.b.c",
            "clientConfig": {"url": "https://example.com"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }]),
    };
    object(kind, name, entries)
}

/// A field of the list that no kind has.
fn odd(kind: ConfigurationKind) -> (Value, String) {
    let mut object = simple(kind, "odd");
    match kind {
        ConfigurationKind::ExternalHook => {
            object["hooks"] = json!([]);
            (object, "unknown field \"hooks\"".to_owned())
        }
        _ => {
            object[kind.entries_member_name()][0]["timeout"] = json!(1);
            (object, format!("unknown field \"{}[0].timeout\"", kind.entries_member_name()))
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_objects_of_the_kind() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for kind in ConfigurationKind::ALL {
        let (name, version) = (kind.name(), kind.version());
        let other = match version {
            "v1" => "admissionregistration.k8s.io/v1alpha1",
            _ => "admissionregistration.k8s.io/v1",
        };
        let start = format!("{name} in version \"{version}\" cannot be handled as a {name}: ");
        for (body, want) in [
            (
                "{not json".to_owned(),
                format!(
                    "the object provided is unrecognized (must be of type {name}): …({{not json)"
                ),
            ),
            (
                json!({"kind": "ConfigMap", "apiVersion": "v1"}).to_string(),
                format!("ConfigMap in version \"v1\" cannot be handled as a {name}: …"),
            ),
            (
                json!({"apiVersion": other, "kind": name}).to_string(),
                format!(
                    "the API version in the data ({other}) does not match the expected API version \
                     (admissionregistration.k8s.io/{version})"
                ),
            ),
            (
                json!({(kind.entries_member_name()): {"name": "a.b.c"}}).to_string(),
                format!(
                    "{start}json: cannot unmarshal object into field {} of type array",
                    kind.entries_member_name()
                ),
            ),
            (
                json!({(kind.entries_member_name()): [{"name": 1}]}).to_string(),
                format!(
                    "{start}json: cannot unmarshal number 1 into field {}[0].name of type string",
                    kind.entries_member_name()
                ),
            ),
            (
                json!({(kind.entries_member_name()): [{"rules": [{"apiGroups": "a"}]}]})
                    .to_string(),
                format!(
                    "{start}json: cannot unmarshal string into field {}[0].rules[0].apiGroups of type \
                     array",
                    kind.entries_member_name()
                ),
            ),
        ] {
            let answer = admin.send(Method::POST, &path_of(kind), &[], body).await;
            let status = answer.expect(400);
            assert_eq!(status["reason"], "BadRequest");
            let mut differences = Vec::new();
            let message = status["message"].as_str();
            crate::pattern::check_text(&want, message, "message", &mut differences);
            assert!(differences.is_empty(), "{differences:?}");
        }
        let yaml = format!("metadata: {{name: in-yaml}}\n{}: []\n", kind.entries_member_name());
        let headers = [("content-type", "application/yaml")];
        admin.send(Method::POST, &path_of(kind), &headers, yaml).await.expect(201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_are_refused_told_or_ignored() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for kind in ConfigurationKind::ALL {
        let (body, finding) = odd(kind);
        let path = |validation: &str| format!("{}?fieldValidation={validation}", path_of(kind));
        let status = admin.post(&path("Strict"), &body).await.expect(400);
        let want = format!(
            "{0} in version \"{1}\" cannot be handled as a {0}: strict decoding error: {finding}",
            kind.name(),
            kind.version()
        );
        assert_eq!((&status["reason"], &status["message"]), (&json!("BadRequest"), &want.into()));

        let answer = admin.post(&path("Warn"), &body).await;
        assert_eq!(warnings(&answer), [finding]);
        let made = answer.expect(201);
        assert!(!made.to_string().contains("timeout\":") && made.get("hooks").is_none(), "{made}");
        admin.delete(&format!("{}/odd", path_of(kind))).await.expect(200);
        let answer = admin.post(&path("Ignore"), &body).await;
        assert_eq!(warnings(&answer), Vec::<String>::new());
        answer.expect(201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_come_too_early_or_too_late() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for kind in ConfigurationKind::ALL {
        let resource = format!("{}.admissionregistration.k8s.io", kind.resource());
        let path = format!("{}/x", path_of(kind));
        let body = simple(kind, "x");
        let expect = |status: Value, reason: &str, message: &str| {
            assert_eq!((&status["reason"], &status["message"]), (&reason.into(), &message.into()));
        };
        let missing = format!("{resource} \"x\" not found");
        expect(admin.put(&path, &body).await.expect(404), "NotFound", &missing);
        let patch = json!({"metadata": {"labels": {"a": "b"}}});
        let answer = admin.patch(&path, "merge-patch", &patch).await;
        expect(answer.expect(404), "NotFound", &missing);

        let made = admin.post(&path_of(kind), &body).await.expect(201);
        assert_eq!(made["metadata"]["generation"], 1);
        let exists = format!("{resource} \"x\" already exists");
        expect(admin.post(&path_of(kind), &body).await.expect(409), "AlreadyExists", &exists);
        let unversioned = format!(
            "{resource} \"x\" is invalid: metadata.resourceVersion: Invalid value: 0: must be \
             specified for an update"
        );
        expect(admin.put(&path, &body).await.expect(422), "Invalid", &unversioned);

        let mut first = made.clone();
        first["metadata"]["labels"] = json!({"a": "b"});
        admin.put(&path, &first).await.expect(200);
        let lost = format!(
            "Operation cannot be fulfilled on {resource} \"x\": the object has been modified; please \
             apply your changes to the latest version and try again"
        );
        expect(admin.put(&path, &first).await.expect(409), "Conflict", &lost);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_told_all_at_once() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let kind = ConfigurationKind::Validating;
    let webhooks = json!([
        {"name": "a.b.c", "clientConfig": {"url": "https://example.com"}, "sideEffects": "x",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 0},
        {"name": "a.b.c", "clientConfig": {"url": "https://example.com"}, "sideEffects": "None",
            "matchConditions": (0..65).map(|idx| json!({"name": format!("c{idx}"),
                "expression": "true"})).collect::<Value>()},
    ]);
    let status = create(&admin, kind, "bad", webhooks).await.expect(422);
    let causes = status["details"]["causes"].as_array().expect("causes");
    let found: Vec<(&str, &str)> = causes
        .iter()
        .map(|cause| (cause["reason"].as_str().unwrap(), cause["field"].as_str().unwrap()))
        .collect();
    let want = [
        ("FieldValueNotSupported", "webhooks[0].sideEffects"),
        ("FieldValueInvalid", "webhooks[0].timeoutSeconds"),
        ("FieldValueTooMany", "webhooks[1].matchConditions"),
        ("FieldValueRequired", "webhooks[1].admissionReviewVersions"),
        ("FieldValueDuplicate", "webhooks[1].name"),
    ];
    assert_eq!(found, want);
    let texts: Vec<String> = causes
        .iter()
        .map(|cause| {
            format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap())
        })
        .collect();
    let message = format!(
        "ValidatingWebhookConfiguration.admissionregistration.k8s.io \"bad\" is invalid: [{}]",
        texts.join(", ")
    );
    assert_eq!(status["message"], message);
    assert_eq!(status["details"]["kind"], "ValidatingWebhookConfiguration");
    assert_eq!(status["details"]["group"], "admissionregistration.k8s.io");

    let hook = json!([{"name": "a.b.c", "failurePolicy": "Fail"}]);
    let status = create(&admin, ConfigurationKind::Initializer, "bad", hook).await.expect(422);
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueForbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_are_of_the_cluster() {
    let cluster = Cluster::start().await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    for kind in ConfigurationKind::ALL {
        let mut body = simple(kind, "a");
        body["metadata"]["namespace"] = "default".into();
        let answer = admin.post(&path_of(kind), &body).await;
        assert_eq!(warnings(&answer), Vec::<String>::new());
        assert!(answer.expect(201)["metadata"].get("namespace").is_none());
        let mut stored = admin.get(&format!("{}/a", path_of(kind))).await.expect(200);
        assert!(stored["metadata"].get("namespace").is_none());
        stored["metadata"]["namespace"] = "other".into();
        let put = admin.put(&format!("{}/a", path_of(kind)), &stored).await.expect(200);
        assert!(put["metadata"].get("namespace").is_none());

        let status = alice.post(&path_of(kind), &body).await.expect(403);
        assert_eq!(status["reason"], "Forbidden");
        let want = format!(
            "{0}.admissionregistration.k8s.io is forbidden: User \"alice\" cannot create resource \
             \"{0}\" in API group \"admissionregistration.k8s.io\" at the cluster scope",
            kind.resource()
        );
        assert_eq!(status["message"], want);
    }
}

/// The table of a list shows the number of entries.
#[tokio::test(flavor = "multi_thread")]
async fn configurations_are_listed_watched_and_deleted_like_others() {
    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for kind in ConfigurationKind::ALL {
        let path = path_of(kind);
        let mut events = admin.watch(&format!("{path}?watch=1")).await;
        admin.post(&path, &simple(kind, "a")).await.expect(201);
        let event = events.next().await.expect("an event");
        assert_eq!(
            (&event["type"], &event["object"]["kind"]),
            (&json!("ADDED"), &kind.name().into())
        );
        let list = admin.get(&path).await.expect(200);
        assert_eq!(list["kind"], format!("{}List", kind.name()));
        assert_eq!(list["items"].as_array().map(Vec::len), Some(1));

        let table = admin.send(Method::GET, &path, &[("accept", TABLE)], "").await.expect(200);
        let columns: Vec<&str> = table["columnDefinitions"]
            .as_array()
            .expect("columns")
            .iter()
            .map(|column| column["name"].as_str().unwrap())
            .collect();
        let (heading, n_entries) = match kind {
            ConfigurationKind::Initializer => ("Initializers", 1),
            ConfigurationKind::ExternalHook => ("Hooks", 0),
            ConfigurationKind::Mutating | ConfigurationKind::Validating => ("Webhooks", 1),
        };
        assert_eq!(columns, ["Name", heading, "Age"]);
        assert_eq!(table["rows"][0]["cells"][1], n_entries);

        admin.delete(&path).await.expect(200);
        assert_eq!(events.next().await.expect("an event")["type"], "DELETED");
        admin.get(&format!("{path}/a")).await.expect(404);
    }
}
