use std::sync::Arc;

use super::*;
use crate::{FlowController, RequestDigest, RequestTarget, required_entropy_bits};

fn controller() -> FlowController {
    let levels: Vec<_> =
        mandatory_priority_levels().into_iter().chain(suggested_priority_levels()).collect();
    let levels: Vec<_> = levels.into_iter().map(|bootstrap| bootstrap.priority_level).collect();
    let schemas = mandatory_flow_schemas().into_iter().chain(suggested_flow_schemas());
    let controller = FlowController::new(600);
    controller.replace_schemas_and_levels(schemas.map(Arc::new).collect(), &levels);
    controller
}

const fn resource(
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    namespace: &'static str,
) -> RequestTarget<'static> {
    RequestTarget::Resource { group, resource, subresource, namespace }
}

const RBAC: &str = "rbac.authorization.k8s.io";
const ACCOUNT: &str = "system:serviceaccount:team:builder";
const SYSTEM_ACCOUNT: &str = "system:serviceaccount:kube-system:coredns";

#[test]
fn default_schemas_classify_the_usual_requests() {
    let authenticated = &["system:authenticated"][..];
    let accounts = &["system:serviceaccounts", "system:authenticated"][..];
    let nodes = &["system:nodes", "system:authenticated"][..];
    let pods = resource("", "pods", "", "team");
    let lease = resource("coordination.k8s.io", "leases", "", "team");
    let node_lease = resource("coordination.k8s.io", "leases", "", "kube-node-lease");
    let roles = resource(RBAC, "clusterroles", "", "");
    let review = resource("authorization.k8s.io", "subjectaccessreviews", "", "");
    let status = resource("", "nodes", "status", "");
    #[rustfmt::skip]
    let cases = [
        ("root", &["system:masters", "system:authenticated"][..], "delete", pods, "exempt"),
        ("system:anonymous", &["system:unauthenticated"], "get", RequestTarget::Path("/healthz"), "probes"),
        ("system:anonymous", &["system:unauthenticated"], "get", RequestTarget::Path("/version"), "global-default"),
        ("system:anonymous", &["system:unauthenticated"], "list", roles, "global-default"),
        ("system:kube-scheduler", authenticated, "update", lease, "system-leader-election"),
        ("system:kube-scheduler", authenticated, "list", roles, "kube-scheduler"),
        ("system:kube-scheduler", authenticated, "list", pods, "kube-scheduler"),
        ("system:kube-controller-manager", authenticated, "create", review, "kube-controller-manager"),
        ("system:node:a", nodes, "patch", status, "system-node-high"),
        ("system:node:a", nodes, "update", node_lease, "system-node-high"),
        ("system:node:a", nodes, "create", review, "system-nodes"),
        (SYSTEM_ACCOUNT, accounts, "create", review, "kube-system-service-accounts"),
        (SYSTEM_ACCOUNT, accounts, "update", lease, "system-leader-election"),
        (ACCOUNT, accounts, "update", lease, "portcullis-leases"),
        (ACCOUNT, accounts, "list", lease, "service-accounts"),
        (ACCOUNT, accounts, "create", review, "portcullis-access-reviews"),
        (ACCOUNT, accounts, "update", roles, "portcullis-repair"),
        (ACCOUNT, accounts, "list", pods, "service-accounts"),
        ("ana", authenticated, "create", review, "portcullis-access-reviews"),
        ("ana", authenticated, "patch", resource("admissionregistration.k8s.io", "validatingwebhookconfigurations", "", ""), "portcullis-repair"),
        ("ana", authenticated, "delete", resource("flowcontrol.apiserver.k8s.io", "flowschemas", "", ""), "portcullis-repair"),
        ("ana", authenticated, "create", resource(RBAC, "rolebindings", "", "team"), "portcullis-repair"),
        ("ana", authenticated, "list", resource(RBAC, "rolebindings", "", "team"), "global-default"),
        (ACCOUNT, accounts, "watch", roles, "service-accounts"),
        ("ana", authenticated, "list", pods, "global-default"),
    ];
    let controller = controller();
    for (user, groups, verb, target, want) in cases {
        let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        let request = RequestDigest { user, groups: &groups, verb, request_target: target };
        let classification = controller.classify_request(&request).expect("catch-all matches");
        assert_eq!(classification.flow_schema().name, want, "{user} {verb} {target:?}");
    }
}

#[test]
fn every_schema_has_a_level_and_every_level_is_used() {
    let levels: Vec<_> =
        mandatory_priority_levels().into_iter().chain(suggested_priority_levels()).collect();
    let schemas: Vec<_> =
        mandatory_flow_schemas().into_iter().chain(suggested_flow_schemas()).collect();
    for schema in &schemas {
        let exists = levels.iter().any(|own| own.priority_level.name == schema.priority_level_name);
        assert!(exists, "{}", schema.name);
    }
    for own in &levels {
        let is_used =
            schemas.iter().any(|schema| schema.priority_level_name == own.priority_level.name);
        assert!(is_used, "{}", own.priority_level.name);
        if let PriorityLevelKind::Limited {
            limit_response: LimitResponse::Queue(options), ..
        } = own.priority_level.kind
        {
            assert!(required_entropy_bits(options.n_queues, options.hand_size) <= 60);
        }
    }
}

/// The levels for repairs have seats even if the server has very few.
#[test]
fn every_limited_level_has_a_seat() {
    let levels: Vec<_> =
        mandatory_priority_levels().into_iter().chain(suggested_priority_levels()).collect();
    let levels: Vec<_> = levels.into_iter().map(|bootstrap| bootstrap.priority_level).collect();
    let controller = FlowController::new(1);
    controller.replace_schemas_and_levels(Vec::new(), &levels);
    for usage in controller.priority_level_usages() {
        assert_ne!(usage.seats_max, Some(0), "{}", usage.name);
    }
}
