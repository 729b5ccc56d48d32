//! The default flow schemas and priority levels, which the server creates itself.
//!
//! The mandatory ones always have these specs. The suggested ones are those of Kubernetes, and three levels that
//! only Portcullis has, whose names begin with `portcullis-`: for requests that repair a cluster, for access
//! reviews, and for leases of workloads. The requests of each of these levels wait only for each other, however
//! busy the other levels are.

#[cfg(test)]
mod tests;

use crate::flow_schema::{
    FlowDistinguisher, FlowSchema, NonResourceRule, PolicyRulesWithSubjects, ResourceRule, Subject,
};
use crate::priority_level::{LimitResponse, PriorityLevel, PriorityLevelKind, QueuingOptions};

/// The name of the mandatory schema and of the mandatory level for requests that are never limited.
pub const EXEMPT: &str = "exempt";

/// The name of the mandatory schema and of the mandatory level for requests that no other schema matches.
pub const CATCH_ALL: &str = "catch-all";

const EVERY: &[&str] = &["*"];

/// The verbs that change objects.
const WRITES: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];

/// A default priority level as its object describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootstrapPriorityLevel {
    /// The level that requests are classified into.
    pub priority_level: PriorityLevel,
    /// The part of the seats that the object offers to other levels. Levels do not borrow here, so it has no
    /// effect.
    pub lendable_percent: u32,
}

/// The levels `exempt` and `catch-all`.
pub fn mandatory_priority_levels() -> Vec<BootstrapPriorityLevel> {
    let exempt = PriorityLevel {
        name: EXEMPT.to_owned(),
        uid: String::new(),
        kind: PriorityLevelKind::Exempt,
    };
    vec![
        BootstrapPriorityLevel { priority_level: exempt, lendable_percent: 0 },
        build_limited_level(CATCH_ALL, 5, 0, LimitResponse::Reject),
    ]
}

/// The levels that administrators may change.
pub fn suggested_priority_levels() -> Vec<BootstrapPriorityLevel> {
    vec![
        build_limited_level("system", 30, 33, queuing_limit_response(64, 6)),
        build_limited_level("node-high", 40, 25, queuing_limit_response(64, 6)),
        build_limited_level("leader-election", 10, 0, queuing_limit_response(16, 4)),
        build_limited_level("workload-high", 40, 50, queuing_limit_response(128, 6)),
        build_limited_level("workload-low", 100, 90, queuing_limit_response(128, 6)),
        build_limited_level("global-default", 20, 50, queuing_limit_response(128, 6)),
        build_limited_level("portcullis-repair", 15, 0, queuing_limit_response(64, 6)),
        build_limited_level("portcullis-access-reviews", 20, 0, queuing_limit_response(64, 6)),
        build_limited_level("portcullis-leases", 10, 0, queuing_limit_response(64, 6)),
    ]
}

/// The schemas `exempt` and `catch-all`.
pub fn mandatory_flow_schemas() -> Vec<FlowSchema> {
    vec![
        build_flow_schema(
            EXEMPT,
            EXEMPT,
            1,
            None,
            build_rules_for_every_request(groups(&["system:masters"])),
        ),
        build_flow_schema(
            CATCH_ALL,
            CATCH_ALL,
            10_000,
            Some(FlowDistinguisher::ByUser),
            build_rules_for_every_request(authenticated_and_unauthenticated_groups()),
        ),
    ]
}

/// The schemas that administrators may change.
pub fn suggested_flow_schemas() -> Vec<FlowSchema> {
    let by_user = Some(FlowDistinguisher::ByUser);
    let by_namespace = Some(FlowDistinguisher::ByNamespace);
    let probes = PolicyRulesWithSubjects {
        subjects: authenticated_and_unauthenticated_groups(),
        resource_rules: Vec::new(),
        non_resource_rules: vec![NonResourceRule {
            verbs: to_owned_strings(&["get"]),
            non_resource_urls: to_owned_strings(&["/healthz", "/readyz", "/livez"]),
        }],
    };
    let mut leaders = users(&["system:kube-controller-manager", "system:kube-scheduler"]);
    leaders.extend(kube_system_service_accounts());
    let node_status = build_resource_rule(EVERY, &[""], &["nodes", "nodes/status"], true);
    let node_leases = build_resource_rule(EVERY, &["coordination.k8s.io"], &["leases"], false);
    let nodes = groups(&["system:nodes"]);
    let controller_manager = users(&["system:kube-controller-manager"]);
    let scheduler = users(&["system:kube-scheduler"]);
    let service_accounts = groups(&["system:serviceaccounts"]);
    vec![
        build_flow_schema(
            "system-nodes",
            "system",
            500,
            by_user,
            build_rules_for_every_request(nodes.clone()),
        ),
        build_flow_schema(
            "system-node-high",
            "node-high",
            400,
            by_user,
            build_rules_for_resources(nodes, vec![node_status, node_leases]),
        ),
        build_flow_schema("probes", EXEMPT, 2, None, probes),
        build_flow_schema(
            "system-leader-election",
            "leader-election",
            100,
            by_user,
            build_rules_for_resources(leaders, vec![build_lease_renewal_rule()]),
        ),
        build_flow_schema(
            "kube-controller-manager",
            "workload-high",
            800,
            by_namespace,
            build_rules_for_every_request(controller_manager),
        ),
        build_flow_schema(
            "kube-scheduler",
            "workload-high",
            800,
            by_namespace,
            build_rules_for_every_request(scheduler),
        ),
        build_flow_schema(
            "kube-system-service-accounts",
            "workload-high",
            900,
            by_namespace,
            build_rules_for_every_request(kube_system_service_accounts()),
        ),
        build_flow_schema(
            "service-accounts",
            "workload-low",
            9000,
            by_user,
            build_rules_for_every_request(service_accounts),
        ),
        build_flow_schema(
            "global-default",
            "global-default",
            9900,
            by_user,
            build_rules_for_every_request(authenticated_and_unauthenticated_groups()),
        ),
        build_flow_schema(
            "portcullis-repair",
            "portcullis-repair",
            950,
            by_user,
            build_rules_for_resources(
                groups(&["system:authenticated"]),
                // Reads repair nothing, and controllers that list roles all the time must not delay repairs.
                vec![build_resource_rule(WRITES, REPAIR_GROUPS, EVERY, true)],
            ),
        ),
        build_flow_schema(
            "portcullis-access-reviews",
            "portcullis-access-reviews",
            950,
            by_user,
            build_rules_for_resources(
                groups(&["system:authenticated"]),
                vec![build_resource_rule(&["create"], REVIEW_GROUPS, EVERY, true)],
            ),
        ),
        build_flow_schema(
            "portcullis-leases",
            "portcullis-leases",
            950,
            by_user,
            build_rules_for_resources(
                groups(&["system:authenticated"]),
                vec![build_lease_renewal_rule()],
            ),
        ),
    ]
}

/// The API groups whose objects say who may do what, what admission checks, and how requests are limited.
const REPAIR_GROUPS: &[&str] =
    &["admissionregistration.k8s.io", "flowcontrol.apiserver.k8s.io", "rbac.authorization.k8s.io"];

/// The API groups of access reviews and token reviews.
const REVIEW_GROUPS: &[&str] =
    &["authentication.k8s.io", "authorization.k8s.io", "authorization.portcullis.io"];

fn build_limited_level(
    name: &str,
    nominal_concurrency_shares: u32,
    lendable_percent: u32,
    limit_response: LimitResponse,
) -> BootstrapPriorityLevel {
    let kind = PriorityLevelKind::Limited { nominal_concurrency_shares, limit_response };
    let level = PriorityLevel { name: name.to_owned(), uid: String::new(), kind };
    BootstrapPriorityLevel { priority_level: level, lendable_percent }
}

fn queuing_limit_response(queues: u32, hand_size: u32) -> LimitResponse {
    LimitResponse::Queue(QueuingOptions { n_queues: queues, hand_size, queue_length_limit: 50 })
}

fn build_flow_schema(
    name: &str,
    priority_level_name: &str,
    matching_precedence: i32,
    flow_distinguisher: Option<FlowDistinguisher>,
    rules: PolicyRulesWithSubjects,
) -> FlowSchema {
    FlowSchema {
        name: name.to_owned(),
        uid: String::new(),
        matching_precedence,
        priority_level_name: priority_level_name.to_owned(),
        flow_distinguisher,
        rules: vec![rules],
    }
}

/// Matches every request of the subjects.
fn build_rules_for_every_request(subjects: Vec<Subject>) -> PolicyRulesWithSubjects {
    PolicyRulesWithSubjects {
        subjects,
        resource_rules: vec![build_resource_rule(EVERY, EVERY, EVERY, true)],
        non_resource_rules: vec![NonResourceRule {
            verbs: to_owned_strings(EVERY),
            non_resource_urls: to_owned_strings(EVERY),
        }],
    }
}

fn build_rules_for_resources(
    subjects: Vec<Subject>,
    resource_rules: Vec<ResourceRule>,
) -> PolicyRulesWithSubjects {
    PolicyRulesWithSubjects { subjects, resource_rules, non_resource_rules: Vec::new() }
}

/// A rule for all namespaces.
fn build_resource_rule(
    verbs: &[&str],
    api_groups: &[&str],
    resources: &[&str],
    matches_cluster_scope: bool,
) -> ResourceRule {
    ResourceRule {
        verbs: to_owned_strings(verbs),
        api_groups: to_owned_strings(api_groups),
        resources: to_owned_strings(resources),
        namespaces: to_owned_strings(EVERY),
        matches_cluster_scope,
    }
}

/// The requests by which a leader renews its lease.
fn build_lease_renewal_rule() -> ResourceRule {
    build_resource_rule(&["get", "create", "update"], &["coordination.k8s.io"], &["leases"], false)
}

fn authenticated_and_unauthenticated_groups() -> Vec<Subject> {
    groups(&["system:unauthenticated", "system:authenticated"])
}

fn users(names: &[&str]) -> Vec<Subject> {
    names.iter().map(|name| Subject::User((*name).to_owned())).collect()
}

fn groups(names: &[&str]) -> Vec<Subject> {
    names.iter().map(|name| Subject::Group((*name).to_owned())).collect()
}

fn kube_system_service_accounts() -> Vec<Subject> {
    vec![Subject::ServiceAccount { namespace: "kube-system".to_owned(), name: "*".to_owned() }]
}

fn to_owned_strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The default levels of requests that keep a cluster running or repair it.
const SYSTEM_LEVELS: [&str; 5] =
    ["system", "node-high", "leader-election", "portcullis-leases", "portcullis-repair"];

/// Reports whether a priority level is for requests that keep a cluster running or repair it. Limits that all
/// levels share reserve a part for these levels.
pub fn is_system_priority_level(name: &str) -> bool {
    SYSTEM_LEVELS.contains(&name)
}
