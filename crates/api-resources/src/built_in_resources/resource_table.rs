//! The rows of the table of built-in resources.

use admission::ConfigurationKind;

use super::{
    BuiltInResource, admission_configuration_resource, admission_registration_resource,
    core_v1_resource, review_resource, stored_v1_resource,
};
use crate::kind_rules::{self, KindRules};
use crate::resource::Scope::{Cluster, Namespaced};
use crate::resource::{NameRule, Subresource, SubresourceKind};
use crate::schema;
use crate::verb::{Verb, Verbs};

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
const EXPLANATION: &str = "authorization.portcullis.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";
const FLOW_CONTROL: &str = manifests::flow_control::GROUP;
const NETWORKING: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const STORAGE: &str = "storage.k8s.io";

const ALL: &[&str] = &["all"];
const API_EXTENSIONS: &[&str] = &["api-extensions"];

const STATUS: &[Subresource] = &[Subresource::STATUS];
const SCALE_AND_STATUS: &[Subresource] = &[Subresource::SCALE, Subresource::STATUS];
const APPROVAL: Subresource = Subresource { name: "approval", verbs: Verbs::PART, kind: None };
const BINDING: Subresource = Subresource {
    name: "binding",
    verbs: Verbs::CREATE,
    kind: Some(SubresourceKind { group: "", version: "v1", kind: "Binding" }),
};
const EVICTION: Subresource = Subresource {
    name: "eviction",
    verbs: Verbs::CREATE,
    kind: Some(SubresourceKind { group: "policy", version: "v1", kind: "Eviction" }),
};
const FINALIZE: Subresource = Subresource { name: "finalize", verbs: Verbs::UPDATE, kind: None };
const TOKEN: Subresource = Subresource {
    name: "token",
    verbs: Verbs::CREATE,
    kind: Some(SubresourceKind { group: AUTHENTICATION, version: "v1", kind: "TokenRequest" }),
};

/// The subresources of pods, in the order of their names.
const OF_PODS: &[Subresource] = &[
    Subresource::connect_subresource("attach", Verbs::STREAM, "PodAttachOptions"),
    BINDING,
    EVICTION,
    Subresource::connect_subresource("exec", Verbs::STREAM, "PodExecOptions"),
    Subresource::connect_subresource("portforward", Verbs::STREAM, "PodPortForwardOptions"),
    Subresource::connect_subresource("proxy", Verbs::PROXY, "PodProxyOptions"),
    Subresource::STATUS,
];
const OF_NODES: &[Subresource] = &[
    Subresource::connect_subresource("proxy", Verbs::PROXY, "NodeProxyOptions"),
    Subresource::STATUS,
];
const OF_SERVICES: &[Subresource] = &[
    Subresource::connect_subresource("proxy", Verbs::PROXY, "ServiceProxyOptions"),
    Subresource::STATUS,
];

/// The table. Groups stand in the order in which discovery shows them.
pub(crate) static TABLE: &[BuiltInResource] = &[
    review_resource("", "v1", "Binding", "bindings", Namespaced),
    core_v1_resource("ConfigMap", "configmaps", Namespaced)
        .with_short_names(&["cm"])
        .rules(KindRules::ConfigMap)
        .with_schema(&schema::CONFIG_MAP),
    core_v1_resource("Endpoints", "endpoints", Namespaced)
        .with_short_names(&["ep"])
        .with_storage_path("services/endpoints")
        .allow_create_on_update()
        .rules(KindRules::Endpoints),
    core_v1_resource("Event", "events", Namespaced)
        .with_short_names(&["ev"])
        .allow_create_on_update()
        .rules(KindRules::Event),
    core_v1_resource("LimitRange", "limitranges", Namespaced)
        .with_short_names(&["limits"])
        .allow_create_on_update(),
    core_v1_resource("Namespace", "namespaces", Cluster)
        .with_short_names(&["ns"])
        .with_subresources(&[FINALIZE, Subresource::STATUS])
        .verbs(Verbs::ALL.without_verb(Verb::DeleteCollection))
        .with_name_rule(NameRule::DnsLabel)
        .return_object_on_delete()
        .rules(KindRules::Namespace)
        .with_schema(&schema::NAMESPACE),
    core_v1_resource("Node", "nodes", Cluster)
        .with_short_names(&["no"])
        .with_subresources(OF_NODES)
        .with_storage_path("minions")
        .rules(KindRules::Node),
    core_v1_resource("PersistentVolume", "persistentvolumes", Cluster)
        .with_short_names(&["pv"])
        .with_subresources(STATUS)
        .return_object_on_delete()
        .rules(KindRules::PersistentVolume),
    core_v1_resource("PersistentVolumeClaim", "persistentvolumeclaims", Namespaced)
        .with_short_names(&["pvc"])
        .with_subresources(STATUS)
        .return_object_on_delete()
        .rules(KindRules::PersistentVolumeClaim),
    core_v1_resource("Pod", "pods", Namespaced)
        .with_short_names(&["po"])
        .with_categories(ALL)
        .with_subresources(OF_PODS)
        .generation()
        .return_object_on_delete()
        .rules(KindRules::Pod),
    core_v1_resource("PodTemplate", "podtemplates", Namespaced)
        .generation()
        .return_object_on_delete(),
    core_v1_resource("ReplicationController", "replicationcontrollers", Namespaced)
        .with_short_names(&["rc"])
        .with_categories(ALL)
        .with_subresources(SCALE_AND_STATUS)
        .generation()
        .orphan_dependents_by_default()
        .with_storage_path("controllers"),
    core_v1_resource("ResourceQuota", "resourcequotas", Namespaced)
        .with_short_names(&["quota"])
        .with_subresources(STATUS)
        .return_object_on_delete()
        .rules(KindRules::ResourceQuota),
    core_v1_resource("Secret", "secrets", Namespaced)
        .rules(KindRules::Secret)
        .with_schema(&schema::SECRET),
    core_v1_resource("Service", "services", Namespaced)
        .with_short_names(&["svc"])
        .with_categories(ALL)
        .with_subresources(OF_SERVICES)
        .with_storage_path("services/specs")
        .with_name_rule(NameRule::DnsLabel)
        .allow_create_on_update()
        .return_object_on_delete()
        .rules(KindRules::Service),
    core_v1_resource("ServiceAccount", "serviceaccounts", Namespaced)
        .with_short_names(&["sa"])
        .with_subresources(&[TOKEN])
        .return_object_on_delete()
        .rules(KindRules::ServiceAccount)
        .with_schema(&schema::SERVICE_ACCOUNT),
    stored_v1_resource("apps", "ControllerRevision", "controllerrevisions", Namespaced),
    stored_v1_resource("apps", "DaemonSet", "daemonsets", Namespaced)
        .with_short_names(&["ds"])
        .with_categories(ALL)
        .with_subresources(STATUS)
        .generation(),
    stored_v1_resource("apps", "Deployment", "deployments", Namespaced)
        .with_short_names(&["deploy"])
        .with_categories(ALL)
        .with_subresources(SCALE_AND_STATUS)
        .generation()
        .rules(KindRules::Deployment),
    stored_v1_resource("apps", "ReplicaSet", "replicasets", Namespaced)
        .with_short_names(&["rs"])
        .with_categories(ALL)
        .with_subresources(SCALE_AND_STATUS)
        .generation()
        .rules(KindRules::ReplicaSet),
    stored_v1_resource("apps", "StatefulSet", "statefulsets", Namespaced)
        .with_short_names(&["sts"])
        .with_categories(ALL)
        .with_subresources(SCALE_AND_STATUS)
        .generation(),
    review_resource(AUTHENTICATION, "v1", "SelfSubjectReview", "selfsubjectreviews", Cluster),
    review_resource(AUTHENTICATION, "v1", "TokenReview", "tokenreviews", Cluster),
    review_resource(AUTHORIZATION, "v1", "LocalSubjectAccessReview", LOCAL_REVIEWS, Namespaced),
    review_resource(
        AUTHORIZATION,
        "v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        Cluster,
    ),
    review_resource(
        AUTHORIZATION,
        "v1",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        Cluster,
    ),
    review_resource(AUTHORIZATION, "v1", "SubjectAccessReview", "subjectaccessreviews", Cluster),
    review_resource(
        AUTHORIZATION,
        "v1beta1",
        "LocalSubjectAccessReview",
        LOCAL_REVIEWS,
        Namespaced,
    ),
    review_resource(
        AUTHORIZATION,
        "v1beta1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        Cluster,
    ),
    review_resource(
        AUTHORIZATION,
        "v1beta1",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        Cluster,
    ),
    review_resource(
        AUTHORIZATION,
        "v1beta1",
        "SubjectAccessReview",
        "subjectaccessreviews",
        Cluster,
    ),
    review_resource(
        EXPLANATION,
        "v1alpha1",
        "LocalResourceAccessReview",
        "localresourceaccessreviews",
        Namespaced,
    ),
    review_resource(
        EXPLANATION,
        "v1alpha1",
        "ResourceAccessReview",
        "resourceaccessreviews",
        Cluster,
    ),
    review_resource(
        EXPLANATION,
        "v1alpha1",
        "SubjectAccessExplanation",
        "subjectaccessexplanations",
        Cluster,
    ),
    stored_v1_resource("batch", "CronJob", "cronjobs", Namespaced)
        .with_short_names(&["cj"])
        .with_categories(ALL)
        .with_subresources(STATUS)
        .generation(),
    stored_v1_resource("batch", "Job", "jobs", Namespaced)
        .with_categories(ALL)
        .with_subresources(STATUS)
        .generation()
        .orphan_dependents_by_default(),
    stored_v1_resource(
        CERTIFICATES,
        "CertificateSigningRequest",
        "certificatesigningrequests",
        Cluster,
    )
    .with_short_names(&["csr"])
    .with_subresources(&[APPROVAL, Subresource::STATUS])
    .with_name_rule(NameRule::PathSegment)
    .rules(KindRules::CertificateSigningRequest)
    .with_schema(&schema::CERTIFICATE_SIGNING_REQUEST),
    stored_v1_resource(CERTIFICATES, "ClusterTrustBundle", "clustertrustbundles", Cluster)
        .with_name_rule(NameRule::PathSegment)
        .require_resource_version()
        .rules(KindRules::ClusterTrustBundle),
    stored_v1_resource(CERTIFICATES, "PodCertificateRequest", "podcertificaterequests", Namespaced)
        .with_subresources(STATUS)
        .require_resource_version()
        .rules(KindRules::Immutable(kind_rules::POD_CERTIFICATE_REQUEST)),
    stored_v1_resource(NETWORKING, "Ingress", "ingresses", Namespaced)
        .with_short_names(&["ing"])
        .with_subresources(STATUS)
        .generation()
        .with_storage_path("ingress"),
    stored_v1_resource(NETWORKING, "IngressClass", "ingressclasses", Cluster).generation(),
    stored_v1_resource(NETWORKING, "NetworkPolicy", "networkpolicies", Namespaced)
        .with_short_names(&["netpol"])
        .generation(),
    stored_v1_resource("policy", "PodDisruptionBudget", "poddisruptionbudgets", Namespaced)
        .with_short_names(&["pdb"])
        .with_subresources(STATUS)
        .generation()
        .require_resource_version(),
    stored_v1_resource(RBAC, "ClusterRole", "clusterroles", Cluster)
        .with_name_rule(NameRule::PathSegment)
        .allow_create_on_update()
        .rules(KindRules::Rbac(manifests::rbac::Kind::ClusterRole))
        .with_schema(&schema::CLUSTER_ROLE),
    stored_v1_resource(RBAC, "ClusterRoleBinding", "clusterrolebindings", Cluster)
        .with_name_rule(NameRule::PathSegment)
        .allow_create_on_update()
        .rules(KindRules::Rbac(manifests::rbac::Kind::ClusterRoleBinding))
        .with_schema(&schema::CLUSTER_ROLE_BINDING),
    stored_v1_resource(RBAC, "Role", "roles", Namespaced)
        .with_name_rule(NameRule::PathSegment)
        .allow_create_on_update()
        .rules(KindRules::Rbac(manifests::rbac::Kind::Role))
        .with_schema(&schema::ROLE),
    stored_v1_resource(RBAC, "RoleBinding", "rolebindings", Namespaced)
        .with_name_rule(NameRule::PathSegment)
        .allow_create_on_update()
        .rules(KindRules::Rbac(manifests::rbac::Kind::RoleBinding))
        .with_schema(&schema::ROLE_BINDING),
    stored_v1_resource(STORAGE, "CSIDriver", "csidrivers", Cluster)
        .require_resource_version()
        .return_object_on_delete(),
    stored_v1_resource(STORAGE, "CSINode", "csinodes", Cluster)
        .require_resource_version()
        .return_object_on_delete()
        .rules(KindRules::CsiNode),
    stored_v1_resource(STORAGE, "StorageClass", "storageclasses", Cluster)
        .with_short_names(&["sc"])
        .return_object_on_delete(),
    stored_v1_resource(STORAGE, "VolumeAttachment", "volumeattachments", Cluster)
        .with_subresources(STATUS)
        .require_resource_version()
        .return_object_on_delete()
        .rules(KindRules::Immutable(kind_rules::VOLUME_ATTACHMENT)),
    admission_registration_resource("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        .rules(KindRules::MutatingAdmissionPolicy),
    admission_registration_resource(
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
    )
    .rules(KindRules::AdmissionPolicyBinding),
    admission_configuration_resource(ConfigurationKind::Mutating)
        .with_schema(&schema::MUTATING_WEBHOOK_CONFIGURATION),
    admission_registration_resource("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        .with_subresources(STATUS)
        .rules(KindRules::ValidatingAdmissionPolicy),
    admission_registration_resource(
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
    )
    .rules(KindRules::AdmissionPolicyBinding),
    admission_configuration_resource(ConfigurationKind::Validating)
        .with_schema(&schema::VALIDATING_WEBHOOK_CONFIGURATION),
    admission_configuration_resource(ConfigurationKind::ExternalHook)
        .with_storage_path("admissionregistration.k8s.io/externaladmissionhookconfigurations")
        .with_schema(&schema::EXTERNAL_ADMISSION_HOOK_CONFIGURATION),
    admission_configuration_resource(ConfigurationKind::Initializer)
        .with_storage_path("admissionregistration.k8s.io/initializerconfigurations")
        .with_schema(&schema::INITIALIZER_CONFIGURATION),
    stored_v1_resource(
        EXTENSIONS,
        "CustomResourceDefinition",
        "customresourcedefinitions",
        Cluster,
    )
    .with_short_names(&["crd", "crds"])
    .with_categories(API_EXTENSIONS)
    .with_subresources(STATUS)
    .generation()
    .require_resource_version()
    .with_storage_path("apiextensions.k8s.io/customresourcedefinitions")
    .rules(KindRules::CustomResourceDefinition)
    .with_schema(&schema::CUSTOM_RESOURCE_DEFINITION),
    stored_v1_resource("scheduling.k8s.io", "PriorityClass", "priorityclasses", Cluster)
        .with_short_names(&["pc"])
        .generation(),
    stored_v1_resource("coordination.k8s.io", "Lease", "leases", Namespaced)
        .allow_create_on_update()
        .require_resource_version()
        .rules(KindRules::Lease)
        .with_schema(&schema::LEASE),
    stored_v1_resource("node.k8s.io", "RuntimeClass", "runtimeclasses", Cluster)
        .allow_create_on_update()
        .require_resource_version(),
    stored_v1_resource("discovery.k8s.io", "EndpointSlice", "endpointslices", Namespaced)
        .generation()
        .rules(KindRules::EndpointSlice),
    stored_v1_resource(RESOURCE, "DeviceClass", "deviceclasses", Cluster)
        .generation()
        .return_object_on_delete(),
    stored_v1_resource(RESOURCE, "ResourceClaim", "resourceclaims", Namespaced)
        .with_subresources(STATUS)
        .return_object_on_delete()
        .rules(KindRules::Immutable(kind_rules::RESOURCE_CLAIM)),
    stored_v1_resource(RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates", Namespaced)
        .return_object_on_delete()
        .rules(KindRules::Immutable(kind_rules::RESOURCE_CLAIM)),
    stored_v1_resource(RESOURCE, "ResourceSlice", "resourceslices", Cluster)
        .generation()
        .return_object_on_delete()
        .rules(KindRules::ResourceSlice),
    stored_v1_resource(FLOW_CONTROL, "FlowSchema", "flowschemas", Cluster)
        .with_subresources(STATUS)
        .generation()
        .rules(KindRules::FlowControl(manifests::flow_control::Kind::FlowSchema))
        .with_schema(&schema::FLOW_SCHEMA),
    stored_v1_resource(
        FLOW_CONTROL,
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        Cluster,
    )
    .with_subresources(STATUS)
    .generation()
    .rules(KindRules::FlowControl(manifests::flow_control::Kind::PriorityLevelConfiguration))
    .with_schema(&schema::PRIORITY_LEVEL_CONFIGURATION),
];

const LOCAL_REVIEWS: &str = "localsubjectaccessreviews";
