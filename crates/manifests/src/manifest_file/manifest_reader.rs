//! Reads the objects of a manifest file.

use std::sync::Arc;

use authz_node as node;
use document::json::{self, JsonWithUnreadItems};
use document::yaml::{self, YamlError};
use document::{
    DecodeProblem, DecodeProblems, DocumentLimits, Fault, LineIndex, Node, NodePath, Source, Span,
    SpannedFault, SpannedWarning, Value, WarningCode, check_against_schema, hint as syntax_hint,
};
use serde_json::{Map, Value as Json};

use super::duplicate_keys::DuplicateKeys;
use super::list_schema::LIST;
use super::locate_field::{locate_faulty_value, locate_field};
use super::object_class::{
    ObjectClass, TypeMeta, classify_object, is_not_kubernetes_object, last_member,
};
use super::object_to_json::object_to_json;
use super::unstructured_object::{
    KindHandler, KindHandling, UnstructuredObjectBuilder, find_duplicate_members,
};
use super::{
    AuthorizerObject, ERRORS_MAX, MANIFEST_BYTES_MAX, ManifestObject, Manifests, RoleNameLocation,
    WARNINGS_MAX, YAML_NODES_MAX, lint, rbac_hint,
};
use crate::rbac::Kind;
use crate::{parse_node_authorizer_object, rbac};

/// The limits of one YAML document.
const LIMITS: DocumentLimits = DocumentLimits {
    nodes_max: YAML_NODES_MAX,
    expanded_bytes_max: MANIFEST_BYTES_MAX,
    duplicate_keys_max: ERRORS_MAX,
};

/// Reads the objects of a file.
///
/// 1. The text is cut into documents: JSON if its first character is `{`, else YAML. Empty
///    documents are skipped, and a syntax error ends reading. A file without any object has no errors. In a
///    file with objects, a document that is not an object is an error.
/// 2. Each document, or each item of a list, is classified by kind and version. Objects that no
///    authorizer uses are only counted.
/// 3. Roles and bindings are checked against the schema of their kind, get their defaults, and are
///    validated like in the API. Any other object is accepted unchanged.
pub fn read(source: &Source<'_>) -> Manifests {
    read_manifests_with_options(source, ManifestReadOptions::default())
}

/// Options of reading a manifest file.
#[derive(Clone, Copy)]
pub struct ManifestReadOptions<'a> {
    /// Decides which objects the reader keeps whole.
    pub kind_handler: KindHandler<'a>,
    /// The namespace of namespaced objects that declare none, as with `kubectl apply -n`.
    pub default_namespace: Option<&'a str>,
}

impl Default for ManifestReadOptions<'_> {
    fn default() -> Self {
        Self { kind_handler: &|_, _| KindHandling::Standard, default_namespace: None }
    }
}

/// Reads the objects of a file as the options say.
pub fn read_manifests_with_options(
    source: &Source<'_>,
    options: ManifestReadOptions<'_>,
) -> Manifests {
    if source.file_bytes.len() > MANIFEST_BYTES_MAX {
        let message = format!("file is larger than {MANIFEST_BYTES_MAX} bytes");
        let mut reader = ManifestReader::new(source.name, "", options);
        reader.push_fault(file_fault(message, Span::default()));
        return reader.manifests;
    }
    let (text, malformed) = source.decode_text();
    let mut reader = ManifestReader::new(source.name, &text, options);
    if source.is_json() {
        reader.read_json(malformed);
    } else {
        reader.read_yaml(malformed);
    }
    reader.into_manifests()
}

struct ManifestReader<'t> {
    file_name: Arc<str>,
    text: &'t str,
    line_index: LineIndex<'t>,
    options: ManifestReadOptions<'t>,
    kept_unstructured_objects: Vec<UnstructuredObjectBuilder>,
    manifests: Manifests,
    /// Documents that are not objects. They are faults only if the file also has objects; a file
    /// without any object is not a manifest.
    non_object_documents: Vec<SpannedFault>,
    /// Whether the file has an object, valid or not.
    has_objects: bool,
}

impl<'t> ManifestReader<'t> {
    fn new(name: &str, text: &'t str, options: ManifestReadOptions<'t>) -> Self {
        Self {
            file_name: name.into(),
            text,
            line_index: LineIndex::new(text),
            options,
            kept_unstructured_objects: Vec::new(),
            manifests: Manifests::default(),
            non_object_documents: Vec::new(),
            has_objects: false,
        }
    }

    /// Builds the result. Kept objects share a copy of the text, which is made only if there are such objects.
    fn into_manifests(mut self) -> Manifests {
        let non_object_documents = std::mem::take(&mut self.non_object_documents);
        if self.has_objects && !non_object_documents.is_empty() {
            non_object_documents.into_iter().for_each(|fault| self.push_fault(fault));
            self.manifests.errors.sort_by_key(|error| error.position);
        }
        self.manifests.has_no_objects = !self.has_objects && self.manifests.errors.is_empty();
        let Self {
            file_name: file,
            line_index: lines,
            kept_unstructured_objects: kept_objects,
            mut manifests,
            ..
        } = self;
        if !kept_objects.is_empty() {
            let lines = Arc::new(lines.into_owned());
            let kept_objects = kept_objects
                .into_iter()
                .map(|object| object.into_unstructured_object(&file, &lines));
            manifests.unstructured_objects = kept_objects.collect();
        }
        manifests
    }

    fn read_json(&mut self, malformed: Option<usize>) {
        if let Some(at) = malformed {
            return self.push_fault(file_fault("invalid UTF-8".to_owned(), Span::new(at, at)));
        }
        for outline in json::read_json_with_unread_items(self.text) {
            match outline {
                Ok(outline) if is_not_kubernetes_object(&outline.root_node) => {
                    self.record_non_object_document(&outline.root_node);
                }
                Ok(outline) => {
                    self.has_objects = true;
                    self.read_json_value(&outline);
                }
                Err(error) => {
                    let hint = syntax_hint::hint_for_helm_template(self.text);
                    self.push_fault(SpannedFault { hint, ..file_fault(error.message, error.span) });
                }
            }
            if self.has_too_many_errors() {
                return;
            }
        }
    }

    fn read_yaml(&mut self, malformed: Option<usize>) {
        for composed in yaml::read_documents(self.text, malformed, LIMITS) {
            match composed {
                Ok(composed) if composed.root_node.value == Value::Null => continue,
                Ok(composed) if is_not_kubernetes_object(&composed.root_node) => {
                    self.record_non_object_document(&composed.root_node);
                }
                Ok(composed) => {
                    self.has_objects = true;
                    let duplicates = DuplicateKeys::new(composed.duplicate_keys);
                    self.read_object(&composed.root_node, None, &NodePath::ROOT, &duplicates);
                    // A duplicate key beyond the limit may be in a role or a binding.
                    if duplicates.len() >= LIMITS.duplicate_keys_max {
                        let message = "the document has too many duplicate keys".to_owned();
                        self.push_fault(file_fault(message, composed.root_node.span));
                    }
                }
                Err(error) => {
                    let hint = self.hint_for_yaml_error(&error);
                    self.push_fault(SpannedFault { hint, ..file_fault(error.message, error.span) });
                }
            }
            if self.has_too_many_errors() {
                return;
            }
        }
    }

    /// Records a document that is not an object, with the fault to report if the file also has
    /// objects.
    fn record_non_object_document(&mut self, root: &Node) {
        if self.non_object_documents.len() > ERRORS_MAX {
            return;
        }
        let kind_handler = self.options.kind_handler;
        if let Err(fault) = classify_object(root, None, &NodePath::ROOT, kind_handler) {
            self.non_object_documents.push(*fault);
        }
    }

    /// Sets the namespace of an object that declares none to that of the options.
    fn set_default_namespace(&self, object: &mut Json) {
        let Some(namespace) = self.options.default_namespace else { return };
        let Some(members) = object.as_object_mut() else { return };
        let metadata = members.entry("metadata").or_insert_with(|| Json::Object(Map::new()));
        if metadata.is_null() {
            *metadata = Json::Object(Map::new());
        }
        let Some(metadata) = metadata.as_object_mut() else { return };
        let is_missing = match metadata.get("namespace") {
            None | Some(Json::Null) => true,
            Some(own) => own.as_str() == Some(""),
        };
        if is_missing {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
    }

    fn hint_for_yaml_error(&self, error: &YamlError) -> Option<String> {
        if error.message.ends_with(&format!("more than {YAML_NODES_MAX} values")) {
            return Some("lists in JSON may be longer: `kubectl get -o json`".to_owned());
        }
        syntax_hint::hint_for_syntax_error(&error.message, self.text, error.span.start)
    }

    /// Reads a JSON value. If it is a list, its items are read one by one.
    fn read_json_value(
        &mut self,
        JsonWithUnreadItems { root_node: root, items_list_offset: items_bracket_offset }: &JsonWithUnreadItems,
    ) {
        let (identity, _) =
            match classify_object(root, None, &NodePath::ROOT, self.options.kind_handler) {
                Ok(found) => found,
                Err(finding) => return self.push_fault(*finding),
            };
        let (ObjectClass::List { item }, Some(start)) = (identity, items_bracket_offset) else {
            return self.read_object(root, None, &NodePath::ROOT, &DuplicateKeys::default());
        };
        let none = DuplicateKeys::default();
        self.check_list_fields(root, &NodePath::ROOT, &none);
        let at = NodePath::ROOT.child_path("items");
        for (idx, node) in json::read_json_items(self.text, *start).enumerate() {
            match node {
                Ok(node) => self.read_object(&node, item.as_ref(), &at.index(idx), &none),
                Err(error) => self.push_fault(file_fault(error.message, error.span)),
            }
            if self.has_too_many_errors() {
                return;
            }
        }
    }

    /// Reads the object at the path `at`. `duplicates` are the duplicate keys of a YAML document; the duplicate
    /// keys of a JSON document are still in the tree.
    fn read_object(
        &mut self,
        root: &Node,
        inherited: Option<&TypeMeta>,
        at: &NodePath<'_>,
        duplicates: &DuplicateKeys,
    ) {
        let (identity, type_meta) =
            match classify_object(root, inherited, at, self.options.kind_handler) {
                Ok(found) => found,
                Err(finding) => return self.push_fault(*finding),
            };
        match identity {
            ObjectClass::Rbac(kind) => {
                self.read_rbac_object(kind, root, &type_meta, at, duplicates)
            }
            ObjectClass::Node { is_namespaced } => {
                self.check_type_fields_unique(root, at, duplicates);
                self.read_node_authorizer_object(is_namespaced, root, &type_meta, at);
            }
            ObjectClass::Whole => self.keep_unstructured_object(root, &type_meta, at, duplicates),
            ObjectClass::List { item } => {
                self.check_list_fields(root, at, duplicates);
                let at = at.child_path("items");
                let Some(Value::List(items)) = last_member(root, "items").map(|node| &node.value)
                else {
                    return;
                };
                for (idx, node) in items.iter().enumerate() {
                    self.read_object(node, item.as_ref(), &at.index(idx), duplicates);
                    if self.has_too_many_errors() {
                        return;
                    }
                }
            }
            ObjectClass::Other => {
                self.check_type_fields_unique(root, at, duplicates);
                self.manifests.n_unused_objects += 1;
            }
        }
    }

    /// Checks that an object declares `apiVersion` and `kind` only once. Otherwise the reader could ignore an
    /// object that also declares itself a role.
    fn check_type_fields_unique(
        &mut self,
        root: &Node,
        at: &NodePath<'_>,
        duplicates: &DuplicateKeys,
    ) {
        let Value::Object(entries) = &root.value else { return };
        for name in ["apiVersion", "kind"] {
            let path = at.child_path(name).path_with_indices();
            let in_yaml =
                duplicates.duplicates_at_path(&path).into_iter().map(|problem| problem.span);
            let in_json = entries.iter().filter(|entry| entry.key == name).skip(1);
            let spans = in_yaml.chain(in_json.map(|entry| entry.key_span));
            for span in spans {
                let message = format!("duplicate field {}", go_compat::quote(&path));
                self.push_fault(DecodeProblem::new(path.clone(), message, span).into());
            }
        }
    }

    /// Checks the fields of a list except its items.
    fn check_list_fields(&mut self, root: &Node, at: &NodePath<'_>, duplicates: &DuplicateKeys) {
        let mut problems = check_against_schema(self.text, "v1", root, &LIST, at);
        let items = at.child_path("items").path_with_indices();
        let is_item = |path: &str| path.strip_prefix(&items).is_some_and(|rest| !rest.is_empty());
        problems.duplicate_keys = duplicates.duplicates_inside_object(&at.path_with_indices());
        problems.duplicate_keys.retain(|problem| !is_item(&problem.path));
        self.push_decode_problems(problems);
        match last_member(root, "items") {
            Some(Node { value: Value::List(_) | Value::Null, .. }) => {}
            Some(node) => {
                let message = "`items` must be an array".to_owned();
                self.push_fault(DecodeProblem::new(items, message, node.span).into());
            }
            None => {
                let message = "a list without `items`".to_owned();
                self.push_fault(DecodeProblem::new(items, message, root.span).into());
            }
        }
        let rest = locate_field(root, "metadata.continue");
        if let Some(Node { value: Value::Text(text), .. }) = rest.value
            && !text.as_str().is_empty()
        {
            self.push_warning(SpannedWarning {
                code: WarningCode::IncompleteList,
                field: at.child_path("metadata").child_path("continue").path_with_indices(),
                message: "the list is only the first part of a longer one".to_owned(),
                span: rest.span,
                hint: Some("ask the server for all of it".to_owned()),
            });
        }
    }

    fn read_rbac_object(
        &mut self,
        kind: Kind,
        root: &Node,
        type_meta: &TypeMeta,
        at: &NodePath<'_>,
        duplicates: &DuplicateKeys,
    ) {
        let mut problems = check_against_schema(self.text, "v1", root, kind.object_schema(), at);
        problems.duplicate_keys = duplicates.duplicates_inside_object(&at.path_with_indices());
        if problems.kubernetes_message().is_some() {
            return self.push_decode_problems(problems);
        }
        let mut value = object_to_json(root, type_meta);
        if kind.is_namespaced() {
            self.set_default_namespace(&mut value);
        }
        let manifest = match rbac::decode_unvalidated_rbac_object(&value) {
            Ok(manifest) => manifest,
            Err(error) => {
                // The schema check above reports every malformed value, so decoding does not fail here.
                let problem =
                    DecodeProblem::new(at.path_with_indices(), error.to_string(), root.span);
                return self.push_fault(problem.into());
            }
        };
        match manifest.into_validated_object() {
            Ok(object) => {
                lint::lint_object(&object, root, at, &mut |warning| self.push_warning(warning));
                let role_name_location = self.locate_role_name(&object, root, at);
                self.push_object(AuthorizerObject::Rbac(object), root, role_name_location);
            }
            Err(faults) => {
                for mut error in faults {
                    let located = locate_faulty_value(root, &error);
                    let is_tagged = located.value.is_some_and(|value| value.has_yaml_tag);
                    let hint = match is_tagged {
                        true => Some(syntax_hint::LEADING_BANG_HINT.to_owned()),
                        false => rbac_hint::hint_for_rbac_fault(kind, root, &error),
                    };
                    error.path = at.child_path(&error.path).path_with_indices();
                    let (fault, span) = (Fault::Field(error), located.span);
                    self.push_fault(SpannedFault {
                        fault,
                        span,
                        hint,
                        expression_issues: Vec::new(),
                    });
                }
            }
        }
    }

    /// Finds the path and the position of the role's name in a binding.
    fn locate_role_name(
        &self,
        object: &rbac::RbacObject,
        root: &Node,
        at: &NodePath<'_>,
    ) -> Option<RoleNameLocation> {
        match object {
            rbac::RbacObject::Role(_) => None,
            rbac::RbacObject::Binding(_) => Some(RoleNameLocation {
                field: at.child_path("roleRef").child_path("name").path_with_indices(),
                position: self.line_index.position_of_span(locate_field(root, "roleRef.name").span),
            }),
        }
    }

    fn read_node_authorizer_object(
        &mut self,
        is_namespaced: bool,
        root: &Node,
        type_meta: &TypeMeta,
        at: &NodePath<'_>,
    ) {
        let mut value = object_to_json(root, type_meta);
        if is_namespaced {
            self.set_default_namespace(&mut value);
        }
        let Some(object) = parse_node_authorizer_object(&value) else { return };
        let object = AuthorizerObject::Node(object);
        // An object that adds no relation to a node needs no name.
        for name in missing_name_fields(&object, is_namespaced) {
            let metadata = field_errors::FieldPath::root("metadata");
            let mut error = metadata.child(name).required("");
            error.path = at.child_path(&error.path).path_with_indices();
            let kind = object.kind_name();
            let hint = format!("a {kind} that belongs to a node needs `metadata.{name}`");
            let (fault, span) = (Fault::Field(error), locate_field(root, "metadata").span);
            self.push_fault(SpannedFault {
                fault,
                span,
                hint: Some(hint),
                expression_issues: Vec::new(),
            });
        }
        self.push_object(object, root, None);
    }

    fn keep_unstructured_object(
        &mut self,
        root: &Node,
        type_meta: &TypeMeta,
        at: &NodePath<'_>,
        duplicates: &DuplicateKeys,
    ) {
        // The YAML reader has removed duplicate keys from the tree, so they come from its list.
        let mut twice = duplicates.duplicates_inside_object(&at.path_with_indices());
        find_duplicate_members(root, at, &mut twice);
        twice.into_iter().for_each(|problem| self.push_fault(problem.into()));
        if let Json::Object(value) = object_to_json(root, type_meta) {
            self.kept_unstructured_objects.push(UnstructuredObjectBuilder {
                value,
                root_node: root.clone(),
                at: at.path_with_indices(),
            });
        }
    }

    fn push_object(
        &mut self,
        object: AuthorizerObject,
        root: &Node,
        role_name_location: Option<RoleNameLocation>,
    ) {
        let (file, position) =
            (Arc::clone(&self.file_name), self.line_index.position_of_span(root.span));
        self.manifests.authorizer_objects.push(ManifestObject {
            authorizer_object: object,
            file_name: file,
            position,
            role_name_location,
        });
    }

    fn push_decode_problems(&mut self, problems: DecodeProblems) {
        problems
            .into_sorted_problems()
            .into_iter()
            .for_each(|problem| self.push_fault(problem.into()));
    }

    fn push_fault(&mut self, finding: SpannedFault) {
        let errors = &mut self.manifests.errors;
        if errors.len() < ERRORS_MAX {
            errors.push(finding.into_positioned_diagnostic(&self.file_name, &self.line_index));
        } else if errors.len() == ERRORS_MAX {
            let message = format!("more than {ERRORS_MAX} errors: the rest is not read");
            errors.push(
                file_fault(message, finding.span)
                    .into_positioned_diagnostic(&self.file_name, &self.line_index),
            );
        }
    }

    /// Reports whether the limit of errors is reached.
    fn has_too_many_errors(&self) -> bool {
        self.manifests.errors.len() > ERRORS_MAX
    }

    fn push_warning(&mut self, warning: SpannedWarning) {
        if self.manifests.warnings.len() < WARNINGS_MAX {
            self.manifests
                .warnings
                .push(warning.into_positioned_warning(&self.file_name, &self.line_index));
        } else {
            self.manifests.n_warnings_dropped += 1;
        }
    }
}

fn file_fault(message: String, span: Span) -> SpannedFault {
    DecodeProblem::new("", message, span).into()
}

/// Returns the name fields that an object lacks although the node authorizer needs them.
fn missing_name_fields(object: &AuthorizerObject, is_namespaced: bool) -> Vec<&'static str> {
    let matters = match object {
        AuthorizerObject::Node(node::GraphObject::Pod(pod)) => !pod.node_name.is_empty(),
        AuthorizerObject::Node(node::GraphObject::PersistentVolume(volume)) => {
            volume.claim_ref.is_some()
        }
        AuthorizerObject::Node(
            node::GraphObject::VolumeAttachment(object)
            | node::GraphObject::ResourceSlice(object)
            | node::GraphObject::PodCertificateRequest(object),
        ) => !object.node_name.is_empty(),
        AuthorizerObject::Rbac(_) => false,
    };
    let mut missing = Vec::new();
    if matters && object.name().is_empty() {
        missing.push("name");
    }
    if matters && is_namespaced && object.namespace().is_empty() {
        missing.push("namespace");
    }
    missing
}
