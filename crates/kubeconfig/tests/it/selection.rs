//! The current context selects the cluster and the user.

use std::path::Path;

use https_client::{Credentials, Destination, Target};
use kubeconfig::{load_connections, read_file};

use crate::test_folder::TestFolder;

const NOTHING: &str = "invalid configuration: no configuration has been provided, try setting \
    KUBERNETES_MASTER environment variable";

/// Two clusters, of which one has an authority that does not exist, and two users.
const TWO: &str = "\
clusters:
- name: good
  cluster: {server: 'https://good', certificate-authority: ca.pem}
- name: bad
  cluster: {server: 'https://bad', certificate-authority: missing.pem}
users:
- name: me
  user: {token: secret}
- name: torn
  user: {token: secret, username: u}
contexts:
- name: both
  context: {cluster: good, user: me}
- name: bad-cluster
  context: {cluster: bad, user: me}
- name: bad-user
  context: {cluster: good, user: torn}
- name: no-user
  context: {cluster: good}
- name: unknown-user
  context: {cluster: good, user: nobody}
- name: unknown-cluster
  context: {cluster: nowhere, user: me}
- name: no-cluster
  context: {user: me}
";

fn host(target: &Target) -> &str {
    match &target.destination {
        Destination::Url { host, .. } => host,
        Destination::Service(service) => panic!("{service}"),
    }
}

#[test]
fn whk_48_without_a_context_the_unnamed_cluster_and_user_are_used() {
    let test_folder = TestFolder::new();
    let named = "clusters:\n- name: a\n  cluster: {server: 'https://h'}\n\
        users:\n- name: a\n  user: {token: t}\n";
    assert_eq!(test_folder.refusal(named), format!("1:1 {NOTHING}"));
    let unnamed = named.replace("name: a\n ", "name: ''\n ");
    let connection = test_folder.connection(&unnamed);
    assert_eq!(host(&connection.client_target), "h");
    assert!(matches!(connection.client_target.credentials, Credentials::Token(_)));
    assert!(connection.warnings.is_empty());
}

#[test]
fn an_empty_file_has_no_fallback() {
    let test_folder = TestFolder::new();
    for nothing in ["", "{}", "apiVersion: v1\nkind: Config\n", "a: b\n"] {
        assert_eq!(test_folder.refusal(nothing), format!("1:1 {NOTHING}"), "{nothing}");
    }
    assert_eq!(test_folder.refusal("# a comment\n"), format!("2:1 {NOTHING}"));
}

#[test]
fn whk_49_only_selected_entries_are_validated() {
    let test_folder = TestFolder::new();
    let connection = test_folder.connection(&format!("{TWO}current-context: both\n"));
    assert_eq!(host(&connection.client_target), "good");
    assert_eq!(test_folder.names(&connection.source_files), ["config", "ca.pem"]);
    assert_eq!(
        test_folder.refusal(&format!("{TWO}current-context: bad-cluster\n")),
        "5:59 invalid configuration: unable to read certificate-authority missing.pem for bad due \
         to open missing.pem: no such file or directory"
    );
    assert_eq!(
        test_folder.refusal(&format!("{TWO}current-context: bad-user\n")),
        "10:17 invalid configuration: more than one authentication method found for torn; found \
         [token basicAuth], only one is allowed"
    );
}

#[test]
fn whk_50_a_user_may_be_missing_but_not_a_cluster() {
    let test_folder = TestFolder::new();
    for context in ["no-user", "unknown-user"] {
        let connection = test_folder.connection(&format!("{TWO}current-context: {context}\n"));
        assert_eq!(host(&connection.client_target), "good");
        assert_eq!(connection.client_target.credentials, Credentials::None);
    }
    for (context, line) in [("unknown-cluster", "23:22"), ("no-cluster", "25:3")] {
        let message = test_folder.refusal(&format!("{TWO}current-context: {context}\n"));
        assert_eq!(message, format!("{line} {NOTHING}"));
    }
    assert_eq!(
        test_folder.refusal(&format!("{TWO}current-context: elsewhere\n")),
        "26:18 invalid configuration: [context was not found for specified context: elsewhere, \
         cluster has no server defined]"
    );
}

#[test]
fn whk_52_the_error_names_a_missing_file() {
    let missing = Path::new("/does/not/exist");
    let error = load_connections(missing, &read_file).unwrap_err();
    assert_eq!(error.to_string(), "open /does/not/exist: no such file or directory");
    assert!(error.diagnostics().is_empty());
}

#[test]
fn decode_errors_have_positions() {
    let test_folder = TestFolder::new();
    assert_eq!(
        test_folder.refusal("clusters:\n- cluster: {server: 1}\n"),
        "2:21 error loading config file \"config\": json: cannot unmarshal number into Go struct \
         field Cluster.clusters.cluster.server of type string"
    );
    assert!(test_folder.refusal("kind: Pod\n").contains("no kind \"Pod\" is registered"));
}
