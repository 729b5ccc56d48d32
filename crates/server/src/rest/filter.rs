//! Which objects of a list or a watch are wanted.

use authz::{FieldOperator, FieldRequirement, LabelRequirement};
use object::{Status, Tree};
use resources::Resource;

use crate::rest::Query;

/// The selectors of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
    hides_uninitialized: bool,
}

impl Filter {
    /// Reads the selectors.
    ///
    /// # Errors
    /// 400 if one can not be read or names a field that can not be selected by.
    pub(crate) fn parse(resource: &Resource, query: &Query) -> Result<Self, Status> {
        let bad = |error: authz::SelectorError| Status::bad_request(error.to_string());
        let labels = authz::parse_label_selector(query.text("labelSelector")).map_err(bad)?;
        let fields = authz::parse_field_selector(query.text("fieldSelector")).map_err(bad)?;
        resources::check_field_selector(resource, &fields)?;
        Ok(Self { labels, fields, hides_uninitialized: false })
    }

    /// The same without objects that are not there for everybody.
    #[must_use]
    pub(crate) fn hiding_uninitialized(self) -> Self {
        Self { hides_uninitialized: true, ..self }
    }

    /// Whether objects that are not there for everybody are left out.
    pub(crate) fn hides_uninitialized(&self) -> bool {
        self.hides_uninitialized
    }

    /// Whether everything is wanted that is not hidden.
    pub(crate) fn is_open(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object of this name may be wanted, before it is read.
    pub(crate) fn may_match(&self, name: &str) -> bool {
        self.fields.iter().all(|requirement| {
            requirement.field != "metadata.name"
                || requirement.operator != FieldOperator::Equals
                || requirement.value == name
        })
    }

    /// Whether an object is wanted.
    pub(crate) fn matches(&self, resource: &Resource, tree: &Tree) -> bool {
        object::matches_labels(&self.labels, tree)
            && object::matches_fields(&self.fields, |field| {
                resources::field_value(resource, tree, field)
            })
    }
}
