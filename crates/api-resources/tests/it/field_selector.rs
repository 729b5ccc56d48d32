//! The fields by which lists can be filtered.

use api_object::Tree;
use api_resources::{
    FieldSelectorError, Registry, Resource, check_field_selector, selector_field_value,
};
use serde_json::json;

use crate::world::{RBAC, established, resource, tree, widgets, with_widgets};

fn check(resource: &Resource, selector: &str) -> Result<(), FieldSelectorError> {
    let fields = authz::parse_field_selector(selector).expect("a selector");
    check_field_selector(resource, &fields)
}

#[test]
fn each_kind_knows_its_fields() {
    let registry = with_widgets();
    let widgets = registry.resource("example.com", "v1", "widgets").expect("served");
    for (resource, selector) in [
        (&resource("", "configmaps"), "metadata.name=a,metadata.namespace!=b"),
        (&resource("", "pods"), "spec.nodeName=n,status.phase=Running,spec.hostNetwork=true"),
        (&resource("", "events"), "involvedObject.name=x,source=kubelet,type=Warning"),
        (&resource("", "secrets"), "type=Opaque"),
        (&resource("", "namespaces"), "status.phase=Active"),
        (&resource("", "services"), "spec.clusterIP=None,spec.type=ClusterIP"),
        (&resource("", "nodes"), "spec.unschedulable=true"),
        (&resource("certificates.k8s.io", "certificatesigningrequests"), "spec.signerName=a.b/c"),
        (&resource("certificates.k8s.io", "clustertrustbundles"), "spec.signerName=a.b/c"),
        (
            &resource("resource.k8s.io", "resourceslices"),
            "metadata.name=a,spec.nodeName=n,spec.driver=d,spec.pool.name=p",
        ),
        (&resource(RBAC, "clusterroles"), "metadata.namespace=x"),
        (widgets, "metadata.name=a"),
    ] {
        assert_eq!(check(resource, selector), Ok(()), "{selector}");
    }
    let other = "\"bogus\" is not a known field selector: only \"metadata.name\", \
                 \"metadata.namespace\"";
    for (resource, selector, want) in [
        (&resource("", "configmaps"), "bogus=x", other),
        (&resource(RBAC, "roles"), "bogus=x", other),
        (&resource("", "namespaces"), "bogus=x", "field label not supported: bogus"),
        (&resource("", "pods"), "metadata.uid=x", "field label not supported: metadata.uid"),
        (
            &resource("", "nodes"),
            "metadata.namespace=x",
            "field label not supported: metadata.namespace",
        ),
        (
            &resource("resource.k8s.io", "resourceslices"),
            "spec.allNodes=true",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.allNodes",
        ),
        (widgets, "spec.size=3", "field label not supported: spec.size"),
    ] {
        let error = check(resource, selector).unwrap_err();
        assert_eq!(error.to_string(), want, "{selector}");
    }
}

#[test]
fn values_are_where_the_names_say_or_where_the_kind_knows() {
    let pod = tree(json!({
        "metadata": { "name": "p", "namespace": "d" },
        "spec": { "nodeName": "n", "hostNetwork": true },
        "status": { "podIP": "10.0.0.9", "podIPs": [{ "ip": "10.0.0.1" }] },
    }));
    let event = tree(json!({
        "involvedObject": { "fieldPath": "spec.containers{a}" }, "reportingComponent": "kubelet",
    }));
    for (plural, tree, field, want) in [
        ("pods", &pod, "metadata.name", "p"),
        ("pods", &pod, "metadata.namespace", "d"),
        ("pods", &pod, "spec.nodeName", "n"),
        ("pods", &pod, "spec.hostNetwork", "true"),
        ("pods", &pod, "status.podIP", "10.0.0.1"),
        ("pods", &pod, "status.phase", ""),
        ("nodes", &pod, "spec.unschedulable", "false"),
        ("events", &event, "source", "kubelet"),
        ("events", &event, "involvedObject.fieldPath", "spec.containers{a}"),
    ] {
        assert_eq!(selector_field_value(&resource("", plural), tree, field), want, "{field}");
    }
}

#[test]
fn a_definition_can_offer_fields() {
    let mut definition = widgets();
    let version = &mut definition["spec"]["versions"][0];
    version["selectableFields"] = json!([{ "jsonPath": ".spec.size" }]);
    let (registry, _) = Registry::with_custom_resource_definitions(&[&established(definition)]);
    let widgets = registry.resource("example.com", "v1", "widgets").expect("served");
    assert_eq!(check(widgets, "spec.size=3"), Ok(()));
    let widget: Tree = tree(json!({ "metadata": { "name": "a" }, "spec": { "size": 3 } }));
    assert_eq!(selector_field_value(widgets, &widget, "spec.size"), "3");
    assert_eq!(selector_field_value(widgets, &widget, "metadata.name"), "a");
}
