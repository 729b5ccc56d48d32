//! The selectors of a list or a watch.

use api_object::{Status, Tree};
use api_resources::Resource;
use authz::{FieldOperator, FieldRequirement, LabelRequirement};

use crate::error_status::IntoStatus;
use crate::rest::Query;

/// The selectors of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectFilter {
    label_requirements: Vec<LabelRequirement>,
    field_requirements: Vec<FieldRequirement>,
    hides_uninitialized: bool,
}

impl ObjectFilter {
    /// Parses the selectors. If one name was authorized, the filter matches only that name.
    ///
    /// # Errors
    /// 400 if a selector is malformed, uses an unsupported field, or contradicts the name in the path.
    pub(crate) fn parse(resource: &Resource, query: &Query, name: &str) -> Result<Self, Status> {
        let bad = |error: authz::SelectorError| Status::bad_request(error.to_string());
        let label_requirements =
            authz::parse_label_selector(query.parameter_or_empty("labelSelector")).map_err(bad)?;
        let mut field_requirements =
            authz::parse_field_selector(query.parameter_or_empty("fieldSelector")).map_err(bad)?;
        api_resources::check_field_selector(resource, &field_requirements)
            .map_err(IntoStatus::into_status)?;
        let only_name = FieldRequirement {
            field: "metadata.name".to_owned(),
            operator: FieldOperator::Equals,
            value: name.to_owned(),
        };
        if !name.is_empty() && !field_requirements.contains(&only_name) {
            if !field_requirements.is_empty() {
                return Err(Status::bad_request(
                    "fieldSelector metadata.name doesn't match requested name",
                ));
            }
            field_requirements.push(only_name);
        }
        Ok(Self { label_requirements, field_requirements, hides_uninitialized: false })
    }

    /// The same filter without uninitialized objects.
    #[must_use]
    pub(crate) fn with_uninitialized_hidden(self) -> Self {
        Self { hides_uninitialized: true, ..self }
    }

    /// Whether the filter hides uninitialized objects.
    pub(crate) fn hides_uninitialized(&self) -> bool {
        self.hides_uninitialized
    }

    /// Whether the filter has no selectors.
    pub(crate) fn has_no_selectors(&self) -> bool {
        self.label_requirements.is_empty() && self.field_requirements.is_empty()
    }

    /// Whether an object of this name can match, before it is decoded.
    pub(crate) fn may_match_name(&self, name: &str) -> bool {
        self.field_requirements.iter().all(|requirement| {
            requirement.field != "metadata.name"
                || requirement.operator != FieldOperator::Equals
                || requirement.value == name
        })
    }

    /// Whether the placeholder of an object that cannot be decoded matches. It has only a name and a
    /// namespace, so a requirement on any other field excludes it.
    pub(crate) fn matches_undecodable_placeholder(&self, resource: &Resource, tree: &Tree) -> bool {
        let is_known = |own: &FieldRequirement| {
            matches!(own.field.as_str(), "metadata.name" | "metadata.namespace")
        };
        self.field_requirements.iter().all(is_known) && self.matches(resource, tree)
    }

    /// Whether an object matches the selectors.
    pub(crate) fn matches(&self, resource: &Resource, tree: &Tree) -> bool {
        api_object::matches_labels(&self.label_requirements, tree)
            && api_object::matches_fields(&self.field_requirements, |field| {
                api_resources::selector_field_value(resource, tree, field)
            })
    }
}
