use super::*;
use crate::authenticator_options::Options;
use crate::service_account::{
    Claims, ObjectReference, Objects, ReferencedKind, ServiceAccountOptions, TokenIssuer,
};
use crate::testing::poll_once;
use crate::token_file::TokenFile;
use crate::token_keys::{SigningKey, VerifyingKey};

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn review(
    authenticator: &Authenticator,
    objects: &Objects,
    spec: Value,
) -> Result<Value, TokenReviewError> {
    let review = json!({"kind": "TokenReview", "spec": spec, "status": {"authenticated": true}});
    let review = review.as_object().cloned().unwrap();
    let answer = poll_once(authenticator.review_token(review, objects, now()))?;
    Ok(answer["status"].clone())
}

fn with_file(api_audiences: &[&str]) -> Authenticator {
    let options = Options {
        token_file: Some(TokenFile::parse("f", "t1,u1,id1,g\n").unwrap()),
        api_audiences: api_audiences.iter().map(|&one| one.to_owned()).collect(),
        ..Options::default()
    };
    Authenticator::new(options).unwrap()
}

#[test]
fn a_known_token_and_an_unknown_one() {
    let objects = Objects::default();
    let known = review(&with_file(&[]), &objects, json!({"token": "t1"})).unwrap();
    let user = json!({"username": "u1", "uid": "id1", "groups": ["g", "system:authenticated"]});
    assert_eq!(known, json!({"authenticated": true, "user": user}));
    for token in ["t2", " t1", "t1x"] {
        let unknown = review(&with_file(&[]), &objects, json!({"token": token})).unwrap();
        assert_eq!(unknown, json!({"user": {}, "error": "invalid bearer token"}), "{token:?}");
    }
}

#[test]
fn what_asks_nothing_is_refused() {
    for (spec, want) in [
        (json!({}), "token is required for TokenReview in authentication"),
        (json!(null), "token is required for TokenReview in authentication"),
        (
            json!({"token": 1}),
            "TokenReview in version \"v1\" cannot be handled as a TokenReview: spec.token must be \
             a string",
        ),
        (
            json!({"token": "t", "audiences": [1]}),
            "TokenReview in version \"v1\" cannot be handled as a TokenReview: spec.audiences must \
             be strings",
        ),
        (
            json!([]),
            "TokenReview in version \"v1\" cannot be handled as a TokenReview: spec must be an \
             object",
        ),
    ] {
        let error = review(&with_file(&[]), &Objects::default(), spec).unwrap_err();
        assert_eq!(error.to_string(), want);
    }
}

#[test]
fn a_token_without_audience_is_for_this_server_only() {
    let authenticator = with_file(&["api", "me"]);
    let objects = Objects::default();
    let ask = |audiences: Value| {
        review(&authenticator, &objects, json!({"token": "t1", "audiences": audiences})).unwrap()
    };
    assert_eq!(ask(json!([]))["audiences"], json!(["api", "me"]));
    assert_eq!(ask(json!(["me", "x"]))["audiences"], json!(["me"]));
    assert_eq!(ask(json!(["x"])), json!({"user": {}, "error": "invalid bearer token"}));
}

#[test]
fn a_token_of_a_service_account_is_good_for_its_audiences() {
    let pem = SigningKey::generate_private_key_pem().unwrap();
    let options = Options {
        service_account_options: Some(ServiceAccountOptions {
            issuers: vec!["iss".to_owned()],
            keys: VerifyingKey::all_from_pem(&pem).unwrap(),
            jwks_uri: None,
        }),
        ..Options::default()
    };
    let authenticator = Authenticator::new(options).unwrap();
    let mut objects = Objects::default();
    let account = json!({"metadata": {"namespace": "ns", "name": "sa", "uid": "u"}});
    objects.put(ReferencedKind::ServiceAccount, account);
    let issuer = TokenIssuer::new("iss", SigningKey::from_pem(&pem).unwrap());
    let claims = Claims {
        namespace: "ns".to_owned(),
        service_account: ObjectReference { name: "sa".to_owned(), uid: "u".to_owned() },
        audiences: vec!["vault".to_owned()],
        issued_at: now(),
        expires_at: now(),
        id: "1".to_owned(),
        bound_object: None,
    };
    let token = issuer.issue_token(&claims).unwrap();
    let spec = json!({"token": token, "audiences": ["vault", "x"]});
    let good = review(&authenticator, &objects, spec).unwrap();
    assert_eq!(good["audiences"], json!(["vault"]));
    assert_eq!(good["user"]["username"], "system:serviceaccount:ns:sa");
    let id = json!({"authentication.kubernetes.io/credential-id": ["JTI=1"]});
    assert_eq!(good["user"]["extra"], id);
    // It is not a token for this server.
    let wrong = review(&authenticator, &objects, json!({"token": token})).unwrap();
    let want = "token audiences [\"vault\"] is invalid for the target audiences [\"iss\"]";
    assert_eq!(wrong["error"], want);
}
