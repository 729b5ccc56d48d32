//! Who we are: tokens, passwords, impersonation, and what is not supported.

use https_client::{Credentials, Impersonation, Secret};

use crate::workplace::{Workplace, config, is_at};

fn user(rest: &str) -> String {
    config("server: 'https://h'", rest)
}

#[test]
fn tokens() {
    let place = Workplace::new();
    let connection = place.connection(&user("token: hunter2"));
    assert_eq!(connection.target.credentials, Credentials::Token(Secret::new("hunter2")));

    let connection = place.connection(&user("tokenFile: token"));
    match &connection.target.credentials {
        Credentials::TokenFile { path, fallback: None } => assert!(is_at(path, &place, "token")),
        other => panic!("{other:?}"),
    }
    assert_eq!(place.names(&connection.files), ["config", "token"]);

    // With a token the file may come later.
    let connection = place.connection(&user("token: hunter2, tokenFile: later"));
    match &connection.target.credentials {
        Credentials::TokenFile { path, fallback } => {
            assert!(is_at(path, &place, "later"));
            assert_eq!(fallback, &Some(Secret::new("hunter2")));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(place.names(&connection.files), ["config", "later"]);

    let missing = "4:21 open later: no such file or directory";
    assert_eq!(place.refusal(&user("tokenFile: later")), missing);
    place.write("empty", " \n");
    let message = place.refusal(&user("tokenFile: empty"));
    assert!(message.starts_with("4:21 read empty token from file "), "{message}");
}

#[test]
fn passwords() {
    let place = Workplace::new();
    let basic = |username: &str, password: &str| Credentials::Basic {
        username: username.to_owned(),
        password: Secret::new(password),
    };
    let credentials = |rest: &str| place.connection(&user(rest)).target.credentials;
    assert_eq!(credentials("username: u, password: p"), basic("u", "p"));
    assert_eq!(credentials("username: u"), basic("u", ""));
    let in_url = config("server: 'https://u%40:p@h'", "");
    assert_eq!(place.connection(&in_url).target.credentials, basic("u@", "p"));
    let both = config("server: 'https://u:p@h'", "token: t");
    assert!(matches!(place.connection(&both).target.credentials, Credentials::Token(_)));

    assert_eq!(
        place.refusal(&user("token: hunter2, password: hunter2")),
        "4:17 invalid configuration: more than one authentication method found for ; found [token \
         basicAuth], only one is allowed"
    );
    assert_eq!(
        place.refusal(&user("tokenFile: token, username: u")),
        "4:38 username/password or bearer token may be set, but not both"
    );
}

#[test]
fn impersonation() {
    let place = Workplace::new();
    let rest = "as: jane, as-uid: '7', as-groups: [a, b], as-user-extra: {k: [x]}";
    let want = Impersonation {
        user: "jane".to_owned(),
        uid: "7".to_owned(),
        groups: vec!["a".to_owned(), "b".to_owned()],
        extra: vec![("k".to_owned(), vec!["x".to_owned()])],
    };
    assert_eq!(place.connection(&user(rest)).target.impersonation, want);
    for rest in ["as-uid: '7'", "as-groups: [a]", "as-user-extra: {k: [x]}"] {
        let message = place.refusal(&user(rest));
        assert!(
            message.ends_with(
                "requesting uid, groups or user-extra for  without impersonating a user"
            ),
            "{message}"
        );
    }
}

#[test]
fn plugins_are_not_supported() {
    let place = Workplace::new();
    assert_eq!(
        place.refusal(&user("exec: {command: /bin/true}, auth-provider: {name: oidc}")),
        "4:10 invalid configuration: [exec authentication plugins are not supported, found one for \
         , authentication providers are not supported, found one for ]"
    );
    // Null is nothing.
    place.connection(&user("exec: null, auth-provider: ~"));
}

#[test]
fn secrets_are_never_shown() {
    let place = Workplace::new();
    for rest in ["token: hunter2", "username: u, password: hunter2", "token: hunter2, tokenFile: x"]
    {
        let shown = format!("{:?}", place.connection(&user(rest)));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    for config in [
        user("token: hunter2, username: u"),
        user("token: [hunter2]"),
        user("password: hunter2, as-uid: x"),
        config("server: 'https://u:hunter2@h:x'", ""),
        config("server: 'https://h', proxy-url: 'x://u:hunter2@p'", ""),
        config("server: 'https://h', proxy-url: 'http://u:hunter2@'", ""),
    ] {
        let error = place.load(&config).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}
