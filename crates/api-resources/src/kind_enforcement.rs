//! States for each built-in kind which program enforces its objects.
//!
//! Kubernetes' API server enforces some kinds that this server only stores. A warning tells the
//! author of such an object that nothing enforces it here.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};

use crate::json_members::{member_entries, value_at_path};
use crate::kind_rules::is_spec_changed;
use crate::registry::Registry;
use crate::resource::{Resource, ResourceOrigin};

/// The prefix of every warning about an unenforced object.
pub const UNENFORCED_PREFIX: &str = "not enforced by this server: ";

/// The prefix of the labels by which a namespace requests Pod Security admission.
const POD_SECURITY: &str = "pod-security.kubernetes.io/";

/// The program that acts on the objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnforcingComponent {
    /// This server enforces them.
    Enforced,
    /// Controllers, kubelets or network plugins act on them; this server stores them.
    StoredForControllers,
    /// No program enforces them, although the API server of Kubernetes would.
    NotEnforced,
}

impl EnforcingComponent {
    /// The description in the table of `docs/kinds.md`.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::StoredForControllers => "stored for controllers",
            Self::NotEnforced => "not enforced",
        }
    }
}

/// Group, kind, enforcement, and a note for the table in `docs/kinds.md`.
type EnforcementRow = (&'static str, &'static str, EnforcingComponent, &'static str);

const ANSWERED: &str = "answered at once and not stored";
const NOTHING_MORE: &str = "";

use EnforcingComponent::{Enforced, NotEnforced, StoredForControllers};

/// Every built-in kind. A test compares it with what is served, and with `docs/kinds.md`.
const TABLE: &[EnforcementRow] = &[
    ("", "Binding", Enforced, "binds a pod to a node and is not stored"),
    ("", "ConfigMap", StoredForControllers, "`immutable` is enforced"),
    ("", "Endpoints", StoredForControllers, NOTHING_MORE),
    ("", "Event", StoredForControllers, "removed after `--event-ttl`"),
    ("", "LimitRange", NotEnforced, "no pod or claim gets its defaults or is held to its limits"),
    (
        "",
        "Namespace",
        Enforced,
        "except its `pod-security.kubernetes.io/` labels, which are not enforced",
    ),
    (
        "",
        "Node",
        StoredForControllers,
        "the Node authorizer decides by the pods that are bound to a node, not by the Node object; NodeRestriction limits what a node writes; `podCIDRs` and `providerID` never change",
    ),
    ("", "PersistentVolume", StoredForControllers, "the Node authorizer reads it"),
    ("", "PersistentVolumeClaim", StoredForControllers, NOTHING_MORE),
    (
        "",
        "Pod",
        StoredForControllers,
        "the Node authorizer reads it; the server enforces which fields of the spec may change, and refuses a new pod whose names or paths could leave its folder; it does not validate the rest of the spec",
    ),
    ("", "PodTemplate", StoredForControllers, NOTHING_MORE),
    ("", "ReplicationController", StoredForControllers, NOTHING_MORE),
    (
        "",
        "ResourceQuota",
        NotEnforced,
        "nothing is counted, and no request is refused because of it",
    ),
    ("", "Secret", StoredForControllers, "`immutable` is enforced; token secrets authenticate"),
    (
        "",
        "Service",
        StoredForControllers,
        "the server assigns cluster IPs with `--service-cluster-ip-range`, and finds webhooks through Services; it refuses node ports outside of 30000-32767, but assigns none, and two Services may have the same one",
    ),
    ("", "ServiceAccount", Enforced, "tokens are issued for it and authenticate it"),
    ("apps", "ControllerRevision", StoredForControllers, NOTHING_MORE),
    ("apps", "DaemonSet", StoredForControllers, NOTHING_MORE),
    ("apps", "Deployment", StoredForControllers, NOTHING_MORE),
    ("apps", "ReplicaSet", StoredForControllers, NOTHING_MORE),
    ("apps", "StatefulSet", StoredForControllers, NOTHING_MORE),
    ("authentication.k8s.io", "SelfSubjectReview", Enforced, ANSWERED),
    ("authentication.k8s.io", "TokenReview", Enforced, ANSWERED),
    ("authorization.k8s.io", "LocalSubjectAccessReview", Enforced, ANSWERED),
    ("authorization.k8s.io", "SelfSubjectAccessReview", Enforced, ANSWERED),
    ("authorization.k8s.io", "SelfSubjectRulesReview", Enforced, ANSWERED),
    ("authorization.k8s.io", "SubjectAccessReview", Enforced, ANSWERED),
    ("authorization.portcullis.io", "LocalResourceAccessReview", Enforced, ANSWERED),
    ("authorization.portcullis.io", "ResourceAccessReview", Enforced, ANSWERED),
    ("authorization.portcullis.io", "SubjectAccessExplanation", Enforced, ANSWERED),
    ("batch", "CronJob", StoredForControllers, NOTHING_MORE),
    ("batch", "Job", StoredForControllers, NOTHING_MORE),
    (
        "certificates.k8s.io",
        "CertificateSigningRequest",
        StoredForControllers,
        "requester, approval and signature are enforced; a controller signs",
    ),
    (
        "certificates.k8s.io",
        "ClusterTrustBundle",
        StoredForControllers,
        "the server validates name, signer and certificates; a write needs `attest` on the signer",
    ),
    (
        "certificates.k8s.io",
        "PodCertificateRequest",
        StoredForControllers,
        "the Node authorizer reads it",
    ),
    ("networking.k8s.io", "Ingress", StoredForControllers, NOTHING_MORE),
    (
        "networking.k8s.io",
        "IngressClass",
        StoredForControllers,
        "no Ingress gets the default class",
    ),
    ("networking.k8s.io", "NetworkPolicy", StoredForControllers, "the network plugin enforces it"),
    (
        "policy",
        "PodDisruptionBudget",
        StoredForControllers,
        "the server refuses evictions that its status does not allow; a controller writes the status",
    ),
    (
        "rbac.authorization.k8s.io",
        "ClusterRole",
        Enforced,
        "where the RBAC authorizer is in the chain",
    ),
    (
        "rbac.authorization.k8s.io",
        "ClusterRoleBinding",
        Enforced,
        "where the RBAC authorizer is in the chain",
    ),
    ("rbac.authorization.k8s.io", "Role", Enforced, "where the RBAC authorizer is in the chain"),
    (
        "rbac.authorization.k8s.io",
        "RoleBinding",
        Enforced,
        "where the RBAC authorizer is in the chain",
    ),
    ("storage.k8s.io", "CSIDriver", StoredForControllers, NOTHING_MORE),
    ("storage.k8s.io", "CSINode", StoredForControllers, NOTHING_MORE),
    ("storage.k8s.io", "StorageClass", StoredForControllers, "no claim gets the default class"),
    ("storage.k8s.io", "VolumeAttachment", StoredForControllers, "the Node authorizer reads it"),
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicy",
        NotEnforced,
        "no request is changed by it; use a MutatingWebhookConfiguration",
    ),
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicyBinding",
        NotEnforced,
        "no request is changed by the policy that it binds; use a MutatingWebhookConfiguration",
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", Enforced, NOTHING_MORE),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        NotEnforced,
        "no request is checked by it; use a ValidatingWebhookConfiguration",
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
        NotEnforced,
        "no request is checked by the policy that it binds; use a ValidatingWebhookConfiguration",
    ),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", Enforced, NOTHING_MORE),
    ("admissionregistration.k8s.io", "ExternalAdmissionHookConfiguration", Enforced, NOTHING_MORE),
    (
        "admissionregistration.k8s.io",
        "InitializerConfiguration",
        Enforced,
        "with `--admission-initializers-enabled`",
    ),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        Enforced,
        "the server serves the custom resource",
    ),
    ("scheduling.k8s.io", "PriorityClass", StoredForControllers, "no pod gets a priority from it"),
    ("coordination.k8s.io", "Lease", StoredForControllers, NOTHING_MORE),
    ("node.k8s.io", "RuntimeClass", StoredForControllers, "no pod gets an overhead from it"),
    (
        "discovery.k8s.io",
        "EndpointSlice",
        StoredForControllers,
        "the server finds webhooks through it",
    ),
    ("resource.k8s.io", "DeviceClass", StoredForControllers, NOTHING_MORE),
    (
        "resource.k8s.io",
        "ResourceClaim",
        StoredForControllers,
        "admin access needs the label `resource.kubernetes.io/admin-access` of the namespace; the server does not validate the rest",
    ),
    (
        "resource.k8s.io",
        "ResourceClaimTemplate",
        StoredForControllers,
        "admin access needs the label `resource.kubernetes.io/admin-access` of the namespace; the server does not validate the rest",
    ),
    ("resource.k8s.io", "ResourceSlice", StoredForControllers, "the Node authorizer reads it"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema", Enforced, NOTHING_MORE),
    (
        "flowcontrol.apiserver.k8s.io",
        "PriorityLevelConfiguration",
        Enforced,
        "but levels lend each other no seats",
    ),
];

/// The program that acts on the objects of a built-in resource; `None` for custom resources.
#[must_use]
pub fn enforcing_component(resource: &Resource) -> Option<EnforcingComponent> {
    enforcement_row(resource).map(|(_, _, component, _)| *component)
}

fn enforcement_row(resource: &Resource) -> Option<&'static EnforcementRow> {
    let ResourceOrigin::BuiltIn(_) = resource.resource_origin else { return None };
    TABLE.iter().find(|(group, kind, ..)| (*group, *kind) == (&resource.group, &resource.kind))
}

/// The rows of the table in `docs/kinds.md`, in the order of discovery.
#[must_use]
pub fn enforcement_table_rows() -> Vec<String> {
    let registry = Registry::with_built_in_resources();
    let mut rows: Vec<String> = Vec::new();
    for resource in registry.resources() {
        let (group, kind) = (&resource.group, &resource.kind);
        let (description, note) = enforcement_row(resource)
            .map_or(("not classified", ""), |row| (row.2.description(), row.3));
        let group = if group.is_empty() { "core" } else { group };
        let text = format!("| {kind} | {group} | {description} | {note} |");
        if !rows.contains(&text) {
            rows.push(text);
        }
    }
    rows
}

/// An object that requests something that this server does not enforce.
#[derive(Debug)]
pub struct UnenforcedObject {
    /// The text of the warning that the author of the object gets.
    pub unenforced_rule_warning: String,
    /// The field errors of the request; empty if the object requested the same before.
    pub unenforced_rule_errors: FieldErrors,
}

/// Finds a rule in the object that this server does not enforce; `None` if there is none.
///
/// Labels, annotations and finalizers may change, so that such objects can be deleted.
#[must_use]
pub fn find_unenforced_rule(
    resource: &Resource,
    new: &Tree,
    old: Option<&Tree>,
) -> Option<UnenforcedObject> {
    let (_, kind, component, note) = enforcement_row(resource)?;
    let mut errors = FieldErrors::new();
    if resource.group.is_empty() && *kind == "Namespace" {
        let mut labels = pod_security_labels(new).map(|(key, _)| key.as_str()).peekable();
        labels.peek()?;
        let why = "no pod is checked against Pod Security Standards";
        let metadata = FieldPath::root("metadata");
        let path = metadata.child("labels");
        let is_changed = old
            .is_none_or(|old| !self::pod_security_labels(new).eq(self::pod_security_labels(old)));
        for key in labels.filter(|_| is_changed) {
            errors.push(path.key(key).forbidden(&format!("{UNENFORCED_PREFIX}{why}")));
        }
        let warning = format!("{UNENFORCED_PREFIX}the {POD_SECURITY} labels of a namespace: {why}");
        return Some(UnenforcedObject {
            unenforced_rule_warning: warning,
            unenforced_rule_errors: errors,
        });
    }
    if resource.group == manifests::flow_control::GROUP {
        return find_unenforced_seat_lending(new, old);
    }
    if *component != NotEnforced {
        return None;
    }
    let warning = format!("{UNENFORCED_PREFIX}{kind}: {note}");
    if old.is_none_or(|old| is_spec_changed(resource, new, old)) {
        errors.push(FieldPath::root("spec").forbidden(&warning));
    }
    Some(UnenforcedObject { unenforced_rule_warning: warning, unenforced_rule_errors: errors })
}

/// The fields of a priority level by which it lends or borrows seats.
const SEAT_LENDING: [[&str; 2]; 4] = [
    ["limited", "borrowingLimitPercent"],
    ["limited", "lendablePercent"],
    ["exempt", "lendablePercent"],
    ["exempt", "nominalConcurrencyShares"],
];

/// Finds the fields of a priority level that say how it lends or borrows seats. A zero has no effect in Kubernetes
/// either, except that a limit of zero forbids to borrow.
fn find_unenforced_seat_lending(new: &Tree, old: Option<&Tree>) -> Option<UnenforcedObject> {
    let value = |tree: &Tree, [part, member]: [&str; 2]| {
        value_at_path(tree, &["spec", part, member]).as_i64().filter(|percent| *percent != 0)
    };
    let set: Vec<_> = SEAT_LENDING.into_iter().filter(|path| value(new, *path).is_some()).collect();
    let names: Vec<String> =
        set.iter().map(|[part, member]| format!("spec.{part}.{member}")).collect();
    if names.is_empty() {
        return None;
    }
    let why = "levels lend each other no seats";
    let mut errors = FieldErrors::new();
    let spec = FieldPath::root("spec");
    for path in set {
        if old.is_none_or(|old| value(new, path) != value(old, path)) {
            let [part, member] = path;
            let detail = format!("{UNENFORCED_PREFIX}{why}");
            errors.push(spec.child(part).child(member).forbidden(&detail));
        }
    }
    let warning = format!("{UNENFORCED_PREFIX}{}: {why}", names.join(", "));
    Some(UnenforcedObject { unenforced_rule_warning: warning, unenforced_rule_errors: errors })
}

fn pod_security_labels(namespace: &Tree) -> impl Iterator<Item = (&String, &serde_json::Value)> {
    let all = member_entries(api_object::metadata(namespace), "labels");
    all.filter(|(key, _)| key.starts_with(POD_SECURITY))
}
