//! Objects, faults, warnings and positions of manifest files.

mod limits;
mod lint;
mod unstructured_object;

use document::Source;
use proptest::prelude::*;

use super::*;

const HEADER: &str = "apiVersion: rbac.authorization.k8s.io/v1\n";

fn read_text(text: &str) -> Manifests {
    read(&Source { name: "F", file_bytes: text.as_bytes() })
}

/// Formats each object as `Kind namespace/name`.
fn names(manifests: &Manifests) -> Vec<String> {
    let name = |found: &ManifestObject| {
        let ManifestObject { authorizer_object: object, .. } = found;
        format!("{} {}/{}", object.kind_name(), object.namespace(), object.name())
    };
    manifests.authorizer_objects.iter().map(name).collect()
}

/// Formats each error as `line:column message`, with its hint in brackets.
fn faults(manifests: &Manifests) -> Vec<String> {
    let shown = |error: &Diagnostic| {
        let hint = error.hint.as_ref().map(|hint| format!(" [{hint}]")).unwrap_or_default();
        format!("{}:{} {}{hint}", error.position.line, error.position.column, error.fault)
    };
    manifests.errors.iter().map(shown).collect()
}

/// Formats each warning as `line:column code`, with its hint in brackets.
fn warnings_with_positions(warnings: &[Warning]) -> Vec<String> {
    let shown = |warning: &Warning| {
        let hint = warning.hint.as_ref().map(|hint| format!(" [{hint}]")).unwrap_or_default();
        let position = warning.position;
        format!("{}:{} {}{hint}", position.line, position.column, warning.code.name())
    };
    warnings.iter().map(shown).collect()
}

#[track_caller]
fn refused(text: &str, want: &[&str]) {
    let manifests = read_text(text);
    assert_eq!(faults(&manifests), want, "{text:.500}");
}

#[track_caller]
fn accepted(text: &str, want: &[&str]) {
    let manifests = read_text(text);
    assert_eq!(faults(&manifests), [""; 0], "{text}");
    assert_eq!(names(&manifests), want, "{text}");
}

/// A RoleBinding in `ns1` with these further lines.
fn binding(lines: &str) -> String {
    format!("{HEADER}kind: RoleBinding\nmetadata: {{name: b, namespace: ns1}}\n{lines}")
}

/// A ClusterRole with these rules.
fn cluster_role(rules: &str) -> String {
    format!("{HEADER}kind: ClusterRole\nmetadata: {{name: r}}\nrules:\n{rules}")
}

const ROLE_REF: &str = "roleRef: {kind: ClusterRole, name: view}\n";

#[test]
fn objects_are_read_from_documents_lists_and_streams() {
    let role = |name: &str| format!("{HEADER}kind: ClusterRole\nmetadata: {{name: {name}}}\n");
    let (a, b) = (role("a"), role("b"));
    let both = ["ClusterRole /a", "ClusterRole /b"];
    accepted(&format!("{a}---\n{b}"), &both);
    accepted(&format!("# first\n---\n---\n{a}...\n---\n# nothing\n---\n{b}---\n"), &both);
    let json = |name: &str| {
        format!(
            r#"{{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {{"name": "{name}"}}}}"#
        )
    };
    let (a, b) = (json("a"), json("b"));
    accepted(&format!("{a}\n{b}"), &both);
    accepted(&format!("{a}\n---\n{b}\n"), &both);
    accepted(&format!("---\n{a}\n---\n{b}\n"), &both);
    accepted(
        &format!(
            r#"{{"apiVersion": "v1", "items": [{a}, {b}], "kind": "List", "metadata": {{}}}}"#
        ),
        &both,
    );
    accepted(&format!("apiVersion: v1\nkind: List\nitems:\n- {a}\n- {b}\n"), &both);
    let nested = format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{a}]}}"#);
    accepted(
        &format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{nested}, {b}]}}"#),
        &both,
    );
    accepted("apiVersion: v1\nkind: List\nitems: []\n", &[]);
    accepted("apiVersion: v1\nkind: List\nitems:\n", &[]);
}

/// The response of a server to a list request, whose items have no `kind`.
#[test]
fn items_of_a_typed_list_inherit_their_kind() {
    accepted(
        r#"{"kind": "RoleBindingList", "apiVersion": "rbac.authorization.k8s.io/v1",
            "metadata": {"resourceVersion": "7"}, "items": [
            {"metadata": {"name": "b", "namespace": "team"}, "roleRef": {"kind": "Role", "name": "r"}},
            {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "team"}}]}"#,
        &["RoleBinding team/b", "Pod team/p"],
    );
    accepted(
        "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: p, namespace: team}}]\n",
        &["Pod team/p"],
    );
}

#[test]
fn other_kinds_are_ignored() {
    let text = "apiVersion: v1\nkind: ConfigMap\ndata: {a: b, a: c, rules: 7}\n---\n\
                apiVersion: example.com/v1\nkind: Role\nspec: {}\n---\n\
                apiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: va}\n\
                spec: {nodeName: n}\n";
    accepted(text, &["VolumeAttachment /va"]);
    assert_eq!(read_text(text).n_unused_objects, 2);
    let list = "apiVersion: apps/v1\nkind: DeploymentList\nitems: [1, 2]\n";
    accepted(list, &[]);
}

#[test]
fn all_metadata_fields_are_accepted() {
    accepted(
        &binding(
            "roleRef: {kind: ClusterRole, name: view, apiGroup: rbac.authorization.k8s.io}\n",
        )
        .replace(
            "metadata: {",
            "metadata: {uid: 0a, resourceVersion: '1', creationTimestamp: 2024-01-01T00:00:00Z, \
             generation: 1, selfLink: /x, generateName: b-, deletionTimestamp: null, \
             deletionGracePeriodSeconds: 30, finalizers: [a/b], labels: {a: b}, \
             annotations: {c: ''}, managedFields: [{fieldsV1: {'f:x': {}}, time: 1}], \
             ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u, controller: true, \
             blockOwnerDeletion: false}], ",
        ),
        &["RoleBinding ns1/b"],
    );
}

#[test]
fn unknown_and_duplicate_fields_are_refused_with_positions() {
    refused(
        &binding("subject: []\nroleRef: {kind: Role, nam: x}\nroleRef: {}\nrules: []\n"),
        &[
            "4:1 unknown field \"subject\" [did you mean `subjects`?]",
            "6:1 line 6: key \"roleRef\" already set in map",
            "7:1 unknown field \"rules\"",
        ],
    );
    let json = r#"{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
  "metadata": {"name": "r", "labels": {"a": "b", "a": "c"}},
  "rules": [{"verbs": ["get"], "verb": "x", "verbs": []}]}"#;
    let items = format!("{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n{json}]}}");
    refused(
        &items,
        &[
            "3:50 duplicate field \"items[0].metadata.labels.a\"",
            "4:32 unknown field \"items[0].rules[0].verb\" [did you mean `verbs`?]",
            "4:45 duplicate field \"items[0].rules[0].verbs\"",
        ],
    );
    refused(
        &format!(
            "apiVersion: v1\nkind: List\nitems:\n- {{}}\n- {HEADER}  kind: Role\n  kind: Role\n"
        ),
        &[
            "4:3 items[0].kind: Required value [every object says what it is: add `kind`]",
            "7:3 line 7: key \"kind\" already set in map",
        ],
    );
    refused(
        &format!("{HEADER}kind: ClusterRole\nname: r\nspec: {{}}\n"),
        &[
            "3:1 unknown field \"name\" [`name` belongs inside `metadata`]",
            "4:1 unknown field \"spec\"",
        ],
    );
    // An object of an ignored kind must not declare a second kind.
    refused("kind: Role\napiVersion: v1\nkind: ConfigMap\n", &["3:1 duplicate field \"kind\""]);
    refused(
        r#"{"kind": "Role", "apiVersion": "v1", "kind": "ConfigMap"}"#,
        &["1:38 duplicate field \"kind\""],
    );
}

#[test]
fn values_of_a_wrong_type_are_refused() {
    refused(
        &cluster_role("- verbs: get\n  apiGroups: ['']\n  resources: [pods, 7]\n- 3\n"),
        &[
            "5:10 json: cannot unmarshal string into Go struct field PolicyRule.rules.verbs of \
             type []string [this is a list: begin each item with `- `]",
            "7:21 json: cannot unmarshal number into Go struct field \
             PolicyRule.rules.resources of type string [`7` is a number: put it in quotes to make \
             it text]",
            "8:3 json: cannot unmarshal number into Go struct field ClusterRole.rules of type \
             v1.PolicyRule [an item has the fields `verbs`, `apiGroups`, `resources`, \
             `resourceNames`, `nonResourceURLs`]",
        ],
    );
    refused(
        &format!("{HEADER}kind: Role\nmetadata: {{labels: {{a: yes}}, annotations: []}}\n"),
        &[
            "3:24 json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of \
             type string [`yes` is a boolean: put it in quotes to make it text]",
            "3:43 json: cannot unmarshal array into Go struct field \
             ObjectMeta.metadata.annotations of type map[string]string",
        ],
    );
}

/// A rule needs verbs and either resources or URLs, and a binding needs a valid role; each fault has
/// its position.
#[test]
fn rbac_objects_are_validated() {
    refused(
        &format!(
            "{HEADER}kind: ClusterRoleBinding\nmetadata:\n  name: b\n  namespace: team\nroleRef:\n  \
             apiGroup: rbac.authorization.k8s.io/v1\n  kind: Role\n  name: ''\nsubjects:\n\
             - kind: user\n  name: ana\n- kind: ServiceAccount\n  name: ci\n- kind: \
             ServiceAccount\n  name: system:serviceaccount:team:ci\n  namespace: team\n  apiGroup: \
             rbac.authorization.k8s.io\n"
        ),
        &[
            "5:14 metadata.namespace: Forbidden: not allowed on this type [a ClusterRoleBinding \
             belongs to no namespace: remove it]",
            "7:13 roleRef.apiGroup: Unsupported value: \"rbac.authorization.k8s.io/v1\": \
             supported values: \"rbac.authorization.k8s.io\" [write `rbac.authorization.k8s.io` \
             without a version, or leave it out]",
            "8:9 roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\" [a \
             Role grants nothing outside of its namespace: use a RoleBinding]",
            "11:9 subjects[0].kind: Unsupported value: \"user\": supported values: \
             \"ServiceAccount\", \"User\", \"Group\" [did you mean `User`?]",
            "13:3 subjects[1].namespace: Required value [a ClusterRoleBinding belongs to no \
             namespace, so its service accounts must say theirs]",
            "16:9 subjects[2].name: Invalid value: \"system:serviceaccount:team:ci\": a lowercase \
             RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character (e.g. 'example.com', regex \
             used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*') \
             [write `namespace: team` and `name: ci`]",
            "18:13 subjects[2].apiGroup: Unsupported value: \"rbac.authorization.k8s.io\": \
             supported values: \"\" [a ServiceAccount is in no API group: leave `apiGroup` out]",
            "9:9 roleRef.name: Required value",
        ],
    );
    refused(
        &format!(
            "{HEADER}kind: Role\nmetadata: {{generateName: r-}}\nrules: [{{resources: [a]}}]\n"
        ),
        &[
            "3:11 metadata.name: Required value: name or generateName is required [nothing \
             completes `generateName` in a file: set `name`]",
            "3:11 metadata.namespace: Required value [add `metadata.namespace`, because a Role \
             belongs to a namespace, or give the namespace with `-n`]",
            "4:9 rules[0].apiGroups: Required value: resource rules must supply at least one api \
             group [`apiGroups: [\"\"]` is the group of pods, services and secrets]",
            "4:9 rules[0].verbs: Required value",
        ],
    );
    accepted(
        &format!("{HEADER}kind: Role\nmetadata: {{name: 'a:B@c', namespace: team}}\n"),
        &["Role team/a:B@c"],
    );
    refused(
        &format!("{HEADER}kind: ClusterRole\nmetadata: {{name: r, labels: {{a b: c, d: -}}}}\n"),
        &[
            "3:30 metadata.labels: Invalid value: \"a b\": name part must consist of \
             alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
             validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            "3:41 metadata.labels: Invalid value: \"-\": a valid label must be an empty string or \
             consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ],
    );
}

#[test]
fn kind_and_api_version_are_required() {
    refused(
        "Kind: Role\napiversion: rbac.authorization.k8s.io/v1\n",
        &["1:1 kind: Required value [write `kind`, not `Kind`]"],
    );
    refused(
        "kind: Role\napiVersion: 1\n",
        &["2:13 `apiVersion` must be a string, this is a number"],
    );
    refused(
        "kind: Role\n",
        &["1:1 apiVersion: Required value [every object says its version: add `apiVersion`, such \
           as `rbac.authorization.k8s.io/v1`]"],
    );
    refused("- kind: Role\n", &["1:1 an object is expected here, this is an array"]);
    refused(
        "kind: List\napiVersion: v1\nitems: [null, a]\n",
        &[
            "3:9 an object is expected here, this is null",
            "3:15 an object is expected here, this is a string",
        ],
    );
    refused(
        "kind: Rolebinding\napiVersion: rbac.authorization.k8s.io/v1\n",
        &[
            "1:7 no kind \"Rolebinding\" is registered for version \"rbac.authorization.k8s.io/v1\" \
           [did you mean `RoleBinding`?]",
        ],
    );
}

#[test]
fn fields_of_a_list_are_checked() {
    refused(
        "apiVersion: v1\nkind: List\nitem: []\n",
        &["3:1 unknown field \"item\" [did you mean `items`?]", "1:1 a list without `items`"],
    );
    refused("apiVersion: v1\nkind: List\nitems: {}\n", &["3:8 `items` must be an array"]);
    refused(
        r#"{"apiVersion": "v1", "kind": "List", "items": [], "items": []}"#,
        &["1:51 duplicate field \"items\""],
    );
    refused(
        "apiVersion: v1\nkind: List\nitems: []\nitems: []\n",
        &["4:1 line 4: key \"items\" already set in map"],
    );
    let part = read_text("apiVersion: v1\nkind: List\nmetadata: {continue: abc}\nitems: []\n");
    assert_eq!(
        warnings_with_positions(&part.warnings),
        ["3:22 incomplete-list [ask the server for all of it]"]
    );
}

#[test]
fn a_syntax_error_ends_reading() {
    let role = format!("{HEADER}kind: ClusterRole\nmetadata: {{name: a}}\n");
    let rules = "rules:\n- verbs: [get]\n  apiGroups: [*]\n";
    refused(
        &format!("{role}---\n{role}{rules}"),
        &["10:16 yaml: line 10: did not find expected alphabetic or numeric character [an \
           unquoted leading `*` is a YAML alias: put it in quotes]"],
    );
    refused(
        &format!("{role}\tx: y\n"),
        &["4:1 yaml: line 4: found character that cannot start any token [YAML is indented with \
         spaces, not tabs]"],
    );
    refused("{\"kind\": ", &["1:10 unexpected end of JSON input"]);
    refused(
        "{\"kind\": \"Role\", \"apiVersion\": \"example.com/v1\"} x",
        &["1:50 invalid character 'x' looking for beginning of value"],
    );
    for text in ["", "\n", "# only a comment\n", "---\n---\n", "\u{feff}"] {
        let manifests = read_text(text);
        assert!(manifests.has_no_objects && manifests.errors.is_empty(), "{text:?}");
    }
    for bytes in
        [&b"\x7fELF\x02\x01\x01\0\0"[..], b"\x00\x01", b"kind: \xff\n", b"{\"a\": \"\xff\"}"]
    {
        let manifests = read(&Source { name: "F", file_bytes: bytes });
        assert_eq!(manifests.errors.len(), 1, "{:?}", faults(&manifests));
        assert!(manifests.authorizer_objects.is_empty());
    }
}

#[test]
fn node_objects_are_read_leniently() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team, namespace: team}\n\
               spec: {nodeName: node1, volumes: [{secret: {secretName: s}}], unknown: 1}\n";
    accepted(pod, &["Pod team/p"]);
    let AuthorizerObject::Node(authz_node::GraphObject::Pod(pod)) =
        &read_text(pod).authorizer_objects[0].authorizer_object
    else {
        panic!("a pod");
    };
    assert_eq!(
        (pod.node_name.as_str(), pod.secret_names.as_slice()),
        ("node1", &["s".to_owned()][..])
    );
    refused(
        "apiVersion: v1\nkind: Pod\nmetadata: {generateName: p}\nspec: {nodeName: node1}\n",
        &[
            "3:11 metadata.name: Required value [a Pod that belongs to a node needs \
             `metadata.name`]",
            "3:11 metadata.namespace: Required value [a Pod that belongs to a node needs \
             `metadata.namespace`]",
        ],
    );
    accepted("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", &["Pod /p"]);
}

#[test]
fn duplicate_objects_are_reported_with_both_positions() {
    let role = |kind: &str, namespace: &str| {
        format!("{HEADER}kind: {kind}\nmetadata: {{name: r{namespace}}}\n")
    };
    let first = role("ClusterRole", "");
    let other = format!("{}rules: []\n", role("ClusterRole", ", labels: {a: b}"));
    let second = format!("{}---\n{other}", role("Role", ", namespace: team"));
    let mut objects =
        read(&Source { name: "a.yaml", file_bytes: first.as_bytes() }).authorizer_objects;
    assert_eq!(find_duplicate_objects(&objects), DuplicateObjects::default());
    objects
        .extend(read(&Source { name: "b.yaml", file_bytes: second.as_bytes() }).authorizer_objects);
    let found = find_duplicate_objects(&objects);
    assert_eq!(found.warnings, []);
    let [fault] = found.errors.as_slice() else { panic!("{found:?}") };
    assert_eq!(
        (fault.file_name.as_str(), fault.position.line, fault.position.column),
        ("b.yaml", 5, 1)
    );
    assert_eq!(
        fault.fault.to_string(),
        "metadata.name: Duplicate value: \"r\": this ClusterRole is first defined at a.yaml:1:1"
    );
    let role_of_team = role("Role", ", namespace: team");
    let twice = format!(
        "{role_of_team}---\n{role_of_team}rules: [{{verbs: [get], apiGroups: [''], resources: [pods]}}]\n"
    );
    let found = find_duplicate_objects(&read_text(&twice).authorizer_objects);
    assert_eq!(
        found.errors[0].fault.to_string(),
        "metadata.name: Duplicate value: \"r\": this Role in namespace `team` is first defined at \
         F:1:1"
    );
    // The same object twice is no contradiction.
    let twice = format!("{role_of_team}---\n{role_of_team}");
    let found = find_duplicate_objects(&read_text(&twice).authorizer_objects);
    assert_eq!(found.errors, []);
    assert_eq!(
        found.warnings[0].message,
        "the Role in namespace `team` `r` is already defined at F:1:1, with the same content"
    );
    // Objects without a name are not duplicates: a server would give each its own name.
    let unnamed = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: p}\n";
    let found =
        find_duplicate_objects(&read_text(&format!("{unnamed}---\n{unnamed}")).authorizer_objects);
    assert_eq!(found, DuplicateObjects::default());
}

#[test]
fn other_documents_are_no_faults_unless_beside_objects() {
    for text in [
        "image: {tag: v1}\nrbac: {create: true}\n",
        "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
        "- a\n- b\n",
        "{\"dashboard\": {\"kind\": \"x\"}}",
        "just a sentence\n",
    ] {
        let manifests = read_text(text);
        assert!(manifests.has_no_objects, "{text}");
        assert_eq!(faults(&manifests), Vec::<String>::new(), "{text}");
    }
    let role = format!("{HEADER}kind: ClusterRole\nmetadata: {{name: r}}\n");
    let beside = read_text(&format!("{role}---\nimage: x\n"));
    assert!(!beside.has_no_objects);
    assert_eq!(faults(&beside).len(), 1, "{:?}", faults(&beside));
    for text in [
        "kind: Role\n",
        "apiVersion: v1\n",
        "metadata: {name: x}\nrules: []\n",
        "Kind: Role\napiversion: v1\n",
    ] {
        assert_eq!(read_text(text).errors.len(), 1, "{text}");
    }
}

#[test]
fn a_merged_key_may_be_set_again() {
    let text = format!(
        "{HEADER}kind: ClusterRole\nmetadata: {{name: r}}\nrules:\n- &all {{apiGroups: [''], resources: [pods], verbs: [get]}}\n- <<: *all\n  verbs: [list]\n"
    );
    let manifests = read_text(&text);
    assert_eq!(faults(&manifests), Vec::<String>::new());
    let AuthorizerObject::Rbac(rbac::RbacObject::Role(role)) =
        &manifests.authorizer_objects[0].authorizer_object
    else {
        panic!("a role");
    };
    assert_eq!(role.rules[1].verbs, ["list"]);
    assert_eq!(role.rules[1].resources, ["pods"]);
    let twice = text.replace("  verbs: [list]\n", "  verbs: [list]\n  verbs: [watch]\n");
    assert_eq!(read_text(&twice).errors.len(), 1, "a key that is written twice");
}

#[test]
fn a_namespace_can_be_supplied() {
    let text = format!(
        "{HEADER}kind: Role\nmetadata: {{name: a}}\n---\n{HEADER}kind: Role\nmetadata: {{name: b, namespace: own}}\n---\n{HEADER}kind: ClusterRole\nmetadata: {{name: c}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{nodeName: node1}}\n"
    );
    assert_eq!(read_text(&text).errors.len(), 2);
    let source = Source { name: "F", file_bytes: text.as_bytes() };
    let options =
        ManifestReadOptions { default_namespace: Some("given"), ..ManifestReadOptions::default() };
    let manifests = read_manifests_with_options(&source, options);
    assert_eq!(faults(&manifests), Vec::<String>::new());
    let namespaces: Vec<&str> =
        manifests.authorizer_objects.iter().map(|it| it.authorizer_object.namespace()).collect();
    assert_eq!(namespaces, ["given", "own", "", "given"]);
}

proptest! {
    /// For any bytes, reading ends and every diagnostic has a position in the text.
    #[test]
    fn no_input_panics(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec![
                    "apiVersion: rbac.authorization.k8s.io/v1\n", "kind: RoleBinding\n", "kind: List\n",
                    "apiVersion: v1\n", "metadata: {name: a, namespace: b}\n", "items:\n", "- ",
                    "subjects:\n", "- {kind: User, name: '*'}\n", "roleRef: {kind: Role, name: x}\n",
                    "rules:\n", "- {verbs: [Get], resources: ['pods/']}\n", "---\n", "...\n", "&a ",
                    "*a", "{", "}", "[", "]", "\"", "\"kind\": ", "\"items\": [", ",", "\t", "  ",
                    "kind: Pod\n", "spec: {nodeName: node1}\n", "<<: *a\n", "null", "1",
                ]).prop_map(|piece| piece.as_bytes().to_vec()),
                prop::collection::vec(any::<u8>(), 0..4),
            ],
            0..24,
        ),
    ) {
        let bytes = pieces.concat();
        let source = Source { name: "F", file_bytes: &bytes };
        let text = source.text();
        let manifests = read(&source);
        let positions = manifests.authorizer_objects.iter().map(|found| found.position)
            .chain(manifests.errors.iter().map(|error| error.position))
            .chain(manifests.warnings.iter().map(|warning| warning.position));
        for position in positions {
            prop_assert!(position.line >= 1 && position.column >= 1);
            prop_assert!(text.get(position.start..position.end_offset).is_some());
        }
        find_duplicate_objects(&manifests.authorizer_objects);
        lint_role_references(&manifests.authorizer_objects, true);
    }
}
