//! The merge strategies and merge keys of the lists of built-in kinds.
//!
//! They are those of Kubernetes' API types. A path has no step for list indices, so `containers.env` is
//! the environment of every container. A field without a row behaves as in a merge patch: objects merge,
//! lists and scalars are replaced.

/// The way in which a list or an object is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergeStrategy {
    /// A list of objects, which are identified by the value of this key.
    MergeBy(&'static str),
    /// A list of scalars without duplicates.
    MergeSet,
    /// An object that is replaced as a whole, like every list without a row.
    Replace,
}

use MergeStrategy::{MergeBy, MergeSet, Replace};

/// A relative path and its merge strategy.
type StrategyRow = (&'static str, MergeStrategy);

/// A path, which is empty for the root of the object, and the rows of the paths below it.
type StrategyRowsBelowPath = (&'static str, &'static [StrategyRow]);

const METADATA: &[StrategyRow] = &[
    ("finalizers", MergeSet),
    ("initializers.pending", MergeBy("name")),
    ("ownerReferences", MergeBy("uid")),
];

const CONTAINER: &[StrategyRow] = &[
    ("env", MergeBy("name")),
    ("ports", MergeBy("containerPort")),
    ("volumeDevices", MergeBy("devicePath")),
    ("volumeMounts", MergeBy("mountPath")),
];

const POD_SPEC: &[StrategyRow] = &[
    ("containers", MergeBy("name")),
    ("ephemeralContainers", MergeBy("name")),
    ("evictionResponders", MergeBy("name")),
    ("hostAliases", MergeBy("ip")),
    ("imagePullSecrets", MergeBy("name")),
    ("initContainers", MergeBy("name")),
    ("resourceClaims", MergeBy("name")),
    ("schedulingGates", MergeBy("name")),
    ("topologySpreadConstraints", MergeBy("topologyKey")),
    ("volumes", MergeBy("name")),
];

/// The merge keys of a pod or a pod template. The first path element leads to the pod.
macro_rules! pod {
    ($($prefix:literal)?) => {
        &[
            ("metadata", METADATA),
            (concat!($($prefix,)? "spec"), POD_SPEC),
            (concat!($($prefix,)? "spec.containers"), CONTAINER),
            (concat!($($prefix,)? "spec.ephemeralContainers"), CONTAINER),
            (concat!($($prefix,)? "spec.initContainers"), CONTAINER),
            (concat!($($prefix,)? "spec.volumes.ephemeral.volumeClaimTemplate.metadata"), METADATA),
            $((concat!($prefix, "metadata"), METADATA),)?
        ]
    };
}

const CONDITIONS: &[StrategyRow] = &[("status.conditions", MergeBy("type"))];

const CONTAINER_STATUS: &[StrategyRow] =
    &[("allocatedResourcesStatus", MergeBy("name")), ("volumeMounts", MergeBy("mountPath"))];

const POD_STATUS: &[StrategyRowsBelowPath] = &[
    (
        "status",
        &[
            ("conditions", MergeBy("type")),
            ("hostIPs", MergeBy("ip")),
            ("nodeAllocatableResourceClaimStatuses", MergeBy("resourceClaimName")),
            ("nodeAllocatableResourceClaimStatuses.mapping", MergeBy("name")),
            ("nodeAllocatableResourceClaimStatuses.overhead", MergeBy("name")),
            ("podIPs", MergeBy("ip")),
            ("resourceClaimStatuses", MergeBy("name")),
            ("volumeHealth.healthConditions", MergeBy("status")),
        ],
    ),
    ("status.containerStatuses", CONTAINER_STATUS),
    ("status.ephemeralContainerStatuses", CONTAINER_STATUS),
    ("status.initContainerStatuses", CONTAINER_STATUS),
];

const WEBHOOKS: &[StrategyRow] =
    &[("webhooks", MergeBy("name")), ("webhooks.matchConditions", MergeBy("name"))];

const CLAIM_STATUS: &[StrategyRow] = &[
    ("status.conditions", MergeBy("type")),
    ("status.healthStatus.healthConditions", MergeBy("status")),
];

/// The rows of a kind, except for those of its metadata and of its pod template.
fn kind_strategy_rows(group: &str, kind: &str) -> &'static [StrategyRowsBelowPath] {
    match (group, kind) {
        ("", "Namespace" | "ReplicationController")
        | ("apps", "DaemonSet" | "Deployment" | "ReplicaSet")
        | ("apiregistration.k8s.io", "APIService")
        | ("flowcontrol.apiserver.k8s.io", "FlowSchema" | "PriorityLevelConfiguration") => {
            &[("", CONDITIONS)]
        }
        ("apps", "StatefulSet") => &[
            ("", CONDITIONS),
            ("spec.volumeClaimTemplates", CLAIM_STATUS),
            ("spec.volumeClaimTemplates.metadata", METADATA),
        ],
        ("batch", "Job") => {
            &[("", CONDITIONS), ("", &[("spec.scheduling.resourceClaims", MergeBy("name"))])]
        }
        ("batch", "CronJob") => &[
            ("spec.jobTemplate.metadata", METADATA),
            ("", &[("spec.jobTemplate.spec.scheduling.resourceClaims", MergeBy("name"))]),
        ],
        ("policy", "PodDisruptionBudget") => {
            &[("", CONDITIONS), ("", &[("spec.selector", Replace)])]
        }
        ("", "Pod") => POD_STATUS,
        ("", "PersistentVolumeClaim") => &[("", CLAIM_STATUS)],
        ("", "ServiceAccount") => &[("", &[("secrets", MergeBy("name"))])],
        ("", "Service") => &[("", CONDITIONS), ("", &[("spec.ports", MergeBy("port"))])],
        ("", "Node") => &[
            ("", CONDITIONS),
            ("", &[("spec.podCIDRs", MergeSet), ("status.addresses", MergeBy("type"))]),
        ],
        ("storage.k8s.io", "CSINode") => {
            &[("", &[("spec.drivers", MergeBy("name")), ("status.storageHealth", MergeBy("name"))])]
        }
        ("resource.k8s.io", "ResourceClaim") => &[("", &[("status.reservedFor", MergeBy("uid"))])],
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => &[("", WEBHOOKS)],
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => &[(
            "",
            &[("spec.matchConditions", MergeBy("name")), ("spec.variables", MergeBy("name"))],
        )],
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => {
            &[("", &[("spec.matchConditions", MergeBy("name"))])]
        }
        ("admissionregistration.k8s.io", "InitializerConfiguration") => {
            &[("", &[("initializers", MergeBy("name"))])]
        }
        ("admissionregistration.k8s.io", "ExternalAdmissionHookConfiguration") => {
            &[("", &[("externalAdmissionHooks", MergeBy("name"))])]
        }
        _ => &[],
    }
}

/// The rows of the metadata, and of the pod or pod template of a kind.
fn metadata_and_pod_strategy_rows(group: &str, kind: &str) -> &'static [StrategyRowsBelowPath] {
    match (group, kind) {
        ("", "Pod") => pod!(),
        ("", "PodTemplate") => pod!("template."),
        ("", "ReplicationController")
        | ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
        | ("batch", "Job") => pod!("spec.template."),
        ("batch", "CronJob") => pod!("spec.jobTemplate.spec.template."),
        _ => &[("metadata", METADATA)],
    }
}

/// The merge strategies of the lists of one kind.
#[derive(Debug, Clone, Copy)]
pub struct StrategicMergeSchema {
    metadata_and_pod_strategy_rows: &'static [StrategyRowsBelowPath],
    kind_strategy_rows: &'static [StrategyRowsBelowPath],
}

impl StrategicMergeSchema {
    /// The strategies of a built-in kind, in all its versions. A kind without rows of its own has only those of
    /// the metadata.
    #[must_use]
    pub fn of(group: &str, kind: &str) -> Self {
        Self {
            metadata_and_pod_strategy_rows: metadata_and_pod_strategy_rows(group, kind),
            kind_strategy_rows: kind_strategy_rows(group, kind),
        }
    }

    /// The merge strategy at a path of names; list indices have no step.
    pub(crate) fn merge_strategy_at(&self, path: &[String]) -> Option<MergeStrategy> {
        self.metadata_and_pod_strategy_rows.iter().chain(self.kind_strategy_rows).find_map(
            |(prefix, rows)| {
                let below = strip_path_prefix(path, prefix)?;
                let row = rows
                    .iter()
                    .find(|(row, _)| strip_path_prefix(below, row).is_some_and(<[_]>::is_empty));
                row.map(|(_, strategy)| *strategy)
            },
        )
    }
}

/// Removes a prefix from a path; `None` if the path does not begin with it.
fn strip_path_prefix<'p>(path: &'p [String], prefix: &str) -> Option<&'p [String]> {
    if prefix.is_empty() {
        return Some(path);
    }
    prefix.split('.').try_fold(path, |path, step| match path {
        [first, rest @ ..] if first == step => Some(rest),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge_strategy_at(group: &str, kind: &str, path: &str) -> Option<MergeStrategy> {
        let path: Vec<_> = path.split('.').map(str::to_owned).collect();
        StrategicMergeSchema::of(group, kind).merge_strategy_at(&path)
    }

    /// `testdata/strategies.txt` lists the merge strategies in the tags of the Go types (`k8s.io/api` v0.37.2):
    /// group, kind, path, and the merge key, `set` or `replace`.
    #[test]
    fn merge_strategies_match_kubernetes() {
        let rows: Vec<_> = include_str!("../testdata/strategies.txt").lines().collect();
        for row in &rows {
            let mut words = row.split(' ');
            let [group, kind, path, want] = [(); 4].map(|()| words.next().unwrap());
            let found = match merge_strategy_at(group.trim_matches('-'), kind, path) {
                Some(MergeBy(key)) => key,
                Some(MergeSet) => "set",
                Some(Replace) => "replace",
                None => "nothing",
            };
            assert_eq!(found, want, "{row}");
        }
        assert!(rows.len() > 300);
    }

    #[test]
    fn merge_strategies_apply_at_their_path_only() {
        for (group, kind, path, want) in [
            ("", "ConfigMap", "metadata.finalizers", Some(MergeSet)),
            ("", "ConfigMap", "metadata.ownerReferences", Some(MergeBy("uid"))),
            ("", "ConfigMap", "metadata", None),
            ("", "Pod", "spec.containers", Some(MergeBy("name"))),
            ("", "Pod", "spec.containers.ports", Some(MergeBy("containerPort"))),
            ("", "Pod", "spec.containers.command", None),
            ("", "Pod", "containers", None),
            ("apps", "Deployment", "spec.containers", None),
            ("apps", "Deployment", "spec.template.spec.containers.env", Some(MergeBy("name"))),
            ("apps", "Deployment", "spec.template.metadata.finalizers", Some(MergeSet)),
            (
                "batch",
                "CronJob",
                "spec.jobTemplate.spec.template.spec.volumes",
                Some(MergeBy("name")),
            ),
            ("", "Service", "spec.ports", Some(MergeBy("port"))),
            ("policy", "PodDisruptionBudget", "spec.selector", Some(Replace)),
            ("rbac.authorization.k8s.io", "Role", "rules", None),
            (
                "apps",
                "StatefulSet",
                "spec.volumeClaimTemplates.status.conditions",
                Some(MergeBy("type")),
            ),
        ] {
            assert_eq!(merge_strategy_at(group, kind, path), want, "{kind} {path}");
        }
    }
}
