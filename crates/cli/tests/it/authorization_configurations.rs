//! Valid and invalid authorization configurations: `portcullis check` reports the expected findings, no
//! server starts with an invalid file, and a running server keeps its configuration.

use std::cell::{Cell, OnceCell};
use std::path::Path;

use serde_json::Value;

use crate::flags::refused_at_start;
use crate::guard::kubeconfig_of;
use crate::program::{check_text, run};
use crate::serve::Server;

const HEADER: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n";

/// The fields of a valid webhook. `KUBECONFIG` stands for a file that exists.
const WEBHOOK: [(&str, &str); 5] = [
    ("timeout", "5s"),
    ("failurePolicy", "NoOpinion"),
    ("subjectAccessReviewVersion", "v1"),
    ("matchConditionSubjectAccessReviewVersion", "v1"),
    ("connectionInfo", "{type: KubeConfigFile, kubeConfigFile: KUBECONFIG}"),
];

/// A file with this list of authorizers.
fn file(authorizers: &str) -> String {
    format!("{HEADER}authorizers:\n{authorizers}")
}

/// A webhook named `w` with some fields changed; an empty value leaves the field out.
fn webhook(changes: &[(&str, &str)]) -> String {
    let is_changed = |name: &str| changes.iter().any(|(field, _)| *field == name);
    let kept = WEBHOOK.iter().filter(|(name, _)| !is_changed(name));
    let mut text = "- type: Webhook\n  name: w\n  webhook:\n".to_owned();
    for (name, value) in kept.chain(changes).filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("    {name}: {value}\n"));
    }
    text
}

/// A file with one webhook in which one field is changed.
fn w(name: &str, value: &str) -> String {
    file(&webhook(&[(name, value)]))
}

fn conditions(expressions: &[&str]) -> String {
    let items = expressions.iter().map(|text| format!("\n    - expression: {text:?}"));
    items.collect()
}

/// A folder with the files that the cases name: a kubeconfig, a folder and a link.
struct Place {
    /// A server that runs with a good configuration, started when it is needed. It goes before its
    /// files do.
    running: OnceCell<Server>,
    n_reloads: Cell<usize>,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = fake_http::Authority::new("guard").unwrap();
        std::fs::write(folder.path().join("ca.crt"), authority.pem()).unwrap();
        let kubeconfig = kubeconfig_of("https://127.0.0.1:1/authorize", "ca.crt");
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig).unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        Self { running: OnceCell::new(), n_reloads: Cell::new(0), folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The text with the paths of this folder in it.
    fn filled(&self, text: &str) -> String {
        let folder = self.path().to_str().unwrap();
        text.replace("KUBECONFIG", &format!("{folder}/kubeconfig")).replace("FOLDER", folder)
    }

    /// Asserts that the file is refused with these messages, no more and no fewer, and that people
    /// see each of them.
    fn refused(&self, case: &str, text: &str, want: &[&str]) {
        let text = self.filled(text);
        let want: Vec<_> = want.iter().map(|message| self.filled(message)).collect();
        let found =
            check_text(self.path(), &text, &["-o", "json", "--kind=AuthorizationConfiguration"]);
        assert_eq!(found.code, 1, "{case}: {found:?}");
        let report: Value = serde_json::from_str(&found.stdout).unwrap();
        assert_eq!(report["valid"], false, "{case}");
        let errors = report["errors"].as_array().unwrap();
        let messages: Vec<_> =
            errors.iter().map(|error| error["message"].as_str().unwrap()).collect();
        assert_eq!(messages, want, "{case}");
        let found = check_text(self.path(), &text, &["--kind=AuthorizationConfiguration"]);
        assert_eq!(found.code, 1, "{case}");
        let at_start = self.refused_at_start();
        for message in &want {
            let shown = format!("error: {}", message.lines().next().unwrap());
            assert!(found.stdout.contains(&shown), "{case}: {}", found.stdout);
            assert!(at_start.contains(&shown), "{case}: {at_start}");
        }
        self.refused_on_reload(case, &text);
    }

    /// Asserts that a running server logs the position of the fault and keeps its configuration.
    fn refused_on_reload(&self, case: &str, text: &str) {
        let path = self.path().join("running.yaml");
        let server = self.running.get_or_init(|| {
            std::fs::write(&path, self.filled(&file(&webhook(&[])))).unwrap();
            Server::start(&["--authorization-config", path.to_str().unwrap()])
        });
        // The comment makes each file different, because the server logs an equal file once.
        let number = self.n_reloads.get();
        self.n_reloads.set(number + 1);
        std::fs::write(&path, format!("{text}\n# {case}, {number}\n")).unwrap();
        let place = format!("at={}", path.display());
        server.logs(&["cannot be reloaded; the old one stays", &place]);
    }

    /// Starts a server with the file that was checked last, and returns its error.
    #[track_caller]
    fn refused_at_start(&self) -> String {
        let file = self.path().join("config.yaml");
        refused_at_start(&["--authorization-config", file.to_str().unwrap()], 3)
    }

    /// Asserts that the file cannot be decoded, that the message of the server begins with the words of a
    /// decode error, and that both it and the report for people contain `part`.
    fn undecodable(&self, case: &str, text: &str, part: &str) {
        let text = self.filled(text);
        let found =
            check_text(self.path(), &text, &["-o", "json", "--kind=AuthorizationConfiguration"]);
        assert_eq!(found.code, 1, "{case}: {found:?}");
        let report: Value = serde_json::from_str(&found.stdout).unwrap();
        let message = report["files"][0]["message"].as_str().unwrap();
        let prefix = "failed to load AuthorizationConfiguration from file: ";
        assert!(message.starts_with(prefix) && message.contains(part), "{case}: {message}");
        assert_eq!(report["errors"][0]["type"], "Decode", "{case}");
        let found = check_text(self.path(), &text, &["--kind=AuthorizationConfiguration"]);
        assert_eq!(found.code, 1, "{case}");
        assert!(found.stdout.contains(part), "{case}: {}", found.stdout);
        let at_start = self.refused_at_start();
        assert!(at_start.contains(part), "{case}: {at_start}");
        self.refused_on_reload(case, &text);
    }

    /// Asserts that the file is accepted with these warnings.
    fn accepted(&self, case: &str, text: &str, warnings: &[&str]) {
        let found = check_text(self.path(), &self.filled(text), &["-o", "json"]);
        assert_eq!(found.code, 0, "{case}: {found:?}");
        let report: Value = serde_json::from_str(&found.stdout).unwrap();
        assert_eq!(report["valid"], true, "{case}");
        let found = report["warnings"].as_array().unwrap();
        let found: Vec<_> = found.iter().map(|warning| warning["type"].as_str().unwrap()).collect();
        assert_eq!(found, warnings, "{case}");
    }
}

#[test]
fn files_and_versions() {
    let place = Place::new();
    let none = "authorizers: Required value: at least one authorization mode must be defined";
    place.refused("empty file", "", &[none]);
    let found = run(&["check", "nowhere/at/all.yaml"]);
    assert_eq!(found.code, 3, "missing file");
    assert_eq!(found.stderr, "error: open nowhere/at/all.yaml: no such file or directory\n");
    let at_start = refused_at_start(&["--authorization-config=nowhere/at/all.yaml"], 3);
    let part = "nowhere/at/all.yaml: no such file or directory\n";
    assert!(at_start.contains(part), "missing file: {at_start}");
    for version in ["v1alpha1", "v1beta1", "v1"] {
        let json = format!(
            r#"{{"apiVersion":"apiserver.config.k8s.io/{version}",
                "kind":"AuthorizationConfiguration","authorizers":[{{"type":"Webhook"}}]}}"#
        );
        let yaml = file("- type: Webhook\n").replace("/v1", &format!("/{version}"));
        for text in [json, yaml] {
            let want = [
                "authorizers[0].name: Required value",
                "authorizers[0].webhook: Required value: required when type=Webhook",
            ];
            place.refused("JSON and YAML in each version", &text, &want);
        }
    }
}

#[test]
fn files_that_can_not_be_decoded() {
    let place = Place::new();
    let kind = r#"{"kind":"AuthorizationConfiguration"}"#;
    place.undecodable("no kind or version", kind, "Object 'apiVersion' is missing in '");
    let version = r#"{"apiVersion":"apiserver.config.k8s.io/v1"}"#;
    place.undecodable("no kind or version", version, "Object 'Kind' is missing in '");
    for version in ["apps/v1alpha1", "apiserver.k8s.io/v1alpha1", "apiserver.config.k8s.io/v99"] {
        let text = format!("apiVersion: {version}\nkind: AuthorizationConfiguration\n");
        let part = format!(
            "no kind \"AuthorizationConfiguration\" is registered for version \"{version}\""
        );
        place.undecodable("unknown version", &text, &part);
        place.undecodable("unknown version", &text, version);
    }
    let some = HEADER.replace("Authorization", "Some");
    place.undecodable("unknown kind", &some, "no kind \"SomeConfiguration\" is registered");
    for key in ["authorzers", "Authorizers"] {
        let part = format!("unknown field \"{key}\"");
        place.undecodable("unknown field of the file", &format!("{HEADER}{key}: []\n"), &part);
    }
    place.undecodable(
        "unknown field of a webhook",
        &w("foo", "1"),
        "unknown field \"authorizers[0].webhook.foo\"",
    );
    let twice = file("- type: RBAC\n  name: rbac\n  name: rbac\n");
    place.undecodable("duplicate field", &twice, "key \"name\" already set in map");
    let twice = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration",
        "authorizers":[{"type":"RBAC","name":"a","name":"b"}]}"#;
    place.undecodable("duplicate field", twice, "duplicate field \"authorizers[0].name\"");
    let json = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration"}"#;
    place.undecodable(
        "text after the JSON value",
        &format!("{json} more"),
        "after top-level value",
    );
    place.accepted(
        "several documents",
        &file("- {type: RBAC, name: rbac}\n---\nkind: Other\n"),
        &["several-documents"],
    );
    place.undecodable(
        "only comments or a group",
        "# only\n# comments\n",
        "Object 'Kind' is missing in '",
    );
    let group = "apiVersion: apiserver.config.k8s.io\n";
    place.undecodable("only comments or a group", group, "Object 'Kind' is missing in '");
}

#[test]
fn values_of_fields() {
    let place = Place::new();
    for (value, part) in [
        ("5", "cannot unmarshal number into Go struct field"),
        ("\"30\"", "time: missing unit in duration \"30\""),
        ("null", "time: invalid duration \"\""),
        ("\"\"", "time: invalid duration \"\""),
        ("1d", "time: unknown unit \"d\" in duration \"1d\""),
    ] {
        place.undecodable("invalid timeout", &w("timeout", value), part);
    }
    // The fields with defaults are not complained about.
    place.refused(
        "fields with defaults",
        &file("- {type: Webhook, name: w, webhook: {}}\n"),
        &[
            "authorizers[0].timeout: Required value",
            "authorizers[0].subjectAccessReviewVersion: Required value",
            "authorizers[0].failurePolicy: Required value",
            "authorizers[0].connectionInfo.type: Required value",
        ],
    );
    place.accepted("timeout in milliseconds", &w("timeout", "1500ms"), &[]);
    place.accepted("lifetime of zero", &w("authorizedTTL", "0s"), &["zero-ttl"]);
    place.accepted("lifetime of zero", &w("unauthorizedTTL", "0s"), &["zero-ttl"]);
    place.accepted("disabled cache", &w("cacheAuthorizedRequests", "false"), &[]);
    place.accepted("null as default", &w("cacheUnauthorizedRequests", "null"), &[]);
    let map = format!("{HEADER}authorizers: {{type: Webhook}}\n");
    place.undecodable(
        "map instead of a list",
        &map,
        "cannot unmarshal object into Go struct field",
    );
}

const KNOWN_TYPES: &str =
    "\"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\"";

#[test]
fn types_and_names() {
    let place = Place::new();
    place.refused(
        "empty list of authorizers",
        &format!("{HEADER}authorizers: []\n"),
        &["authorizers: Required value: at least one authorization mode must be defined"],
    );
    place.refused("no type", &file("- {}\n"), &["authorizers[0].type: Required value"]);
    let no_name = file("- {type: RBAC, name: \"\"}\n");
    place.refused("no name", &no_name, &["authorizers[0].name: Required value"]);
    let both = webhook(&[]).repeat(2);
    place.refused("duplicate name", &file(&both), &["authorizers[1].name: Duplicate value: \"w\""]);
    for name in ["myauthorizer", "foo.example.domain"] {
        let named = webhook(&[]).replace("name: w", &format!("name: {name}"));
        place.accepted("valid name", &file(&named), &[]);
    }
    let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
        '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
        regex used for validation is \
        '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    place.refused(
        "upper-case name",
        &file(&webhook(&[]).replace("name: w", "name: FOO.example.domain")),
        &[&format!(
            "authorizers[0].name: Invalid value: \"FOO.example.domain\": authorizer name is \
             invalid: {rule}"
        )],
    );
    let long = "a".repeat(254);
    place.refused(
        "name of 254 characters",
        &file(&webhook(&[]).replace("name: w", &format!("name: {long}"))),
        &[&format!(
            "authorizers[0].name: Invalid value: \"{long}\": authorizer name is invalid: must be \
             no more than 253 characters"
        )],
    );
    place.refused(
        "unknown type",
        &file("- {type: Foo}\n"),
        &[&format!(
            "authorizers[0].type: Unsupported value: \"Foo\": supported values: {KNOWN_TYPES}"
        )],
    );
    place.refused(
        "duplicate type",
        &file("- {type: RBAC, name: rbac}\n- {type: RBAC, name: other}\n"),
        &["authorizers[1].type: Duplicate value: \"RBAC\""],
    );
    let two = format!("{}{}", webhook(&[]), webhook(&[]).replace("name: w", "name: x"));
    place.accepted("two webhooks", &file(&two), &[]);
    place.refused(
        "webhook without settings",
        &file("- {type: Webhook, name: w}\n"),
        &["authorizers[0].webhook: Required value: required when type=Webhook"],
    );
    place.refused(
        "settings without a webhook",
        &file("- {type: RBAC, name: rbac, webhook: {}}\n"),
        &["authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when \
           type=Webhook"],
    );
}

#[test]
fn fields_of_webhooks() {
    let place = Place::new();
    for absent in ["", "0s"] {
        let want = ["authorizers[0].timeout: Required value"];
        place.refused("no timeout", &w("timeout", absent), &want);
    }
    for (value, shown) in [("-30s", "-30s"), ("60s", "1m0s")] {
        let want =
            format!("authorizers[0].timeout: Invalid value: \"{shown}\": must be > 0s and <= 30s");
        place.refused("timeout out of range", &w("timeout", value), &[&want]);
    }
    place.accepted("longest timeout", &w("timeout", "30s"), &[]);
    for field in ["authorizedTTL", "unauthorizedTTL"] {
        let want = format!("authorizers[0].{field}: Invalid value: \"-30s\": must be > 0s");
        place.refused("negative lifetime", &w(field, "-30s"), &[&want]);
    }
    place.refused(
        "no review version",
        &w("subjectAccessReviewVersion", ""),
        &["authorizers[0].subjectAccessReviewVersion: Required value"],
    );
    place.refused(
        "unknown review version",
        &w("subjectAccessReviewVersion", "v2beta1"),
        &["authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2beta1\": supported \
           values: \"v1\", \"v1beta1\""],
    );
    place.accepted("older review version", &w("subjectAccessReviewVersion", "v1beta1"), &[]);
    let version = "matchConditionSubjectAccessReviewVersion";
    place.refused(
        "conditions without a version",
        &file(&webhook(&[(version, ""), ("matchConditions", &conditions(&["true"]))])),
        &["authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if \
           match conditions are specified"],
    );
    place.accepted("no conditions and no version", &w(version, ""), &[]);
    place.refused(
        "unsupported version of conditions",
        &w(version, "v1beta1"),
        &["authorizers[0].matchConditionSubjectAccessReviewVersion: Unsupported value: \
           \"v1beta1\": supported values: \"v1\""],
    );
    place.refused(
        "no failure policy",
        &w("failurePolicy", ""),
        &["authorizers[0].failurePolicy: Required value"],
    );
    place.refused(
        "unknown failure policy",
        &w("failurePolicy", "AlwaysAllow"),
        &["authorizers[0].failurePolicy: Unsupported value: \"AlwaysAllow\": supported values: \
           \"NoOpinion\", \"Deny\""],
    );
}

#[test]
fn connections_of_webhooks() {
    let place = Place::new();
    let connection = |value: &str| w("connectionInfo", value);
    let path =
        |path: &str| connection(&format!("{{type: KubeConfigFile, kubeConfigFile: {path}}}"));
    place.refused(
        "no connection",
        &connection(""),
        &["authorizers[0].connectionInfo.type: Required value"],
    );
    place.refused(
        "unknown connection type",
        &connection("{type: ExternalClusterConfig}"),
        &["authorizers[0].connectionInfo.type: Unsupported value: \
           {\"Type\":\"ExternalClusterConfig\",\"KubeConfigFile\":null}: supported values: \
           \"InClusterConfig\", \"KubeConfigFile\""],
    );
    let in_cluster = connection("{type: InClusterConfig}");
    place.refused(
        "InClusterConfig",
        &in_cluster,
        &["authorizers[0].connectionInfo.type: Invalid value: \"InClusterConfig\": not allowed in \
           this server"],
    );
    let found = check_text(place.path(), &in_cluster, &["--role", "delegated"]);
    assert_eq!(found.code, 0, "InClusterConfig: {found:?}");
    place.refused(
        "InClusterConfig with a file",
        &connection("{type: InClusterConfig, kubeConfigFile: \"\"}"),
        &["authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"\": can only be set when \
           type=KubeConfigFile"],
    );
    place.refused(
        "no kubeconfig file",
        &connection("{type: KubeConfigFile}"),
        &["authorizers[0].connectionInfo.kubeConfigFile: Required value"],
    );
    place.refused(
        "relative path",
        &path("../x/kubeconfig"),
        &["authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"../x/kubeconfig\": must \
           be an absolute path"],
    );
    place.refused(
        "missing kubeconfig file",
        &path("FOLDER/missing"),
        &["authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"FOLDER/missing\": error \
           loading file: stat FOLDER/missing: no such file or directory"],
    );
    place.refused(
        "folder or link instead of a file",
        &path("FOLDER/folder"),
        &["authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"FOLDER/folder\": must be \
           a regular file"],
    );
    place.accepted("valid kubeconfig file", &path("KUBECONFIG"), &[]);
    let alias = connection("{type: KubeConfig, kubeConfigFile: KUBECONFIG}");
    place.accepted("older name of the connection type", &alias, &["kube-config-alias"]);
}

#[cfg(unix)]
#[test]
fn links_are_followed() {
    let place = Place::new();
    let link = place.path().join("link");
    std::os::unix::fs::symlink(place.path().join("kubeconfig"), link).unwrap();
    let connection = "{type: KubeConfigFile, kubeConfigFile: FOLDER/link}";
    place.accepted("folder or link instead of a file", &w("connectionInfo", connection), &[]);
}

#[test]
fn match_conditions() {
    let place = Place::new();
    let with = |expressions: &[&str]| w("matchConditions", &conditions(expressions));
    let many: Vec<_> = (0..65).map(|n| format!("request.user == 'u{n}'")).collect();
    let mut many: Vec<_> = many.iter().map(String::as_str).collect();
    place.accepted("64 conditions", &with(&many[..64]), &[]);
    many[7] = "request.";
    place.refused(
        "65 conditions",
        &with(&many),
        &["authorizers[0].matchConditions: Too many: 65: must have at most 64 items"],
    );
    let at = "authorizers[0].matchConditions";
    place.refused(
        "empty expression",
        &with(&["  "]),
        &[&format!("{at}[0].expression: Required value")],
    );
    place.refused(
        "duplicate expression",
        &with(&["request.user == 'admin'", "request.user == 'admin'"]),
        &[&format!("{at}[1].expression: Duplicate value: \"request.user == 'admin'\"")],
    );
    let spaced = ["request.user == 'admin'", "request.user  == 'admin'"];
    place.accepted("expressions that differ in spaces", &with(&spaced), &[]);
    place.refused(
        "expression that does not compile",
        &with(&["'admins' in request.user.groups"]),
        &[&format!(
            "{at}[0].expression: Invalid value: \"'admins' in request.user.groups\": compilation \
             failed: ERROR: <input>:1:25: type 'string' does not support field selection\n \
             | 'admins' in request.user.groups\n | ........................^"
        )],
    );
}

#[test]
fn all_faults_are_reported_at_once() {
    let place = Place::new();
    let text = file(&webhook(&[
        ("timeout", "60s"),
        ("unauthorizedTTL", "-30s"),
        ("subjectAccessReviewVersion", "v2"),
        ("failurePolicy", ""),
        ("connectionInfo", "{type: KubeConfigFile}"),
    ]));
    let want = [
        "authorizers[0].timeout: Invalid value: \"1m0s\": must be > 0s and <= 30s",
        "authorizers[0].unauthorizedTTL: Invalid value: \"-30s\": must be > 0s",
        "authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \
         \"v1\", \"v1beta1\"",
        "authorizers[0].failurePolicy: Required value",
        "authorizers[0].connectionInfo.kubeConfigFile: Required value",
    ];
    place.refused("several faults", &text, &want);
    let found = check_text(place.path(), &text, &["-o", "json"]);
    let report: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(report["files"][0]["message"], format!("[{}]", want.join(", ")), "several faults");
}

#[test]
fn rules_of_the_server() {
    let place = Place::new();
    place.refused(
        "other name of a built-in type",
        &file("- {type: RBAC, name: foo}\n"),
        &["expected name rbac for authorizer RBAC instead of foo"],
    );
    place.refused(
        "lower-case type",
        &file("- {type: rbac, name: rbac}\n"),
        &[&format!(
            "authorizers[0].type: Unsupported value: \"rbac\": supported values: {KNOWN_TYPES}"
        )],
    );
    place.refused(
        "repeated built-in type or name",
        &file("- {type: RBAC, name: rbac}\n- {type: RBAC, name: rbac}\n"),
        &["authorizers[1].type: Duplicate value: \"RBAC\""],
    );
    let named = webhook(&[]).replace("name: w", "name: rbac");
    place.refused(
        "repeated built-in type or name",
        &file(&format!("{named}- {{type: RBAC, name: rbac}}\n")),
        &["authorizers[1].name: Duplicate value: \"rbac\""],
    );
}
