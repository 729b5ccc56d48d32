//! Validates the versions of a CustomResourceDefinition.

use std::collections::BTreeSet;

use field_errors::{BadValue, FieldErrors, FieldPath, dns1035_label_faults};
use serde_json::Value;

use crate::json_members::{bool_member, list_member, string_member, value_at_path};

const COLUMN_TYPES: &str = "must be one of boolean,date,integer,number,string";
const COLUMN_FORMATS: &str = "must be one of byte,date,date-time,double,float,int32,int64,password";
/// The maximum number of fields that lists of one version can be filtered by.
const SELECTABLE_FIELDS_MAX: usize = 8;
/// The maximum length of a warning in bytes.
const WARNING_BYTES_MAX: usize = 256;

pub(super) fn validate_definition_versions(spec: &Value, errors: &mut FieldErrors) {
    let root = FieldPath::root("spec");
    let path = root.child("versions");
    let versions = list_member(spec, "versions");
    for (idx, version) in versions.iter().enumerate() {
        validate_definition_version(version, &path.index(idx), errors);
    }
    let all = BadValue::Json(value_at_path(spec, &["versions"]).to_string());
    let names: BTreeSet<&str> = versions.iter().map(|it| string_member(it, "name")).collect();
    if names.len() < versions.len() {
        errors.push(path.invalid(all.clone(), "must contain unique version names"));
    }
    if versions.iter().filter(|it| bool_member(*it, "storage")).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(path.invalid(all, detail));
    }
}

fn validate_definition_version(version: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let name = string_member(version, "name");
    let faults = dns1035_label_faults(name);
    if !faults.is_empty() {
        errors.push(path.child("name").invalid(name, &faults.join(",")));
    }
    validate_deprecation_warning(version, path, errors);
    validate_definition_version_schema(version, path, errors);
    validate_scale_subresource(version, path, errors);
    let columns = path.child("additionalPrinterColumns");
    for (idx, column) in list_member(version, "additionalPrinterColumns").iter().enumerate() {
        validate_printer_column(column, &columns.index(idx), errors);
    }
    validate_selectable_fields(version, path, errors);
}

fn validate_deprecation_warning(version: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let path = path.child("deprecationWarning");
    let mut invalid = |detail: &str| errors.push(path.invalid(warning, detail));
    if !bool_member(version, "deprecated") {
        return invalid("can only be set for deprecated versions");
    }
    if warning.len() > WARNING_BYTES_MAX {
        invalid(&format!("must be <= {WARNING_BYTES_MAX} characters long"));
    }
    if warning.is_empty() {
        invalid("must not be an empty string");
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        invalid(&format!(
            "must only contain printable UTF-8 characters; non-printable character found at index \
             {at}"
        ));
    }
}

fn validate_definition_version_schema(
    version: &Value,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let path = path.child("schema");
    let path = path.child("openAPIV3Schema");
    let schema = value_at_path(version, &["schema", "openAPIV3Schema"]);
    if schema.is_null() {
        return errors.push(path.required(""));
    }
    match string_member(schema, "type") {
        "object" => {}
        "" => errors.push(path.child("type").required("must not be empty at the root")),
        other => {
            errors.push(path.child("type").invalid(other, "must be object at the root"));
        }
    }
    if bool_member(schema, "nullable") {
        errors.push(path.child("nullable").forbidden("nullable cannot be true at the root"));
    }
}

fn validate_scale_subresource(version: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let scale = value_at_path(version, &["subresources", "scale"]);
    if scale.is_null() {
        return;
    }
    let path = path.child("subresources");
    for (member, beginnings, detail) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        (
            "labelSelectorPath",
            &[".spec.", ".status."],
            "should be a json path under either .spec or .status",
        ),
    ] {
        let path = path.child("scale");
        let path = path.child(member);
        let own = string_member(scale, member);
        if own.is_empty() {
            if member != "labelSelectorPath" {
                errors.push(path.required(""));
            }
        } else if !own.starts_with('.') {
            errors.push(path.invalid(own, "must be a simple json path starting with ."));
        } else if !beginnings.iter().any(|&beginning| own.starts_with(beginning)) {
            errors.push(path.invalid(own, detail));
        }
    }
}

fn validate_printer_column(column: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if string_member(column, "name").is_empty() {
        errors.push(path.child("name").required(""));
    }
    match string_member(column, "type") {
        "" => errors.push(path.child("type").required(COLUMN_TYPES)),
        "integer" | "number" | "string" | "boolean" | "date" => {}
        other => errors.push(path.child("type").invalid(other, COLUMN_TYPES)),
    }
    match string_member(column, "format") {
        "" | "int32" | "int64" | "float" | "double" | "byte" | "date" | "date-time"
        | "password" => {}
        other => errors.push(path.child("format").invalid(other, COLUMN_FORMATS)),
    }
    let json_path = string_member(column, "jsonPath");
    if json_path.is_empty() {
        errors.push(path.child("JSONPath").required(""));
    } else if !json_path.starts_with('.') {
        let detail = "must be a simple json path starting with .";
        errors.push(path.child("JSONPath").invalid(json_path, detail));
    }
}

fn validate_selectable_fields(version: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let path = path.child("selectableFields");
    let schema = value_at_path(version, &["schema", "openAPIV3Schema"]);
    let fields = list_member(version, "selectableFields");
    let mut unique = BTreeSet::new();
    for (idx, field) in fields.iter().enumerate() {
        let path = path.index(idx);
        let path = path.child("jsonPath");
        let json_path = string_member(field, "jsonPath");
        if json_path.is_empty() {
            errors.push(path.required(""));
            continue;
        }
        if json_path == ".metadata" || json_path.starts_with(".metadata.") {
            errors.push(path.invalid(json_path, "must not point to fields in metadata"));
            continue;
        }
        match find_property_schema(schema, json_path).map(|it| string_member(it, "type")) {
            None => {
                let detail = "is an invalid path: does not refer to a valid field";
                errors.push(path.invalid(json_path, detail));
            }
            Some("string" | "boolean" | "integer") => {}
            Some(_) => {
                let detail = "must point to a field of type string, boolean or integer. Enum \
                              string fields and strings with formats are allowed.";
                errors.push(path.invalid(json_path, detail));
            }
        }
        if !unique.insert(json_path) {
            errors.push(path.duplicate(json_path));
        }
    }
    if unique.len() > SELECTABLE_FIELDS_MAX {
        errors.push(path.too_many(unique.len(), SELECTABLE_FIELDS_MAX));
    }
}

/// Finds the schema of the property at a JSON path of names.
fn find_property_schema<'s>(schema: &'s Value, json_path: &str) -> Option<&'s Value> {
    let mut names = json_path.strip_prefix('.')?.split('.');
    names.try_fold(schema, |schema, name| schema.get("properties")?.get(name))
}
