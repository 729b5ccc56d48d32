//! Decodes roles and bindings from JSON. All crates that need one use [`decode`].

use authz_rbac as domain;
use field_errors::FieldErrors;
use serde::Deserialize;
use serde_json::Value;

use super::metadata_validation::OwnersAndFinalizers;
use super::validate_rbac::{missing_namespace_error, validate_rbac_object};
use super::wire;

/// The version of the four kinds.
pub const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// One of the four RBAC kinds: `Role`, `ClusterRole`, `RoleBinding` or `ClusterRoleBinding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A role of the cluster.
    ClusterRole,
    /// A role of a namespace.
    Role,
    /// A binding for the whole cluster.
    ClusterRoleBinding,
    /// A binding for a namespace.
    RoleBinding,
}

/// An object of any of the four kinds. A cluster-scoped object has no namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RbacObject {
    /// A Role or a ClusterRole.
    Role(domain::Role),
    /// A RoleBinding or a ClusterRoleBinding.
    Binding(domain::Binding),
}

/// A decoded object before validation.
#[derive(Debug, Clone)]
pub struct UnvalidatedRbacObject {
    kind: Kind,
    rbac_object: RbacObject,
    /// Owner references and finalizers, which validation checks. No decision depends on them.
    ownership_metadata: OwnersAndFinalizers,
}

/// The error of a JSON value that is none of the four kinds.
#[derive(Debug, thiserror::Error)]
pub enum RbacDecodeError {
    /// The value declares another kind, or none.
    #[error("no kind of {API_VERSION}: kind `{kind}` of `{api_version}`")]
    OtherKind {
        /// The value of `apiVersion`.
        api_version: String,
        /// The value of `kind`.
        kind: String,
    },
    /// A field has a value of the wrong type.
    #[error("malformed object")]
    Malformed(#[from] serde_json::Error),
}

impl Kind {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClusterRole => "ClusterRole",
            Self::Role => "Role",
            Self::ClusterRoleBinding => "ClusterRoleBinding",
            Self::RoleBinding => "RoleBinding",
        }
    }

    /// The kind of this name in this version.
    pub fn from_api_version_and_kind(api_version: &str, kind: &str) -> Option<Self> {
        let all = [Self::ClusterRole, Self::Role, Self::ClusterRoleBinding, Self::RoleBinding];
        all.into_iter().find(|it| api_version == API_VERSION && it.name() == kind)
    }

    /// Reports whether objects of this kind live in a namespace.
    pub const fn is_namespaced(self) -> bool {
        match self {
            Self::Role | Self::RoleBinding => true,
            Self::ClusterRole | Self::ClusterRoleBinding => false,
        }
    }
}

impl RbacObject {
    /// The kind of the object.
    pub fn kind(&self) -> Kind {
        let is_namespaced = !self.metadata().namespace.is_empty();
        match (self, is_namespaced) {
            (Self::Role(_), false) => Kind::ClusterRole,
            (Self::Role(_), true) => Kind::Role,
            (Self::Binding(_), false) => Kind::ClusterRoleBinding,
            (Self::Binding(_), true) => Kind::RoleBinding,
        }
    }

    /// The metadata of the object.
    pub fn metadata(&self) -> &domain::Metadata {
        match self {
            Self::Role(role) => &role.metadata,
            Self::Binding(binding) => &binding.metadata,
        }
    }
}

/// Reads one object. Fields that no kind has are ignored.
///
/// # Errors
/// The value is none of the four kinds, or a field has a wrong type.
pub fn decode_unvalidated_rbac_object(
    value: &Value,
) -> Result<UnvalidatedRbacObject, RbacDecodeError> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let Some(kind) = Kind::from_api_version_and_kind(api_version, kind) else {
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        return Err(RbacDecodeError::OtherKind { api_version, kind });
    };
    let (object, ownership) = match kind {
        Kind::ClusterRole | Kind::Role => {
            let mut role = wire::Role::deserialize(value)?;
            let ownership = OwnersAndFinalizers::take_from_metadata(&mut role.metadata);
            (RbacObject::Role(role.into()), ownership)
        }
        Kind::ClusterRoleBinding | Kind::RoleBinding => {
            let mut binding = wire::Binding::deserialize(value)?;
            let ownership = OwnersAndFinalizers::take_from_metadata(&mut binding.metadata);
            (RbacObject::Binding(binding.into()), ownership)
        }
    };
    Ok(UnvalidatedRbacObject { kind, rbac_object: object, ownership_metadata: ownership })
}

/// Decodes a list of rules.
///
/// # Errors
/// The value is no list of rules.
pub fn decode_rbac_rules(value: &Value) -> Result<Vec<domain::PolicyRule>, RbacDecodeError> {
    let rules = Option::<Vec<wire::PolicyRule>>::deserialize(value)?;
    Ok(rules.unwrap_or_default().into_iter().map(Into::into).collect())
}

impl UnvalidatedRbacObject {
    /// The kind that the object declares.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The object as it was decoded, before defaults are filled in.
    pub const fn rbac_object(&self) -> &RbacObject {
        &self.rbac_object
    }

    /// The object with defaults filled in, if the API would accept it.
    ///
    /// # Errors
    /// Returns every fault.
    pub fn into_validated_object(self) -> Result<RbacObject, FieldErrors> {
        self.into_validated_update(None)
    }

    /// Does the same as [`Self::into_validated_object`] for an object that replaces `old`.
    pub(super) fn into_validated_update(
        mut self,
        old: Option<&RbacObject>,
    ) -> Result<RbacObject, FieldErrors> {
        self.fill_in_defaults();
        validate_rbac_object(self.kind, &self.rbac_object, &self.ownership_metadata, old)
            .into_result(self.rbac_object)
    }

    /// Returns the object without validation, for objects that are already stored.
    ///
    /// # Errors
    /// An object of a namespaced kind lacks its namespace; it must not take effect in the whole
    /// cluster.
    pub fn into_object_unvalidated(mut self) -> Result<RbacObject, FieldErrors> {
        let metadata = match &mut self.rbac_object {
            RbacObject::Role(role) => &mut role.metadata,
            RbacObject::Binding(binding) => &mut binding.metadata,
        };
        if !self.kind.is_namespaced() {
            metadata.namespace.clear();
        } else if metadata.namespace.is_empty() {
            return Err(missing_namespace_error().into());
        }
        Ok(self.rbac_object)
    }

    fn fill_in_defaults(&mut self) {
        let RbacObject::Binding(binding) = &mut self.rbac_object else { return };
        let default = |api_group: &mut String| {
            if api_group.is_empty() {
                domain::GROUP.clone_into(api_group);
            }
        };
        default(&mut binding.role_ref.api_group);
        for subject in &mut binding.subjects {
            if matches!(subject.kind.as_str(), "User" | "Group") {
                default(&mut subject.api_group);
            }
        }
    }
}

impl From<wire::ObjectMeta> for domain::Metadata {
    fn from(wire: wire::ObjectMeta) -> Self {
        let wire::ObjectMeta { namespace, name, labels, annotations, .. } = wire;
        Self { namespace, name, labels, annotations }
    }
}

impl From<wire::Role> for domain::Role {
    fn from(wire: wire::Role) -> Self {
        Self {
            metadata: wire.metadata.into(),
            rules: wire.rules.into_iter().map(Into::into).collect(),
            aggregation_rule: wire.aggregation_rule.map(Into::into),
        }
    }
}

impl From<wire::Binding> for domain::Binding {
    fn from(wire: wire::Binding) -> Self {
        let wire::RoleRef { api_group, kind, name } = wire.role_ref;
        let subject = |wire: wire::Subject| {
            let wire::Subject { kind, api_group, name, namespace } = wire;
            domain::Subject { kind, api_group, name, namespace }
        };
        Self {
            metadata: wire.metadata.into(),
            role_ref: domain::RoleRef { api_group, kind, name },
            subjects: wire.subjects.into_iter().map(subject).collect(),
        }
    }
}

impl From<wire::PolicyRule> for domain::PolicyRule {
    fn from(wire: wire::PolicyRule) -> Self {
        let wire::PolicyRule { verbs, api_groups, resources, resource_names, non_resource_urls } =
            wire;
        Self { verbs, api_groups, resources, resource_names, non_resource_urls }
    }
}

impl From<wire::AggregationRule> for domain::AggregationRule {
    fn from(wire: wire::AggregationRule) -> Self {
        let expression = |wire: wire::LabelExpression| {
            let wire::LabelExpression { key, operator, values } = wire;
            domain::LabelExpression { key, operator, values }
        };
        let selector = |wire: wire::LabelSelector| domain::LabelSelector {
            match_labels: wire.match_labels,
            match_expressions: wire.match_expressions.into_iter().map(expression).collect(),
        };
        let selectors = wire.cluster_role_selectors.into_iter().map(selector);
        Self { cluster_role_selectors: selectors.collect() }
    }
}
