//! Finds objects that occur twice.

use std::collections::HashMap;

use document::{Diagnostic, Fault, SourcePosition, Warning, WarningCode};
use field_errors::FieldPath;

use super::{ERRORS_MAX, ManifestObject, UnstructuredObject, WARNINGS_MAX};

/// The objects that occur a second time, in one file or in several.
#[derive(Debug, Default, PartialEq)]
pub struct DuplicateObjects {
    /// The second object differs from the first, so the reader cannot know which of the two should count. At most
    /// [`ERRORS_MAX`].
    pub errors: Vec<Diagnostic>,
    /// The second object is the same, so it does not matter. At most [`WARNINGS_MAX`].
    pub warnings: Vec<Warning>,
}

/// The identity and the position of an object.
struct ObjectOccurrence<'o, T> {
    kind: &'o str,
    namespace: &'o str,
    name: &'o str,
    file_name: &'o str,
    position: SourcePosition,
    object_content: &'o T,
}

/// Finds each object that occurs a second time.
pub fn find_duplicate_objects(objects: &[ManifestObject]) -> DuplicateObjects {
    find_duplicates(objects.iter().map(
        |ManifestObject { authorizer_object: object, file_name: file, position, .. }| {
            ObjectOccurrence {
                kind: object.kind_name(),
                namespace: object.namespace(),
                name: object.name(),
                file_name: file,
                position: *position,
                object_content: object,
            }
        },
    ))
}

/// Does the same as [`find_duplicate_objects`] for objects that the reader has kept as JSON.
pub fn find_duplicate_unstructured_objects(objects: &[&UnstructuredObject]) -> DuplicateObjects {
    find_duplicates(objects.iter().map(|kept_objects| ObjectOccurrence {
        kind: kept_objects.kind_name(),
        namespace: kept_objects.namespace(),
        name: kept_objects.name(),
        file_name: &kept_objects.file_name,
        position: kept_objects.position(),
        object_content: &kept_objects.value,
    }))
}

fn find_duplicates<'o, T: PartialEq + 'o>(
    occurrences: impl Iterator<Item = ObjectOccurrence<'o, T>>,
) -> DuplicateObjects {
    let mut first = HashMap::new();
    let mut found = DuplicateObjects::default();
    for seen in occurrences.filter(|seen| !seen.name.is_empty()) {
        let key = (seen.kind, seen.namespace, seen.name);
        match first.get(&key) {
            None => {
                first.insert(key, seen);
            }
            Some(first) if first.object_content == seen.object_content => {
                if found.warnings.len() < WARNINGS_MAX {
                    found.warnings.push(duplicate_object_warning(first, &seen));
                }
            }
            Some(first) if found.errors.len() < ERRORS_MAX => {
                found.errors.push(duplicate_object_fault(first, &seen));
            }
            Some(_) => {}
        }
    }
    found
}

fn duplicate_object_fault<T>(
    first: &ObjectOccurrence<'_, T>,
    second: &ObjectOccurrence<'_, T>,
) -> Diagnostic {
    let metadata = FieldPath::root("metadata");
    let mut error = metadata.child("name").duplicate(second.name);
    error.detail = format!(
        "this {} is first defined at {}",
        describe_kind_and_namespace(second),
        format_position(first)
    );
    Diagnostic {
        fault: Fault::Field(error),
        file_name: second.file_name.to_owned(),
        position: second.position,
        hint: Some("remove one of the two, or rename it".to_owned()),
        expression_issues: Vec::new(),
    }
}

fn duplicate_object_warning<T>(
    first: &ObjectOccurrence<'_, T>,
    second: &ObjectOccurrence<'_, T>,
) -> Warning {
    let (described, name, at) =
        (describe_kind_and_namespace(second), second.name, format_position(first));
    Warning {
        code: WarningCode::DuplicateObject,
        field: "metadata.name".to_owned(),
        message: format!(
            "the {described} `{name}` is already defined at {at}, with the same content"
        ),
        file_name: second.file_name.to_owned(),
        position: second.position,
        hint: Some("remove one of the two".to_owned()),
    }
}

/// The kind and the namespace of an object.
fn describe_kind_and_namespace<T>(occurrence: &ObjectOccurrence<'_, T>) -> String {
    match (occurrence.kind, occurrence.namespace) {
        (kind, "") => kind.to_owned(),
        (kind, namespace) => format!("{kind} in namespace `{namespace}`"),
    }
}

fn format_position<T>(occurrence: &ObjectOccurrence<'_, T>) -> String {
    let SourcePosition { line, column, .. } = occurrence.position;
    format!("{}:{line}:{column}", occurrence.file_name)
}
