//! The options of list and watch requests, as far as they matter to authorization.

use std::borrow::Cow;

use field_errors::path_segment_faults;

use super::ResourceInfo;
use crate::selector::{
    FieldOperator, FieldRequirement, LabelRequirement, Selector, SelectorError,
    parse_field_selector, parse_label_selector,
};

/// The list options in the query of a request. If the query repeats a key, its first value counts.
pub(super) struct ListOptions<'q> {
    raw_watch_value: Option<&'q str>,
    raw_field_selector: &'q str,
    raw_label_selector: &'q str,
    field_selector: Result<Vec<FieldRequirement>, SelectorError>,
    label_selector: Result<Vec<LabelRequirement>, SelectorError>,
    /// Whether the options that must be integers are integers.
    has_valid_integer_options: bool,
}

impl<'q> ListOptions<'q> {
    pub(super) fn from_query(query: &'q [(Cow<'_, str>, Cow<'_, str>)]) -> Self {
        let first =
            |key: &str| query.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_ref());
        let is_integer = |key: &str| first(key).is_none_or(|value| value.parse::<i64>().is_ok());
        let raw_field_selector = first("fieldSelector").unwrap_or_default();
        let raw_label_selector = first("labelSelector").unwrap_or_default();
        Self {
            raw_watch_value: first("watch"),
            raw_field_selector,
            raw_label_selector,
            field_selector: parse_field_selector(raw_field_selector),
            label_selector: parse_label_selector(raw_label_selector),
            has_valid_integer_options: is_integer("timeoutSeconds") && is_integer("limit"),
        }
    }

    /// Reports whether Kubernetes would decode the options as a whole.
    fn would_kubernetes_decode_options(&self) -> bool {
        self.has_valid_integer_options && self.field_selector.is_ok() && self.label_selector.is_ok()
    }

    /// Reports whether the client requests a watch: `watch` is present and is neither `0` nor `false`.
    pub(super) fn is_watch(&self) -> bool {
        self.raw_watch_value.is_some_and(|value| value != "0" && !self.is_false_text(value))
    }

    /// Reports whether a text is `false` in any case. When Kubernetes decodes the options it folds case by
    /// Unicode, so U+017F equals `s`. For options that do not decode it folds ASCII only.
    fn is_false_text(&self, value: &str) -> bool {
        value.eq_ignore_ascii_case("false")
            || self.would_kubernetes_decode_options()
                && value.replace('\u{17f}', "s").eq_ignore_ascii_case("false")
    }

    /// The only name that the field selector selects, if a path could contain that name.
    pub(super) fn name_from_field_selector(&self) -> Option<&str> {
        let requirements =
            self.field_selector.as_ref().ok().filter(|_| self.would_kubernetes_decode_options())?;
        let exact = requirements.iter().find(|requirement| {
            requirement.field == "metadata.name" && requirement.operator == FieldOperator::Equals
        })?;
        Some(exact.value.as_str()).filter(|name| path_segment_faults(name).is_empty())
    }

    /// Moves the selectors to the resource. A selector that parses narrows the request even if other
    /// options do not decode.
    pub(super) fn move_selectors_to_resource(self, resource: &mut ResourceInfo) {
        resource.raw_field_selector = self.raw_field_selector.to_owned();
        resource.raw_label_selector = self.raw_label_selector.to_owned();
        resource.field_selector = Selector::from_selector_parse_result(self.field_selector);
        resource.label_selector = Selector::from_selector_parse_result(self.label_selector);
    }
}
