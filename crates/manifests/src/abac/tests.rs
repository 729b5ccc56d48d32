//! Loading of policy files: positions of faults, and the grants of loaded policies.

use authz::{Attributes, Namespace, Resource, Target, TraceRecorder, User, Verb, Verdict};
use document::{Source, WarningCode};
use proptest::prelude::*;

use super::*;

fn load_with(text: &[u8], is_strict: bool) -> Result<LoadedAbacPolicies, AbacPolicyLoadError> {
    load_abac_policies(
        &Source { name: "F", file_bytes: text },
        &AbacPolicyLoadOptions {
            refuses_unknown_fields: is_strict,
            ..AbacPolicyLoadOptions::default()
        },
    )
}

fn load_text(text: &str) -> LoadedAbacPolicies {
    load_with(text.as_bytes(), false).unwrap()
}

/// Returns the position and the message of the fault.
fn fault(text: &[u8]) -> (usize, usize, String) {
    let error = load_with(text, false).unwrap_err();
    let position = error.diagnostic.position;
    (position.line, position.column, error.diagnostic.fault.to_string())
}

/// Asks `user[+group] verb target`, where the target is a path, or `[group:]resource@namespace`.
fn is_allowed(loaded: &LoadedAbacPolicies, question: &str) -> bool {
    let mut words = question.split(' ');
    let mut word = || words.next().unwrap();
    let (who, verb, what) = (word(), word(), word());
    let mut names = who.split('+').map(str::to_owned);
    let name = names.next().unwrap();
    let groups: Vec<String> = names.collect();
    let user = User { name, groups, ..User::default() };
    let target = match what.split_once('@') {
        None => Target::Path(what),
        Some((resource, namespace)) => {
            let (api_group, resource) = resource.split_once(':').unwrap_or(("", resource));
            Target::Resource(Resource {
                namespace: Namespace::new(namespace),
                resource,
                api_group,
                ..Resource::default()
            })
        }
    };
    let attributes = Attributes { user: Some(&user), verb: Verb::new(verb), target };
    let decision =
        loaded.abac_policy_snapshot.authorize(&attributes, TraceRecorder::disabled_recorder());
    assert!(decision.error.is_none());
    match decision.verdict {
        Verdict::Allow => {
            assert_eq!(decision.reason, "");
            true
        }
        Verdict::NoOpinion => {
            assert_eq!(decision.reason, "No policy matched.");
            false
        }
        Verdict::Deny | Verdict::Unavailable(_) => panic!("ABAC never denies"),
    }
}

fn check(text: &str, allowed: &[&str], refused: &[&str]) {
    let loaded = load_text(text);
    for question in allowed {
        assert!(is_allowed(&loaded, question), "{question}");
    }
    for question in refused {
        assert!(!is_allowed(&loaded, question), "{question}");
    }
}

const V0_FILE: &str = r#"{"readonly":true,"resource":"events"}
{"user":"scheduler","readonly":true,"resource":"pods"}
{"user":"scheduler","resource":"bindings"}
{"user":"kubelet","readonly":true,"resource":"bindings"}
{"user":"kubelet","resource":"events"}
{"user":"alice","namespace":"projectCaribou"}
{"user":"bob","readonly":true,"namespace":"projectCaribou"}"#;

/// In a line without a version an unset property matches every value.
#[test]
fn unset_fields_of_v0_match_everything() {
    check(
        V0_FILE,
        &[
            "scheduler list pods@ns1",
            "scheduler list pods@",
            "scheduler get bindings@ns1",
            "scheduler get bindings@",
            "alice get pods@projectCaribou",
            "alice update widgets@projectCaribou",
            "alice update bar:foo@projectCaribou",
            "chuck+system:authenticated get events@ns1",
            "chuck+system:authenticated get events@",
            "bob get pods@projectCaribou",
        ],
        &[
            "scheduler create pods@ns1",
            "scheduler create pods@",
            "alice get pods@ns1",
            "alice list pods@",
            "chuck+system:authenticated update events@ns1",
            "chuck+system:authenticated get pods@ns1",
            "chuck+system:authenticated get /",
            "chuck+system:unauthenticated get events@ns1",
            "bob update pods@projectCaribou",
        ],
    );
}

/// A file of v1beta1 policies, with a blank line, a comment and leading blanks.
fn v1beta1_file() -> String {
    let specs = [
        r#""user":"*","readonly":true,"nonResourcePath":"/api""#,
        r#""user":"*","nonResourcePath":"/custom""#,
        r#""user":"*","nonResourcePath":"/base/*""#,
        r#""user":"noresource","nonResourcePath":"*""#,
        r#""user":"*","readonly":true,"resource":"events","namespace":"*""#,
        r#""user":"scheduler","readonly":true,"resource":"pods","namespace":"*""#,
        r#""user":"alice","resource":"*","namespace":"projectCaribou""#,
        r#""user":"debbie","resource":"pods","namespace":"projectCaribou""#,
        r#""user":"apigroupuser","resource":"*","namespace":"projectAnyGroup","apiGroup":"*""#,
        r#""user":"apigroupuser","resource":"*","namespace":"projectEmptyGroup","apiGroup":"""#,
        r#""user":"apigroupuser","resource":"*","namespace":"projectXGroup","apiGroup":"x""#,
    ];
    let line = |spec: &str| {
        format!(
            "\t {{\"apiVersion\":\"abac.authorization.kubernetes.io/v1beta1\",\"kind\":\"Policy\",\
             \"spec\":{{{spec}}}}}\r\n"
        )
    };
    format!("\n  # comment\n{}", specs.map(line).concat())
}

/// In a v1beta1 line an unset property matches only the empty value.
#[test]
fn unset_fields_of_v1beta1_match_only_empty_values() {
    check(
        &v1beta1_file(),
        &[
            "chuck+system:authenticated get /api",
            "chuck+system:authenticated update /custom",
            "chuck+system:authenticated get /base/",
            "chuck+system:authenticated get /base/test/1/2/3",
            "noresource get ",
            "noresource get /",
            "noresource get /foo/bar/baz",
            "apigroupuser get x:foo@projectAnyGroup",
            "apigroupuser get x:foo@projectXGroup",
            "apigroupuser get foo@projectEmptyGroup",
            "debbie update pods@projectCaribou",
            "scheduler get pods@ns1",
        ],
        &[
            "chuck+system:authenticated create /api",
            "chuck+system:authenticated get /base",
            "chuck+system:authenticated get /",
            "chuck+system:authenticated head /api",
            "chuck get /api",
            "noresource get foo@bar",
            "apigroupuser get x:foo@projectEmptyGroup",
            "alice get apps:pods@projectCaribou",
            "scheduler create pods@ns1",
        ],
    );
}

/// The proposal's examples and its two property names `kind` and `ns`.
#[test]
fn field_names_of_the_proposal_restrict_a_line() {
    check(
        "{\"user\":\"bob\",\"kind\":\"Pods\",\"readonly\":true,\"ns\":\"projectCaribou\"}\n\
         {\"user\":\"kubelet\",\"kind\":\"events\"}\n\
         {\"user\":\"same\",\"kind\":\"Pods\",\"resource\":\"pods\",\"ns\":\"a\",\"namespace\":\"a\"}\n\
         {\"user\":\"reader\",\"readonly\":true,\"nonResourcePath\":\"/only\"}\n",
        &[
            "bob get pods@projectCaribou",
            "kubelet create events@ns1",
            "same create pods@a",
            "reader get pods@ns1",
            "reader get /healthz",
        ],
        &[
            "bob get pods@ns1",
            "bob get secrets@projectCaribou",
            "bob get /healthz",
            "kubelet create pods@ns1",
            "kubelet get /",
            "same create pods@b",
            "reader create pods@ns1",
            "reader head /healthz",
        ],
    );
}

#[test]
fn both_versions_mix_and_repeated_fields_have_their_last_value() {
    check(
        "{\"user\":\"a\",\"user\":\"b\",\"user\":null}\n\
         {\"apiVersion\":\"abac.authorization.kubernetes.io/v0\",\"kind\":\"Policy\",\"user\":\"c\"}\n\
         {\"apiVersion\":\"abac.authorization.kubernetes.io/v1beta1\",\"kind\":\"Policy\",\
         \"spec\":{\"user\":\"d\",\"nonResourcePath\":\"/x\"}}\n\
         {\"apiVersion\":\"\",\"kind\":\"Policy\",\"user\":\"e\"}",
        &["b get /", "c get /", "d get /x", "e get /"],
        &["a get /", "d get /", "d get pods@"],
    );
}

#[test]
fn empty_files_and_files_without_last_newline_load() {
    for (text, n_policies) in [
        ("", 0),
        ("\n \t\r\n\u{a0}\n", 0),
        ("# {\n   #}", 0),
        ("{\"user\":\"a\"}", 1),
        ("\u{feff}{\"user\":\"a\"}\r\n", 1),
        ("\u{feff}# comment", 0),
        ("{}\n\n{}\n", 2),
    ] {
        assert_eq!(load_text(text).abac_policy_snapshot.policies().len(), n_policies, "{text:?}");
    }
    let loaded = load_with(b"# caf\xe9\n{\"user\":\"a\"}", false).unwrap();
    assert_eq!(loaded.abac_policy_snapshot.policies()[0].line_number(), 2);
}

/// Lines that must be refused. Most of them would otherwise count as a grant.
#[test]
fn malformed_lines_have_position_and_cause() {
    let v1beta1 = "abac.authorization.kubernetes.io/v1beta1";
    let versioned = |rest: &str| format!("{{\"apiVersion\":\"{v1beta1}\"{rest}}}");
    for (text, line, column, message) in [
        ("{}\n# c\n{bad", 3, 2, "invalid character 'b' looking for beginning of object key string"),
        ("{", 1, 2, "unexpected end of JSON input"),
        ("{}{}", 1, 3, "invalid character '{' after top-level value"),
        ("null", 1, 1, "a policy is a JSON object, this is null"),
        ("{}\n  []", 2, 3, "a policy is a JSON object, this is an array"),
        ("true", 1, 1, "a policy is a JSON object, this is a bool"),
        ("user: bob", 1, 1, "invalid character 'u' looking for beginning of value"),
        ("---", 1, 2, "invalid character '-' in numeric literal"),
        (
            "{\"user\":\"ä\",\"readonly\":\"true\"}",
            1,
            24,
            "`readonly` must be a bool, this is a string",
        ),
        ("\u{feff}{\"user\":5}", 1, 9, "`user` must be a string, this is a number"),
        ("{\"user\":[\"a\"]}", 1, 9, "`user` must be a string, this is an array"),
        ("{\"kind\":5}", 1, 9, "`kind` must be a string, this is a number"),
        ("{\"apiVersion\":\"v9\",\"kind\":\"Policy\"}", 1, 15, "unknown apiVersion `v9`"),
        (&versioned(""), 1, 1, "`kind` is missing, it must be `Policy`"),
        (&versioned(",\"kind\":\"Role\""), 1, 65, "unknown kind `Role`, it must be `Policy`"),
        (
            &versioned(",\"kind\":\"Policy\",\"spec\":[]"),
            1,
            81,
            "`spec` must be an object, this is an array",
        ),
        (
            &versioned(",\"kind\":\"Policy\",\"spec\":{\"group\":{}}"),
            1,
            90,
            "`group` must be a string, this is an object",
        ),
        (
            "{\"ns\":\"a\",\"namespace\":\"b\"}",
            1,
            7,
            "`ns` is `a` but `namespace`, which means the same, is `b`",
        ),
        (
            "{\"kind\":\"a\",\"resource\":\"b\"}",
            1,
            9,
            "`kind` is `a` but `resource`, which means the same, is `b`",
        ),
    ] {
        let want = (line, column, message.to_owned());
        assert_eq!(fault(text.as_bytes()), want, "{text}");
    }
    for text in ["{\"kind\":\"Policy\",\"spec\":{\"user\":\"bob\"}}", "{\"spec\":null}"] {
        let (_, _, message) = fault(text.as_bytes());
        assert!(message.starts_with("`spec` needs an apiVersion"), "{message}");
    }
    assert_eq!(fault(b"{}\n{\"a\":\"\xff\"}"), (2, 7, "the line is not UTF-8".to_owned()));
    let error = load_with(b"\xff\xfe{\0}\0", false).unwrap_err();
    assert!(error.diagnostic.hint.is_some_and(|hint| hint.contains("UTF-16")));
}

#[test]
fn error_messages_match_kubernetes() {
    let error = load_with(b"{}\n\n {bad\r\n{}", false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "error reading policy file F, line 3:  {bad: \
         invalid character 'b' looking for beginning of object key string"
    );
    let position = error.diagnostic.position;
    assert_eq!((position.start, position.column), (6, 3), "the second character of the text");
}

#[test]
fn unknown_fields_and_missing_versions_are_warned_about() {
    let text = "{\"user\":\"a\"}\n{\"usr\":\"b\",\"user\":\"c\"}\n\
                {\"apiVersion\":\"abac.authorization.kubernetes.io/v1beta1\",\"kind\":\"Policy\",\
                \"user\":\"d\",\"spec\":{\"ns\":\"x\"}}\n";
    let loaded = load_text(text);
    let warnings: Vec<_> = loaded
        .warnings
        .iter()
        .map(|warning| {
            (warning.code, warning.position.line, warning.position.column, warning.field.as_str())
        })
        .collect();
    let unknown = WarningCode::UnknownPolicyField;
    assert_eq!(
        warnings,
        [
            (unknown, 2, 2, "usr"),
            (unknown, 3, 74, "user"),
            (unknown, 3, 93, "ns"),
            (WarningCode::UnversionedPolicy, 1, 1, ""),
        ]
    );
    let hints: Vec<_> =
        loaded.warnings.iter().filter_map(|warning| warning.hint.as_deref()).collect();
    assert_eq!(hints[..2], ["did you mean `user`?", "`user` belongs inside `spec`"]);

    let error = load_with(text.as_bytes(), true).unwrap_err();
    assert_eq!(error.diagnostic.fault.to_string(), "unknown field `usr`");
    assert_eq!((error.diagnostic.position.line, error.diagnostic.position.column), (2, 2));
}

/// A line with `apiVersion` v0 is read as v0. Version 0 has no `spec`, so the field is unknown: a warning, or
/// an error in strict mode.
#[test]
fn a_spec_in_v0_is_an_unknown_field() {
    let line = "{\"apiVersion\":\"abac.authorization.kubernetes.io/v0\",\"kind\":\"Policy\",\
                \"spec\":{\"user\":\"bob\"}}";
    let loaded = load_text(line);
    assert!(is_allowed(&loaded, "eve+system:authenticated create pods@ns1"));
    let [warning] = loaded.warnings.as_slice() else { panic!("{:?}", loaded.warnings) };
    assert_eq!((warning.code, warning.field.as_str()), (WarningCode::UnknownPolicyField, "spec"));
    assert!(warning.hint.as_ref().is_some_and(|hint| hint.contains("v1beta1")));
    let error = load_with(line.as_bytes(), true).unwrap_err();
    assert_eq!(error.diagnostic.fault.to_string(), "unknown field `spec`");
}

#[test]
fn warnings_are_limited_and_the_rest_is_counted() {
    let text = "{\"x\":1}\n".repeat(WARNINGS_MAX + 3);
    let loaded = load_text(&text);
    assert_eq!(loaded.warnings.len(), WARNINGS_MAX + 1, "and the one about versions");
    assert_eq!(loaded.n_warnings_dropped, 3);
    assert_eq!(load_text(&"{\"x\":1}\n".repeat(WARNINGS_MAX)).n_warnings_dropped, 0);
}

#[test]
fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
    let line = |n_bytes: usize| {
        let rest = n_bytes - "{\"user\":\"\"}".len();
        format!("\n{{\"user\":\"{}\"}}\r\n", "y".repeat(rest))
    };
    assert_eq!(load_text(&line(LINE_BYTES_MAX)).abac_policy_snapshot.policies().len(), 1);
    let error = load_with(line(LINE_BYTES_MAX + 1).as_bytes(), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "error reading policy file F: the line is longer than 65536 bytes"
    );
    assert_eq!(error.diagnostic.position.line, 2);
}

#[test]
fn a_file_may_be_as_large_as_the_limit_and_no_larger() {
    let mut line = vec![b'#'; LINE_BYTES_MAX];
    line[LINE_BYTES_MAX - 1] = b'\n';
    let mut bytes = line.repeat(POLICY_FILE_BYTES_MAX / LINE_BYTES_MAX);
    assert_eq!(bytes.len(), POLICY_FILE_BYTES_MAX);
    assert!(load_with(&bytes, false).unwrap().abac_policy_snapshot.policies().is_empty());
    bytes.push(b'\n');
    let error = load_with(&bytes, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "error reading policy file F: the file is larger than 67108864 bytes"
    );
}

proptest! {
    /// For any bytes, loading ends and each fault has a position in the text.
    #[test]
    fn no_input_panics(
        lines in prop::collection::vec(
            prop_oneof![
                "[ \t]*[{}\\[\\]\":,a-c#]{0,12}".prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 0..8),
                Just(b"{\"user\":\"a\"}".to_vec()),
                Just(b"# \xff".to_vec()),
            ],
            0..6,
        ),
    ) {
        let bytes = lines.join(&b'\n');
        let source = Source { name: "F", file_bytes: &bytes };
        match load_abac_policies(&source, &AbacPolicyLoadOptions::default()) {
            Ok(loaded) => prop_assert!(loaded.abac_policy_snapshot.policies().len() <= lines.len()),
            Err(error) => {
                let position = error.diagnostic.position;
                prop_assert!(position.line >= 1 && position.column >= 1 && position.start <= position.end_offset);
                // The text of a file that begins with a UTF-16 byte order mark is converted.
                if !bytes.starts_with(b"\xff\xfe") && !bytes.starts_with(b"\xfe\xff") {
                    let text = source.text();
                    let n_before = text.get(..position.start).map(|text| text.matches('\n').count());
                    prop_assert_eq!(n_before, Some(position.line - 1));
                    prop_assert!(text.get(position.start..position.end_offset).is_some());
                }
            }
        }
    }
}

#[test]
fn subjects_without_the_paths_of_discovery_are_named() {
    let line = |spec: &str| {
        format!(
            "{{\"apiVersion\":\"abac.authorization.kubernetes.io/v1beta1\",\"kind\":\"Policy\",\"spec\":{spec}}}\n"
        )
    };
    let pods = r#"{"user":"ana","namespace":"*","resource":"pods"}"#;
    let warned = |text: &str| {
        let source = document::Source { name: "policies", file_bytes: text.as_bytes() };
        let loaded =
            super::load_abac_policies(&source, &super::AbacPolicyLoadOptions::default()).unwrap();
        let warning =
            super::warn_of_ungranted_discovery_paths(&source, &loaded.abac_policy_snapshot);
        warning.map(|own| (own.position.line, own.message, own.hint.unwrap_or_default()))
    };
    let (at, message, hint) = warned(&format!("# c\n{}", line(pods))).unwrap();
    assert_eq!(at, 2);
    assert!(message.starts_with("no line lets user `ana` read /api"), "{message}");
    assert!(
        hint.ends_with(
            &line(r#"{"user":"ana","readonly":true,"nonResourcePath":"*"}"#).trim_end().to_owned()
        ),
        "{hint}"
    );
    let two =
        format!("{}{}", line(pods), line(r#"{"group":"dev","resource":"*","namespace":"*"}"#));
    assert!(warned(&two).unwrap().1.contains("`ana` and 1 more"));
    for more in [
        r#"{"user":"ana","nonResourcePath":"*"}"#,
        r#"{"group":"system:authenticated","readonly":true,"nonResourcePath":"/api*"}"#,
    ] {
        assert_eq!(warned(&format!("{}{}", line(pods), line(more))), None, "{more}");
    }
    assert!(
        warned(&format!("{}{}", line(pods), line(r#"{"user":"ana","nonResourcePath":"/api"}"#)))
            .is_some()
    );
    // A line of the first format that names neither a resource nor a namespace grants every path.
    assert_eq!(warned("{\"user\":\"ana\"}\n"), None);
    assert!(warned("{\"user\":\"ana\",\"resource\":\"pods\"}\n").is_some());
}
