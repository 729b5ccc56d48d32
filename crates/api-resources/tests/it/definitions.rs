//! CustomResourceDefinitions: what makes them sound, who gets which name, what is served.

use std::sync::Arc;

use api_object::Tree;
use api_resources::{
    CLEANUP_FINALIZER, CustomResourceDefinition, DefinedResources, DefinitionChange, Registry, Verb,
};
use serde_json::{Value, json};

use crate::world::{EXTENSIONS, established, now, resource, tree, version, widgets, with_widgets};

fn created(mut definition: Tree) -> Tree {
    let definitions = resource(EXTENSIONS, "customresourcedefinitions");
    api_resources::prepare_create(&definitions, &mut definition).expect("the right types");
    definition
}

fn faults(definition: Tree) -> String {
    let definitions = resource(EXTENSIONS, "customresourcedefinitions");
    api_resources::validate_create(&definitions, &created(definition)).to_string()
}

fn with(path: &[&str], value: Value) -> Tree {
    let mut definition = Value::Object(widgets());
    let target = path.iter().fold(&mut definition, |tree, &key| match key.parse::<usize>() {
        Ok(idx) => &mut tree[idx],
        Err(_) => &mut tree[key],
    });
    *target = value;
    tree(definition)
}

fn conditions(definition: &Tree) -> Vec<(String, String, String, String)> {
    let definition = CustomResourceDefinition::read(definition).expect("a definition");
    let shown = |it: &api_resources::DefinitionCondition| {
        (it.r#type.clone(), it.status.name().to_owned(), it.reason.clone(), it.message.clone())
    };
    definition.conditions.iter().map(shown).collect()
}

fn condition(
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) -> (String, String, String, String) {
    (kind.to_owned(), status.to_owned(), reason.to_owned(), message.to_owned())
}

#[test]
fn names_and_versions_are_filled_in() {
    let definition = created(widgets());
    let names = &definition["spec"]["names"];
    assert_eq!((&names["singular"], &names["listKind"]), (&json!("widget"), &json!("WidgetList")));
    assert_eq!(definition["spec"]["conversion"], json!({ "strategy": "None" }));
    assert_eq!(definition["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(faults(widgets()), "");
}

#[test]
fn each_rule_has_its_fault() {
    let schema = ["spec", "versions", "0", "schema", "openAPIV3Schema"];
    for (path, value, want) in [
        (
            ["metadata", "name"].as_slice(),
            json!("bad"),
            "metadata.name: Invalid value: \"bad\": must be spec.names.plural+\".\"+spec.group",
        ),
        (
            &["spec", "scope"],
            json!("Foo"),
            "spec.scope: Unsupported value: \"Foo\": supported values: \"Cluster\", \"Namespaced\"",
        ),
        (&["spec", "scope"], json!(""), "spec.scope: Required value"),
        (
            &["spec", "versions"],
            json!([]),
            "spec.versions: Invalid value: []: must have exactly one version marked as storage \
             version",
        ),
        (
            &["spec", "versions"],
            Value::Null,
            "spec.versions: Invalid value: null: must have exactly one version marked as storage \
             version",
        ),
        (&schema, Value::Null, "spec.versions[0].schema.openAPIV3Schema: Required value"),
        (
            &schema,
            json!({}),
            "spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at \
             the root",
        ),
        (
            &schema,
            json!({ "type": "string" }),
            "spec.versions[0].schema.openAPIV3Schema.type: Invalid value: \"string\": must be \
             object at the root",
        ),
        (
            &["spec", "names", "listKind"],
            json!("Widget"),
            "spec.names.listKind: Invalid value: \"Widget\": kind and listKind may not be the same",
        ),
        (
            &["spec", "versions", "0", "additionalPrinterColumns", "0", "type"],
            json!("text"),
            "spec.versions[0].additionalPrinterColumns[0].type: Invalid value: \"text\": must be \
             one of boolean,date,integer,number,string",
        ),
        (
            &["spec", "versions", "0", "additionalPrinterColumns", "0", "jsonPath"],
            json!("spec.size"),
            "spec.versions[0].additionalPrinterColumns[0].JSONPath: Invalid value: \"spec.size\": \
             must be a simple json path starting with .",
        ),
        (
            &["spec", "versions", "0", "deprecationWarning"],
            json!("old"),
            "spec.versions[0].deprecationWarning: Invalid value: \"old\": can only be set for \
             deprecated versions",
        ),
        (
            &["spec", "versions", "0", "selectableFields"],
            json!([{ "jsonPath": ".spec.none" }]),
            "spec.versions[0].selectableFields[0].jsonPath: Invalid value: \".spec.none\": is an \
             invalid path: does not refer to a valid field",
        ),
        (
            &["spec", "versions", "0", "selectableFields"],
            json!([{ "jsonPath": ".metadata.name" }]),
            "spec.versions[0].selectableFields[0].jsonPath: Invalid value: \".metadata.name\": \
             must not point to fields in metadata",
        ),
        (
            &["spec", "conversion"],
            json!({ "strategy": "Webhook" }),
            "spec.conversion.strategy: Unsupported value: \"Webhook\": supported values: \"None\"",
        ),
    ] {
        assert_eq!(faults(with(path, value)), want);
    }
}

#[test]
fn names_are_labels_that_begin_with_a_letter() {
    for (key, value, is_good) in [
        ("kind", json!("WidGet"), true),
        ("kind", json!("Wid_get"), false),
        ("singular", json!("w1-x"), true),
        ("singular", json!("1w"), false),
        ("singular", json!("W"), false),
        ("shortNames", json!(["w"]), true),
        ("shortNames", json!(["w."]), false),
        ("categories", json!(["all"]), true),
        ("categories", json!(["-"]), false),
    ] {
        let faults = faults(with(&["spec", "names", key], value.clone()));
        assert_eq!(faults.is_empty(), is_good, "{key} {value}: {faults}");
    }
}

#[test]
fn one_version_of_each_name_and_one_for_storage() {
    let both = |first, second| with(&["spec", "versions"], json!([first, second]));
    assert_eq!(faults(both(version("v1", true), version("v2", false))), "");
    assert!(faults(both(version("v1", true), version("v2", true))).contains("exactly one version"));
    assert!(
        faults(both(version("v1", false), version("v2", false))).contains("exactly one version")
    );
    assert!(
        faults(both(version("v1", true), version("v1", false))).contains("unique version names")
    );
}

#[test]
fn at_most_eight_fields_can_be_selected_by() {
    let definition = |n_path_fields: usize| {
        let mut version = version("v1", true);
        let properties = (0..n_path_fields).map(|n| (format!("f{n}"), json!({ "type": "string" })));
        let properties: Tree = properties.collect();
        version["schema"]["openAPIV3Schema"]["properties"] = Value::Object(properties);
        let fields = (0..n_path_fields).map(|n| json!({ "jsonPath": format!(".f{n}") }));
        version["selectableFields"] = fields.collect();
        with(&["spec", "versions"], json!([version]))
    };
    assert_eq!(faults(definition(8)), "");
    assert_eq!(
        faults(definition(9)),
        "spec.versions[0].selectableFields: Too many: 9: must have at most 8 items"
    );
}

#[test]
fn groups_of_the_community_need_its_leave() {
    let definition = |approval: Option<&str>| {
        let mut definition = with(&["spec", "group"], json!("x.k8s.io"));
        definition["metadata"]["name"] = json!("widgets.x.k8s.io");
        if let Some(approval) = approval {
            definition["metadata"]["annotations"] =
                json!({ "api-approved.kubernetes.io": approval });
        }
        definition
    };
    assert!(faults(definition(None)).contains("Required value: protected groups"));
    assert!(faults(definition(Some("yes"))).contains("Invalid value: \"yes\": protected groups"));
    assert_eq!(faults(definition(Some("https://github.com/kubernetes/kubernetes/pull/1"))), "");
    assert_eq!(faults(definition(Some("unapproved, an experiment"))), "");
    assert_eq!(faults(with(&["metadata", "annotations"], json!({}))), "");
}

#[test]
fn what_objects_depend_on_does_not_change() {
    let definitions = resource(EXTENSIONS, "customresourcedefinitions");
    let fresh = created(widgets());
    let served = established(widgets());
    let check = |old: &Tree, path: &[&str], value: Value| {
        let mut new = with(path, value);
        new.insert("status".to_owned(), old["status"].clone());
        api_resources::prepare_update(&definitions, &mut new, old, None).expect("the right types");
        api_resources::validate_update(&definitions, &new, old, None).to_string()
    };
    let immutable =
        |path: &str, value: &str| format!("{path}: Invalid value: \"{value}\": field is immutable");
    assert_eq!(
        check(&served, &["spec", "scope"], json!("Cluster")),
        immutable("spec.scope", "Cluster")
    );
    assert_eq!(check(&fresh, &["spec", "scope"], json!("Cluster")), "");
    assert_eq!(
        check(&served, &["spec", "names", "kind"], json!("Gadget")),
        immutable("spec.names.kind", "Gadget")
    );
    let group = check(&fresh, &["spec", "group"], json!("example.org"));
    assert!(group.ends_with(&format!("{}]", immutable("spec.group", "example.org"))), "{group}");
}

#[test]
fn a_version_that_objects_were_stored_in_stays() {
    let definitions = resource(EXTENSIONS, "customresourcedefinitions");
    let old = established(widgets());
    let mut new = with(&["spec", "versions"], json!([version("v1", false), version("v2", true)]));
    new.insert("status".to_owned(), old["status"].clone());
    api_resources::prepare_update(&definitions, &mut new, &old, None).expect("the right types");
    assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
    assert!(api_resources::validate_update(&definitions, &new, &old, None).is_empty());
    new["spec"]["versions"] = json!([version("v2", true)]);
    let faults = api_resources::validate_update(&definitions, &new, &old, None).to_string();
    assert!(faults.starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from"));
}

/// The resource is served before anybody is told.
#[test]
fn names_are_accepted_then_the_resource_is_established() {
    let mut definition = created(widgets());
    let (registry, _) = Registry::with_custom_resource_definitions(&[&definition]);
    assert!(registry.group("example.com").is_none());

    assert!(api_resources::accept_definition_names(&mut definition, &[], now()));
    assert!(!api_resources::accept_definition_names(&mut definition, &[], now()), "settled once");
    let (registry, _) = Registry::with_custom_resource_definitions(&[&definition]);
    let widgets = registry.resource("example.com", "v1", "widgets").expect("served");
    assert!(
        widgets.has_status_subresource()
            && widgets.has_generation
            && widgets.is_resource_version_required
    );
    assert!(!CustomResourceDefinition::read(&definition).expect("a definition").is_established());

    assert!(api_resources::mark_established(&mut definition, now()));
    assert!(!api_resources::mark_established(&mut definition, now()), "established once");
    assert_eq!(
        conditions(&definition),
        [
            condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            condition(
                "Established",
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted"
            ),
        ]
    );
    assert_eq!(
        definition["status"]["acceptedNames"],
        json!({
            "plural": "widgets",
            "kind": "Widget",
            "singular": "widget",
            "listKind": "WidgetList",
            "shortNames": ["wd"],
        })
    );
}

#[test]
fn who_comes_later_waits_for_a_name() {
    let first = established(widgets());
    let others = [CustomResourceDefinition::read(&first).expect("a definition")];
    for (key, value, reason, name) in [
        ("kind", json!("Widget"), "KindConflict", "Widget"),
        ("listKind", json!("WidgetList"), "ListKindConflict", "WidgetList"),
        ("singular", json!("widget"), "SingularConflict", "widget"),
        ("shortNames", json!(["g", "wd"]), "ShortNamesConflict", "wd"),
        ("plural", json!("wd"), "PluralConflict", "wd"),
    ] {
        let mut second = widgets();
        second["spec"]["names"] = json!({ "plural": "gadgets", "kind": "Gadget" });
        second["spec"]["names"][key] = value;
        let plural = second["spec"]["names"]["plural"].as_str().expect("a plural");
        second["metadata"]["name"] = json!(format!("{plural}.example.com"));
        // Only the kind of the list conflicts, or the kind would as well.
        let mut second = created(second);
        if key == "kind" {
            second["spec"]["names"]["listKind"] = json!("GadgetList");
            second["spec"]["names"]["singular"] = json!("gadget");
        }
        assert!(api_resources::accept_definition_names(&mut second, &others, now()));
        assert!(!api_resources::mark_established(&mut second, now()));
        assert_eq!(
            conditions(&second),
            [
                condition(
                    "NamesAccepted",
                    "False",
                    reason,
                    &format!("\"{name}\" is already in use")
                ),
                condition("Established", "False", "NotAccepted", "not all names are accepted"),
            ],
            "{key}"
        );
        let (registry, _) = Registry::with_custom_resource_definitions(&[&first, &second]);
        assert!(registry.resource("example.com", "v1", "gadgets").is_none());
        // When the other one goes, the name is free.
        assert!(api_resources::accept_definition_names(&mut second, &[], now()));
        assert!(api_resources::mark_established(&mut second, now()));
    }
    let mut elsewhere = created(with(&["spec", "group"], json!("example.org")));
    elsewhere["metadata"]["name"] = json!("widgets.example.org");
    api_resources::accept_definition_names(&mut elsewhere, &others, now());
    assert!(api_resources::mark_established(&mut elsewhere, now()), "other groups do not matter");
}

#[test]
fn the_time_of_a_condition_is_that_of_its_change() {
    let mut definition = created(widgets());
    let later = now() + jiff::SignedDuration::from_secs(60);
    api_resources::accept_definition_names(&mut definition, &[], now());
    api_resources::mark_established(&mut definition, later);
    let times: Vec<&Value> = definition["status"]["conditions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| &it["lastTransitionTime"])
        .collect();
    assert_eq!(times, ["2026-11-15T18:02:38Z", "2026-11-15T18:03:38Z"]);
    let accepted = CustomResourceDefinition::read(&definition).expect("a definition");
    let accepted = accepted.find_condition("NamesAccepted").expect("a condition").clone();
    assert!(!api_resources::set_definition_condition(&mut definition, &accepted, later), "no news");
}

#[test]
fn objects_go_before_their_definition() {
    let definitions = resource(EXTENSIONS, "customresourcedefinitions");
    let mut definition = established(widgets());
    let mut finalizers = Vec::new();
    api_resources::prepare_delete(&definitions, &mut definition, &mut finalizers, now());
    assert_eq!(finalizers, [CLEANUP_FINALIZER]);
    assert!(CustomResourceDefinition::read(&definition).expect("a definition").is_terminating());
    let (registry, _) = Registry::with_custom_resource_definitions(&[&definition]);
    let widgets = registry.resource("example.com", "v1", "widgets").expect("still served");
    let api_resources::ResourceOrigin::Custom(served) = &widgets.resource_origin else {
        panic!("it is custom")
    };
    assert!(served.is_terminating);
    // When the finalizer is done, asking again does not bring it back.
    definition["metadata"]["deletionTimestamp"] = json!("2026-11-15T18:02:38Z");
    let mut finalizers = Vec::new();
    api_resources::prepare_delete(&definitions, &mut definition, &mut finalizers, now());
    assert!(finalizers.is_empty());
}

/// A definition that says of itself that it was accepted, whatever its names are.
fn impostor(group: &str, plural: &str, version_name: &str) -> Tree {
    let mut definition = established(widgets());
    definition["metadata"]["name"] = json!(format!("{plural}.{group}"));
    definition["spec"]["group"] = json!(group);
    definition["spec"]["names"]["plural"] = json!(plural);
    definition["status"]["acceptedNames"]["plural"] = json!(plural);
    definition["spec"]["versions"] = json!([version(version_name, true)]);
    definition
}

#[test]
fn what_the_program_serves_can_not_be_replaced() {
    let again = impostor(EXTENSIONS, "customresourcedefinitions", "v9");
    let beside = impostor("rbac.authorization.k8s.io", "gadgets", "v1");
    let newer = impostor("rbac.authorization.k8s.io", "gadgets", "v2alpha1");
    let (registry, faults) = Registry::with_custom_resource_definitions(&[&again, &beside, &newer]);
    let names: Vec<&str> = faults.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["customresourcedefinitions.apiextensions.k8s.io", "gadgets.rbac.authorization.k8s.io"]
    );
    assert!(registry.resource(EXTENSIONS, "v9", "customresourcedefinitions").is_none());
    let roles = registry.resource("rbac.authorization.k8s.io", "v1", "roles").expect("served");
    assert!(!roles.is_custom_resource());
    assert!(registry.resource("rbac.authorization.k8s.io", "v2alpha1", "gadgets").is_some());
    let unreadable = tree(json!({ "metadata": { "name": "odd" }, "spec": {} }));
    let (_, faults) = Registry::with_custom_resource_definitions(&[&unreadable]);
    assert_eq!(faults, [("odd".to_owned(), "does not say which resource it defines".to_owned())]);
}

/// Objects would be authorized by the one name and stored by the other.
#[test]
fn only_names_of_its_own_are_served() {
    let plural = "externaladmissionhookconfigurations";
    let mut renamed = impostor("admissionregistration.k8s.io", plural, "v9");
    renamed["status"]["acceptedNames"]["plural"] = json!("innocents");
    let mut other_plural = established(widgets());
    other_plural["status"]["acceptedNames"]["plural"] = json!("gadgets");
    let mut other_kind = established(widgets());
    other_kind["status"]["acceptedNames"]["kind"] = json!("Gadget");
    let mut other_name = established(widgets());
    other_name["metadata"]["name"] = json!("gadgets.example.com");
    for definition in [renamed, other_plural, other_kind, other_name] {
        let (registry, faults) = Registry::with_custom_resource_definitions(&[&definition]);
        assert_eq!(faults.len(), 1, "{definition:?}");
        assert_eq!(
            registry.resources().filter(|it| it.is_custom_resource()).count(),
            0,
            "{definition:?}"
        );
    }
}

/// Nothing of a definition is stored, or looked for, where built-in objects are.
#[test]
fn the_place_of_a_definition_is_its_own() {
    for (group, plural, want) in [
        ("example.com", "widgets", Some("/r/example.com/widgets/")),
        (EXTENSIONS, "customresourcedefinitions", None),
        (
            EXTENSIONS,
            "customresourcedefinitionsx",
            Some("/r/apiextensions.k8s.io/customresourcedefinitionsx/"),
        ),
        ("admissionregistration.k8s.io", "externaladmissionhookconfigurations", None),
        ("admissionregistration.k8s.io", "initializerconfigurations", None),
        // Stored elsewhere, or not at all, but the name is taken.
        ("rbac.authorization.k8s.io", "clusterroles", None),
        ("authorization.k8s.io", "subjectaccessreviews", None),
    ] {
        let definition =
            CustomResourceDefinition::read(&impostor(group, plural, "v9")).expect("a definition");
        let prefix = api_resources::definition_key_prefix("/r", &definition);
        assert_eq!(prefix.as_deref(), want, "{plural}.{group}");
    }
    // One word could be the place of something else: `services/specs`.
    for (group, plural) in [("services", "specs"), ("a.b/c", "d"), ("..", "x"), ("a.b", "")] {
        assert_eq!(
            CustomResourceDefinition::read(&impostor(group, plural, "v9")),
            None,
            "{plural}.{group}"
        );
    }
}

/// The definition is told so, and never served.
#[test]
fn names_of_the_program_are_in_use() {
    for (key, value, reason) in [
        ("plural", "roles", "PluralConflict"),
        ("singular", "clusterrole", "SingularConflict"),
        ("kind", "RoleBinding", "KindConflict"),
        ("listKind", "RoleList", "ListKindConflict"),
    ] {
        let mut definition = widgets();
        definition["spec"]["group"] = json!("rbac.authorization.k8s.io");
        definition["spec"]["names"][key] = json!(value);
        let plural = definition["spec"]["names"]["plural"].as_str().expect("a plural");
        definition["metadata"]["name"] = json!(format!("{plural}.rbac.authorization.k8s.io"));
        let mut definition = created(definition);
        if key == "kind" {
            definition["spec"]["names"]["singular"] = json!("other");
            definition["spec"]["names"]["listKind"] = json!("OtherList");
        }
        assert!(api_resources::accept_definition_names(&mut definition, &[], now()));
        assert!(!api_resources::mark_established(&mut definition, now()));
        let want =
            condition("NamesAccepted", "False", reason, &format!("\"{value}\" is already in use"));
        assert_eq!(conditions(&definition).first(), Some(&want), "{key}");
    }
}

#[test]
fn versions_are_in_order_and_store_in_one_place() {
    let versions =
        json!([version("v1alpha1", false), version("v1", true), version("v2beta1", false)]);
    let mut definition = with(&["spec", "versions"], versions);
    definition["spec"]["versions"][2]["deprecated"] = json!(true);
    let (registry, _) = Registry::with_custom_resource_definitions(&[&established(definition)]);
    let group = registry.group("example.com").expect("a group");
    let order: Vec<&str> = group.versions.iter().map(|it| it.version.as_str()).collect();
    assert_eq!(order, ["v1", "v2beta1", "v1alpha1"]);
    for version in &group.versions {
        let widgets = version.resource("widgets").expect("served");
        let key = api_resources::object_key("/r", widgets, Some("d"), "a");
        assert_eq!(key.as_deref(), Some("/r/example.com/widgets/d/a"));
        let api_resources::ResourceOrigin::Custom(served) = &widgets.resource_origin else {
            panic!("it is custom")
        };
        assert_eq!(served.storage_version, "v1");
        let warning =
            (version.version == "v2beta1").then_some("example.com/v2beta1 Widget is deprecated");
        assert_eq!(served.deprecation_warning.as_deref(), warning);
    }
    assert_eq!(registry.stored_resources().filter(|it| it.plural == "widgets").count(), 1);
}

#[test]
fn objects_of_a_custom_resource_are_taken_as_they_are() {
    let registry = with_widgets();
    let widgets = registry.resource("example.com", "v1", "widgets").expect("served");
    assert!(widgets.supports_verb(Verb::Patch));
    let object = tree(json!({ "spec": [1], "anything": { "else": null } }));
    let mut prepared = object.clone();
    api_resources::prepare_create(widgets, &mut prepared).expect("nothing to refuse");
    assert_eq!(prepared, object);
    assert!(api_resources::validate_create(widgets, &prepared).is_empty());
}

/// A18: a change of one definition reads no other definition again: the next registry shares their resources, with
/// their schemas, and the groups that did not change.
#[test]
fn a18_a_change_of_one_definition_shares_the_others() {
    let definition = |plural: &str, group: &str| {
        let tree = json!({
            "metadata": {"name": format!("{plural}.{group}"), "uid": "u"},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"plural": plural, "singular": plural, "kind": plural, "listKind": "List"},
                "versions": [{"name": "v1", "served": true, "storage": true}],
            },
            "status": {
                "acceptedNames": {"plural": plural, "kind": plural},
                "conditions": [{"type": "NamesAccepted", "status": "True"}],
            },
        });
        Arc::new(DefinedResources::read(tree.as_object().expect("an object")))
    };
    let names = [("a", "x.example.com"), ("b", "x.example.com"), ("c", "y.example.com")];
    let defined = names.map(|(plural, group)| definition(plural, group));
    let added = |new: &Arc<DefinedResources>| DefinitionChange {
        old_resources: None,
        new_resources: Some(Arc::clone(new)),
    };
    let (before, faults) =
        Registry::with_built_in_resources().with_definition_changes(defined.iter().map(added));
    assert_eq!(faults, []);
    let openapi = |registry: &Registry, path: &str| {
        registry.openapi().openapi_document_of_version(path).map(|document| document.body.as_ptr())
    };
    let paths = ["apis/y.example.com/v1", "apis/x.example.com/v1"];
    let documents_before = paths.map(|path| openapi(&before, path));
    let removed =
        DefinitionChange { old_resources: Some(Arc::clone(&defined[0])), new_resources: None };
    let replaced = definition("b", "x.example.com");
    let changed = DefinitionChange {
        old_resources: Some(Arc::clone(&defined[1])),
        new_resources: Some(Arc::clone(&replaced)),
    };
    let (after, faults) = before.with_definition_changes([removed, changed]);
    assert_eq!(faults, []);
    assert!(after.resource("x.example.com", "v1", "a").is_none());
    let now = after.resource("x.example.com", "v1", "b").expect("a resource");
    assert!(Arc::ptr_eq(now, &replaced.resources[0]));
    let other = after.resource("y.example.com", "v1", "c").expect("a resource");
    assert!(Arc::ptr_eq(other, &defined[2].resources[0]));
    assert!(std::ptr::eq(
        before.group("y.example.com").expect("a group"),
        after.group("y.example.com").expect("a group")
    ));
    assert!(std::ptr::eq(
        before.group("apps").expect("a group"),
        after.group("apps").expect("a group")
    ));
    // Documents of groups that did not change are not made again, and those of others are.
    let documents = paths.map(|path| openapi(&after, path));
    assert_eq!(documents[0], documents_before[0]);
    assert_ne!(documents[1], documents_before[1]);
    let plurals = |registry: &Registry| {
        let version = registry.group("x.example.com").expect("a group").versions.first();
        let resources = version.expect("a version").resources();
        resources.map(|resource| resource.plural.clone()).collect::<Vec<_>>()
    };
    assert_eq!((plurals(&before).concat(), plurals(&after).concat()), ("ab".into(), "b".into()));
    // A group without resources is gone, and the order of the others stays.
    let gone = DefinitionChange { old_resources: Some(replaced), new_resources: None };
    let (last, _) = after.with_definition_changes([gone]);
    assert!(last.group("x.example.com").is_none());
    assert_eq!(last.groups().last().map(|group| group.name.as_str()), Some("y.example.com"));
    assert_eq!(last.groups().count(), Registry::with_built_in_resources().groups().count() + 1);
}
