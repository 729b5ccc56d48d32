use http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderName, HeaderValue};
use jiff::SignedDuration;
use rustls_pki_types::pem::PemObject;
use serde_json::json;

use super::*;
use crate::authenticator_options::{FrontProxyOptions, LoopbackCredential};
use crate::service_account::{
    Claims, ObjectReference, Objects, ReferencedKind, ServiceAccountOptions, TokenIssuer,
};
use crate::testing::poll_once;
use crate::token_keys::SigningKey;

const FILE: &str = "t1,u1,id1\nt3,u3,id3,\"g1,g2\"\n";

fn now() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

fn authority() -> CertificateDer<'static> {
    let pem = include_bytes!("../../testdata/ca.pem");
    CertificateDer::from_pem_slice(pem).unwrap()
}

fn leaf() -> CertificateDer<'static> {
    let pem = include_bytes!("../../testdata/client.pem");
    CertificateDer::from_pem_slice(pem).unwrap()
}

fn options() -> Options {
    Options {
        token_file: Some(TokenFile::parse("f", FILE).unwrap()),
        client_authorities: vec![authority()],
        anonymous_access: AnonymousAccess::On,
        ..Options::default()
    }
}

fn proxied(allowed: &[&str]) -> Options {
    let front_proxy = FrontProxyOptions {
        proxy_authorities: vec![authority()],
        allowed_proxy_names: allowed.iter().map(|&name| name.to_owned()).collect(),
        headers: FrontProxyHeaders::default(),
    };
    Options { front_proxy: Some(front_proxy), ..options() }
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
        .collect()
}

struct Ask<'a> {
    options: Options,
    headers: &'a [(&'a str, &'a str)],
    certificates: &'a [CertificateDer<'a>],
    path: &'a str,
    issue_time: Timestamp,
}

fn asking(options: Options) -> Ask<'static> {
    Ask { options, headers: &[], certificates: &[], path: "/api", issue_time: now() }
}

impl Ask<'_> {
    fn answer(self) -> Result<AuthenticatedUser, Unauthenticated> {
        let authenticator = Authenticator::new(self.options).unwrap();
        let identity = authenticator.identify_certificates(self.certificates, now());
        let headers = headers(self.headers);
        let request = AuthenticationRequest { headers: &headers, path: self.path };
        poll_once(authenticator.authenticate(
            request,
            &identity,
            &Objects::default(),
            self.issue_time,
        ))
    }

    fn user(self) -> Arc<User> {
        self.answer().unwrap().user
    }

    fn error(self) -> String {
        self.answer().unwrap_err().to_string()
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[test]
fn tokens_of_the_file() {
    let user = Ask { headers: &[("Authorization", "Bearer t1")], ..asking(options()) }.user();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("u1", "id1"));
    assert_eq!(user.groups, ["system:authenticated"]);
    let user = Ask { headers: &[("Authorization", "Bearer t3")], ..asking(options()) }.user();
    assert_eq!(user.groups, ["g1", "g2", "system:authenticated"]);
}

/// L21: a wrong token is a failure.
#[test]
fn a_wrong_token_is_never_anonymous_and_none_is() {
    let wrong = Ask { headers: &[("Authorization", "Bearer t8")], ..asking(options()) };
    assert_eq!(wrong.error(), "invalid bearer token");
    for value in ["Bearer", "bear token", "Bearer: token", "Basic 123", "Bearer "] {
        let lines = [("Authorization", value)];
        let user = Ask { headers: &lines, ..asking(options()) }.user();
        assert_eq!((user.name.as_str(), user.groups.len()), ("system:anonymous", 1), "{value}");
        assert_eq!(user.groups, ["system:unauthenticated"]);
        let refused = Ask {
            headers: &lines,
            ..asking(Options { anonymous_access: AnonymousAccess::Off, ..options() })
        };
        assert_eq!(refused.answer(), Err(Unauthenticated::default()));
    }
    let lines = [("Authorization", "Bearer  t1")];
    let answer = Ask { headers: &lines, ..asking(options()) }.answer().unwrap();
    assert_eq!((answer.response_warnings.len(), answer.is_anonymous()), (1, true));
}

#[test]
fn anonymous_requests_may_be_for_some_paths_only() {
    let paths = vec!["/healthz".to_owned(), "/livez".to_owned()];
    let options =
        || Options { anonymous_access: AnonymousAccess::OnlyFor(paths.clone()), ..options() };
    assert!(Ask { path: "/healthz", ..asking(options()) }.answer().unwrap().is_anonymous());
    for path in ["/api", "/healthz/", "/healthz/ping", "/HEALTHZ"] {
        assert!(Ask { path, ..asking(options()) }.answer().is_err(), "{path}");
    }
}

#[test]
fn client_certificates() {
    let answer = Ask { certificates: &[leaf()], ..asking(options()) }.answer().unwrap();
    assert_eq!(answer.method, Method::ClientCertificate);
    assert_eq!((answer.user.name.as_str(), answer.user.uid.as_str()), ("client_cn", "client_id"));
    assert_eq!(answer.user.groups, ["My Org", "second", "third", "system:authenticated"]);
    assert!(asking(options()).answer().unwrap().is_anonymous());
    let without_authorities = Options { client_authorities: vec![], ..options() };
    let answer = Ask { certificates: &[leaf()], ..asking(without_authorities) }.answer().unwrap();
    assert!(answer.is_anonymous());
}

#[test]
fn a_bad_certificate_is_refused_unless_a_token_is_good() {
    let bad = [CertificateDer::from(vec![1])];
    let refused = Ask { certificates: &bad, ..asking(options()) };
    assert_eq!(refused.error(), "the certificate cannot be parsed");
    let lines = [("Authorization", "Bearer t1")];
    let saved = Ask { certificates: &bad, headers: &lines, ..asking(options()) };
    assert_eq!(saved.user().name, "u1");
    let lines = [("Authorization", "Bearer t8")];
    let both = Ask { certificates: &bad, headers: &lines, ..asking(options()) };
    assert_eq!(both.error(), "[the certificate cannot be parsed, invalid bearer token]");
}

#[test]
fn a_certificate_can_expire_while_the_connection_lasts() {
    let later = "2140-01-01T00:00:00Z".parse().unwrap();
    let expired = Ask { certificates: &[leaf()], issue_time: later, ..asking(options()) }.error();
    assert!(expired.starts_with("verifying certificate failed: it is valid only until 2126-"));
}

/// L22: such headers count only if a verified proxy sends them.
#[test]
fn only_a_verified_proxy_names_users() {
    let lines = [("X-Remote-User", "Bob"), ("X-Remote-Group", "g")];
    let presented = [leaf()];
    let ask = |allowed: &[&str], certificates| Ask {
        headers: &lines,
        certificates,
        ..asking(proxied(allowed))
    };
    let answer = ask(&["other", "client_cn"], &presented).answer().unwrap();
    assert_eq!((answer.user.name.as_str(), answer.method), ("Bob", Method::FrontProxy));
    assert_eq!(answer.user.groups, ["g", "system:authenticated"]);
    assert_eq!(ask(&[], &presented).user().name, "Bob");
    // Without a certificate of a proxy the headers are ignored.
    assert_eq!(ask(&[], &[]).user().name, "system:anonymous");
    let alone = Options { client_authorities: vec![], ..proxied(&["other"]) };
    let refused = Ask { headers: &lines, certificates: &presented, ..asking(alone) };
    assert_eq!(refused.error(), "x509: subject with cn=client_cn is not in the allowed list");
    // A proxy that is not allowed to name users is still a client.
    assert_eq!(ask(&["other"], &presented).user().name, "client_cn");
    let silent = Ask { certificates: &presented, ..asking(proxied(&[])) };
    assert_eq!(silent.user().name, "client_cn");
}

#[test]
fn the_loopback_token_comes_first() {
    let credential = LoopbackCredential::generate_loopback_credential().unwrap();
    let value = bearer(credential.loopback_token());
    let options = Options { loopback_credential: Some(credential), ..proxied(&[]) };
    let lines = [("Authorization", value.as_str()), ("X-Remote-User", "Bob")];
    let answer = Ask { headers: &lines, certificates: &[leaf()], ..asking(options) };
    let answer = answer.answer().unwrap();
    assert_eq!((answer.user.name.as_str(), answer.method), ("system:apiserver", Method::Loopback));
    assert_eq!(answer.user.groups, ["system:authenticated", "system:masters"]);
    assert!(!answer.user.uid.is_empty());
}

#[test]
fn a_websocket_brings_its_token_among_the_protocols() {
    let offer = "base64url.bearer.authorization.k8s.io.dDE, v5.channel.k8s.io";
    let lines =
        [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Protocol", offer)];
    assert_eq!(Ask { headers: &lines, ..asking(options()) }.user().name, "u1");
    let alone = "base64url.bearer.authorization.k8s.io.dDE";
    let lines = [lines[0], lines[1], ("Sec-WebSocket-Protocol", alone)];
    let refused = Ask { headers: &lines, ..asking(options()) };
    assert_eq!(refused.error(), "missing additional subprotocol");
}

/// L22, L24: identity headers are removed, whether they were believed or not.
#[test]
fn credentials_are_stripped_from_headers() {
    let mut map = headers(&[
        ("Authorization", "Bearer t1"),
        ("X-Remote-User", "Bob"),
        ("X-Remote-Extra-K", "v"),
        ("X-Custom-User", "Bob"),
        ("Accept", "*/*"),
    ]);
    map.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    map.insert(UPGRADE, HeaderValue::from_static("websocket"));
    let offer = HeaderValue::from_static("base64url.bearer.authorization.k8s.io.dDE, a");
    map.insert(SEC_WEBSOCKET_PROTOCOL, offer);
    let mut options = proxied(&[]);
    if let Some(proxy) = &mut options.front_proxy {
        let names = ["X-Custom-User".to_owned()];
        proxy.headers = FrontProxyHeaders::new(&names, &[], &[], &[]).unwrap();
    }
    Authenticator::new(options).unwrap().strip_credentials(&mut map);
    assert!(map.get(AUTHORIZATION).is_none());
    assert_eq!(map[SEC_WEBSOCKET_PROTOCOL], "a");
    assert_eq!(map.keys().filter(|name| name.as_str().starts_with("x-")).count(), 0);
    assert_eq!(map["accept"], "*/*");
}

#[test]
fn no_credential_is_shown_when_it_is_refused() {
    let lines = [("Authorization", "Bearer swordfish")];
    let refused = Ask { headers: &lines, ..asking(options()) }.answer().unwrap_err();
    assert!(!format!("{refused:?} {refused}").contains("swordfish"));
    let authenticator = Authenticator::new(options()).unwrap();
    assert!(!format!("{authenticator:?}").contains("t3"));
}

#[test]
fn authorities_are_checked_at_start() {
    let broken = vec![authority(), CertificateDer::from(vec![1])];
    let options = Options { client_authorities: broken.clone(), ..Options::default() };
    let error = Authenticator::new(options).unwrap_err();
    assert!(
        matches!(error, AuthenticatorOptionsError::ClientAuthority(error) if error.authority_index == 1)
    );
    for (authorities, is_absent) in [(broken, false), (vec![], true)] {
        let front_proxy = FrontProxyOptions {
            proxy_authorities: authorities,
            allowed_proxy_names: vec![],
            headers: FrontProxyHeaders::default(),
        };
        let options = Options { front_proxy: Some(front_proxy), ..Options::default() };
        let error = Authenticator::new(options).unwrap_err();
        assert_eq!(error == AuthenticatorOptionsError::NoFrontProxyAuthority, is_absent);
    }
}

/// The server polls requests on several threads, so the futures must be `Send`.
#[test]
fn futures_of_authentication_are_send() {
    fn is_send<T: Send>(_: &T) -> bool {
        true
    }
    let authenticator = Authenticator::new(options()).unwrap();
    let (headers, objects) = (HeaderMap::new(), Objects::default());
    let identity = CertificateIdentity::default();
    let request = AuthenticationRequest { headers: &headers, path: "/" };
    assert!(is_send(&authenticator.authenticate(request, &identity, &objects, now())));
    assert!(is_send(&authenticator.review_token(api_object::Tree::new(), &objects, now())));
}

/// A connection remembers only that the signature of its last token is valid. Times and objects are checked for each
/// request, and the token of another connection is verified there.
#[test]
fn a_remembered_token_is_still_checked() {
    let pem = SigningKey::generate_private_key_pem().unwrap();
    let key = SigningKey::from_pem(&pem).unwrap();
    let keys = vec![key.verifying_key().clone()];
    let issuer = TokenIssuer::new("me", key);
    let accounts = ServiceAccountOptions { issuers: vec!["me".to_owned()], keys, jwks_uri: None };
    let authenticator =
        Authenticator::new(Options { service_account_options: Some(accounts), ..options() })
            .unwrap();
    let claims = Claims {
        namespace: "ns".to_owned(),
        service_account: ObjectReference { name: "sa".to_owned(), uid: "uid-sa".to_owned() },
        audiences: vec!["me".to_owned()],
        issued_at: now(),
        expires_at: now() + SignedDuration::from_secs(600),
        id: "token-1".to_owned(),
        bound_object: None,
    };
    let token = issuer.issue_token(&claims).unwrap();
    let forged = format!("{}AAAA", token.strip_suffix(&token[token.len() - 4..]).unwrap());
    let account = json!({"metadata": {"namespace": "ns", "name": "sa", "uid": "uid-sa"}});
    let mut objects = Objects::default();
    objects.put(ReferencedKind::ServiceAccount, account);
    let connection = authenticator.identify_certificates(&[], now());
    let other_connection = authenticator.identify_certificates(&[], now());
    let user_of =
        |token: &str, connection: &CertificateIdentity, objects: &Objects, at: Timestamp| {
            let headers = headers(&[("authorization", &format!("Bearer {token}"))]);
            let request = AuthenticationRequest { headers: &headers, path: "/api" };
            let found = poll_once(authenticator.authenticate(request, connection, objects, at));
            found.map(|found| found.user.name.clone()).ok()
        };
    let name = Some("system:serviceaccount:ns:sa".to_owned());
    for _ in 0..2 {
        assert_eq!(user_of(&token, &connection, &objects, now()), name);
        assert_eq!(user_of(&forged, &connection, &objects, now()), None);
    }
    assert!(connection.last_token_cache.find_cached_token(&token).is_some());
    assert!(other_connection.last_token_cache.find_cached_token(&token).is_none());
    assert_eq!(user_of(&token, &other_connection, &objects, now()), name);
    let late = now() + SignedDuration::from_secs(661);
    assert_eq!(user_of(&token, &connection, &objects, late), None);
    assert_eq!(user_of(&token, &connection, &Objects::default(), now()), None);
}
