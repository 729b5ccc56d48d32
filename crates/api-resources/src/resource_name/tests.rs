use serde_json::{Value, json};

use super::*;

fn definition(group: &str, plural: &str, kind: &str, more: Value) -> Tree {
    let mut names = json!({"plural": plural, "kind": kind});
    if let (Some(names), Value::Object(more)) = (names.as_object_mut(), more) {
        names.extend(more);
    }
    let version =
        json!({"name": "v1", "served": true, "subresources": {"status": {}, "scale": {}}});
    let spec =
        json!({"group": group, "names": names, "scope": "Namespaced", "versions": [version]});
    match json!({"spec": spec}) {
        Value::Object(tree) => tree,
        _ => Tree::new(),
    }
}

fn table() -> ResourceNameTable {
    let mut table = ResourceNameTable::kubernetes_resource_names();
    for definition in [
        definition(
            "cert.example.com",
            "certificates",
            "Certificate",
            json!({"shortNames": ["cert", "certs"]}),
        ),
        definition("a.example.com", "backups", "Backup", json!({})),
        definition("b.example.com", "backups", "Backup", json!({"shortNames": ["bk"]})),
        definition("mesh.example.com", "services", "Service", json!({"shortNames": ["po"]})),
        definition("old.example.com", "deployments", "Deployment", json!({"singular": "rollout"})),
    ] {
        table.add_custom_resource_definition(&definition);
    }
    table.add_external_group("aggregated.example.com");
    table
}

/// The answer as one text: the resource, or the message.
fn resolve(text: &str) -> String {
    match table().resolve_resource_name(&ResourceName::parse(text).unwrap()) {
        Ok(found) => {
            let name = name_with_group(&found.plural, &found.group);
            let also: String = found
                .other_matching_resources
                .iter()
                .map(|it| format!(" also {}", qualified_name(it)))
                .collect();
            let slash = if found.subresource.is_empty() { "" } else { "/" };
            format!("{name}{slash}{}{also}", found.subresource)
        }
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn names_resolve_as_for_kubectl() {
    for (text, want) in [
        ("pods", "pods"),
        ("pod", "pods"),
        ("Pod", "pods"),
        ("po", "pods also services.mesh.example.com"),
        ("secret", "secrets"),
        ("ns", "namespaces"),
        ("ingress", "ingresses.networking.k8s.io"),
        ("NetworkPolicy", "networkpolicies.networking.k8s.io"),
        ("netpol", "networkpolicies.networking.k8s.io"),
        ("crd", "customresourcedefinitions.apiextensions.k8s.io"),
        ("sc", "storageclasses.storage.k8s.io"),
        ("hpa", "horizontalpodautoscalers.autoscaling"),
        ("apiservice", "apiservices.apiregistration.k8s.io"),
        ("role", "roles.rbac.authorization.k8s.io"),
        // Groups: exact, the beginning, with a version.
        ("deployments.apps", "deployments.apps"),
        ("deploy.apps", "deployments.apps"),
        ("ingresses.networking", "ingresses.networking.k8s.io"),
        ("deployments.v1.apps", "deployments.apps"),
        ("pods.v1", "pods"),
        ("events.events.k8s.io", "events.events.k8s.io"),
        ("pods.metrics.k8s.io", "pods.metrics.k8s.io"),
        ("anything.custom.metrics.k8s.io", "anything.custom.metrics.k8s.io"),
        ("widgets.aggregated.example.com", "widgets.aggregated.example.com"),
        // Custom resources.
        ("certificate", "certificates.cert.example.com"),
        ("certs", "certificates.cert.example.com"),
        ("bk", "backups.b.example.com"),
        ("backups.a.example.com", "backups.a.example.com"),
        ("backup.b", "backups.b.example.com"),
        ("rollout", "deployments.old.example.com"),
        // kubectl prefers built-in groups.
        ("events", "events also events.events.k8s.io"),
        ("services", "services also services.mesh.example.com"),
        ("deploy", "deployments.apps"),
        ("deployments", "deployments.apps also deployments.old.example.com"),
        // Subresources.
        ("pods/log", "pods/log"),
        ("pod/log", "pods/log"),
        ("deploy/scale", "deployments.apps/scale"),
        ("cert/scale", "certificates.cert.example.com/scale"),
        ("configmaps/status", "configmaps/status"),
        ("certs/finalizers", "certificates.cert.example.com/finalizers"),
        ("nodes/metrics", "nodes/metrics"),
        ("userextras.authentication.k8s.io/scopes", "userextras.authentication.k8s.io/scopes"),
        ("sa/token", "serviceaccounts/token"),
        // Wildcards stay.
        ("*", "*"),
        ("*.*/*", "*.*/*"),
        ("*/scale", "*/scale"),
        ("*.apps", "*.apps"),
        ("*.networking", "*.networking.k8s.io"),
        ("pods/*", "pods/*"),
        ("pod.*", "pods.*"),
        ("users", "users"),
        ("signers", "signers.certificates.k8s.io"),
    ] {
        assert_eq!(resolve(text), want, "{text}");
    }
}

#[test]
fn custom_resources_take_no_name_of_kubernetes() {
    let mut table = ResourceNameTable::kubernetes_resource_names();
    for definition in [
        definition("evil.example", "users", "Po", json!({"shortNames": ["groups"]})),
        definition("evil.example", "groups", "Group", json!({"shortNames": ["users"]})),
        definition("certificates.k8s.io.evil.example", "signers", "Signer", json!({})),
        definition("certificates.k8s.io.evil.example", "widgets", "Widget", json!({})),
        definition("certificates.evil.example", "signers", "Signer", json!({})),
        definition("custom.metrics.k8s.io.evil.example", "pods", "Pod", json!({})),
    ] {
        table.add_custom_resource_definition(&definition);
    }
    for (group, name, want) in [
        (Some(""), "users", Some("users")),
        (None, "users", Some("users")),
        (None, "groups", Some("groups")),
        // The kind of a custom resource and the short name of a built-in one.
        (None, "po", Some("pods")),
        (Some("certificates.k8s.io"), "signers", Some("signers.certificates.k8s.io")),
        (Some("certificates.k8s.io"), "widgets", None),
        (Some("certificates"), "signers", Some("signers.certificates.k8s.io")),
        (Some("custom.metrics.k8s.io"), "pods", Some("pods.custom.metrics.k8s.io")),
        // A plural comes before the short name of another resource of its group.
        (Some("evil.example"), "users", Some("users.evil.example")),
        (Some("evil.example"), "groups", Some("groups.evil.example")),
        (Some("evil.example"), "po", Some("users.evil.example")),
    ] {
        let group = group.map(str::to_owned);
        let name = ResourceName { name: name.to_owned(), group, subresource: String::new() };
        let found = table.resolve_resource_name(&name).ok().map(|found| found.qualified_name());
        assert_eq!(found.as_deref(), want, "{name:?}");
    }
}

#[test]
fn unknown_and_ambiguous_names_are_errors() {
    for (text, want) in [
        ("deploymnets", "no resource is named `deploymnets`, did you mean `deployments`?"),
        ("widgets", "no resource is named `widgets`"),
        ("secretes", "no resource is named `secretes`, did you mean `secrets`?"),
        (
            "deployment.aps",
            "no resource is named `deployment.aps`, did you mean `deployments.apps`?",
        ),
        (
            "deploymens.apps",
            "no resource is named `deploymens.apps`, did you mean `deployments.apps`?",
        ),
        (
            "ingresses.extensions",
            "no resource is named `ingresses.extensions`, did you mean `ingresses.networking.k8s.io`?",
        ),
        ("pods.apps", "no resource is named `pods.apps`, did you mean `pods`?"),
        ("widgets.example.com", "no resource is named `widgets.example.com`"),
        (
            "backup",
            "`backup` is ambiguous, write `backups.a.example.com` or `backups.b.example.com`",
        ),
        (
            "backups",
            "`backups` is ambiguous, write `backups.a.example.com` or `backups.b.example.com`",
        ),
        ("pods/logs", "pods have no subresource `logs`, did you mean `pods/log`?"),
        ("deploy/exec", "deployments.apps have no subresource `exec`"),
        ("secrets/scale", "secrets have no subresource `scale`"),
    ] {
        assert_eq!(resolve(text), format!("error: {want}"), "{text}");
    }
}

#[test]
fn malformed_names_are_refused() {
    for text in ["", ".apps", "/log", "pods/", "deployments.", "deployments./scale"] {
        assert!(ResourceName::parse(text).is_err(), "{text}");
    }
    let parsed = ResourceName::parse("services/proxy/a.b").unwrap();
    assert_eq!((parsed.group, parsed.subresource.as_str()), (None, "proxy/a.b"));
}

#[test]
fn the_table_of_a_server_has_what_it_serves() {
    let table = ResourceNameTable::registry_resource_names(&Registry::with_built_in_resources());
    let resolve = |text: &str| table.resolve_resource_name(&ResourceName::parse(text).unwrap());
    assert_eq!(resolve("deploy").unwrap().scope, Some(Scope::Namespaced));
    assert_eq!(resolve("nodes").unwrap().scope, Some(Scope::Cluster));
    assert!(resolve("hpa").is_err());
}

#[test]
fn many_candidates_are_shortened() {
    let mut table = ResourceNameTable::default();
    for idx in 0..12 {
        table.add_custom_resource_definition(&definition(
            &format!("g{idx}.example.com"),
            "widgets",
            "Widget",
            json!({}),
        ));
    }
    let error = table
        .resolve_resource_name(&ResourceName::parse("widget").unwrap())
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("or `widgets.g9.example.com` or one of 2 more"), "{error}");
}
