//! The table of built-in resources.

use std::collections::BTreeSet;

use api_resources::{Registry, Verb};

fn plurals(is: impl Fn(&api_resources::Resource) -> bool) -> BTreeSet<String> {
    let registry = Registry::with_built_in_resources();
    registry.resources().filter(|it| is(it)).map(|it| it.plural.clone()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn the_kinds_that_an_update_creates() {
    let want = set(&[
        "clusterrolebindings",
        "clusterroles",
        "endpoints",
        "events",
        "leases",
        "limitranges",
        "rolebindings",
        "roles",
        "runtimeclasses",
        "services",
    ]);
    assert_eq!(plurals(|it| it.allows_create_on_update), want);
}

#[test]
fn the_kinds_whose_updates_must_say_the_version() {
    let want = set(&[
        "clustertrustbundles",
        "csidrivers",
        "csinodes",
        "customresourcedefinitions",
        "externaladmissionhookconfigurations",
        "initializerconfigurations",
        "leases",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "podcertificaterequests",
        "poddisruptionbudgets",
        "runtimeclasses",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
        "volumeattachments",
    ]);
    assert_eq!(plurals(|it| it.is_resource_version_required), want);
}

#[test]
fn the_kinds_that_a_deletion_returns() {
    let want = set(&[
        "csidrivers",
        "csinodes",
        "deviceclasses",
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourcequotas",
        "resourceslices",
        "serviceaccounts",
        "services",
        "storageclasses",
        "volumeattachments",
    ]);
    assert_eq!(plurals(|it| it.returns_object_on_delete), want);
}

/// A resource that is not stored, such as a review, supports only `create`.
#[test]
fn reviews_and_bindings_are_not_stored() {
    let registry = Registry::with_built_in_resources();
    for resource in registry.resources() {
        let plural = &resource.plural;
        let is_stored = !(plural.ends_with("reviews")
            || plural.ends_with("explanations")
            || plural == "bindings");
        assert_eq!(resource.is_stored(), is_stored, "{plural}");
        assert_eq!(resource.supports_verb(Verb::Get), is_stored, "{plural}");
        assert!(resource.supports_verb(Verb::Create));
    }
    let versions: Vec<&str> = registry
        .group("authorization.k8s.io")
        .expect("a group")
        .versions
        .iter()
        .map(|it| it.version.as_str())
        .collect();
    assert_eq!(versions, ["v1", "v1beta1"]);
}

/// No two resources may share a place in the store, and no name may mean two things.
#[test]
fn paths_and_names_are_unique() {
    let registry = Registry::with_built_in_resources();
    let mut paths = BTreeSet::new();
    for resource in registry.stored_resources() {
        let path = resource.storage_path.clone().expect("it is stored");
        assert!(paths.insert(path), "{}", resource.plural);
    }
    let mut names = BTreeSet::new();
    for resource in registry.stored_resources() {
        for name in resource.short_names.iter().chain([&resource.plural]) {
            assert!(names.insert(name.clone()), "{name}");
        }
    }
}

#[test]
fn a_namespace_is_not_deleted_with_others() {
    let registry = Registry::with_built_in_resources();
    let namespaces = registry.resource("", "v1", "namespaces").expect("served");
    assert!(!namespaces.supports_verb(Verb::DeleteCollection));
    assert!(namespaces.supports_verb(Verb::Delete));
    let finalize = namespaces.find_subresource("finalize").expect("a subresource");
    assert!(finalize.verbs.contains(Verb::Update) && !finalize.verbs.contains(Verb::Get));
    assert!(namespaces.find_subresource("token").is_none());
}

/// The answer about an unknown resource depends on its API group.
#[test]
fn unknown_things_are_told_apart_by_their_group() {
    let registry = crate::world::with_widgets();
    assert!(registry.group("nosuch").is_none());
    assert!(registry.group("").expect("the core group").is_built_in);
    assert!(registry.group("rbac.authorization.k8s.io").expect("a group").is_built_in);
    assert!(!registry.group("example.com").expect("a group").is_built_in);
    assert!(registry.resource("rbac.authorization.k8s.io", "v9", "roles").is_none());
    assert!(registry.resource("", "v1", "nosuch").is_none());
    assert!(registry.resource("example.com", "v1", "widgets").is_some());
    let by_kind = registry.resource_of_kind("example.com", "v1", "Widget").expect("a resource");
    assert_eq!(by_kind.plural, "widgets");
}
