//! The credentials of a user: tokens, passwords, impersonation, and plugins, which are not supported.

use https_client::{Credentials, Impersonation, Secret};

use crate::test_folder::{TestFolder, config, is_at};

fn user(rest: &str) -> String {
    config("server: 'https://h'", rest)
}

#[test]
fn bearer_tokens() {
    let test_folder = TestFolder::new();
    let connection = test_folder.connection(&user("token: hunter2"));
    assert_eq!(connection.client_target.credentials, Credentials::Token(Secret::new("hunter2")));

    let connection = test_folder.connection(&user("tokenFile: token"));
    match &connection.client_target.credentials {
        Credentials::TokenFile { path, fallback: None } => {
            assert!(is_at(path, &test_folder, "token"))
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(test_folder.names(&connection.source_files), ["config", "token"]);

    // If the user also has a token, the token file need not exist yet.
    let connection = test_folder.connection(&user("token: hunter2, tokenFile: later"));
    match &connection.client_target.credentials {
        Credentials::TokenFile { path, fallback } => {
            assert!(is_at(path, &test_folder, "later"));
            assert_eq!(fallback, &Some(Secret::new("hunter2")));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(test_folder.names(&connection.source_files), ["config", "later"]);

    let missing = "4:21 open later: no such file or directory";
    assert_eq!(test_folder.refusal(&user("tokenFile: later")), missing);
    test_folder.write("empty", " \n");
    let message = test_folder.refusal(&user("tokenFile: empty"));
    assert!(message.starts_with("4:21 read empty token from file "), "{message}");
}

#[test]
fn basic_authentication() {
    let test_folder = TestFolder::new();
    let basic = |username: &str, password: &str| Credentials::Basic {
        username: username.to_owned(),
        password: Secret::new(password),
    };
    let credentials = |rest: &str| test_folder.connection(&user(rest)).client_target.credentials;
    assert_eq!(credentials("username: u, password: p"), basic("u", "p"));
    assert_eq!(credentials("username: u"), basic("u", ""));
    let in_url = config("server: 'https://u%40:p@h'", "");
    assert_eq!(test_folder.connection(&in_url).client_target.credentials, basic("u@", "p"));
    let both = config("server: 'https://u:p@h'", "token: t");
    assert!(matches!(
        test_folder.connection(&both).client_target.credentials,
        Credentials::Token(_)
    ));

    assert_eq!(
        test_folder.refusal(&user("token: hunter2, password: hunter2")),
        "4:17 invalid configuration: more than one authentication method found for ; found [token \
         basicAuth], only one is allowed"
    );
    assert_eq!(
        test_folder.refusal(&user("tokenFile: token, username: u")),
        "4:38 username/password or bearer token may be set, but not both"
    );
}

#[test]
fn impersonation_settings() {
    let test_folder = TestFolder::new();
    let rest = "as: jane, as-uid: '7', as-groups: [a, b], as-user-extra: {k: [x]}";
    let want = Impersonation {
        user: "jane".to_owned(),
        uid: "7".to_owned(),
        groups: vec!["a".to_owned(), "b".to_owned()],
        extra: vec![("k".to_owned(), vec!["x".to_owned()])],
    };
    assert_eq!(test_folder.connection(&user(rest)).client_target.impersonation, want);
    for rest in ["as-uid: '7'", "as-groups: [a]", "as-user-extra: {k: [x]}"] {
        let message = test_folder.refusal(&user(rest));
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
    let test_folder = TestFolder::new();
    assert_eq!(
        test_folder.refusal(&user("exec: {command: /bin/true}, auth-provider: {name: oidc}")),
        "4:10 invalid configuration: [exec authentication plugins are not supported, found one for \
         , authentication providers are not supported, found one for ]"
    );
    // A null user has no credentials.
    test_folder.connection(&user("exec: null, auth-provider: ~"));
}

#[test]
fn debug_output_and_errors_show_no_secrets() {
    let test_folder = TestFolder::new();
    for rest in ["token: hunter2", "username: u, password: hunter2", "token: hunter2, tokenFile: x"]
    {
        let shown = format!("{:?}", test_folder.connection(&user(rest)));
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
        let error = test_folder.load(&config).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}
