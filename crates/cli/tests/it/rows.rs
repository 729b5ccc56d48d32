//! The rows of the specification's tables for loading (`CFG-nn`) and validation (`VAL-nn`) that a
//! file can express: what the program says about each, and that no server starts with a bad one or
//! takes it when it runs.

use std::cell::{Cell, OnceCell};
use std::path::Path;

use serde_json::Value;

use crate::flags::refused_at_start;
use crate::guard::kubeconfig_of;
use crate::program::{check_text, run};
use crate::serve::Server;

const HEADER: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n";

/// The fields of a valid webhook, `W` in the tables. `KUBECONFIG` stands for a file that exists.
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

/// `W(name: value)` of the tables, as a file.
fn w(name: &str, value: &str) -> String {
    file(&webhook(&[(name, value)]))
}

fn conditions(expressions: &[&str]) -> String {
    let items = expressions.iter().map(|text| format!("\n    - expression: {text:?}"));
    items.collect()
}

/// A folder with what the rows name: a file, a folder and a link to the file.
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
    fn refused(&self, row: &str, text: &str, want: &[&str]) {
        let text = self.filled(text);
        let want: Vec<_> = want.iter().map(|message| self.filled(message)).collect();
        let found = check_text(self.path(), &text, &["-o", "json"]);
        assert_eq!(found.code, 1, "{row}: {found:?}");
        let report: Value = serde_json::from_str(&found.stdout).unwrap();
        assert_eq!(report["valid"], false, "{row}");
        let errors = report["errors"].as_array().unwrap();
        let messages: Vec<_> =
            errors.iter().map(|error| error["message"].as_str().unwrap()).collect();
        assert_eq!(messages, want, "{row}");
        let found = check_text(self.path(), &text, &[]);
        assert_eq!(found.code, 1, "{row}");
        let at_start = self.refused_at_start();
        for message in &want {
            let shown = format!("error: {}", message.lines().next().unwrap());
            assert!(found.stdout.contains(&shown), "{row}: {}", found.stdout);
            assert!(at_start.contains(&shown), "{row}: {at_start}");
        }
        self.refused_on_reload(row, &text);
    }

    /// Asserts that a running server is told of the file, says where it is bad, and goes on.
    fn refused_on_reload(&self, row: &str, text: &str) {
        let path = self.path().join("running.yaml");
        let server = self.running.get_or_init(|| {
            std::fs::write(&path, self.filled(&file(&webhook(&[])))).unwrap();
            Server::start(&["--authorization-config", path.to_str().unwrap()])
        });
        // A number in a comment: what was refused already is not told again.
        let number = self.n_reloads.get();
        self.n_reloads.set(number + 1);
        std::fs::write(&path, format!("{text}\n# {row}, {number}\n")).unwrap();
        let place = format!("at={}", path.display());
        server.logs(&["can not be reloaded; the old one stays", &place]);
    }

    /// What a server says that is started with the file that was checked last.
    #[track_caller]
    fn refused_at_start(&self) -> String {
        let file = self.path().join("config.yaml");
        refused_at_start(&["--authorization-config", file.to_str().unwrap()], 3)
    }

    /// Asserts that the file is no configuration, that the server's message begins with the words
    /// of a decode error, and that both it and what people see contain `part`.
    fn undecodable(&self, row: &str, text: &str, part: &str) {
        let text = self.filled(text);
        let found = check_text(self.path(), &text, &["-o", "json"]);
        assert_eq!(found.code, 1, "{row}: {found:?}");
        let report: Value = serde_json::from_str(&found.stdout).unwrap();
        let message = report["files"][0]["message"].as_str().unwrap();
        let prefix = "failed to load AuthorizationConfiguration from file: ";
        assert!(message.starts_with(prefix) && message.contains(part), "{row}: {message}");
        assert_eq!(report["errors"][0]["type"], "Decode", "{row}");
        let found = check_text(self.path(), &text, &[]);
        assert_eq!(found.code, 1, "{row}");
        assert!(found.stdout.contains(part), "{row}: {}", found.stdout);
        let at_start = self.refused_at_start();
        assert!(at_start.contains(part), "{row}: {at_start}");
        self.refused_on_reload(row, &text);
    }

    /// Asserts that the file is accepted with these warnings.
    fn accepted(&self, row: &str, text: &str, warnings: &[&str]) {
        let found = check_text(self.path(), &self.filled(text), &["-o", "json"]);
        assert_eq!(found.code, 0, "{row}: {found:?}");
        let report: Value = serde_json::from_str(&found.stdout).unwrap();
        assert_eq!(report["valid"], true, "{row}");
        let found = report["warnings"].as_array().unwrap();
        let found: Vec<_> = found.iter().map(|warning| warning["type"].as_str().unwrap()).collect();
        assert_eq!(found, warnings, "{row}");
    }
}

#[test]
fn cfg_01_to_04_what_is_read() {
    let place = Place::new();
    let none = "authorizers: Required value: at least one authorization mode must be defined";
    place.refused("CFG-01", "", &[none]);
    let found = run(&["check", "nowhere/at/all.yaml"]);
    assert_eq!(found.code, 3, "CFG-02");
    assert_eq!(found.stderr, "error: open nowhere/at/all.yaml: no such file or directory\n");
    let at_start = refused_at_start(&["--authorization-config=nowhere/at/all.yaml"], 3);
    let part = "nowhere/at/all.yaml: no such file or directory\n";
    assert!(at_start.contains(part), "CFG-02: {at_start}");
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
            place.refused("CFG-03, CFG-04", &text, &want);
        }
    }
}

#[test]
fn cfg_06_to_14_what_is_no_configuration() {
    let place = Place::new();
    let kind = r#"{"kind":"AuthorizationConfiguration"}"#;
    place.undecodable("CFG-06", kind, "Object 'apiVersion' is missing in '");
    let version = r#"{"apiVersion":"apiserver.config.k8s.io/v1"}"#;
    place.undecodable("CFG-06", version, "Object 'Kind' is missing in '");
    for version in ["apps/v1alpha1", "apiserver.k8s.io/v1alpha1", "apiserver.config.k8s.io/v99"] {
        let text = format!("apiVersion: {version}\nkind: AuthorizationConfiguration\n");
        let part = format!(
            "no kind \"AuthorizationConfiguration\" is registered for version \"{version}\""
        );
        place.undecodable("CFG-07", &text, &part);
        place.undecodable("CFG-07", &text, version);
    }
    let some = HEADER.replace("Authorization", "Some");
    place.undecodable("CFG-08", &some, "no kind \"SomeConfiguration\" is registered");
    for key in ["authorzers", "Authorizers"] {
        let part = format!("unknown field \"{key}\"");
        place.undecodable("CFG-09", &format!("{HEADER}{key}: []\n"), &part);
    }
    place.undecodable("CFG-10", &w("foo", "1"), "unknown field \"authorizers[0].webhook.foo\"");
    let twice = file("- type: RBAC\n  name: rbac\n  name: rbac\n");
    place.undecodable("CFG-11", &twice, "key \"name\" already set in map");
    let twice = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration",
        "authorizers":[{"type":"RBAC","name":"a","name":"b"}]}"#;
    place.undecodable("CFG-11", twice, "duplicate field \"authorizers[0].name\"");
    let json = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration"}"#;
    place.undecodable("CFG-12", &format!("{json} more"), "after top-level value");
    place.accepted(
        "CFG-13",
        &file("- {type: RBAC, name: rbac}\n---\nkind: Other\n"),
        &["several-documents"],
    );
    place.undecodable("CFG-14", "# only\n# comments\n", "Object 'Kind' is missing in '");
    let group = "apiVersion: apiserver.config.k8s.io\n";
    place.undecodable("CFG-14", group, "Object 'Kind' is missing in '");
}

#[test]
fn cfg_05_and_15_to_20_values() {
    let place = Place::new();
    for (value, part) in [
        ("5", "cannot unmarshal number into Go struct field"),
        ("\"30\"", "time: missing unit in duration \"30\""),
        ("null", "time: invalid duration \"\""),
        ("\"\"", "time: invalid duration \"\""),
        ("1d", "time: unknown unit \"d\" in duration \"1d\""),
    ] {
        place.undecodable("CFG-15", &w("timeout", value), part);
    }
    // The fields with defaults are not complained about.
    place.refused(
        "CFG-05",
        &file("- {type: Webhook, name: w, webhook: {}}\n"),
        &[
            "authorizers[0].timeout: Required value",
            "authorizers[0].subjectAccessReviewVersion: Required value",
            "authorizers[0].failurePolicy: Required value",
            "authorizers[0].connectionInfo.type: Required value",
        ],
    );
    place.accepted("CFG-16", &w("timeout", "1500ms"), &[]);
    place.accepted("CFG-17", &w("authorizedTTL", "0s"), &[]);
    place.accepted("CFG-17", &w("unauthorizedTTL", "0s"), &[]);
    place.accepted("CFG-18", &w("cacheAuthorizedRequests", "false"), &[]);
    place.accepted("CFG-19", &w("cacheUnauthorizedRequests", "null"), &[]);
    let map = format!("{HEADER}authorizers: {{type: Webhook}}\n");
    place.undecodable("CFG-20", &map, "cannot unmarshal object into Go struct field");
}

const KNOWN_TYPES: &str =
    "\"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\"";

#[test]
fn val_01_to_12_types_and_names() {
    let place = Place::new();
    place.refused(
        "VAL-01",
        &format!("{HEADER}authorizers: []\n"),
        &["authorizers: Required value: at least one authorization mode must be defined"],
    );
    place.refused("VAL-02", &file("- {}\n"), &["authorizers[0].type: Required value"]);
    let no_name = file("- {type: RBAC, name: \"\"}\n");
    place.refused("VAL-03", &no_name, &["authorizers[0].name: Required value"]);
    let both = webhook(&[]).repeat(2);
    place.refused("VAL-04", &file(&both), &["authorizers[1].name: Duplicate value: \"w\""]);
    for name in ["myauthorizer", "foo.example.domain"] {
        let named = webhook(&[]).replace("name: w", &format!("name: {name}"));
        place.accepted("VAL-05", &file(&named), &[]);
    }
    let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
        '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
        regex used for validation is \
        '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    place.refused(
        "VAL-06",
        &file(&webhook(&[]).replace("name: w", "name: FOO.example.domain")),
        &[&format!(
            "authorizers[0].name: Invalid value: \"FOO.example.domain\": authorizer name is \
             invalid: {rule}"
        )],
    );
    let long = "a".repeat(254);
    place.refused(
        "VAL-07",
        &file(&webhook(&[]).replace("name: w", &format!("name: {long}"))),
        &[&format!(
            "authorizers[0].name: Invalid value: \"{long}\": authorizer name is invalid: must be \
             no more than 253 characters"
        )],
    );
    place.refused(
        "VAL-08",
        &file("- {type: Foo}\n"),
        &[&format!(
            "authorizers[0].type: Unsupported value: \"Foo\": supported values: {KNOWN_TYPES}"
        )],
    );
    place.refused(
        "VAL-09",
        &file("- {type: RBAC, name: rbac}\n- {type: RBAC, name: other}\n"),
        &["authorizers[1].type: Duplicate value: \"RBAC\""],
    );
    let two = format!("{}{}", webhook(&[]), webhook(&[]).replace("name: w", "name: x"));
    place.accepted("VAL-10", &file(&two), &[]);
    place.refused(
        "VAL-11",
        &file("- {type: Webhook, name: w}\n"),
        &["authorizers[0].webhook: Required value: required when type=Webhook"],
    );
    place.refused(
        "VAL-12",
        &file("- {type: RBAC, name: rbac, webhook: {}}\n"),
        &["authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when \
           type=Webhook"],
    );
}

#[test]
fn val_13_to_25_webhook_fields() {
    let place = Place::new();
    for absent in ["", "0s"] {
        let want = ["authorizers[0].timeout: Required value"];
        place.refused("VAL-13", &w("timeout", absent), &want);
    }
    for (value, shown) in [("-30s", "-30s"), ("60s", "1m0s")] {
        let want =
            format!("authorizers[0].timeout: Invalid value: \"{shown}\": must be > 0s and <= 30s");
        place.refused("VAL-14", &w("timeout", value), &[&want]);
    }
    place.accepted("VAL-15", &w("timeout", "30s"), &[]);
    for field in ["authorizedTTL", "unauthorizedTTL"] {
        let want = format!("authorizers[0].{field}: Invalid value: \"-30s\": must be > 0s");
        place.refused("VAL-17", &w(field, "-30s"), &[&want]);
    }
    place.refused(
        "VAL-18",
        &w("subjectAccessReviewVersion", ""),
        &["authorizers[0].subjectAccessReviewVersion: Required value"],
    );
    place.refused(
        "VAL-19",
        &w("subjectAccessReviewVersion", "v2beta1"),
        &["authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2beta1\": supported \
           values: \"v1\", \"v1beta1\""],
    );
    place.accepted("VAL-20", &w("subjectAccessReviewVersion", "v1beta1"), &[]);
    let version = "matchConditionSubjectAccessReviewVersion";
    place.refused(
        "VAL-21",
        &file(&webhook(&[(version, ""), ("matchConditions", &conditions(&["true"]))])),
        &["authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if \
           match conditions are specified"],
    );
    place.accepted("VAL-22", &w(version, ""), &[]);
    place.refused(
        "VAL-23",
        &w(version, "v1beta1"),
        &["authorizers[0].matchConditionSubjectAccessReviewVersion: Unsupported value: \
           \"v1beta1\": supported values: \"v1\""],
    );
    place.refused(
        "VAL-24",
        &w("failurePolicy", ""),
        &["authorizers[0].failurePolicy: Required value"],
    );
    place.refused(
        "VAL-25",
        &w("failurePolicy", "AlwaysAllow"),
        &["authorizers[0].failurePolicy: Unsupported value: \"AlwaysAllow\": supported values: \
           \"NoOpinion\", \"Deny\""],
    );
}

#[test]
fn val_26_to_35_connections() {
    let place = Place::new();
    let connection = |value: &str| w("connectionInfo", value);
    let path =
        |path: &str| connection(&format!("{{type: KubeConfigFile, kubeConfigFile: {path}}}"));
    place.refused(
        "VAL-26",
        &connection(""),
        &["authorizers[0].connectionInfo.type: Required value"],
    );
    place.refused(
        "VAL-27",
        &connection("{type: ExternalClusterConfig}"),
        &["authorizers[0].connectionInfo.type: Unsupported value: \
           {\"Type\":\"ExternalClusterConfig\",\"KubeConfigFile\":null}: supported values: \
           \"InClusterConfig\", \"KubeConfigFile\""],
    );
    let in_cluster = connection("{type: InClusterConfig}");
    place.refused(
        "VAL-28",
        &in_cluster,
        &["authorizers[0].connectionInfo.type: Invalid value: \"InClusterConfig\": not allowed in \
           this server"],
    );
    let found = check_text(place.path(), &in_cluster, &["--role", "delegated"]);
    assert_eq!(found.code, 0, "VAL-28: {found:?}");
    place.refused(
        "VAL-29",
        &connection("{type: InClusterConfig, kubeConfigFile: \"\"}"),
        &["authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"\": can only be set when \
           type=KubeConfigFile"],
    );
    place.refused(
        "VAL-30",
        &connection("{type: KubeConfigFile}"),
        &["authorizers[0].connectionInfo.kubeConfigFile: Required value"],
    );
    place.refused(
        "VAL-31",
        &path("../x/kubeconfig"),
        &["authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"../x/kubeconfig\": must \
           be an absolute path"],
    );
    place.refused(
        "VAL-32",
        &path("FOLDER/missing"),
        &["authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"FOLDER/missing\": error \
           loading file: stat FOLDER/missing: no such file or directory"],
    );
    place.refused(
        "VAL-33",
        &path("FOLDER/folder"),
        &["authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"FOLDER/folder\": must be \
           a regular file"],
    );
    place.accepted("VAL-34", &path("KUBECONFIG"), &[]);
    let alias = connection("{type: KubeConfig, kubeConfigFile: KUBECONFIG}");
    place.accepted("VAL-35", &alias, &["kube-config-alias"]);
}

#[cfg(unix)]
#[test]
fn val_33_links_are_followed() {
    let place = Place::new();
    let link = place.path().join("link");
    std::os::unix::fs::symlink(place.path().join("kubeconfig"), link).unwrap();
    let connection = "{type: KubeConfigFile, kubeConfigFile: FOLDER/link}";
    place.accepted("VAL-33", &w("connectionInfo", connection), &[]);
}

#[test]
fn val_36_to_40_45_conditions() {
    let place = Place::new();
    let with = |expressions: &[&str]| w("matchConditions", &conditions(expressions));
    let many: Vec<_> = (0..65).map(|n| format!("request.user == 'u{n}'")).collect();
    let mut many: Vec<_> = many.iter().map(String::as_str).collect();
    place.accepted("VAL-36", &with(&many[..64]), &[]);
    many[7] = "request.";
    place.refused(
        "VAL-37",
        &with(&many),
        &["authorizers[0].matchConditions: Too many: 65: must have at most 64 items"],
    );
    let at = "authorizers[0].matchConditions";
    place.refused("VAL-38", &with(&["  "]), &[&format!("{at}[0].expression: Required value")]);
    place.refused(
        "VAL-39",
        &with(&["request.user == 'admin'", "request.user == 'admin'"]),
        &[&format!("{at}[1].expression: Duplicate value: \"request.user == 'admin'\"")],
    );
    let spaced = ["request.user == 'admin'", "request.user  == 'admin'"];
    place.accepted("VAL-40", &with(&spaced), &[]);
    place.refused(
        "VAL-45",
        &with(&["'admins' in request.user.groups"]),
        &[&format!(
            "{at}[0].expression: Invalid value: \"'admins' in request.user.groups\": compilation \
             failed: ERROR: <input>:1:25: type 'string' does not support field selection\n \
             | 'admins' in request.user.groups\n | ........................^"
        )],
    );
}

#[test]
fn val_41_all_faults_are_reported_at_once() {
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
    place.refused("VAL-41", &text, &want);
    let found = check_text(place.path(), &text, &["-o", "json"]);
    let report: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(report["files"][0]["message"], format!("[{}]", want.join(", ")), "VAL-41");
}

#[test]
fn val_42_to_44_the_rules_of_the_server() {
    let place = Place::new();
    place.refused(
        "VAL-42",
        &file("- {type: RBAC, name: foo}\n"),
        &["expected name rbac for authorizer RBAC instead of foo"],
    );
    place.refused(
        "VAL-43",
        &file("- {type: rbac, name: rbac}\n"),
        &[&format!(
            "authorizers[0].type: Unsupported value: \"rbac\": supported values: {KNOWN_TYPES}"
        )],
    );
    place.refused(
        "VAL-44",
        &file("- {type: RBAC, name: rbac}\n- {type: RBAC, name: rbac}\n"),
        &["authorizers[1].type: Duplicate value: \"RBAC\""],
    );
    let named = webhook(&[]).replace("name: w", "name: rbac");
    place.refused(
        "VAL-44",
        &file(&format!("{named}- {{type: RBAC, name: rbac}}\n")),
        &["authorizers[1].name: Duplicate value: \"rbac\""],
    );
}
