//! Reads a review with positions and reports every fault.

use document::{DecodeProblem, Entry, Node, Span, Value, hint};

use super::review_serde_types;
use crate::review_metadata::SET_BY_SERVER;

/// Upper bound on the reported problems of one line.
const PROBLEMS_MAX: usize = 20;

const REVIEW_FIELDS: &[&str] = &["apiVersion", "kind", "metadata", "spec", "status"];
const RESOURCE_FIELDS: &[&str] = &[
    "namespace",
    "verb",
    "group",
    "version",
    "resource",
    "subresource",
    "name",
    "fieldSelector",
    "labelSelector",
];
const PATH_FIELDS: &[&str] = &["path", "verb"];
const SELECTOR_FIELDS: &[&str] = &["rawSelector", "requirements"];
const REQUIREMENT_FIELDS: &[&str] = &["key", "operator", "values"];

/// The form of a line: a bare spec, or a review of some version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewForm {
    /// A spec without the review around it.
    BareSpec,
    V1,
    V1beta1,
}

impl ReviewForm {
    fn version(self) -> &'static str {
        match self {
            Self::BareSpec | Self::V1 => "v1",
            Self::V1beta1 => "v1beta1",
        }
    }

    fn spec_field_names(self) -> &'static [&'static str] {
        match self {
            Self::BareSpec => &[
                "resourceAttributes",
                "nonResourceAttributes",
                "user",
                "groups",
                "group",
                "uid",
                "extra",
            ],
            Self::V1 => {
                &["resourceAttributes", "nonResourceAttributes", "user", "groups", "uid", "extra"]
            }
            Self::V1beta1 => {
                &["resourceAttributes", "nonResourceAttributes", "user", "group", "uid", "extra"]
            }
        }
    }
}

/// The decoded content of a line.
#[derive(Debug)]
pub(super) struct DecodedReview<'n> {
    pub(super) review_form: ReviewForm,
    pub(super) spec: review_serde_types::Spec<'n>,
    pub(super) decode_problems: Vec<DecodeProblem>,
}

/// Decodes the tree of a line. Without problems the spec is complete but not validated.
pub(super) fn decode_review<'n>(text: &str, root: &'n Node) -> DecodedReview<'n> {
    let mut reader = ReviewReader { source_text: text, version: "v1", decode_problems: Vec::new() };
    let Value::Object(entries) = &root.value else {
        let message = format!("a review is a JSON object, this is of type {}", root.value.kind());
        reader.report_problem(String::new(), message, root.span, None);
        return DecodedReview {
            review_form: ReviewForm::BareSpec,
            spec: review_serde_types::Spec::default(),
            decode_problems: reader.decode_problems,
        };
    };
    let is_whole = |entry: &Entry| REVIEW_FIELDS.contains(&entry.key.as_str());
    let (form, spec) = if entries.iter().any(is_whole) {
        reader.read_review(root, entries)
    } else {
        let at =
            FieldLocation { owner_type: "SubjectAccessReviewSpec", ..FieldLocation::default() };
        (ReviewForm::BareSpec, reader.read_spec(entries, ReviewForm::BareSpec, &at))
    };
    DecodedReview { review_form: form, spec, decode_problems: reader.decode_problems }
}

/// The path of the current value, in the two forms in which Kubernetes writes it.
#[derive(Clone, Default)]
struct FieldLocation {
    /// Kubernetes' name of the type that contains the value.
    owner_type: &'static str,
    /// The path with indices: `spec.resourceAttributes.fieldSelector.requirements[0].key`.
    path_with_indices: String,
    /// The path without indices: `spec.resourceAttributes.fieldSelector.requirements.key`.
    path_without_indices: String,
}

impl FieldLocation {
    fn child_location(&self, name: &str) -> Self {
        let join = |path: &str| match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        Self {
            owner_type: self.owner_type,
            path_with_indices: join(&self.path_with_indices),
            path_without_indices: join(&self.path_without_indices),
        }
    }

    fn index(&self, idx: usize) -> Self {
        Self { path_with_indices: format!("{}[{idx}]", self.path_with_indices), ..self.clone() }
    }

    fn with_owner_type(&self, owner_type: &'static str) -> Self {
        Self { owner_type, ..self.clone() }
    }
}

struct ReviewReader<'t> {
    source_text: &'t str,
    version: &'static str,
    decode_problems: Vec<DecodeProblem>,
}

impl ReviewReader<'_> {
    fn read_review<'n>(
        &mut self,
        root: &Node,
        entries: &'n [Entry],
    ) -> (ReviewForm, review_serde_types::Spec<'n>) {
        let at = FieldLocation { owner_type: review_serde_types::KIND, ..FieldLocation::default() };
        let known = self.read_known_fields(entries, REVIEW_FIELDS, &at);
        let find = |name: &str| known.iter().find(|entry| entry.key == name);
        let form = self.read_kind_and_version(
            root,
            find("apiVersion").copied(),
            find("kind").copied(),
            &at,
        );
        if let Some(metadata) = find("metadata") {
            self.check_metadata(&metadata.value, &at.child_location("metadata"));
        }
        self.version = form.version();
        let spec = find("spec").map(|spec| (&spec.value, at.child_location("spec")));
        let entries = spec.and_then(|(node, at)| {
            Some((self.read_object(node, "SubjectAccessReviewSpec", &at)?, at))
        });
        let Some((entries, at)) = entries else {
            return (form, review_serde_types::Spec::default());
        };
        (form, self.read_spec(entries, form, &at.with_owner_type("SubjectAccessReviewSpec")))
    }

    /// Reads the version of the review. Reports an unknown or missing kind or version.
    fn read_kind_and_version(
        &mut self,
        root: &Node,
        api_version: Option<&Entry>,
        kind: Option<&Entry>,
        at: &FieldLocation,
    ) -> ReviewForm {
        match kind.map(|kind| (kind, self.read_string(&kind.value, &at.child_location("kind")))) {
            Some((_, review_serde_types::KIND)) => {}
            Some((kind, other)) => {
                let message =
                    format!("unknown kind `{other}`, it must be `{}`", review_serde_types::KIND);
                self.report_problem("kind".to_owned(), message, kind.value.span, None);
            }
            None => self.report_missing_field(root, "kind", review_serde_types::KIND),
        }
        match api_version
            .map(|entry| (entry, self.read_string(&entry.value, &at.child_location("apiVersion"))))
        {
            Some((_, review_serde_types::V1)) => ReviewForm::V1,
            Some((_, review_serde_types::V1BETA1)) => ReviewForm::V1beta1,
            Some((entry, other)) => {
                let message = format!("unknown apiVersion `{other}`");
                let known = format!(
                    "known are `{}` and `{}`",
                    review_serde_types::V1,
                    review_serde_types::V1BETA1
                );
                self.report_problem(
                    "apiVersion".to_owned(),
                    message,
                    entry.value.span,
                    Some(known),
                );
                ReviewForm::V1
            }
            None => {
                self.report_missing_field(root, "apiVersion", review_serde_types::V1);
                ReviewForm::V1
            }
        }
    }

    fn report_missing_field(&mut self, root: &Node, name: &str, value: &str) {
        let message = format!("`{name}` is missing, it must be `{value}`");
        let hint = "a line is a review with apiVersion and kind, or a spec alone".to_owned();
        let span = Span::new(root.span.start, root.span.start);
        self.report_problem(name.to_owned(), message, span, Some(hint));
    }

    /// Checks that the metadata has only a namespace and the fields that the server ignores too.
    fn check_metadata(&mut self, node: &Node, at: &FieldLocation) {
        let Some(entries) = self.read_object(node, "ObjectMeta", at) else { return };
        let may_be_there = |entry: &Entry| {
            matches!(entry.key.as_str(), "namespace" | "managedFields")
                || SET_BY_SERVER.contains(&entry.key.as_str())
                || entry.value.value == Value::Null
                || matches!(&entry.value.value, Value::Object(entries) if entries.is_empty())
                || matches!(&entry.value.value, Value::Text(text) if text.is_empty())
        };
        if let Some(first) = entries.iter().find(|entry| !may_be_there(entry)) {
            let written =
                self.source_text.get(node.span.start..node.span.end_offset).unwrap_or_default();
            let message = format!("metadata: Invalid value: {written}: must be empty");
            self.report_problem("metadata".to_owned(), message, first.key_span, None);
        }
    }

    fn read_spec<'n>(
        &mut self,
        entries: &'n [Entry],
        form: ReviewForm,
        at: &FieldLocation,
    ) -> review_serde_types::Spec<'n> {
        let mut spec = review_serde_types::Spec::default();
        let mut lists: Vec<&Entry> = Vec::new();
        for entry in self.read_known_fields(entries, form.spec_field_names(), at) {
            let (node, at) = (&entry.value, at.child_location(&entry.key));
            match entry.key.as_str() {
                "resourceAttributes" => {
                    spec.resource_attributes = self.read_resource_attributes(node, &at);
                }
                "nonResourceAttributes" => {
                    spec.non_resource_attributes = self.read_non_resource_attributes(node, &at);
                }
                "user" => spec.user = self.read_string(node, &at),
                "uid" => spec.uid = self.read_string(node, &at),
                "groups" => {
                    spec.groups = Some(self.read_strings(node, "[]string", &at));
                    lists.push(entry);
                }
                "group" => {
                    spec.group = Some(self.read_strings(node, "[]string", &at));
                    lists.push(entry);
                }
                _ => self.read_extra(node, &at, &mut spec),
            }
        }
        if let [_, second] = lists.as_slice() {
            let message = "`groups` and `group` are two names of one list".to_owned();
            let hint = "`groups` is its name in v1, `group` in v1beta1".to_owned();
            self.report_problem(
                at.child_location(&second.key).path_with_indices,
                message,
                second.key_span,
                Some(hint),
            );
        }
        spec
    }

    fn read_extra<'n>(
        &mut self,
        node: &'n Node,
        at: &FieldLocation,
        spec: &mut review_serde_types::Spec<'n>,
    ) {
        let value_type = format!("{}.ExtraValue", self.version);
        let Value::Object(entries) = &node.value else {
            return self.report_wrong_type(node, &format!("map[string]{value_type}"), at);
        };
        for entry in entries {
            let at = FieldLocation {
                path_with_indices: format!("{}[{}]", at.path_with_indices, entry.key),
                ..at.clone()
            };
            let values = match &entry.value.value {
                Value::Null => Vec::new(),
                _ => self.read_strings(&entry.value, &value_type, &at),
            };
            spec.extra.insert(&entry.key, values);
        }
    }

    fn read_resource_attributes<'n>(
        &mut self,
        node: &'n Node,
        at: &FieldLocation,
    ) -> Option<review_serde_types::ResourceAttributes<'n>> {
        let entries = self.read_object(node, "ResourceAttributes", at)?;
        let at = at.with_owner_type("ResourceAttributes");
        let mut found = review_serde_types::ResourceAttributes::default();
        for entry in self.read_known_fields(entries, RESOURCE_FIELDS, &at) {
            let (node, at) = (&entry.value, at.child_location(&entry.key));
            let part = match entry.key.as_str() {
                "namespace" => &mut found.namespace,
                "verb" => &mut found.verb,
                "group" => &mut found.group,
                "version" => &mut found.version,
                "resource" => &mut found.resource,
                "subresource" => &mut found.subresource,
                "name" => &mut found.name,
                "fieldSelector" => {
                    found.field_selector = self.read_selector(node, "FieldSelectorAttributes", &at);
                    continue;
                }
                _ => {
                    found.label_selector = self.read_selector(node, "LabelSelectorAttributes", &at);
                    continue;
                }
            };
            *part = self.read_string(node, &at);
        }
        Some(found)
    }

    fn read_non_resource_attributes<'n>(
        &mut self,
        node: &'n Node,
        at: &FieldLocation,
    ) -> Option<review_serde_types::NonResourceAttributes<'n>> {
        let entries = self.read_object(node, "NonResourceAttributes", at)?;
        let at = at.with_owner_type("NonResourceAttributes");
        let mut found = review_serde_types::NonResourceAttributes::default();
        for entry in self.read_known_fields(entries, PATH_FIELDS, &at) {
            let part = if entry.key == "path" { &mut found.path } else { &mut found.verb };
            *part = self.read_string(&entry.value, &at.child_location(&entry.key));
        }
        Some(found)
    }

    fn read_selector<'n>(
        &mut self,
        node: &'n Node,
        type_name: &'static str,
        at: &FieldLocation,
    ) -> Option<review_serde_types::SelectorAttributes<'n>> {
        let entries = self.read_object(node, type_name, at)?;
        let at = at.with_owner_type(type_name);
        let mut found = review_serde_types::SelectorAttributes::default();
        for entry in self.read_known_fields(entries, SELECTOR_FIELDS, &at) {
            let (node, at) = (&entry.value, at.child_location(&entry.key));
            match (entry.key.as_str(), &node.value) {
                ("rawSelector", _) => found.raw_selector = self.read_string(node, &at),
                (_, Value::List(items)) => {
                    let items = items.iter().enumerate();
                    let items =
                        items.map(|(idx, item)| self.read_requirement(item, &at.index(idx)));
                    found.requirements = items.collect();
                }
                _ => self.report_wrong_type(node, &requirement_go_type(type_name, true), &at),
            }
        }
        Some(found)
    }

    fn read_requirement<'n>(
        &mut self,
        node: &'n Node,
        at: &FieldLocation,
    ) -> review_serde_types::SelectorRequirement<'n> {
        let mut found = review_serde_types::SelectorRequirement::default();
        let entries = match &node.value {
            Value::Null => return found,
            Value::Object(entries) => entries,
            _ => {
                self.report_wrong_type(node, &requirement_go_type(at.owner_type, false), at);
                return found;
            }
        };
        for entry in self.read_known_fields(entries, REQUIREMENT_FIELDS, at) {
            let (node, at) = (&entry.value, at.child_location(&entry.key));
            match entry.key.as_str() {
                "key" => found.key = self.read_string(node, &at),
                "operator" => found.operator = self.read_string(node, &at),
                _ => found.values = self.read_strings(node, "[]string", &at),
            }
        }
        found
    }

    /// Returns the known entries that are not null, each once. Unknown and duplicate entries are reported.
    fn read_known_fields<'n>(
        &mut self,
        entries: &'n [Entry],
        known: &[&str],
        at: &FieldLocation,
    ) -> Vec<&'n Entry> {
        let mut seen: Vec<&Entry> = Vec::new();
        for entry in entries {
            let class = if !known.contains(&entry.key.as_str()) {
                "unknown"
            } else if seen.iter().any(|other| other.key == entry.key) {
                "duplicate"
            } else {
                seen.push(entry);
                continue;
            };
            let path = at.child_location(&entry.key).path_with_indices;
            let message = format!("{class} field {}", go_compat::quote(&path));
            let hint = hint::did_you_mean(&entry.key, known);
            self.report_problem(path, message, entry.key_span, hint);
        }
        seen.retain(|entry| entry.value.value != Value::Null);
        seen
    }

    fn read_object<'n>(
        &mut self,
        node: &'n Node,
        type_name: &str,
        at: &FieldLocation,
    ) -> Option<&'n [Entry]> {
        match &node.value {
            Value::Object(entries) => Some(entries),
            _ => {
                self.report_wrong_type(node, &format!("{}.{type_name}", self.version), at);
                None
            }
        }
    }

    fn read_string<'n>(&mut self, node: &'n Node, at: &FieldLocation) -> &'n str {
        match &node.value {
            Value::Text(text) => text.as_str(),
            Value::Null => "",
            _ => {
                self.report_wrong_type(node, "string", at);
                ""
            }
        }
    }

    fn read_strings<'n>(
        &mut self,
        node: &'n Node,
        go_type: &str,
        at: &FieldLocation,
    ) -> Vec<&'n str> {
        let Value::List(items) = &node.value else {
            self.report_wrong_type(node, go_type, at);
            return Vec::new();
        };
        let items = items.iter().enumerate();
        items.map(|(idx, item)| self.read_string(item, &at.index(idx))).collect()
    }

    fn report_wrong_type(&mut self, node: &Node, go_type: &str, at: &FieldLocation) {
        let (kind, owner_type, path) = (node.value.kind(), at.owner_type, &at.path_without_indices);
        let message = format!(
            "json: cannot unmarshal {kind} into Go struct field {owner_type}.{path} of type {go_type}"
        );
        self.report_problem(at.path_with_indices.clone(), message, node.span, None);
    }

    fn report_problem(&mut self, path: String, message: String, span: Span, hint: Option<String>) {
        if self.decode_problems.len() < PROBLEMS_MAX {
            self.decode_problems.push(DecodeProblem { path, message, span, hint });
        }
    }
}

/// Go's name of a requirement of a selector, or of a list of them.
fn requirement_go_type(selector_type: &str, is_list: bool) -> String {
    let name = match selector_type {
        "FieldSelectorAttributes" => "v1.FieldSelectorRequirement",
        _ => "v1.LabelSelectorRequirement",
    };
    if is_list { format!("[]{name}") } else { name.to_owned() }
}
