//! Reads a review with positions and reports every fault.

use document::{DecodeProblem, Entry, Node, Span, Value, hint};

use super::plain_review;

/// The most problems of one line that are reported.
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
pub(super) enum LineForm {
    /// A spec and nothing around it.
    Bare,
    V1,
    V1beta1,
}

impl LineForm {
    fn version(self) -> &'static str {
        match self {
            Self::Bare | Self::V1 => "v1",
            Self::V1beta1 => "v1beta1",
        }
    }

    fn spec_fields(self) -> &'static [&'static str] {
        match self {
            Self::Bare => &[
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
pub(super) struct Decoded<'n> {
    pub(super) form: LineForm,
    pub(super) spec: plain_review::Spec<'n>,
    pub(super) problems: Vec<DecodeProblem>,
}

/// Decodes the tree of a line. Without problems the spec is complete but not validated.
pub(super) fn decode<'n>(text: &str, root: &'n Node) -> Decoded<'n> {
    let mut reader = ReviewReader { text, version: "v1", problems: Vec::new() };
    let Value::Object(entries) = &root.value else {
        let message = format!("a review is a JSON object, this is of type {}", root.value.kind());
        reader.report_problem(String::new(), message, root.span, None);
        return Decoded {
            form: LineForm::Bare,
            spec: plain_review::Spec::default(),
            problems: reader.problems,
        };
    };
    let is_whole = |entry: &Entry| REVIEW_FIELDS.contains(&entry.key.as_str());
    let (form, spec) = if entries.iter().any(is_whole) {
        reader.read_review(root, entries)
    } else {
        let at = FieldLocation { owner: "SubjectAccessReviewSpec", ..FieldLocation::default() };
        (LineForm::Bare, reader.read_spec(entries, LineForm::Bare, &at))
    };
    Decoded { form, spec, problems: reader.problems }
}

/// The path of the current value, in the two forms in which Kubernetes writes it.
#[derive(Clone, Default)]
struct FieldLocation {
    /// Kubernetes' name of the type around it.
    owner: &'static str,
    /// The path with indices: `spec.resourceAttributes.fieldSelector.requirements[0].key`.
    indexed: String,
    /// The same without the numbers.
    plain: String,
}

impl FieldLocation {
    fn child(&self, name: &str) -> Self {
        let join = |path: &str| match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        Self { owner: self.owner, indexed: join(&self.indexed), plain: join(&self.plain) }
    }

    fn index(&self, idx: usize) -> Self {
        Self { indexed: format!("{}[{idx}]", self.indexed), ..self.clone() }
    }

    fn in_type(&self, owner: &'static str) -> Self {
        Self { owner, ..self.clone() }
    }
}

struct ReviewReader<'t> {
    text: &'t str,
    version: &'static str,
    problems: Vec<DecodeProblem>,
}

impl ReviewReader<'_> {
    fn read_review<'n>(
        &mut self,
        root: &Node,
        entries: &'n [Entry],
    ) -> (LineForm, plain_review::Spec<'n>) {
        let at = FieldLocation { owner: plain_review::KIND, ..FieldLocation::default() };
        let known = self.read_known_fields(entries, REVIEW_FIELDS, &at);
        let find = |name: &str| known.iter().find(|entry| entry.key == name);
        let form = self.read_form(root, find("apiVersion").copied(), find("kind").copied(), &at);
        if let Some(metadata) = find("metadata") {
            self.check_metadata(&metadata.value, &at.child("metadata"));
        }
        self.version = form.version();
        let spec = find("spec").map(|spec| (&spec.value, at.child("spec")));
        let entries = spec.and_then(|(node, at)| {
            Some((self.read_object(node, "SubjectAccessReviewSpec", &at)?, at))
        });
        let Some((entries, at)) = entries else { return (form, plain_review::Spec::default()) };
        (form, self.read_spec(entries, form, &at.in_type("SubjectAccessReviewSpec")))
    }

    /// Reads the version of the review. Reports an unknown or missing kind or version.
    fn read_form(
        &mut self,
        root: &Node,
        api_version: Option<&Entry>,
        kind: Option<&Entry>,
        at: &FieldLocation,
    ) -> LineForm {
        match kind.map(|kind| (kind, self.read_text(&kind.value, &at.child("kind")))) {
            Some((_, plain_review::KIND)) => {}
            Some((kind, other)) => {
                let message =
                    format!("unknown kind `{other}`, it must be `{}`", plain_review::KIND);
                self.report_problem("kind".to_owned(), message, kind.value.span, None);
            }
            None => self.report_missing_field(root, "kind", plain_review::KIND),
        }
        match api_version
            .map(|entry| (entry, self.read_text(&entry.value, &at.child("apiVersion"))))
        {
            Some((_, plain_review::V1)) => LineForm::V1,
            Some((_, plain_review::V1BETA1)) => LineForm::V1beta1,
            Some((entry, other)) => {
                let message = format!("unknown apiVersion `{other}`");
                let known =
                    format!("known are `{}` and `{}`", plain_review::V1, plain_review::V1BETA1);
                self.report_problem(
                    "apiVersion".to_owned(),
                    message,
                    entry.value.span,
                    Some(known),
                );
                LineForm::V1
            }
            None => {
                self.report_missing_field(root, "apiVersion", plain_review::V1);
                LineForm::V1
            }
        }
    }

    fn report_missing_field(&mut self, root: &Node, name: &str, value: &str) {
        let message = format!("`{name}` is missing, it must be `{value}`");
        let hint = "a line is a review with apiVersion and kind, or a spec alone".to_owned();
        let span = Span::new(root.span.start, root.span.start);
        self.report_problem(name.to_owned(), message, span, Some(hint));
    }

    /// Nothing may be there but a namespace and managed fields, which the server ignores too.
    fn check_metadata(&mut self, node: &Node, at: &FieldLocation) {
        let Some(entries) = self.read_object(node, "ObjectMeta", at) else { return };
        let may_be_there = |entry: &Entry| {
            matches!(entry.key.as_str(), "namespace" | "managedFields")
                || entry.value.value == Value::Null
                || matches!(&entry.value.value, Value::Object(entries) if entries.is_empty())
                || matches!(&entry.value.value, Value::Text(text) if text.is_empty())
        };
        if let Some(first) = entries.iter().find(|entry| !may_be_there(entry)) {
            let written = self.text.get(node.span.start..node.span.end).unwrap_or_default();
            let message = format!("metadata: Invalid value: {written}: must be empty");
            self.report_problem("metadata".to_owned(), message, first.key_span, None);
        }
    }

    fn read_spec<'n>(
        &mut self,
        entries: &'n [Entry],
        form: LineForm,
        at: &FieldLocation,
    ) -> plain_review::Spec<'n> {
        let mut spec = plain_review::Spec::default();
        let mut lists: Vec<&Entry> = Vec::new();
        for entry in self.read_known_fields(entries, form.spec_fields(), at) {
            let (node, at) = (&entry.value, at.child(&entry.key));
            match entry.key.as_str() {
                "resourceAttributes" => {
                    spec.resource_attributes = self.read_resource_attributes(node, &at);
                }
                "nonResourceAttributes" => {
                    spec.non_resource_attributes = self.read_non_resource_attributes(node, &at);
                }
                "user" => spec.user = self.read_text(node, &at),
                "uid" => spec.uid = self.read_text(node, &at),
                "groups" => {
                    spec.groups = Some(self.read_texts(node, "[]string", &at));
                    lists.push(entry);
                }
                "group" => {
                    spec.group = Some(self.read_texts(node, "[]string", &at));
                    lists.push(entry);
                }
                _ => self.read_extra(node, &at, &mut spec),
            }
        }
        if let [_, second] = lists.as_slice() {
            let message = "`groups` and `group` are two names of one list".to_owned();
            let hint = "`groups` is its name in v1, `group` in v1beta1".to_owned();
            self.report_problem(
                at.child(&second.key).indexed,
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
        spec: &mut plain_review::Spec<'n>,
    ) {
        let value_type = format!("{}.ExtraValue", self.version);
        let Value::Object(entries) = &node.value else {
            return self.report_wrong_type(node, &format!("map[string]{value_type}"), at);
        };
        for entry in entries {
            let at =
                FieldLocation { indexed: format!("{}[{}]", at.indexed, entry.key), ..at.clone() };
            let values = match &entry.value.value {
                Value::Null => Vec::new(),
                _ => self.read_texts(&entry.value, &value_type, &at),
            };
            spec.extra.insert(&entry.key, values);
        }
    }

    fn read_resource_attributes<'n>(
        &mut self,
        node: &'n Node,
        at: &FieldLocation,
    ) -> Option<plain_review::ResourceAttributes<'n>> {
        let entries = self.read_object(node, "ResourceAttributes", at)?;
        let at = at.in_type("ResourceAttributes");
        let mut found = plain_review::ResourceAttributes::default();
        for entry in self.read_known_fields(entries, RESOURCE_FIELDS, &at) {
            let (node, at) = (&entry.value, at.child(&entry.key));
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
            *part = self.read_text(node, &at);
        }
        Some(found)
    }

    fn read_non_resource_attributes<'n>(
        &mut self,
        node: &'n Node,
        at: &FieldLocation,
    ) -> Option<plain_review::NonResourceAttributes<'n>> {
        let entries = self.read_object(node, "NonResourceAttributes", at)?;
        let at = at.in_type("NonResourceAttributes");
        let mut found = plain_review::NonResourceAttributes::default();
        for entry in self.read_known_fields(entries, PATH_FIELDS, &at) {
            let part = if entry.key == "path" { &mut found.path } else { &mut found.verb };
            *part = self.read_text(&entry.value, &at.child(&entry.key));
        }
        Some(found)
    }

    fn read_selector<'n>(
        &mut self,
        node: &'n Node,
        type_name: &'static str,
        at: &FieldLocation,
    ) -> Option<plain_review::SelectorAttributes<'n>> {
        let entries = self.read_object(node, type_name, at)?;
        let at = at.in_type(type_name);
        let mut found = plain_review::SelectorAttributes::default();
        for entry in self.read_known_fields(entries, SELECTOR_FIELDS, &at) {
            let (node, at) = (&entry.value, at.child(&entry.key));
            match (entry.key.as_str(), &node.value) {
                ("rawSelector", _) => found.raw_selector = self.read_text(node, &at),
                (_, Value::List(items)) => {
                    let items = items.iter().enumerate();
                    let items =
                        items.map(|(idx, item)| self.read_requirement(item, &at.index(idx)));
                    found.requirements = items.collect();
                }
                _ => self.report_wrong_type(node, &requirement_type(type_name, true), &at),
            }
        }
        Some(found)
    }

    fn read_requirement<'n>(
        &mut self,
        node: &'n Node,
        at: &FieldLocation,
    ) -> plain_review::Requirement<'n> {
        let mut found = plain_review::Requirement::default();
        let entries = match &node.value {
            Value::Null => return found,
            Value::Object(entries) => entries,
            _ => {
                self.report_wrong_type(node, &requirement_type(at.owner, false), at);
                return found;
            }
        };
        for entry in self.read_known_fields(entries, REQUIREMENT_FIELDS, at) {
            let (node, at) = (&entry.value, at.child(&entry.key));
            match entry.key.as_str() {
                "key" => found.key = self.read_text(node, &at),
                "operator" => found.operator = self.read_text(node, &at),
                _ => found.values = self.read_texts(node, "[]string", &at),
            }
        }
        found
    }

    /// The entries that are set and known, each once. Those that are not known are reported, and
    /// those that repeat.
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
            let path = at.child(&entry.key).indexed;
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

    fn read_text<'n>(&mut self, node: &'n Node, at: &FieldLocation) -> &'n str {
        match &node.value {
            Value::Text(text) => text.as_str(),
            Value::Null => "",
            _ => {
                self.report_wrong_type(node, "string", at);
                ""
            }
        }
    }

    fn read_texts<'n>(
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
        items.map(|(idx, item)| self.read_text(item, &at.index(idx))).collect()
    }

    fn report_wrong_type(&mut self, node: &Node, go_type: &str, at: &FieldLocation) {
        let (kind, owner, path) = (node.value.kind(), at.owner, &at.plain);
        let message = format!(
            "json: cannot unmarshal {kind} into Go struct field {owner}.{path} of type {go_type}"
        );
        self.report_problem(at.indexed.clone(), message, node.span, None);
    }

    fn report_problem(&mut self, path: String, message: String, span: Span, hint: Option<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(DecodeProblem { path, message, span, hint });
        }
    }
}

/// Go's name of a requirement of a selector, or of a list of them.
fn requirement_type(selector_type: &str, is_list: bool) -> String {
    let name = match selector_type {
        "FieldSelectorAttributes" => "v1.FieldSelectorRequirement",
        _ => "v1.LabelSelectorRequirement",
    };
    if is_list { format!("[]{name}") } else { name.to_owned() }
}
