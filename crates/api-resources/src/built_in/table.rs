//! The table itself.

use admission::ConfigurationKind;

use super::{BuiltIn, admission, configuration, core, review, stored};
use crate::kind::{self, Rules};
use crate::resource::Scope::{Cluster, Namespaced};
use crate::resource::{NameRule, OtherKind, Subresource};
use crate::schema;
use crate::verb::{Verb, Verbs};

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
const EXPLANATION: &str = "authorization.portcullis.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const STORAGE: &str = "storage.k8s.io";

const ALL: &[&str] = &["all"];
const API_EXTENSIONS: &[&str] = &["api-extensions"];

const STATUS: &[Subresource] = &[Subresource::STATUS];
const APPROVAL: Subresource = Subresource { name: "approval", verbs: Verbs::PART, kind: None };
const FINALIZE: Subresource = Subresource { name: "finalize", verbs: Verbs::UPDATE, kind: None };
const TOKEN: Subresource = Subresource {
    name: "token",
    verbs: Verbs::CREATE,
    kind: Some(OtherKind { group: AUTHENTICATION, version: "v1", kind: "TokenRequest" }),
};

/// The table. Groups stand in the order in which discovery shows them.
pub(crate) static TABLE: &[BuiltIn] = &[
    core("ConfigMap", "configmaps", Namespaced)
        .short(&["cm"])
        .rules(Rules::ConfigMap)
        .schema(&schema::CONFIG_MAP),
    core("Endpoints", "endpoints", Namespaced)
        .short(&["ep"])
        .at("services/endpoints")
        .created_on_update()
        .rules(Rules::Endpoints),
    core("Event", "events", Namespaced).short(&["ev"]).created_on_update().rules(Rules::Event),
    core("LimitRange", "limitranges", Namespaced).short(&["limits"]).created_on_update(),
    core("Namespace", "namespaces", Cluster)
        .short(&["ns"])
        .parts(&[FINALIZE, Subresource::STATUS])
        .verbs(Verbs::ALL.without(Verb::DeleteCollection))
        .named(NameRule::DnsLabel)
        .returned_on_delete()
        .rules(Rules::Namespace)
        .schema(&schema::NAMESPACE),
    core("Node", "nodes", Cluster).short(&["no"]).parts(STATUS).at("minions").rules(Rules::Node),
    core("PersistentVolume", "persistentvolumes", Cluster)
        .short(&["pv"])
        .parts(STATUS)
        .returned_on_delete()
        .rules(Rules::PersistentVolume),
    core("PersistentVolumeClaim", "persistentvolumeclaims", Namespaced)
        .short(&["pvc"])
        .parts(STATUS)
        .returned_on_delete()
        .rules(Rules::PersistentVolumeClaim),
    core("Pod", "pods", Namespaced)
        .short(&["po"])
        .categories(ALL)
        .parts(STATUS)
        .generation()
        .returned_on_delete()
        .rules(Rules::Pod),
    core("PodTemplate", "podtemplates", Namespaced).generation().returned_on_delete(),
    core("ReplicationController", "replicationcontrollers", Namespaced)
        .short(&["rc"])
        .categories(ALL)
        .parts(STATUS)
        .generation()
        .at("controllers"),
    core("ResourceQuota", "resourcequotas", Namespaced)
        .short(&["quota"])
        .parts(STATUS)
        .returned_on_delete()
        .rules(Rules::ResourceQuota),
    core("Secret", "secrets", Namespaced).rules(Rules::Secret).schema(&schema::SECRET),
    core("Service", "services", Namespaced)
        .short(&["svc"])
        .categories(ALL)
        .parts(STATUS)
        .at("services/specs")
        .named(NameRule::DnsLabel)
        .created_on_update()
        .returned_on_delete()
        .rules(Rules::Service),
    core("ServiceAccount", "serviceaccounts", Namespaced)
        .short(&["sa"])
        .parts(&[TOKEN])
        .returned_on_delete()
        .rules(Rules::ServiceAccount)
        .schema(&schema::SERVICE_ACCOUNT),
    stored("apps", "ControllerRevision", "controllerrevisions", Namespaced),
    stored("apps", "DaemonSet", "daemonsets", Namespaced)
        .short(&["ds"])
        .categories(ALL)
        .parts(STATUS)
        .generation(),
    stored("apps", "Deployment", "deployments", Namespaced)
        .short(&["deploy"])
        .categories(ALL)
        .parts(STATUS)
        .generation()
        .rules(Rules::Deployment),
    stored("apps", "ReplicaSet", "replicasets", Namespaced)
        .short(&["rs"])
        .categories(ALL)
        .parts(STATUS)
        .generation()
        .rules(Rules::ReplicaSet),
    stored("apps", "StatefulSet", "statefulsets", Namespaced)
        .short(&["sts"])
        .categories(ALL)
        .parts(STATUS)
        .generation(),
    review(AUTHENTICATION, "v1", "SelfSubjectReview", "selfsubjectreviews", Cluster),
    review(AUTHENTICATION, "v1", "TokenReview", "tokenreviews", Cluster),
    review(AUTHORIZATION, "v1", "LocalSubjectAccessReview", LOCAL_REVIEWS, Namespaced),
    review(AUTHORIZATION, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", Cluster),
    review(AUTHORIZATION, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", Cluster),
    review(AUTHORIZATION, "v1", "SubjectAccessReview", "subjectaccessreviews", Cluster),
    review(AUTHORIZATION, "v1beta1", "LocalSubjectAccessReview", LOCAL_REVIEWS, Namespaced),
    review(
        AUTHORIZATION,
        "v1beta1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        Cluster,
    ),
    review(AUTHORIZATION, "v1beta1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", Cluster),
    review(AUTHORIZATION, "v1beta1", "SubjectAccessReview", "subjectaccessreviews", Cluster),
    review(
        EXPLANATION,
        "v1alpha1",
        "LocalResourceAccessReview",
        "localresourceaccessreviews",
        Namespaced,
    ),
    review(EXPLANATION, "v1alpha1", "ResourceAccessReview", "resourceaccessreviews", Cluster),
    review(
        EXPLANATION,
        "v1alpha1",
        "SubjectAccessExplanation",
        "subjectaccessexplanations",
        Cluster,
    ),
    stored("batch", "CronJob", "cronjobs", Namespaced)
        .short(&["cj"])
        .categories(ALL)
        .parts(STATUS)
        .generation(),
    stored("batch", "Job", "jobs", Namespaced).categories(ALL).parts(STATUS).generation(),
    stored(CERTIFICATES, "CertificateSigningRequest", "certificatesigningrequests", Cluster)
        .short(&["csr"])
        .parts(&[APPROVAL, Subresource::STATUS])
        .named(NameRule::PathSegment)
        .rules(Rules::CertificateSigningRequest)
        .schema(&schema::CERTIFICATE_SIGNING_REQUEST),
    stored(CERTIFICATES, "ClusterTrustBundle", "clustertrustbundles", Cluster)
        .named(NameRule::PathSegment)
        .resource_version_required(),
    stored(CERTIFICATES, "PodCertificateRequest", "podcertificaterequests", Namespaced)
        .parts(STATUS)
        .resource_version_required()
        .rules(Rules::Immutable(kind::POD_CERTIFICATE_REQUEST)),
    stored(NETWORKING, "Ingress", "ingresses", Namespaced)
        .short(&["ing"])
        .parts(STATUS)
        .generation()
        .at("ingress"),
    stored(NETWORKING, "IngressClass", "ingressclasses", Cluster).generation(),
    stored(NETWORKING, "NetworkPolicy", "networkpolicies", Namespaced)
        .short(&["netpol"])
        .generation(),
    stored("policy", "PodDisruptionBudget", "poddisruptionbudgets", Namespaced)
        .short(&["pdb"])
        .parts(STATUS)
        .generation()
        .resource_version_required(),
    stored(RBAC, "ClusterRole", "clusterroles", Cluster)
        .named(NameRule::PathSegment)
        .created_on_update()
        .rules(Rules::Rbac(manifests::rbac::Kind::ClusterRole))
        .schema(&schema::CLUSTER_ROLE),
    stored(RBAC, "ClusterRoleBinding", "clusterrolebindings", Cluster)
        .named(NameRule::PathSegment)
        .created_on_update()
        .rules(Rules::Rbac(manifests::rbac::Kind::ClusterRoleBinding))
        .schema(&schema::CLUSTER_ROLE_BINDING),
    stored(RBAC, "Role", "roles", Namespaced)
        .named(NameRule::PathSegment)
        .created_on_update()
        .rules(Rules::Rbac(manifests::rbac::Kind::Role))
        .schema(&schema::ROLE),
    stored(RBAC, "RoleBinding", "rolebindings", Namespaced)
        .named(NameRule::PathSegment)
        .created_on_update()
        .rules(Rules::Rbac(manifests::rbac::Kind::RoleBinding))
        .schema(&schema::ROLE_BINDING),
    stored(STORAGE, "CSIDriver", "csidrivers", Cluster)
        .resource_version_required()
        .returned_on_delete(),
    stored(STORAGE, "CSINode", "csinodes", Cluster)
        .resource_version_required()
        .returned_on_delete(),
    stored(STORAGE, "StorageClass", "storageclasses", Cluster).short(&["sc"]).returned_on_delete(),
    stored(STORAGE, "VolumeAttachment", "volumeattachments", Cluster)
        .parts(STATUS)
        .resource_version_required()
        .returned_on_delete()
        .rules(Rules::Immutable(kind::VOLUME_ATTACHMENT)),
    admission("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        .rules(Rules::MutatingAdmissionPolicy),
    admission("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
        .rules(Rules::AdmissionPolicyBinding),
    configuration(ConfigurationKind::Mutating).schema(&schema::MUTATING_WEBHOOK_CONFIGURATION),
    admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        .parts(STATUS)
        .rules(Rules::ValidatingAdmissionPolicy),
    admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
        .rules(Rules::AdmissionPolicyBinding),
    configuration(ConfigurationKind::Validating).schema(&schema::VALIDATING_WEBHOOK_CONFIGURATION),
    configuration(ConfigurationKind::ExternalHook)
        .at("admissionregistration.k8s.io/externaladmissionhookconfigurations")
        .schema(&schema::EXTERNAL_ADMISSION_HOOK_CONFIGURATION),
    configuration(ConfigurationKind::Initializer)
        .at("admissionregistration.k8s.io/initializerconfigurations")
        .schema(&schema::INITIALIZER_CONFIGURATION),
    stored(EXTENSIONS, "CustomResourceDefinition", "customresourcedefinitions", Cluster)
        .short(&["crd", "crds"])
        .categories(API_EXTENSIONS)
        .parts(STATUS)
        .generation()
        .resource_version_required()
        .at("apiextensions.k8s.io/customresourcedefinitions")
        .rules(Rules::CustomResourceDefinition)
        .schema(&schema::CUSTOM_RESOURCE_DEFINITION),
    stored("scheduling.k8s.io", "PriorityClass", "priorityclasses", Cluster)
        .short(&["pc"])
        .generation(),
    stored("coordination.k8s.io", "Lease", "leases", Namespaced)
        .created_on_update()
        .resource_version_required()
        .rules(Rules::Lease)
        .schema(&schema::LEASE),
    stored("node.k8s.io", "RuntimeClass", "runtimeclasses", Cluster)
        .created_on_update()
        .resource_version_required(),
    stored("discovery.k8s.io", "EndpointSlice", "endpointslices", Namespaced)
        .generation()
        .rules(Rules::EndpointSlice),
    stored(RESOURCE, "DeviceClass", "deviceclasses", Cluster).generation().returned_on_delete(),
    stored(RESOURCE, "ResourceClaim", "resourceclaims", Namespaced)
        .parts(STATUS)
        .returned_on_delete(),
    stored(RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates", Namespaced)
        .returned_on_delete(),
    stored(RESOURCE, "ResourceSlice", "resourceslices", Cluster)
        .generation()
        .returned_on_delete()
        .rules(Rules::Immutable(kind::RESOURCE_SLICE)),
];

const LOCAL_REVIEWS: &str = "localsubjectaccessreviews";
