use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use crate::service_account::{BoundObject, Claims, Objects, TokenIssuer};
use crate::testing::poll_once;
use crate::token_keys::SigningKey;

const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://issuer.example.com";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn reference(name: &str) -> ObjectReference {
    ObjectReference { name: name.to_owned(), uid: format!("{name}-uid") }
}

fn object(namespace: &str, name: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name, "uid": format!("{name}-uid")}})
}

struct World {
    pem: String,
    issuer: TokenIssuer,
    accounts: ServiceAccountTokenVerifier,
    objects: Objects,
}

fn world() -> World {
    let pem = SigningKey::generate_private_key_pem().unwrap();
    let keys = VerifyingKey::all_from_pem(&pem).unwrap();
    let issuers = vec!["https://other".to_owned(), ISSUER.to_owned()];
    let mut objects = Objects::default();
    objects.put(ReferencedKind::ServiceAccount, object("ns", "sa"));
    objects.put(ReferencedKind::Pod, object("ns", "pod"));
    objects.put(ReferencedKind::Secret, object("ns", "secret"));
    objects.put(ReferencedKind::Node, object("", "node"));
    World {
        issuer: TokenIssuer::new(ISSUER, SigningKey::from_pem(&pem).unwrap()),
        accounts: ServiceAccountTokenVerifier::new(ServiceAccountOptions {
            issuers,
            keys,
            jwks_uri: None,
        }),
        objects,
        pem,
    }
}

fn claims(bound_object: Option<BoundObject>) -> Claims {
    Claims {
        namespace: "ns".to_owned(),
        service_account: reference("sa"),
        audiences: vec!["api".to_owned()],
        issued_at: at(NOW),
        expires_at: at(NOW + 3600),
        id: "token-1".to_owned(),
        bound_object,
    }
}

impl World {
    fn check_at(&self, token: &str, now: i64) -> Result<Option<VerifiedTokenUser>, TokenError> {
        let own = ["api".to_owned(), "me".to_owned()];
        let audiences = AudienceCheck { default_audiences: &own, accepted_audiences: &own };
        let Some(claims) = self.accounts.verify_signature(token)? else { return Ok(None) };
        let accounts = &self.accounts;
        poll_once(accounts.authenticate_verified_token(
            token,
            &claims,
            audiences,
            &self.objects,
            at(now),
        ))
        .map(Some)
    }

    fn check(&self, claims: &Claims) -> Result<Arc<User>, TokenError> {
        let token = self.issuer.issue_token(claims).unwrap();
        self.check_at(&token, NOW).map(|verified| verified.unwrap().user)
    }

    /// A token with any claims.
    fn sign(&self, claims: &Value) -> String {
        let key = SigningKey::from_pem(&self.pem).unwrap();
        jwt::sign_token(&key, claims.as_object().unwrap()).unwrap()
    }

    fn check_claims(&self, claims: &Value) -> Result<Option<VerifiedTokenUser>, TokenError> {
        self.check_at(&self.sign(claims), NOW)
    }
}

fn extra(pairs: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()])).collect()
}

#[test]
fn a_token_stands_for_its_account_and_tells_what_it_is_bound_to() {
    let world = world();
    let id = (CREDENTIAL_ID_KEY, "JTI=token-1");
    let pod = [(POD_NAME_KEY, "pod"), (POD_UID_KEY, "pod-uid")];
    let node = [(NODE_NAME_KEY, "node"), (NODE_UID_KEY, "node-uid")];
    let elsewhere = ObjectReference { name: "gone".to_owned(), uid: String::new() };
    for (bound_object, want) in [
        (None, extra(&[id])),
        (Some(BoundObject::Pod(reference("pod"), None)), extra(&[pod[0], pod[1], id])),
        (
            Some(BoundObject::Pod(reference("pod"), Some(reference("node")))),
            extra(&[pod[0], pod[1], node[0], node[1], id]),
        ),
        (
            Some(BoundObject::Pod(reference("pod"), Some(elsewhere))),
            extra(&[pod[0], pod[1], (NODE_NAME_KEY, "gone"), id]),
        ),
        (Some(BoundObject::Node(reference("node"))), extra(&[node[0], node[1], id])),
        (Some(BoundObject::Secret(reference("secret"))), extra(&[id])),
    ] {
        let user = world.check(&claims(bound_object)).unwrap();
        assert_eq!(user.name, "system:serviceaccount:ns:sa");
        assert_eq!(user.uid, "sa-uid");
        let groups =
            ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"];
        assert_eq!(user.groups, groups);
        assert_eq!(user.extra, want);
    }
}

#[test]
fn what_is_bound_must_exist_and_be_the_same() {
    let absent = |name: &str| ObjectReference { uid: "x".to_owned(), ..reference(name) };
    let invalidated = "service account token has been invalidated";
    for (bound_object, want) in [
        (BoundObject::Pod(reference("p"), None), invalidated),
        (BoundObject::Secret(reference("s")), invalidated),
        (BoundObject::Node(reference("n")), invalidated),
        (BoundObject::Pod(absent("pod"), None), "pod UID (pod-uid) does not match claim (x)"),
        (BoundObject::Secret(absent("secret")), "secret UID (secret-uid) does not match claim (x)"),
        (BoundObject::Node(absent("node")), "node UID (node-uid) does not match claim (x)"),
    ] {
        assert_eq!(world().check(&claims(Some(bound_object))).unwrap_err().to_string(), want);
    }
    let mut other = claims(None);
    other.service_account = absent("sa");
    let error = world().check(&other).unwrap_err();
    assert_eq!(error.to_string(), "service account UID (sa-uid) does not match claim (x)");
    other.service_account = reference("nobody");
    let error = world().check(&other).unwrap_err();
    assert_eq!(error.to_string(), "serviceaccounts \"nobody\" not found");
}

#[test]
fn deletion_counts_after_the_leeway() {
    for (deleted, want) in [(NOW - 60, true), (NOW - 61, false), (NOW + 30, true)] {
        for (kind, bound_object) in [
            (ReferencedKind::ServiceAccount, None),
            (ReferencedKind::Pod, Some(BoundObject::Pod(reference("pod"), None))),
            (ReferencedKind::Secret, Some(BoundObject::Secret(reference("secret")))),
        ] {
            let mut world = world();
            let name = match kind {
                ReferencedKind::ServiceAccount => "sa",
                ReferencedKind::Pod => "pod",
                ReferencedKind::Secret | ReferencedKind::Node => "secret",
            };
            let mut dying = object("ns", name);
            dying["metadata"]["deletionTimestamp"] = api_object::format_rfc3339(at(deleted)).into();
            world.objects.put(kind, dying);
            assert_eq!(world.check(&claims(bound_object)).is_ok(), want, "{deleted} {kind:?}");
        }
    }
}

#[test]
fn time_has_a_leeway_of_a_minute() {
    let world = world();
    let token = world.issuer.issue_token(&claims(None)).unwrap();
    for (now, want) in [
        (NOW - 61, Err(TokenError::NotValidYet)),
        (NOW - 60, Ok(())),
        (NOW + 3660, Ok(())),
        (NOW + 3661, Err(TokenError::Expired)),
    ] {
        assert_eq!(world.check_at(&token, now).map(|_| ()), want, "{now}");
    }
    let future = json!({"iss": ISSUER, "aud": "api", "iat": NOW + 61});
    assert_eq!(world.check_claims(&future), Err(TokenError::IssuedInTheFuture));
    for odd in [json!("soon"), json!(true), json!([1])] {
        let claims = json!({"iss": ISSUER, "aud": "api", "exp": odd});
        assert_eq!(world.check_claims(&claims), Err(TokenError::Claim("exp")));
    }
    // Beyond what a timestamp can hold.
    let never = json!({"iss": ISSUER, "aud": "api", "nbf": 1e300});
    assert_eq!(world.check_claims(&never), Err(TokenError::NotValidYet));
}

#[test]
fn tokens_are_for_audiences() {
    let world = world();
    let body = json!({"namespace": "ns", "serviceaccount": {"name": "sa", "uid": "sa-uid"}});
    let accepted = |aud: Value| {
        let claims = json!({"iss": ISSUER, "aud": aud, "kubernetes.io": body});
        world.check_claims(&claims).map(|verified| verified.unwrap().audiences)
    };
    assert_eq!(accepted(json!("me")).unwrap(), ["me"]);
    assert_eq!(accepted(json!(["x", "me", "api"])).unwrap(), ["me", "api"]);
    assert_eq!(accepted(Value::Null).unwrap(), ["api", "me"]);
    assert_eq!(
        accepted(json!(["x"])).unwrap_err().to_string(),
        "token audiences [\"x\"] is invalid for the target audiences [\"api\" \"me\"]"
    );
    for odd in [json!(1), json!([1]), json!({})] {
        assert_eq!(accepted(odd), Err(TokenError::Claim("aud")));
    }
}

#[test]
fn only_tokens_of_known_issuers_are_looked_at() {
    let world = world();
    assert_eq!(world.check_at("opaque", NOW), Ok(None));
    assert_eq!(world.check_claims(&json!({"iss": "https://elsewhere"})), Ok(None));
    assert_eq!(world.check_claims(&json!({})), Ok(None));
    let stranger = self::world();
    let forged = stranger.issuer.issue_token(&claims(None)).unwrap();
    assert_eq!(world.check_at(&forged, NOW), Err(SignatureError::NoKey.into()));
    assert_eq!(
        world.check_claims(&json!({"iss": ISSUER, "aud": "api"})),
        Err(TokenError::Claim("kubernetes.io"))
    );
    let webhook = json!({"iss": ISSUER, "aud": "api", "kubernetes.io": {
        "namespace": "ns", "serviceaccount": {"name": "sa", "uid": "sa-uid"},
        "validatingwebhookconfiguration": {"name": "w"},
    }});
    assert_eq!(world.check_claims(&webhook), Err(TokenError::WebhookBound));
}

#[test]
fn when_nobody_can_look_the_token_is_refused() {
    let mut world = world();
    world.objects.is_broken = true;
    assert!(matches!(world.check(&claims(None)), Err(TokenError::Lookup(_))));
}

fn legacy_claims() -> Value {
    json!({
        "iss": LEGACY_ISSUER, "sub": "system:serviceaccount:ns:sa",
        "kubernetes.io/serviceaccount/namespace": "ns",
        "kubernetes.io/serviceaccount/secret.name": "sa-token",
        "kubernetes.io/serviceaccount/service-account.name": "sa",
        "kubernetes.io/serviceaccount/service-account.uid": "sa-uid",
    })
}

fn legacy_secret(token: &str) -> Value {
    let mut secret = object("ns", "sa-token");
    secret["data"] = json!({"token": STANDARD.encode(token)});
    secret
}

#[test]
fn a_legacy_token_counts_as_long_as_its_secret_holds_it() {
    let mut world = world();
    let token = world.sign(&legacy_claims());
    assert_eq!(world.check_at(&token, NOW), Err(TokenError::Invalidated));
    world.objects.put(ReferencedKind::Secret, legacy_secret(&token));
    let VerifiedTokenUser { user, audiences } = world.check_at(&token, NOW).unwrap().unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:ns:sa", "sa-uid"));
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:ns"]);
    assert!(user.extra.is_empty());
    assert_eq!(audiences, ["api", "me"]);
    world.objects.put(ReferencedKind::Secret, legacy_secret("another"));
    assert_eq!(world.check_at(&token, NOW), Err(TokenError::NotTheCopy));
    let mut marked = legacy_secret(&token);
    marked["metadata"]["labels"] =
        json!({"kubernetes.io/legacy-token-invalid-since": "2026-01-01"});
    world.objects.put(ReferencedKind::Secret, marked);
    assert!(matches!(world.check_at(&token, NOW), Err(TokenError::MarkedInvalid { .. })));
    let mut dying = legacy_secret(&token);
    dying["metadata"]["deletionTimestamp"] = api_object::format_rfc3339(at(NOW)).into();
    world.objects.put(ReferencedKind::Secret, dying);
    assert_eq!(world.check_at(&token, NOW), Err(TokenError::Invalidated));
}

#[test]
fn a_legacy_token_must_agree_with_itself() {
    let mut world = world();
    for (member, value, want) in [
        ("sub", json!(null), TokenError::ClaimMissing("sub")),
        ("sub", json!("system:serviceaccount:ns:other"), TokenError::Subject),
        ("sub", json!("sa"), TokenError::Subject),
        (
            "kubernetes.io/serviceaccount/namespace",
            json!(""),
            TokenError::ClaimMissing("namespace"),
        ),
        (
            "kubernetes.io/serviceaccount/service-account.uid",
            json!("x"),
            TokenError::Uid {
                noun: "service account",
                actual: "sa-uid".to_owned(),
                claimed: "x".to_owned(),
            },
        ),
    ] {
        let mut claims = legacy_claims();
        claims[member] = value;
        let token = world.sign(&claims);
        world.objects.put(ReferencedKind::Secret, legacy_secret(&token));
        assert_eq!(world.check_at(&token, NOW), Err(want));
    }
}
