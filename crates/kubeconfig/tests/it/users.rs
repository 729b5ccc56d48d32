//! Kubeconfigs whose users are named after services.

use std::path::Path;

use document::Source;
use https_client::{Credentials, PemLocation, Secret};
use kubeconfig::{
    LoadError, UserCredentials, UsersByServerName, load_users_by_server_name,
    parse_users_by_server_name, read_file,
};
use proptest::prelude::*;

use crate::test_folder::{TestFolder, base64, is_at};

fn load(test_folder: &TestFolder, content: &str) -> Result<UsersByServerName, LoadError> {
    load_users_by_server_name(&test_folder.write("config", content), &read_file)
}

/// The error message of a file that is refused, and the positions of all faults.
fn refusal(test_folder: &TestFolder, content: &str) -> (String, Vec<String>) {
    let error = load(test_folder, content).unwrap_err();
    let folder = format!("{}/", test_folder.path("").display()).replace("//", "/");
    let places = error.diagnostics().iter();
    let places = places.map(|found| format!("{}:{}", found.position.line, found.position.column));
    (error.to_string().replace(&folder, ""), places.collect())
}

fn only(credentials: Credentials) -> UserCredentials {
    UserCredentials { credentials, client_certificate: None }
}

#[test]
fn users_are_found_by_name() {
    let test_folder = TestFolder::new();
    let (certificate, key) = (&test_folder.client.certificate_pem, &test_folder.client.key_pem);
    let data = base64(certificate.as_bytes());
    let key_data = base64(key.as_bytes());
    let users = load(
        &test_folder,
        &format!(
            "apiVersion: v1
kind: Config
users:
- name: h.example.com:8443
  user: {{token: hunter2}}
- name: '*.example.com'
  user: {{tokenFile: token}}
- name: files
  user: {{client-certificate: client.pem, client-key: client.key}}
- name: data
  user: {{client-certificate-data: {data}, client-key-data: {key_data}, token: both}}
- name: '*'
  user: {{username: u, password: p}}
- name: nobody
  user: {{}}
"
        ),
    )
    .unwrap();
    let by_name = |name: &str| users.users_by_server_name.get(name).unwrap();
    assert_eq!(users.users_by_server_name.len(), 6);
    let token = |text: &str| Credentials::Token(Secret::new(text));
    assert_eq!(*by_name("h.example.com:8443"), only(token("hunter2")));
    match &by_name("*.example.com").credentials {
        Credentials::TokenFile { path, fallback: None } => {
            assert!(is_at(path, &test_folder, "token"))
        }
        other => panic!("{other:?}"),
    }
    let identity = by_name("files").client_certificate.as_ref().unwrap();
    assert_eq!(identity.certificate_location, PemLocation::File(test_folder.path("client.pem")));
    assert_eq!(identity.key, PemLocation::File(test_folder.path("client.key")));
    let both = by_name("data");
    assert_eq!(both.credentials, token("both"));
    let identity = both.client_certificate.as_ref().unwrap();
    assert_eq!(
        identity.certificate_location,
        PemLocation::Inline(Secret::new(certificate.as_str()))
    );
    identity.check_certificate_usable().unwrap();
    let basic = Credentials::Basic { username: "u".to_owned(), password: Secret::new("p") };
    assert_eq!(*by_name("*"), only(basic));
    assert_eq!(*by_name("nobody"), only(Credentials::None));
    assert_eq!(users.current_user, None);
    assert_eq!(
        test_folder.names(&users.source_files),
        ["config", "token", "client.pem", "client.key"]
    );
}

/// A file may contain clusters. They are ignored, even if they are invalid.
#[test]
fn the_current_context_selects_a_user() {
    let test_folder = TestFolder::new();
    let file = |current: &str, user: &str| {
        format!(
            "current-context: {current}
contexts:
- name: c
  context: {{cluster: nowhere, user: {user}}}
clusters:
- name: x
  cluster: {{server: '::'}}
users:
- name: a
  user: {{token: hunter2}}
"
        )
    };
    let current = |text: &str| load(&test_folder, text).unwrap().current_user;
    assert_eq!(current(&file("c", "a")), Some(only(Credentials::Token(Secret::new("hunter2")))));
    assert_eq!(current(&file("''", "a")), None);
    assert_eq!(current(&file("c", "''")), None);
    assert_eq!(load(&test_folder, "").unwrap().users_by_server_name.len(), 0);
    assert_eq!(
        refusal(&test_folder, &file("d", "a")),
        (
            "invalid configuration: context was not found for specified context: d".to_owned(),
            vec!["1:18".to_owned()]
        )
    );
    assert_eq!(
        refusal(&test_folder, &file("c", "b")),
        (
            "invalid configuration: user \"b\" was not found for context \"c\"".to_owned(),
            vec!["4:37".to_owned()]
        )
    );
}

/// Every user is validated. Each fault is reported at its position.
#[test]
fn invalid_users_are_refused_with_positions() {
    let test_folder = TestFolder::new();
    let (message, places) = refusal(
        &test_folder,
        "users:
- name: a
  user: {tokenFile: later}
- name: b
  user: {exec: {command: /bin/true}}
- name: c
  user: {as: jane, token: hunter2}
- name: d
  user: {client-certificate: client.pem, client-key: junk}
- name: e
  user: {token: hunter2, username: u}
",
    );
    assert_eq!(
        message,
        "invalid configuration: [open later: no such file or directory, exec authentication plugins \
         are not supported, found one for b, impersonation is not supported here, found it for c, \
         tls: failed to find any PEM data in key input, more than one authentication method found \
         for e; found [token basicAuth], only one is allowed]"
    );
    assert_eq!(places, ["3:21", "5:10", "7:14", "9:3", "11:17"]);
    let missing = load_users_by_server_name(Path::new("/nowhere/users"), &read_file).unwrap_err();
    assert_eq!(missing.to_string(), "open /nowhere/users: no such file or directory");
    let twice = "users:\n- {name: a, user: {}}\n- {name: a, user: {}}\n";
    assert!(refusal(&test_folder, twice).0.contains("duplicate name \"a\" in list"));
}

#[test]
fn debug_output_and_errors_show_no_secrets() {
    let test_folder = TestFolder::new();
    test_folder.write("secret", "hunter2");
    for user in [
        "token: hunter2",
        "username: u, password: hunter2",
        "tokenFile: secret",
        "tokenFile: secret, token: hunter2",
    ] {
        let users =
            load(&test_folder, &format!("users:\n- name: a\n  user: {{{user}}}\n")).unwrap();
        let shown = format!("{users:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    for user in [
        "token: hunter2, username: u",
        "token: [hunter2]",
        "password: hunter2, as: x",
        "client-certificate: secret, client-key: secret",
        "client-certificate-data: aHVudGVyMg==, client-key-data: aHVudGVyMg==",
        "client-certificate-data: hunter2, client-key-data: hunter2",
    ] {
        let error =
            load(&test_folder, &format!("users:\n- name: a\n  user: {{{user}}}\n")).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg"), "{shown}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// For any content, loading does not panic, and every fault has a position inside the file.
    #[test]
    fn any_file_loads_or_is_refused(
        names in prop::collection::vec("[a-c*]{0,2}", 0..3),
        user in prop::sample::select(vec![
            "{}", "{token: a}", "{tokenFile: a}", "{tokenFile: b}", "{as: a}", "[]", "~",
            "{client-certificate: a, client-key: a}", "{client-certificate-data: YQ==}",
        ]),
        context in "[a-c]{0,1}",
        junk in "\\PC{0,12}",
    ) {
        let users: String =
            names.iter().map(|name| format!("- name: '{name}'\n  user: {user}\n")).collect();
        let text = format!(
            "current-context: {context}\ncontexts: [{{name: a, context: {{user: b}}}}]\n\
             users:\n{users}{junk}"
        );
        let read = |path: &Path| match path.file_name().and_then(|name| name.to_str()) {
            Some("a") => Ok(b"x".to_vec()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        };
        let source = Source { name: "config", file_bytes: text.as_bytes() };
        if let Err(error) = parse_users_by_server_name(&source, Path::new("/x/config"), &read) {
            prop_assert!(!error.to_string().is_empty());
            for found in error.diagnostics() {
                prop_assert!(text.get(found.position.start..found.position.end_offset).is_some(), "{:?}", found);
            }
        }
    }
}
