//! From the bytes of a file to objects.

use std::sync::Arc;

use authz_node as node;
use document::decode::{self, At, Problem, Problems};
use document::json::{self, Outline};
use document::yaml::{self, YamlError};
use document::{
    Caution, Fault, Finding, Limits, Lines, Node, Source, Span, Value, WarningCode,
    hint as syntax_hint,
};
use serde_json::Value as Json;

use super::duplicate_keys::DuplicateKeys;
use super::identity::{Identity, TypeMeta, identify, member};
use super::kept::{Keep, Keeps, Unfinished, duplicate_members};
use super::locate::{locate, locate_fault};
use super::shapes::LIST;
use super::to_json::to_json;
use super::{
    ERRORS_MAX, Found, MANIFEST_BYTES_MAX, Manifests, Object, Reference, WARNINGS_MAX,
    YAML_NODES_MAX, hint, lint,
};
use crate::rbac::Kind;
use crate::{node_object, rbac};

/// The limits of one YAML document.
const LIMITS: Limits = Limits {
    nodes_max: YAML_NODES_MAX,
    expanded_bytes_max: MANIFEST_BYTES_MAX,
    duplicates_max: ERRORS_MAX,
};

/// Reads the objects of a file.
///
/// 1. The text is cut into documents: JSON if its first character is `{`, else YAML. Empty ones are
///    skipped; a file without any is refused, and what is not well-formed ends the walk.
/// 2. Of each document, or each item of a list, kind and version are found. Objects that no
///    authorizer learns from are only counted.
/// 3. What the caller wants is kept. A role or a binding is checked against the table of its kind, gets its defaults, and is held
///    against the rules of the API. Any other object is taken as it is.
pub fn read(source: &Source<'_>) -> Manifests {
    read_keeping(source, &|_, _| Keep::No)
}

/// Reads the objects of a file, and keeps those whole whose kinds the caller wants, whatever they are.
pub fn read_keeping(source: &Source<'_>, keeps: Keeps<'_>) -> Manifests {
    if source.bytes.len() > MANIFEST_BYTES_MAX {
        let message = format!("file is larger than {MANIFEST_BYTES_MAX} bytes");
        let mut reader = Reader::new(source.name, "", keeps);
        reader.fault(whole_file(message, Span::default()));
        return reader.manifests;
    }
    let (text, malformed) = source.decode();
    let mut reader = Reader::new(source.name, &text, keeps);
    if source.is_json() {
        reader.read_json(malformed);
    } else {
        reader.read_yaml(malformed);
    }
    reader.finish()
}

struct Reader<'t> {
    file: Arc<str>,
    text: &'t str,
    lines: Lines<'t>,
    keeps: Keeps<'t>,
    kept: Vec<Unfinished>,
    manifests: Manifests,
}

impl<'t> Reader<'t> {
    fn new(name: &str, text: &'t str, keeps: Keeps<'t>) -> Self {
        let lines = Lines::new(text);
        let manifests = Manifests::default();
        Self { file: name.into(), text, lines, keeps, kept: Vec::new(), manifests }
    }

    /// Objects that are kept need the text for as long as they are; without any it may go.
    fn finish(self) -> Manifests {
        let Self { file, lines, kept, mut manifests, .. } = self;
        if !kept.is_empty() {
            let lines = Arc::new(lines.into_owned());
            let kept = kept.into_iter().map(|object| object.finish(&file, &lines));
            manifests.kept = kept.collect();
        }
        manifests
    }

    fn read_json(&mut self, malformed: Option<usize>) {
        if let Some(at) = malformed {
            return self.fault(whole_file("invalid UTF-8".to_owned(), Span::new(at, at)));
        }
        for outline in json::outlines(self.text) {
            match outline {
                Ok(outline) => self.outline(&outline),
                Err(error) => self.fault(whole_file(error.message, error.span)),
            }
            if self.is_full() {
                return;
            }
        }
    }

    fn read_yaml(&mut self, malformed: Option<usize>) {
        let mut is_empty = true;
        for composed in yaml::documents(self.text, malformed, LIMITS) {
            match composed {
                Ok(composed) if composed.root.value == Value::Null => continue,
                Ok(composed) => {
                    let duplicates = DuplicateKeys::new(composed.duplicates);
                    self.object(&composed.root, None, &At::ROOT, &duplicates);
                    // Of more than are noted, one may be in a role or a binding.
                    if duplicates.len() >= LIMITS.duplicates_max {
                        let message = "the document has too many duplicate keys".to_owned();
                        self.fault(whole_file(message, composed.root.span));
                    }
                }
                Err(error) => {
                    let hint = self.syntax_hint(&error);
                    self.fault(Finding { hint, ..whole_file(error.message, error.span) });
                }
            }
            is_empty = false;
            if self.is_full() {
                return;
            }
        }
        if is_empty {
            let end = Span::new(self.text.len(), self.text.len());
            self.fault(whole_file("the file holds no object".to_owned(), end));
        }
    }

    fn syntax_hint(&self, error: &YamlError) -> Option<String> {
        if error.message.ends_with(&format!("more than {YAML_NODES_MAX} values")) {
            return Some("lists in JSON may be longer: `kubectl get -o json`".to_owned());
        }
        syntax_hint::for_syntax(&error.message, self.text, error.span.start)
    }

    /// Reads a JSON value, of which the items are still to be read if it is a list.
    fn outline(&mut self, Outline { root, items_start }: &Outline) {
        let (identity, _) = match identify(root, None, &At::ROOT, self.keeps) {
            Ok(found) => found,
            Err(finding) => return self.fault(*finding),
        };
        let (Identity::List { item }, Some(start)) = (identity, items_start) else {
            return self.object(root, None, &At::ROOT, &DuplicateKeys::default());
        };
        let none = DuplicateKeys::default();
        self.check_list(root, &At::ROOT, &none);
        let at = At::ROOT.child("items");
        for (idx, node) in json::items(self.text, *start).enumerate() {
            match node {
                Ok(node) => self.object(&node, item.as_ref(), &at.index(idx), &none),
                Err(error) => self.fault(whole_file(error.message, error.span)),
            }
            if self.is_full() {
                return;
            }
        }
    }

    /// Reads one object at `at`. `duplicates` are the keys that occur twice in its document, if
    /// that is YAML; those of JSON are found in the object.
    fn object(
        &mut self,
        root: &Node,
        inherited: Option<&TypeMeta>,
        at: &At<'_>,
        duplicates: &DuplicateKeys,
    ) {
        let (identity, type_meta) = match identify(root, inherited, at, self.keeps) {
            Ok(found) => found,
            Err(finding) => return self.fault(*finding),
        };
        match identity {
            Identity::Rbac(kind) => self.rbac_object(kind, root, &type_meta, at, duplicates),
            Identity::Node { is_namespaced } => {
                self.check_said_once(root, at, duplicates);
                self.node_object(is_namespaced, root, &type_meta, at);
            }
            Identity::Kept => self.kept_object(root, &type_meta, at, duplicates),
            Identity::List { item } => {
                self.check_list(root, at, duplicates);
                let at = at.child("items");
                let Some(Value::List(items)) = member(root, "items").map(|node| &node.value) else {
                    return;
                };
                for (idx, node) in items.iter().enumerate() {
                    self.object(node, item.as_ref(), &at.index(idx), duplicates);
                    if self.is_full() {
                        return;
                    }
                }
            }
            Identity::Other => {
                self.check_said_once(root, at, duplicates);
                self.manifests.n_others += 1;
            }
        }
    }

    /// Checks that an object of which only kind and version are looked at says each of them once:
    /// one that says that it is a role as well must not be passed over.
    fn check_said_once(&mut self, root: &Node, at: &At<'_>, duplicates: &DuplicateKeys) {
        let Value::Object(entries) = &root.value else { return };
        for name in ["apiVersion", "kind"] {
            let path = at.child(name).indexed();
            let in_yaml = duplicates.at(&path).into_iter().map(|problem| problem.span);
            let in_json = entries.iter().filter(|entry| entry.key == name).skip(1);
            let spans = in_yaml.chain(in_json.map(|entry| entry.key_span));
            for span in spans {
                let message = format!("duplicate field {}", go_compat::quote(&path));
                self.fault(Problem { path: path.clone(), message, span, hint: None }.into());
            }
        }
    }

    /// Checks everything about a list but its items.
    fn check_list(&mut self, root: &Node, at: &At<'_>, duplicates: &DuplicateKeys) {
        let mut problems = decode::check(self.text, "v1", root, &LIST, at);
        let items = at.child("items").indexed();
        let is_item = |path: &str| path.strip_prefix(&items).is_some_and(|rest| !rest.is_empty());
        problems.duplicate_keys = duplicates.within(&at.indexed());
        problems.duplicate_keys.retain(|problem| !is_item(&problem.path));
        self.problems(problems);
        match member(root, "items") {
            Some(Node { value: Value::List(_) | Value::Null, .. }) => {}
            Some(node) => {
                let message = "`items` must be an array".to_owned();
                self.fault(Problem { path: items, message, span: node.span, hint: None }.into());
            }
            None => {
                let message = "a list without `items`".to_owned();
                self.fault(Problem { path: items, message, span: root.span, hint: None }.into());
            }
        }
        let rest = locate(root, "metadata.continue");
        if let Some(Node { value: Value::Text(text), .. }) = rest.value
            && !text.as_str().is_empty()
        {
            self.caution(Caution {
                code: WarningCode::IncompleteList,
                field: at.child("metadata").child("continue").indexed(),
                message: "the list is only the first part of a longer one".to_owned(),
                span: rest.span,
                hint: Some("ask the server for all of it".to_owned()),
            });
        }
    }

    fn rbac_object(
        &mut self,
        kind: Kind,
        root: &Node,
        type_meta: &TypeMeta,
        at: &At<'_>,
        duplicates: &DuplicateKeys,
    ) {
        let mut problems = decode::check(self.text, "v1", root, kind.shape(), at);
        problems.duplicate_keys = duplicates.within(&at.indexed());
        if problems.cause().is_some() {
            return self.problems(problems);
        }
        let manifest = match rbac::decode(&to_json(root, type_meta)) {
            Ok(manifest) => manifest,
            Err(error) => {
                // The walk above leaves nothing that could be malformed.
                let path = at.indexed();
                let message = error.to_string();
                return self.fault(Problem { path, message, span: root.span, hint: None }.into());
            }
        };
        match manifest.into_valid() {
            Ok(object) => {
                lint::object(&object, root, at, &mut |caution| self.caution(caution));
                let role_name = self.role_name(&object, root, at);
                self.found(Object::Rbac(object), root, role_name);
            }
            Err(faults) => {
                for mut error in faults {
                    let located = locate_fault(root, &error);
                    let is_tagged = located.value.is_some_and(|value| value.is_tagged);
                    let hint = match is_tagged {
                        true => Some(syntax_hint::LEADING_BANG.to_owned()),
                        false => hint::for_fault(kind, root, &error),
                    };
                    error.path = at.child(&error.path).indexed();
                    let (fault, span) = (Fault::Field(error), located.span);
                    self.fault(Finding { fault, span, hint, notes: Vec::new() });
                }
            }
        }
    }

    /// Where a binding names its role.
    fn role_name(&self, object: &rbac::Object, root: &Node, at: &At<'_>) -> Option<Reference> {
        match object {
            rbac::Object::Role(_) => None,
            rbac::Object::Binding(_) => Some(Reference {
                field: at.child("roleRef").child("name").indexed(),
                place: self.lines.place(locate(root, "roleRef.name").span),
            }),
        }
    }

    fn node_object(&mut self, is_namespaced: bool, root: &Node, type_meta: &TypeMeta, at: &At<'_>) {
        let Some(object) = node_object(&to_json(root, type_meta)) else { return };
        let object = Object::Node(object);
        // Where it relates nothing to a node, it does not matter what it is called.
        for name in missing_names(&object, is_namespaced) {
            let metadata = field_errors::FieldPath::root("metadata");
            let mut error = metadata.child(name).required("");
            error.path = at.child(&error.path).indexed();
            let kind = object.kind_name();
            let hint = format!("a {kind} that belongs to a node needs `metadata.{name}`");
            let (fault, span) = (Fault::Field(error), locate(root, "metadata").span);
            self.fault(Finding { fault, span, hint: Some(hint), notes: Vec::new() });
        }
        self.found(object, root, None);
    }

    fn kept_object(
        &mut self,
        root: &Node,
        type_meta: &TypeMeta,
        at: &At<'_>,
        duplicates: &DuplicateKeys,
    ) {
        // Those of YAML are not in the tree any more.
        let mut twice = duplicates.within(&at.indexed());
        duplicate_members(root, at, &mut twice);
        twice.into_iter().for_each(|problem| self.fault(problem.into()));
        if let Json::Object(value) = to_json(root, type_meta) {
            self.kept.push(Unfinished { value, root: root.clone(), at: at.indexed() });
        }
    }

    fn found(&mut self, object: Object, root: &Node, role_name: Option<Reference>) {
        let (file, place) = (Arc::clone(&self.file), self.lines.place(root.span));
        self.manifests.objects.push(Found { object, file, place, role_name });
    }

    fn problems(&mut self, problems: Problems) {
        problems.into_sorted().into_iter().for_each(|problem| self.fault(problem.into()));
    }

    fn fault(&mut self, finding: Finding) {
        let errors = &mut self.manifests.errors;
        if errors.len() < ERRORS_MAX {
            errors.push(finding.locate(&self.file, &self.lines));
        } else if errors.len() == ERRORS_MAX {
            let message = format!("more than {ERRORS_MAX} errors: the rest is not read");
            errors.push(whole_file(message, finding.span).locate(&self.file, &self.lines));
        }
    }

    /// Whether there are so many errors that reading on makes no sense.
    fn is_full(&self) -> bool {
        self.manifests.errors.len() > ERRORS_MAX
    }

    fn caution(&mut self, caution: Caution) {
        if self.manifests.warnings.len() < WARNINGS_MAX {
            self.manifests.warnings.push(caution.locate(&self.file, &self.lines));
        } else {
            self.manifests.n_warnings_dropped += 1;
        }
    }
}

fn whole_file(message: String, span: Span) -> Finding {
    Problem { path: String::new(), message, span, hint: None }.into()
}

/// The parts of the name that an object lacks although the graph needs them.
fn missing_names(object: &Object, is_namespaced: bool) -> Vec<&'static str> {
    let matters = match object {
        Object::Node(node::Object::Pod(pod)) => !pod.node_name.is_empty(),
        Object::Node(node::Object::PersistentVolume(volume)) => volume.claim.is_some(),
        Object::Node(
            node::Object::VolumeAttachment(object)
            | node::Object::ResourceSlice(object)
            | node::Object::PodCertificateRequest(object),
        ) => !object.node_name.is_empty(),
        Object::Rbac(_) => false,
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
