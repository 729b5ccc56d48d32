use super::*;
use crate::service_account::{Objects, ServiceAccountOptions};
use crate::testing::poll_once;
use crate::token_keys::{SigningKey, VerifyingKey};
use crate::{Authenticator, Options};

fn now() -> Timestamp {
    "2026-11-16T10:00:00.5Z".parse().unwrap()
}

fn tree(value: Value) -> Tree {
    value.as_object().cloned().unwrap()
}

fn objects() -> Objects {
    let mut objects = Objects::default();
    let metadata =
        |name: &str| json!({"namespace": "ns", "name": name, "uid": format!("{name}-uid")});
    objects.put(ReferencedKind::ServiceAccount, json!({"metadata": metadata("sa")}));
    objects.put(ReferencedKind::Secret, json!({"metadata": metadata("secret")}));
    let spec = json!({"serviceAccountName": "sa", "nodeName": "node"});
    objects.put(ReferencedKind::Pod, json!({"metadata": metadata("pod"), "spec": spec}));
    let lost = json!({"serviceAccountName": "sa", "nodeName": "lost"});
    objects.put(ReferencedKind::Pod, json!({"metadata": metadata("lost-pod"), "spec": lost}));
    let other = json!({"metadata": metadata("other"), "spec": {"serviceAccountName": "x"}});
    objects.put(ReferencedKind::Pod, other);
    let node = json!({"metadata": {"name": "node", "uid": "node-uid"}});
    objects.put(ReferencedKind::Node, node);
    objects
}

fn settings(audiences: &[String]) -> TokenRequestSettings<'_> {
    TokenRequestSettings { api_audiences: audiences, lifetime_seconds_max: Some(86_400) }
}

const KIND: &str = "TokenRequest";

fn read(posted: Value) -> Result<TokenRequest, TokenRequestError> {
    let audiences = ["iss".to_owned()];
    poll_once(TokenRequest::read(tree(posted), "ns", "sa", settings(&audiences), &objects(), now()))
}

fn issue(posted: Value, issuer: &TokenIssuer) -> Result<IssuedToken, TokenRequestError> {
    poll_once(read(posted)?.issue_token(settings(&[]), issuer, &objects()))
}

fn issuer() -> (TokenIssuer, Authenticator) {
    let pem = SigningKey::generate_private_key_pem().unwrap();
    let keys = VerifyingKey::all_from_pem(&pem).unwrap();
    let service_accounts =
        Some(ServiceAccountOptions { issuers: vec!["iss".to_owned()], keys, ..Default::default() });
    let options = Options { service_account_options: service_accounts, ..Options::default() };
    let issuer = TokenIssuer::new("iss", SigningKey::from_pem(&pem).unwrap());
    (issuer, Authenticator::new(options).unwrap())
}

#[test]
fn what_is_left_open_is_filled_in() {
    let (issuer, authenticator) = issuer();
    let posted = json!({"kind": KIND, "spec": {}, "status": {"token": "mine"}});
    let request = read(posted.clone()).unwrap();
    let want = json!({
        "kind": KIND,
        "metadata": {
            "name": "sa", "namespace": "ns", "uid": "sa-uid",
            "creationTimestamp": "2026-11-16T10:00:00Z",
        },
        "spec": {"audiences": ["iss"], "expirationSeconds": 3600, "boundObjectRef": null},
        "status": {"token": "", "expirationTimestamp": null},
    });
    assert_eq!(Value::Object(request.request_object().clone()), want);
    let issued = issue(posted, &issuer).unwrap();
    assert_eq!(issued.response_object["status"]["expirationTimestamp"], "2026-11-16T11:00:00Z");
    assert!(issued.response_warnings.is_empty());
    let token = issued.response_object["status"]["token"].as_str().unwrap();
    let known =
        poll_once(authenticator.authenticate_token(token, None, &objects(), now())).unwrap();
    assert_eq!(known.user.name, "system:serviceaccount:ns:sa");
    assert_eq!(known.user.extra[crate::CREDENTIAL_ID_KEY], [issued.credential_id]);
}

#[test]
fn faults_of_the_request() {
    let long = i64::MAX;
    for (posted, want) in [
        (
            json!({"metadata": {"name": "x"}}),
            "the token request for \"sa\" is invalid: metadata.name: Invalid value: \
             \"x\": must match the service account name if specified",
        ),
        (
            json!({"metadata": {"namespace": "x"}}),
            "the token request for \"sa\" is invalid: metadata.namespace: Invalid \
             value: \"x\": must match the service account namespace if specified",
        ),
        (
            json!({"metadata": {"uid": "x"}}),
            "the UID in the token request (x) does not match the UID of the service account (sa-uid)",
        ),
        (
            json!({"spec": {"expirationSeconds": 599}}),
            "the token request for \"\" is invalid: spec.expirationSeconds: Invalid \
             value: 599: may not specify a duration less than 10 minutes",
        ),
        (
            json!({"spec": {"expirationSeconds": (1i64 << 32) + 1}}),
            "the token request for \"\" is invalid: spec.expirationSeconds: Invalid \
             value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ),
        (
            json!({"spec": {"attestations": {"a": ["b"]}, "expirationSeconds": long}}),
            "the token request for \"\" is invalid: spec.attestations: Invalid value: \
             {\"a\":[\"b\"]}: attestations may only be specified with a webhook bound object \
             reference",
        ),
        (
            json!({"spec": {"expirationSeconds": "600"}}),
            "TokenRequest in version \"v1\" cannot be handled as a TokenRequest: \
             spec.expirationSeconds must be an integer",
        ),
    ] {
        assert_eq!(read(posted).unwrap_err().to_string(), want);
    }
    for spec in [json!([]), json!({"audiences": "a"}), json!({"boundObjectRef": 1})] {
        let error = read(json!({ "spec": spec })).unwrap_err();
        assert!(matches!(error, TokenRequestError::Malformed(_)), "{error}");
    }
    assert!(read(json!({"spec": {"expirationSeconds": 600}})).is_ok());
}

#[test]
fn the_account_must_exist() {
    let objects = objects();
    let reading = TokenRequest::read(Tree::new(), "ns", "nobody", settings(&[]), &objects, now());
    assert!(is_send(&reading));
    let error = poll_once(reading).unwrap_err();
    assert_eq!(error.to_string(), "serviceaccounts \"nobody\" not found");
}

#[test]
fn a_long_life_is_cut() {
    let (issuer, _) = issuer();
    let issued = issue(json!({"spec": {"expirationSeconds": 86_401}}), &issuer).unwrap();
    let want = "requested expiration of 86401 seconds shortened to 86400 seconds";
    assert_eq!(issued.response_warnings, [want]);
    assert_eq!(issued.response_object["spec"]["expirationSeconds"], 86_400);
    assert_eq!(issued.response_object["status"]["expirationTimestamp"], "2026-11-17T10:00:00Z");
    let longest =
        poll_once(read(json!({"spec": {"expirationSeconds": 1i64 << 32}})).unwrap().issue_token(
            TokenRequestSettings { api_audiences: &[], lifetime_seconds_max: None },
            &issuer,
            &objects(),
        ));
    assert!(longest.is_ok());
}

fn bound(kind: &str, name: &str, uid: &str) -> Value {
    json!({"spec": {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name, "uid": uid}}})
}

#[test]
fn tokens_can_be_bound() {
    let (issuer, authenticator) = issuer();
    let keys = |posted: Value| -> Vec<String> {
        let issued = issue(posted, &issuer).unwrap();
        let token = issued.response_object["status"]["token"].as_str().unwrap();
        let known = poll_once(authenticator.authenticate_token(token, None, &objects(), now()));
        let user = known.unwrap().user;
        user.extra.keys().map(|key| key.rsplit('/').next().unwrap().to_owned()).collect()
    };
    let pod = ["credential-id", "node-name", "node-uid", "pod-name", "pod-uid"];
    assert_eq!(keys(bound("Pod", "pod", "pod-uid")), pod);
    assert_eq!(
        keys(bound("Pod", "lost-pod", "")),
        ["credential-id", "node-name", "pod-name", "pod-uid"]
    );
    assert_eq!(keys(bound("Node", "node", "")), ["credential-id", "node-name", "node-uid"]);
    assert_eq!(keys(bound("Secret", "secret", "")), ["credential-id"]);
}

#[test]
fn tokens_can_not_be_bound_to_everything() {
    let (issuer, _) = issuer();
    for (posted, want) in [
        (bound("Pod", "nope", ""), "pods \"nope\" not found"),
        (
            bound("Pod", "other", ""),
            "cannot bind token for serviceaccount \"sa\" to pod running with different \
             serviceaccount name.",
        ),
        (
            bound("Secret", "secret", "x"),
            "the UID in the bound object reference (x) does not match the UID in record. The object \
             might have been deleted and then recreated",
        ),
        (bound("ConfigMap", "c", ""), "cannot bind token to object of type /v1, Kind=ConfigMap"),
    ] {
        assert_eq!(issue(posted, &issuer).unwrap_err().to_string(), want);
    }
}

fn is_send<T: Send>(_: &T) -> bool {
    true
}
