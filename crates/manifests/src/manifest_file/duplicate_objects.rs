//! Finds objects that occur twice.

use std::collections::HashMap;

use document::{Diagnostic, Fault, SourcePosition};
use field_errors::FieldPath;

use super::{ERRORS_MAX, ManifestObject, UnstructuredObject};

/// The identity and the position of an object.
struct ObjectOccurrence<'o> {
    kind: &'o str,
    namespace: &'o str,
    name: &'o str,
    file: &'o str,
    position: SourcePosition,
}

/// Returns a fault for each object that occurs a second time, in one file or in several, because the reader
/// can not know which of the two should count. Returns at most [`ERRORS_MAX`] faults.
pub fn find_duplicate_objects(objects: &[ManifestObject]) -> Vec<Diagnostic> {
    find_duplicates(objects.iter().map(|ManifestObject { object, file, position, .. }| {
        ObjectOccurrence {
            kind: object.kind_name(),
            namespace: object.namespace(),
            name: object.name(),
            file,
            position: *position,
        }
    }))
}

/// Does the same as [`find_duplicate_objects`] for objects that the reader has kept as JSON.
pub fn find_duplicate_unstructured(objects: &[&UnstructuredObject]) -> Vec<Diagnostic> {
    find_duplicates(objects.iter().map(|kept_objects| ObjectOccurrence {
        kind: kept_objects.kind_name(),
        namespace: kept_objects.namespace(),
        name: kept_objects.name(),
        file: &kept_objects.file,
        position: kept_objects.position(),
    }))
}

fn find_duplicates<'o>(occurrences: impl Iterator<Item = ObjectOccurrence<'o>>) -> Vec<Diagnostic> {
    let mut first = HashMap::new();
    let mut faults = Vec::new();
    for seen in occurrences.filter(|seen| !seen.name.is_empty()) {
        let key = (seen.kind, seen.namespace, seen.name);
        match first.get(&key) {
            None => {
                first.insert(key, seen);
            }
            Some(first) if faults.len() < ERRORS_MAX => faults.push(duplicate_fault(first, &seen)),
            Some(_) => {}
        }
    }
    faults
}

fn duplicate_fault(first: &ObjectOccurrence<'_>, second: &ObjectOccurrence<'_>) -> Diagnostic {
    let metadata = FieldPath::root("metadata");
    let mut error = metadata.child("name").duplicate(second.name);
    let SourcePosition { line, column, .. } = first.position;
    let scope = match second.namespace {
        "" => String::new(),
        namespace => format!(" in namespace `{namespace}`"),
    };
    let kind = second.kind;
    error.detail = format!("this {kind}{scope} is first defined at {}:{line}:{column}", first.file);
    Diagnostic {
        fault: Fault::Field(error),
        file: second.file.to_owned(),
        position: second.position,
        hint: Some("remove one of the two, or rename it".to_owned()),
        notes: Vec::new(),
    }
}
