//! The same object twice.

use std::collections::HashMap;

use field::FieldPath;

use super::{ERRORS_MAX, Found};
use crate::diagnostic::{Diagnostic, Fault};

/// A fault for each object that occurs a second time, in one file or in several: which of the two
/// should count? There are at most [`ERRORS_MAX`].
pub fn duplicates(objects: &[Found]) -> Vec<Diagnostic> {
    let mut first = HashMap::new();
    let mut faults = Vec::new();
    for found in objects.iter().filter(|found| !found.object.name().is_empty()) {
        let object = &found.object;
        let key = (object.kind_name(), object.namespace(), object.name());
        match first.get(&key) {
            None => {
                first.insert(key, found);
            }
            Some(first) if faults.len() < ERRORS_MAX => faults.push(fault(first, found)),
            Some(_) => {}
        }
    }
    faults
}

fn fault(first: &Found, second: &Found) -> Diagnostic {
    let metadata = FieldPath::root("metadata");
    let mut error = metadata.child("name").duplicate(second.object.name());
    let (line, column) = (first.place.line, first.place.column);
    let kind = second.object.kind_name();
    let scope = match second.object.namespace() {
        "" => String::new(),
        namespace => format!(" in namespace `{namespace}`"),
    };
    error.detail = format!("this {kind}{scope} is first defined at {}:{line}:{column}", first.file);
    Diagnostic {
        fault: Fault::Field(error),
        file: second.file.to_string(),
        place: second.place,
        hint: Some("remove one of the two, or rename it".to_owned()),
        notes: Vec::new(),
    }
}
