//! Reading kubeconfigs: which deviations the reader accepts, which it refuses, and the positions of the faults.

use document::{DOCUMENT_BYTES_MAX, Source, WarningCode};

use super::{DecodedKubeconfig, Kubeconfig, decode_kubeconfig};

fn read(text: &str) -> Kubeconfig {
    let DecodedKubeconfig { kubeconfig, warnings } =
        decode_kubeconfig(&Source { name: "config", file_bytes: text.as_bytes() }).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    kubeconfig
}

/// Asserts the position, the field and the message of the first fault.
fn refused(text: &str, want: &str) {
    let error =
        decode_kubeconfig(&Source { name: "config", file_bytes: text.as_bytes() }).unwrap_err();
    let first = &error.diagnostics[0];
    let (position, field) = (first.position, first.fault.field());
    assert_eq!(
        format!("{}:{} {field}: {}", position.line, position.column, first.fault),
        want,
        "{text}"
    );
    assert_eq!(error.kubernetes_message, first.fault.to_string());
}

#[test]
fn all_used_fields_are_read() {
    let text = "\
apiVersion: v1
kind: Config
preferences: {colors: true}
current-context: here
contexts:
- name: here
  context: {cluster: guard, user: me, namespace: default, extensions: []}
clusters:
- name: guard
  cluster:
    server: https://guard.example.com/authorize
    tls-server-name: guard
    insecure-skip-tls-verify: yes
    certificate-authority: ca.pem
    certificate-authority-data: YQpi
    proxy-url: http://proxy
    disable-compression: true
users:
- name: me
  user:
    client-certificate: cert.pem
    client-certificate-data: Yw==
    client-key: key.pem
    client-key-data: |
      ZG
      Q=
    token: secret
    tokenFile: token
    as: jane
    as-uid: '7'
    as-groups: [a, b]
    as-user-extra: {k: [x, z], a: null}
    username: u
    password: p
    exec: {command: x}
    auth-provider: {name: oidc}
";
    let found = read(text);
    assert_eq!(found.current_context.value, "here");
    let [context] = found.contexts.as_slice() else { panic!("{found:?}") };
    assert_eq!((&*context.cluster.value, &*context.user.value), ("guard", "me"));
    let [cluster] = found.clusters.as_slice() else { panic!("{found:?}") };
    assert_eq!(cluster.field, "clusters[0].cluster");
    assert_eq!(cluster.server_url.value, "https://guard.example.com/authorize");
    assert_eq!((cluster.server_url.position.line, cluster.server_url.position.column), (11, 13));
    assert_eq!(cluster.tls_server_name.value, "guard");
    assert!(cluster.insecure_skip_tls_verify.value && cluster.disable_compression);
    assert_eq!(cluster.certificate_authority.value, "ca.pem");
    assert_eq!(cluster.certificate_authority_data.value, b"a\nb");
    assert_eq!(cluster.proxy_url.value, "http://proxy");
    let [user] = found.users.as_slice() else { panic!("{found:?}") };
    assert_eq!(user.client_certificate_data.value, b"c");
    assert_eq!(user.client_key_data.value, b"dd");
    assert_eq!((&*user.client_certificate.value, &*user.client_key.value), ("cert.pem", "key.pem"));
    assert_eq!((&*user.token.value, &*user.token_file.value), ("secret", "token"));
    assert_eq!((&*user.impersonate_user.value, &*user.impersonate_uid.value), ("jane", "7"));
    assert_eq!(user.impersonate_groups.value, ["a", "b"]);
    let extra = [("a", vec![]), ("k", vec!["x".to_owned(), "z".to_owned()])];
    assert_eq!(user.impersonate_extra.value, extra.map(|(key, values)| (key.to_owned(), values)));
    assert_eq!((&*user.username.value, &*user.password.value), ("u", "p"));
    assert_eq!(user.exec_settings.as_ref().unwrap().position.line, 35);
    assert_eq!(user.auth_provider_position.unwrap().line, 36);
}

#[test]
fn unknown_fields_and_null_values_are_accepted() {
    for text in [
        "",
        "# nothing\n",
        "{}",
        "null\n",
        "kind: Config\n",
        "apiVersion: v1\n",
        "clusters: null\nusers: []\n",
        "unknown: {a: [1]}\nclusters:\n- name: a\n  clustre: 1\n",
        "{\"clusters\": [null, {\"name\": \"b\", \"cluster\": null}]}",
    ] {
        let found = read(text);
        assert!(found.clusters.iter().all(|cluster| cluster.server_url.value.is_empty()), "{text}");
    }
    // The last of several equal keys counts, in both forms.
    for text in [
        "current-context: a\ncurrent-context: b\n",
        "{\"current-context\": \"a\", \"current-context\": \"b\"}",
        // The names of fields are case-sensitive.
        "Current-Context: a\ncurrent-context: b\n",
    ] {
        assert_eq!(read(text).current_context.value, "b", "{text}");
    }
}

#[test]
fn faults_have_positions() {
    refused("a: [\n", "2:1 : yaml: line 1: did not find expected node content");
    refused(
        "{\"a\": tru}",
        "1:10 : couldn't get version/kind; json parse error: invalid character '}' in literal true \
         (expecting 'e')",
    );
    let scheme = "k8s.io/client-go/tools/clientcmd/api/latest/latest.go:50";
    refused(
        "apiVersion: v1\nkind: Pod\n",
        &format!(
            "2:7 kind: no kind \"Pod\" is registered for version \"v1\" in scheme \"{scheme}\""
        ),
    );
    refused(
        "apiVersion: a/v1\nkind: Config\n",
        &format!(
            "1:13 apiVersion: no kind \"Config\" is registered for version \"a/v1\" in scheme \
             \"{scheme}\""
        ),
    );
    refused(
        "clusters:\n- cluster: {server: 1}\n",
        "2:21 clusters[0].cluster.server: json: cannot unmarshal number into Go struct field \
         Cluster.clusters.cluster.server of type string",
    );
    refused(
        "users:\n- user:\n    as-user-extra: {a: b}\n",
        "3:24 users[0].user.as-user-extra: json: cannot unmarshal string into Go struct field \
         AuthInfo.users.user.as-user-extra of type []string",
    );
    refused(
        "clusters:\n- {name: a}\n- {name: a}\n",
        "3:10 clusters[1].name: error converting *[]NamedCluster into *map[string]*api.Cluster: \
         duplicate name \"a\" in list",
    );
    refused(
        "users:\n- user: {client-key-data: 'a?=='}\n",
        "2:27 users[0].user.client-key-data: illegal base64 data at input byte 1",
    );
}

#[test]
fn messages_do_not_show_secrets() {
    for text in [
        "users:\n- user: {token: 4711}\n",
        "users:\n- user: {password: true4711, client-key-data: '4711?'}\n",
        "users:\n- {name: a, user: {token: t4711}}\n- {name: a}\n",
        "users:\n- user: {token: [4711]}\n",
        "users: {token: 4711}\n",
        "users:\n- user: {as-user-extra: {a: 4711}}\n",
    ] {
        let error =
            decode_kubeconfig(&Source { name: "config", file_bytes: text.as_bytes() }).unwrap_err();
        assert!(!format!("{error:?}").contains("4711"), "{error:?}");
    }
    let good = read("users:\n- user: {token: t4711, password: t4711, client-key-data: dDQ3MTE=}\n");
    assert!(!format!("{good:?}").contains("4711"), "{good:?}");
}

#[test]
fn only_the_first_document_is_read_and_size_is_limited() {
    let source = Source { name: "config", file_bytes: b"current-context: a\n---\nx\n" };
    let decoded = decode_kubeconfig(&source).unwrap();
    assert_eq!(decoded.warnings[0].code, WarningCode::SeveralDocuments);
    let padded = |n: usize| format!("#{}", "x".repeat(n - 1));
    read(&padded(DOCUMENT_BYTES_MAX));
    refused(&padded(DOCUMENT_BYTES_MAX + 1), "1:1 : file is larger than 1048576 bytes");
}
