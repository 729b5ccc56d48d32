//! Defaults and rules of single kinds.

use api_object::Tree;
use api_resources::Resource;
use serde_json::{Value, json};

use crate::world::{EXTENSIONS, RBAC, resource, tree, widgets};

/// The object as it would be stored if it were created.
fn created(resource: &Resource, value: Value) -> Tree {
    let mut tree = tree(value);
    api_resources::prepare_create(resource, &mut tree).expect("the right types");
    tree
}

fn create_faults(resource: &Resource, value: Value) -> String {
    api_resources::validate_create(resource, &created(resource, value)).to_string()
}

fn update_faults(resource: &Resource, old: Value, new: Value) -> String {
    let (old, mut new) = (created(resource, old), tree(new));
    api_resources::prepare_update(resource, &mut new, &old, None).expect("the right types");
    api_resources::validate_update(resource, &new, &old, None).to_string()
}

#[test]
fn a_namespace_is_born_complete() {
    let namespaces = resource("", "namespaces");
    let tree = created(&namespaces, json!({ "metadata": { "name": "n1" } }));
    assert_eq!(tree["spec"], json!({ "finalizers": ["kubernetes"] }));
    assert_eq!(tree["status"], json!({ "phase": "Active" }));
    assert_eq!(tree["metadata"]["labels"], json!({ "kubernetes.io/metadata.name": "n1" }));
    let own = json!({ "metadata": { "name": "n" }, "spec": { "finalizers": ["a.b/c"] } });
    assert_eq!(created(&namespaces, own)["spec"]["finalizers"], json!(["a.b/c", "kubernetes"]));
    let bad = json!({ "metadata": { "name": "n" }, "spec": { "finalizers": ["x"] } });
    assert_eq!(
        create_faults(&namespaces, bad),
        "spec.finalizers: Invalid value: \"x\": name is neither a standard finalizer name nor is \
         it fully qualified"
    );
}

#[test]
fn the_finalizers_of_a_namespace_have_their_own_path() {
    let namespaces = resource("", "namespaces");
    let old = created(&namespaces, json!({ "metadata": { "name": "n1" } }));
    let emptied = json!({
        "metadata": { "name": "n1", "labels": { "a": "b" } }, "spec": { "finalizers": [] },
    });
    let mut new = tree(emptied.clone());
    api_resources::prepare_update(&namespaces, &mut new, &old, None).expect("the right types");
    assert_eq!(new["spec"], json!({ "finalizers": ["kubernetes"] }));
    let labels = json!({ "a": "b", "kubernetes.io/metadata.name": "n1" });
    assert_eq!(new["metadata"]["labels"], labels);

    let mut new = tree(emptied);
    api_resources::prepare_update(&namespaces, &mut new, &old, Some("finalize")).expect("types");
    assert_eq!(new["spec"], json!({}));
    assert_eq!(new["metadata"], old["metadata"]);
    assert!(api_resources::blocks_removal(&namespaces, &old));
    assert!(!api_resources::blocks_removal(&namespaces, &new));
}

#[test]
fn the_phase_of_a_namespace_follows_its_deletion() {
    let namespaces = resource("", "namespaces");
    let mut tree = created(&namespaces, json!({ "metadata": { "name": "n1" } }));
    let mut finalizers = Vec::new();
    api_resources::prepare_delete(&namespaces, &mut tree, &mut finalizers, crate::world::now());
    assert_eq!(tree["status"], json!({ "phase": "Terminating" }));
    assert!(finalizers.is_empty());
    let faults = api_resources::validate_update(&namespaces, &tree, &tree, Some("status"));
    assert_eq!(
        faults.to_string(),
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if \
         `deletionTimestamp` is empty"
    );
    tree["metadata"]["deletionTimestamp"] = json!("2026-11-15T18:02:38Z");
    assert!(api_resources::validate_update(&namespaces, &tree, &tree, Some("status")).is_empty());
}

#[test]
fn texts_of_a_secret_become_data() {
    let secrets = resource("", "secrets");
    let tree = created(
        &secrets,
        json!({ "data": { "a": "eA==", "b": "eQ==" }, "stringData": { "a": "z", "c": "" } }),
    );
    assert_eq!(tree["data"], json!({ "a": "eg==", "b": "eQ==", "c": "" }));
    assert!(tree.get("stringData").is_none());
    assert_eq!(tree["type"], "Opaque");
}

#[test]
fn secrets_of_a_type_hold_what_it_promises() {
    let secrets = resource("", "secrets");
    for (secret, want) in [
        (
            json!({ "type": "kubernetes.io/tls", "stringData": { "tls.crt": "", "tls.key": "" } }),
            "",
        ),
        (
            json!({ "type": "kubernetes.io/tls", "stringData": { "tls.crt": "" } }),
            "data[tls.key]: Required value",
        ),
        (
            json!({ "type": "kubernetes.io/dockerconfigjson",
                "stringData": { ".dockerconfigjson": "{\"auths\":{}}" } }),
            "",
        ),
        (
            json!({ "type": "kubernetes.io/dockerconfigjson",
                "stringData": { ".dockerconfigjson": "hunter2" } }),
            "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": not a JSON \
             object, at column 1",
        ),
        (
            json!({ "type": "kubernetes.io/service-account-token" }),
            "metadata.annotations[kubernetes.io/service-account.name]: Required value",
        ),
        (
            json!({ "type": "kubernetes.io/basic-auth" }),
            "[data[username]: Required value, data[password]: Required value]",
        ),
        (json!({ "type": "kubernetes.io/ssh-auth" }), "data[ssh-privatekey]: Required value"),
        (json!({ "type": "anything" }), ""),
    ] {
        assert_eq!(create_faults(&secrets, secret), want);
    }
}

#[test]
fn keys_of_values_can_be_names_of_files() {
    let maps = resource("", "configmaps");
    for key in ["a", "A.b_c-9", ".hidden"] {
        assert_eq!(create_faults(&maps, json!({ "data": { key: "" } })), "", "{key}");
    }
    for (key, want) in [
        ("a/b", "a valid config key must consist of"),
        ("", "a valid config key must consist of"),
        ("..", "must not be '..'"),
        ("..x", "must not start with '..'"),
    ] {
        let faults = create_faults(&maps, json!({ "data": { key: "" } }));
        assert!(faults.contains(want), "{key}: {faults}");
    }
    let both = json!({ "data": { "a": "" }, "binaryData": { "a": "" } });
    assert_eq!(
        create_faults(&maps, both),
        "data[a]: Invalid value: \"a\": duplicate of key present in binaryData"
    );
}

#[test]
fn values_have_a_limited_size() {
    const MAX: usize = 1_048_576;
    let text = |n_bytes: usize| "x".repeat(n_bytes);
    let maps = resource("", "configmaps");
    assert_eq!(create_faults(&maps, json!({ "data": { "a": text(MAX) } })), "");
    assert_eq!(
        create_faults(&maps, json!({ "data": { "a": text(MAX) }, "binaryData": { "b": "eA==" } })),
        "[]: Too long: may not be more than 1048576 bytes"
    );
    let secrets = resource("", "secrets");
    assert_eq!(create_faults(&secrets, json!({ "stringData": { "a": text(MAX) } })), "");
    assert_eq!(
        create_faults(&secrets, json!({ "stringData": { "a": text(MAX + 1) } })),
        "data: Too long: may not be more than 1048576 bytes"
    );
}

#[test]
fn what_is_immutable_stays() {
    let immutable = "field is immutable when `immutable` is set";
    let maps = resource("", "configmaps");
    let old = json!({ "immutable": true, "data": { "a": "1" } });
    for (new, want) in [
        (json!({ "immutable": true, "data": { "a": "1" } }), String::new()),
        (
            json!({ "immutable": true, "data": { "a": "2" } }),
            format!("data: Forbidden: {immutable}"),
        ),
        (json!({ "data": { "a": "1" } }), format!("immutable: Forbidden: {immutable}")),
        (
            json!({ "immutable": true, "data": { "a": "1" }, "binaryData": { "b": "" } }),
            format!("binaryData: Forbidden: {immutable}"),
        ),
    ] {
        assert_eq!(update_faults(&maps, old.clone(), new), want);
    }
    assert_eq!(
        update_faults(&maps, json!({ "data": { "a": "1" } }), json!({ "immutable": true })),
        ""
    );
    let secrets = resource("", "secrets");
    assert_eq!(
        update_faults(&secrets, json!({ "type": "a" }), json!({ "type": "b" })),
        "type: Invalid value: \"b\": field is immutable"
    );
}

#[test]
fn wrong_types_are_no_objects_of_the_kind() {
    for (group, plural, value, want) in [
        (
            RBAC,
            "roles",
            json!({ "rules": "all" }),
            "Role in version \"v1\" cannot be handled as a Role: json: cannot unmarshal string \
             into field rules of type array",
        ),
        (
            "",
            "configmaps",
            json!({ "data": { "a": 1 } }),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal \
             number into field data.a of type string",
        ),
        (
            EXTENSIONS,
            "customresourcedefinitions",
            json!({ "spec": { "versions": {} } }),
            "CustomResourceDefinition in version \"v1\" cannot be handled as a \
             CustomResourceDefinition: json: cannot unmarshal object into field spec.versions of \
             type array",
        ),
    ] {
        let error = api_resources::prepare_create(&resource(group, plural), &mut tree(value))
            .expect_err("a wrong type");
        assert_eq!(error.to_string(), want);
    }
}

#[test]
fn fields_that_a_kind_lacks_are_not_stored() {
    let tree = created(
        &resource(RBAC, "roles"),
        json!({ "kind": "Role", "metadata": { "name": "r" }, "extra": 1, "aggregationRule": {},
            "rules": [{ "verbs": ["get"], "typo": [] }] }),
    );
    let want = json!({
        "kind": "Role", "metadata": { "name": "r" }, "rules": [{ "verbs": ["get"] }],
    });
    assert_eq!(Value::Object(tree), want);
}

#[test]
fn bindings_get_the_group_that_they_leave_out() {
    let tree = created(
        &resource(RBAC, "rolebindings"),
        json!({
            "roleRef": { "kind": "Role", "name": "r" },
            "subjects": [
                { "kind": "User", "name": "u" },
                { "kind": "ServiceAccount", "name": "s", "namespace": "n" },
            ],
        }),
    );
    assert_eq!(tree["roleRef"]["apiGroup"], RBAC);
    assert_eq!(tree["subjects"][0]["apiGroup"], RBAC);
    assert!(tree["subjects"][1].get("apiGroup").is_none());
}

#[test]
fn roles_are_validated_as_the_authorizer_reads_them() {
    let object = |kind: &str, rest: Value| {
        let mut object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": kind,
            "metadata": { "name": "bad/name", "namespace": "d" },
        });
        object.as_object_mut().expect("an object").extend(tree(rest));
        object
    };
    // Its name is for the rules of all metadata to refuse.
    let role = object("Role", json!({ "rules": [{ "verbs": [], "resources": ["pods"] }] }));
    assert_eq!(
        create_faults(&resource(RBAC, "roles"), role),
        "[rules[0].apiGroups: Required value: resource rules must supply at least one api group, \
         rules[0].verbs: Required value]"
    );
    let binding =
        |name: &str| object("RoleBinding", json!({ "roleRef": { "kind": "Role", "name": name } }));
    let bindings = resource(RBAC, "rolebindings");
    assert_eq!(update_faults(&bindings, binding("a"), binding("a")), "");
    assert_eq!(
        update_faults(&bindings, binding("a"), binding("b")),
        "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\
         \"Name\":\"b\"}: field is immutable"
    );
}

#[test]
fn a_service_gets_its_defaults() {
    let services = resource("", "services");
    let tree = created(&services, json!({ "spec": { "ports": [{ "port": 80 }] } }));
    assert_eq!(
        tree["spec"],
        json!({
            "ports": [{ "port": 80, "protocol": "TCP", "targetPort": 80 }],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
        })
    );
    let named = json!({ "spec": { "ports": [{ "port": 80, "targetPort": "web" }] } });
    assert_eq!(created(&services, named)["spec"]["ports"][0]["targetPort"], "web");
}

#[test]
fn services_have_ports_that_exist() {
    let services = resource("", "services");
    for (spec, want) in [
        (json!({ "ports": [{ "port": 65_535 }] }), ""),
        (json!({ "clusterIP": "None" }), ""),
        (json!({ "type": "ExternalName", "externalName": "a.b" }), ""),
        (
            json!({ "type": "ExternalName", "externalName": "a.b", "clusterIP": "10.0.0.1" }),
            "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
        ),
        (
            json!({ "type": "ExternalName", "externalName": "a.b", "clusterIPs": ["10.0.0.1"] }),
            "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
        ),
        (
            json!({ "ports": [{ "port": 1 }], "clusterIPs": ["10.0.0.1"] }),
            "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: must be empty when `clusterIP` is not \
             specified",
        ),
        (
            json!({ "ports": [{ "port": 1 }], "clusterIP": "a", "clusterIPs": ["b"] }),
            "[spec.clusterIPs: Invalid value: [\"b\"]: first value must match `clusterIP`, \
             spec.clusterIPs[0]: Invalid value: \"b\": must be a valid IP address, (e.g. 10.9.8.7 \
             or 2001:db8::ffff)]",
        ),
        (
            json!({ "type": "NodePort", "clusterIP": "None" }),
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort \
             services",
        ),
        (json!({}), "spec.ports: Required value"),
        (
            json!({ "ports": [{ "port": 65_536 }] }),
            "spec.ports[0].port: Invalid value: 65536: must be between 1 and 65535, inclusive",
        ),
        (
            json!({ "ports": [{ "port": 1, "name": "a" }, { "port": 2, "name": "a" }] }),
            "spec.ports[1].name: Duplicate value: \"a\"",
        ),
        (
            json!({ "type": "Other", "ports": [{ "port": 1 }] }),
            "spec.type: Unsupported value: \"Other\": supported values: \"ClusterIP\", \
             \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
        ),
    ] {
        assert_eq!(create_faults(&services, json!({ "spec": spec })), want);
    }
}

#[test]
fn a_service_keeps_its_address() {
    let services = resource("", "services");
    let with =
        |address: &str| json!({ "spec": { "ports": [{ "port": 1 }], "clusterIP": address } });
    assert_eq!(update_faults(&services, with("10.0.0.1"), with("10.0.0.1")), "");
    assert_eq!(
        update_faults(&services, with("10.0.0.1"), with("10.0.0.2")),
        "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: first value must match `clusterIP`"
    );
    let mut both = with("10.0.0.2");
    both["spec"]["clusterIPs"] = json!(["10.0.0.2"]);
    assert_eq!(
        update_faults(&services, with("10.0.0.1"), both),
        "spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"
    );
    let old = created(&services, with("10.0.0.1"));
    let mut new = tree(json!({ "spec": { "ports": [{ "port": 2 }] } }));
    api_resources::prepare_update(&services, &mut new, &old, None).expect("the right types");
    assert_eq!(new["spec"]["clusterIP"], "10.0.0.1");
}

#[test]
fn leases_count_up() {
    let leases = resource("coordination.k8s.io", "leases");
    for (spec, want) in [
        (json!({ "leaseDurationSeconds": 1, "leaseTransitions": 0 }), ""),
        (
            json!({ "leaseDurationSeconds": 0 }),
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            json!({ "leaseTransitions": -1 }),
            "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            json!({ "preferredHolder": "a" }),
            "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined",
        ),
    ] {
        assert_eq!(create_faults(&leases, json!({ "spec": spec })), want);
    }
}

#[test]
fn a_pod_gets_its_defaults() {
    let pods = resource("", "pods");
    let containers = json!([
        { "name": "a", "image": "x" },
        { "name": "b", "image": "r:5000/x:1" },
        { "name": "c", "image": "x:latest", "imagePullPolicy": "Never" },
    ]);
    let tree = created(&pods, json!({ "spec": { "containers": containers } }));
    assert_eq!(tree["status"], json!({ "phase": "Pending" }));
    let spec = &tree["spec"];
    assert_eq!(
        (&spec["restartPolicy"], &spec["serviceAccountName"]),
        (&json!("Always"), &json!("default"))
    );
    let policies: Vec<&Value> = spec["containers"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| &it["imagePullPolicy"])
        .collect();
    assert_eq!(policies, ["Always", "IfNotPresent", "Never"]);
    assert_eq!(create_faults(&pods, json!({ "spec": {} })), "spec.containers: Required value");
}

#[test]
fn an_event_lives_beside_its_object() {
    let events = resource("", "events");
    for (own, involved, is_good) in
        [("d", "d", true), ("default", "", true), ("d", "e", false), ("d", "", false)]
    {
        let event = json!({
            "metadata": { "namespace": own }, "involvedObject": { "namespace": involved },
        });
        assert_eq!(create_faults(&events, event).is_empty(), is_good, "{own} {involved}");
    }
}

/// Labels and status do not make a generation, everything else does.
#[test]
fn what_counts_as_a_change() {
    let old =
        tree(json!({ "metadata": { "labels": {} }, "spec": { "a": 1 }, "status": { "b": 1 } }));
    let changed = |path: &str, resource: &Resource| {
        let mut new = old.clone();
        new.insert(path.to_owned(), json!({ "new": true }));
        api_resources::is_spec_changed(resource, &new, &old)
    };
    let definitions = resource(EXTENSIONS, "customresourcedefinitions");
    assert!(!changed("metadata", &definitions));
    assert!(!changed("status", &definitions));
    assert!(changed("spec", &definitions));
    assert!(changed("other", &definitions));
    let slices = resource("discovery.k8s.io", "endpointslices");
    assert!(changed("status", &slices));
    let mut new = old.clone();
    new.insert("nothing".to_owned(), Value::Null);
    assert!(!api_resources::is_spec_changed(&slices, &new, &old));
    assert!(api_resources::is_spec_changed(&slices, &widgets(), &old));
}

/// Attack A2: the lists of a rule are multiplied, so their product has a limit; a role that was stored
/// before keeps its rules.
#[test]
fn a_role_grants_so_much_at_most() {
    let rule = |n_verbs: usize, n_groups: usize, n_resources: usize| {
        let entries = |n: usize| (0..n).map(|number| format!("e{number}")).collect::<Vec<_>>();
        json!({ "verbs": entries(n_verbs), "apiGroups": entries(n_groups), "resources": entries(n_resources) })
    };
    let urls = |n_verbs: usize, n_urls: usize| {
        let entries = |n: usize| (0..n).map(|number| format!("/{number}")).collect::<Vec<_>>();
        json!({ "verbs": entries(n_verbs), "nonResourceURLs": entries(n_urls) })
    };
    let role = |rules: Value| json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "r" }, "rules": rules });
    let roles = resource(RBAC, "clusterroles");
    let of_rule = |idx: usize, n: u64| {
        format!(
            "rules[{idx}]: Invalid value: {n}: must have at most 100000 combinations of API groups, \
             resources, verbs and names, or of URLs and verbs; split the rule into several, or use \
             fewer entries"
        )
    };
    let of_role = "rules: Invalid value: 1010000: must have at most 1000000 combinations of API \
                   groups, resources, verbs and names in all rules together; split the role into \
                   several";
    let (small, large) = (rule(10, 100, 100), rule(11, 100, 100));
    let many = |last: Value| Value::from([vec![small.clone(); 10], vec![last]].concat());
    for (rules, want) in [
        (json!([small]), String::new()),
        (json!([small, large]), of_rule(1, 110_000)),
        (json!([rule(150, 150, 150)]), of_rule(0, 3_375_000)),
        (json!([urls(100, 1_000)]), String::new()),
        (json!([urls(101, 1_000)]), of_rule(0, 101_000)),
        (Value::from(vec![small.clone(); 10]), String::new()),
        (many(rule(1, 100, 100)), of_role.to_owned()),
    ] {
        assert_eq!(create_faults(&roles, role(rules)), want);
    }
    let mut labelled = role(json!([large]));
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    assert_eq!(update_faults(&roles, role(json!([large])), labelled), "");
    let more = role(json!([large, small]));
    assert_eq!(update_faults(&roles, role(json!([large])), more), of_rule(0, 110_000));
    // Others supply the rules of an aggregated role.
    let mut aggregated = role(many(rule(1, 100, 100)));
    aggregated["aggregationRule"] =
        json!({ "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] });
    assert_eq!(create_faults(&roles, aggregated.clone()), "");
    aggregated["rules"] = json!([large]);
    assert_eq!(create_faults(&roles, aggregated), of_rule(0, 110_000));
}

#[test]
fn a_trust_bundle_belongs_to_the_signer_in_its_name() {
    let bundles = resource("certificates.k8s.io", "clustertrustbundles");
    let at_signer = "spec.signerName: Invalid value";
    let bundle = |name: &str, signer: &str| {
        json!({ "metadata": { "name": name },
            "spec": { "signerName": signer, "trustBundle": TRUST_ANCHOR } })
    };
    let no_prefix = "ClusterTrustBundle for signerName ex.io/a must be named with prefix ex.io:a:";
    let colon = "ClusterTrustBundle without signer name must not have \":\" in its name";
    for (name, signer, want) in [
        ("ex.io:a:b", "ex.io/a", String::new()),
        ("plain", "", String::new()),
        ("b", "ex.io/a", format!("metadata.name: Invalid value: \"b\": {no_prefix}")),
        (
            "ex.io:b:b",
            "ex.io/a",
            format!("metadata.name: Invalid value: \"ex.io:b:b\": {no_prefix}"),
        ),
        ("ex.io:a:b", "", format!("metadata.name: Invalid value: \"ex.io:a:b\": {colon}")),
    ] {
        assert_eq!(create_faults(&bundles, bundle(name, signer)), want);
    }
    let faults = create_faults(&bundles, bundle("ex.io:a:B", "ex.io/a"));
    assert!(faults.contains("a lowercase RFC 1123 subdomain"), "{faults}");
    let faults = create_faults(&bundles, bundle("nodomain:b", "nodomain"));
    assert!(faults.contains(at_signer), "{faults}");
    for (old, new) in [("", "ex.io/a"), ("ex.io/a", ""), ("ex.io/a", "ex.io/b")] {
        let faults = update_faults(&bundles, bundle("ex.io:a:b", old), bundle("ex.io:a:b", new));
        let value = serde_json::Value::from(new);
        assert_eq!(faults, format!("{at_signer}: {value}: field is immutable"));
    }
}

/// A self-signed certificate with the CA bit.
const TRUST_ANCHOR: &str = include_str!("trust_anchor.pem");
/// A self-signed certificate without the CA bit.
const LEAF: &str = include_str!("leaf.pem");

#[test]
fn a_trust_bundle_holds_ca_certificates_and_nothing_else() {
    let bundles = resource("certificates.k8s.io", "clustertrustbundles");
    let bundle = |pem: &str| json!({ "metadata": { "name": "b" }, "spec": { "trustBundle": pem } });
    let headers = TRUST_ANCHOR.replacen("-----\n", "-----\nA: b\n\n", 1);
    let key = TRUST_ANCHOR.replace("CERTIFICATE", "PRIVATE KEY");
    let no_certificate = "-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n";
    for (pem, want) in [
        (TRUST_ANCHOR.to_owned(), ""),
        (format!("# a comment\n{TRUST_ANCHOR}"), ""),
        (String::new(), "at least one trust anchor must be provided"),
        ("garbage".to_owned(), "at least one trust anchor must be provided"),
        (format!("{TRUST_ANCHOR}{TRUST_ANCHOR}"), "duplicate trust anchor (indices [0 1])"),
        (format!("{TRUST_ANCHOR}{headers}"), "entry 1 has PEM block headers"),
        (key, "entry 0 has bad block type: PRIVATE KEY"),
        (no_certificate.to_owned(), "entry 0 does not parse as X.509"),
        (LEAF.to_owned(), "entry 0 does not have the CA bit set"),
    ] {
        let want = match want {
            "" => String::new(),
            want => format!("spec.trustBundle: Invalid value: \"<value omitted>\": {want}"),
        };
        assert_eq!(create_faults(&bundles, bundle(&pem)), want, "{pem}");
        let faults = update_faults(&bundles, bundle("an old bundle"), bundle(&pem));
        assert_eq!(faults, want, "{pem}");
    }
    // An unchanged bundle of an earlier version does not keep its metadata from changing.
    assert_eq!(update_faults(&bundles, bundle("garbage"), bundle("garbage")), "");
    let long = "x".repeat(1024 * 1024 + 1);
    let want = "spec.trustBundle: Too long: may not be more than 1048576 bytes";
    assert_eq!(create_faults(&bundles, bundle(&long)), want);
}

#[test]
fn a_node_gets_its_pod_addresses_and_its_provider_once() {
    let nodes = resource("", "nodes");
    let node = |spec: Value| json!({ "metadata": { "name": "n" }, "spec": spec });
    let cidr =
        "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid";
    for (old, new, want) in [
        (json!({}), json!({ "podCIDR": "10.0.0.0/24", "providerID": "a" }), ""),
        (json!({ "podCIDR": "10.0.0.0/24" }), json!({ "podCIDR": "10.0.0.0/24" }), ""),
        (json!({ "podCIDR": "10.0.0.0/24" }), json!({ "podCIDRs": ["10.0.0.0/24"] }), ""),
        (json!({ "podCIDR": "10.0.0.0/24" }), json!({ "podCIDR": "10.0.1.0/24" }), cidr),
        (json!({ "podCIDR": "10.0.0.0/24" }), json!({}), cidr),
        (
            json!({ "podCIDRs": ["10.0.0.0/24", "fd00::/64"] }),
            json!({ "podCIDRs": ["10.0.0.0/24"] }),
            cidr,
        ),
        (
            json!({ "podCIDRs": ["10.0.0.0/24"] }),
            json!({ "podCIDRs": ["10.0.0.0/24"], "podCIDR": "10.0.1.0/24" }),
            cidr,
        ),
        (json!({ "providerID": "a" }), json!({ "providerID": "a", "unschedulable": true }), ""),
        (
            json!({ "providerID": "a" }),
            json!({ "providerID": "b" }),
            "spec.providerID: Invalid value: null: field cannot be modified once set",
        ),
        (
            json!({ "providerID": "a" }),
            json!({}),
            "spec.providerID: Invalid value: null: field cannot be cleared once set",
        ),
        (json!({}), json!({ "externalID": "x" }), "spec.externalID: Forbidden: may not be updated"),
    ] {
        assert_eq!(update_faults(&nodes, node(old), node(new.clone())), want, "{new}");
    }
    let stored = created(&nodes, node(json!({ "podCIDRs": ["10.0.0.0/24"] })));
    assert_eq!(stored["spec"]["podCIDR"], "10.0.0.0/24");
    let mut new = stored.clone();
    let address = json!({ "type": "InternalIP", "address": "10.0.0.1" });
    new.insert("status".to_owned(), json!({ "addresses": [address, address] }));
    let faults = api_resources::validate_update(&nodes, &new, &stored, Some("status")).to_string();
    let want = "status.addresses[1]: Duplicate value: \
                {\"Type\":\"InternalIP\",\"Address\":\"10.0.0.1\"}";
    assert_eq!(faults, want);
}

#[test]
fn names_and_paths_of_a_pod_stay_in_its_folder() {
    let pods = resource("", "pods");
    let pod = |spec: Value| {
        let mut spec = spec;
        if spec.get("containers").is_none() {
            spec["containers"] = json!([{ "name": "c", "image": "i" }]);
        }
        spec["serviceAccountName"] = json!("default");
        json!({ "metadata": { "name": "p" }, "spec": spec })
    };
    let container = |member: &str, value: Value| {
        let mut container = json!({ "name": "c", "image": "i" });
        container[member] = value;
        json!({ "containers": [container] })
    };
    let volume = |source: &str, value: Value| {
        let mut volume = json!({ "name": "v" });
        volume[source] = value;
        json!({ "volumes": [volume] })
    };
    let profile = |file: &str| json!({ "seccompProfile": { "localhostProfile": file } });
    let items = |path: &str| json!({ "items": [{ "key": "k", "path": path }] });
    let label = "a lowercase RFC 1123 label must consist of";
    for (spec, want) in [
        (json!({ "initContainers": [{ "name": "i" }], "volumes": [{ "name": "v" }] }), ""),
        (container("name", json!("../x")), label),
        (json!({ "initContainers": [{ "name": "../x" }] }), label),
        (json!({ "initContainers": [{}] }), "spec.initContainers[0].name: Required value"),
        (
            json!({ "initContainers": [{ "name": "c" }] }),
            "spec.initContainers[0].name: Duplicate value: \"c\"",
        ),
        (json!({ "volumes": [{ "name": "../x" }] }), label),
        (json!({ "volumes": [{}] }), "spec.volumes[0].name: Required value"),
        (
            json!({ "volumes": [{ "name": "v" }, { "name": "v" }] }),
            "spec.volumes[1].name: Duplicate value: \"v\"",
        ),
        (container("volumeMounts", json!([{ "subPath": "a/..b" }])), ""),
        (
            container("volumeMounts", json!([{ "subPath": "a/../b" }])),
            "spec.containers[0].volumeMounts.subPath: Invalid value: \"a/../b\": must not contain '..'",
        ),
        (
            container("volumeMounts", json!([{ "subPathExpr": "/a" }])),
            "spec.containers[0].volumeMounts.subPathExpr: Invalid value: \"/a\": must be a relative path",
        ),
        (volume("hostPath", json!({ "path": "/a/b" })), ""),
        (
            volume("hostPath", json!({ "path": "/a/../b" })),
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        ),
        (volume("secret", items("a/b")), ""),
        (
            volume("secret", items("../b")),
            "spec.volumes[0].secret.items[0].path: Invalid value: \"../b\": must not contain '..'",
        ),
        (
            volume("configMap", items("..data")),
            "spec.volumes[0].configMap.items[0].path: Invalid value: \"..data\": must not start with '..'",
        ),
        (
            volume("downwardAPI", items("/b")),
            "spec.volumes[0].downwardAPI.items[0].path: Invalid value: \"/b\": must be a relative path",
        ),
        (
            volume("projected", json!({ "sources": [{ "secret": items("../b") }] })),
            "spec.volumes[0].projected.sources[0].secret.items[0].path: Invalid value: \"../b\": \
             must not contain '..'",
        ),
        (
            volume(
                "projected",
                json!({ "sources": [{ "serviceAccountToken": { "path": "../b" } }] }),
            ),
            "spec.volumes[0].projected.sources[0].serviceAccountToken.path: Invalid value: \"../b\": \
             must not contain '..'",
        ),
        (json!({ "securityContext": profile("a/b.json") }), ""),
        (
            json!({ "securityContext": profile("../x") }),
            "spec.securityContext.seccompProfile.localhostProfile: Invalid value: \"../x\": \
             must not contain '..'",
        ),
        (
            container("securityContext", profile("/x")),
            "spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: \
             \"/x\": must be a relative path",
        ),
        (
            json!({ "ephemeralContainers": [{ "name": "e" }] }),
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ),
    ] {
        let faults = create_faults(&pods, pod(spec.clone()));
        match want {
            "" => assert_eq!(faults, "", "{spec}"),
            want => assert!(faults.contains(want), "{spec}: {faults}"),
        }
        // A pod of an earlier version can still lose its finalizers.
        assert_eq!(update_faults(&pods, pod(spec.clone()), pod(spec.clone())), "", "{spec}");
    }
}

#[test]
fn services_take_no_traffic_of_the_node() {
    let services = resource("", "services");
    let service = |change: Value| {
        let mut spec = json!({ "type": "NodePort", "ports": [{ "port": 80 }] });
        spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        json!({ "metadata": { "name": "s" }, "spec": spec })
    };
    let ports = |ports: &[i64]| {
        let port = |own: &i64| json!({ "name": format!("p{own}"), "port": 80, "nodePort": own });
        json!({ "ports": ports.iter().map(port).collect::<Vec<_>>() })
    };
    let range = "provided port is not in the valid range. The range of valid ports is 30000-32767";
    for (change, want) in [
        (ports(&[30_000, 32_767]), String::new()),
        (ports(&[0]), String::new()),
        (ports(&[29_999]), format!("spec.ports[0].nodePort: Invalid value: 29999: {range}")),
        (ports(&[10_250]), format!("spec.ports[0].nodePort: Invalid value: 10250: {range}")),
        (ports(&[32_768]), format!("spec.ports[0].nodePort: Invalid value: 32768: {range}")),
        (
            json!({ "healthCheckNodePort": 22 }),
            format!("spec.healthCheckNodePort: Invalid value: 22: {range}"),
        ),
        (json!({ "externalIPs": ["203.0.113.1", "2001:db8::1"] }), String::new()),
        (
            json!({ "externalIPs": ["169.254.169.254"] }),
            "spec.externalIPs[0]: Invalid value: \"169.254.169.254\": may not be in the link-local \
             range (169.254.0.0/16, fe80::/10)"
                .to_owned(),
        ),
        (
            json!({ "externalIPs": ["::ffff:127.0.0.1"] }),
            "spec.externalIPs[0]: Invalid value: \"::ffff:127.0.0.1\": may not be in the loopback \
             range (127.0.0.0/8, ::1/128)"
                .to_owned(),
        ),
        (
            json!({ "externalIPs": ["0.0.0.0"] }),
            "spec.externalIPs[0]: Invalid value: \"0.0.0.0\": may not be unspecified (0.0.0.0)"
                .to_owned(),
        ),
        (
            json!({ "externalIPs": ["224.0.0.1"] }),
            "spec.externalIPs[0]: Invalid value: \"224.0.0.1\": may not be in the link-local \
             multicast range (224.0.0.0/24, ff02::/10)"
                .to_owned(),
        ),
        (
            json!({ "externalIPs": ["x"] }),
            "spec.externalIPs[0]: Invalid value: \"x\": must be a valid IP address".to_owned(),
        ),
    ] {
        assert_eq!(create_faults(&services, service(change.clone())), want, "{change}");
        // A service of an earlier version keeps what it has.
        let stored = service(change.clone());
        assert_eq!(update_faults(&services, stored.clone(), stored), "", "{change}");
    }
    let twice = service(json!({ "ports": [
        { "name": "a", "port": 80, "nodePort": 30_080 },
        { "name": "b", "port": 81, "nodePort": 30_080 },
        { "name": "c", "port": 81, "nodePort": 30_080, "protocol": "UDP" },
    ] }));
    let want = "spec.ports[1].nodePort: Duplicate value: 30080";
    assert_eq!(create_faults(&services, twice), want);
}

#[test]
fn endpoints_are_no_addresses_of_the_network_itself() {
    let (endpoints, slices) =
        (resource("", "endpoints"), resource("discovery.k8s.io", "endpointslices"));
    let of = |address: &str| {
        json!({ "metadata": { "name": "e" }, "subsets": [
            { "addresses": [{ "ip": "10.0.0.1" }], "notReadyAddresses": [{ "ip": address }] }] })
    };
    let slice = |family: &str, address: &str| {
        json!({ "metadata": { "name": "e" }, "addressType": family,
            "endpoints": [{ "addresses": ["10.0.0.1", address] }] })
    };
    let link_local = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
    for (address, want_endpoints, want_slice) in [
        ("10.0.0.2", "", ""),
        ("169.254.169.254", link_local, link_local),
        ("fe80::1", link_local, link_local),
        ("127.0.0.1", "", ""),
        ("::", "may not be unspecified (::)", "may not be unspecified (::)"),
    ] {
        let full = |path: &str, want: &str| match want {
            "" => String::new(),
            want => format!("{path}: Invalid value: \"{address}\": {want}"),
        };
        let path = "subsets[0].notReadyAddresses[0].ip";
        assert_eq!(create_faults(&endpoints, of(address)), full(path, want_endpoints));
        assert_eq!(update_faults(&endpoints, of(address), of(address)), "");
        let path = "endpoints[0].addresses[1]";
        assert_eq!(create_faults(&slices, slice("IPv4", address)), full(path, want_slice));
        assert_eq!(create_faults(&slices, slice("FQDN", address)), "");
    }
}
