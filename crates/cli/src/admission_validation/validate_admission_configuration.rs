//! Validates one admission configuration.

use admission::{ConfigurationKind, ConfigurationWarning};
use api_object::Tree;
use document::Diagnostic;
use field_errors::{FieldErrorKind, FieldErrors, dns1123_subdomain_faults, mask_trailing_dash};
use manifests::UnstructuredObject;
use serde_json::Value;

/// Maximum number of reported type errors per configuration.
const TYPE_ERRORS_MAX: usize = 100;

/// The rules that apply to a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewOrStored {
    /// The rules for a new object, unless its `metadata.uid` shows that a server stored it.
    New,
    /// The rules for a stored object.
    Stored,
}

/// A configuration without errors.
#[derive(Debug)]
pub(crate) struct ValidAdmissionConfiguration {
    /// The object as written in the manifest.
    pub(crate) manifest_object: UnstructuredObject,
    pub(crate) kind: ConfigurationKind,
    /// The object with defaults, as a server stores it.
    pub(crate) defaulted_tree: Tree,
    /// Warnings about the configuration.
    pub(crate) warnings: Vec<ConfigurationWarning>,
}

/// Validates a configuration as a server does with strict field validation:
///
/// 1. It reports unknown fields and values of a wrong type.
/// 2. Without such errors it applies the rules of the kind.
///
/// # Errors
/// All errors, in the order of the file.
pub(crate) fn validate_admission_configuration(
    object: UnstructuredObject,
    rules: NewOrStored,
) -> Result<ValidAdmissionConfiguration, Vec<Diagnostic>> {
    let Some(kind) = ConfigurationKind::from_type_meta(object.api_version(), object.kind_name())
    else {
        let message = "not an admission configuration".to_owned();
        return Err(vec![object.wrong_type_diagnostic("kind", message)]);
    };
    let mut faults = object.check_metadata();
    for path in admission::unknown_configuration_fields(kind, &object.value) {
        let (parent, _) = path.rsplit_once('.').unwrap_or_default();
        faults.push(
            object.unknown_field_diagnostic(
                &path,
                &admission::known_configuration_fields(kind, parent),
            ),
        );
    }
    let tree = match apply_defaults(kind, &object) {
        Ok(tree) => tree,
        Err(more) => {
            faults.extend(more);
            Tree::new()
        }
    };
    if faults.is_empty() {
        // A stored object is validated as an update of itself.
        let is_stored = rules == NewOrStored::Stored || !api_object::uid(&tree).is_empty();
        let old = is_stored.then_some(&tree);
        let errors = validation_errors(kind, &tree, old);
        if errors.is_empty() {
            let mut warnings = admission::configuration_warnings(kind, &tree, old);
            // The server that will store the object may also refuse loopback addresses.
            let policy = https_client::AddressPolicy::default();
            let refusal =
                |address| policy.check_address(address).err().map(|refused| refused.to_string());
            warnings.extend(admission::refused_address_warnings(kind, &tree, &refusal));
            return Ok(ValidAdmissionConfiguration {
                manifest_object: object,
                kind,
                defaulted_tree: tree,
                warnings,
            });
        }
        faults = errors.iter().map(|error| diagnostic_with_hint(&object, error.clone())).collect();
    }
    faults.sort_by_key(|fault| fault.position);
    Err(faults)
}

/// Applies defaults to a configuration, or reports each value of a wrong type.
fn apply_defaults(
    kind: ConfigurationKind,
    object: &UnstructuredObject,
) -> Result<Tree, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let mut written = Value::Object(object.value.clone());
    while faults.len() < TYPE_ERRORS_MAX {
        let mut tree = match &written {
            Value::Object(tree) => tree.clone(),
            _ => Tree::new(),
        };
        let shaped = api_object::normalize_metadata(&mut tree);
        let Err(wrong) = shaped.and_then(|()| admission::prepare_configuration(kind, &mut tree))
        else {
            // The kinds have cluster scope; the server ignores a namespace.
            api_object::metadata_mut(&mut tree).shift_remove("namespace");
            generate_name(&mut tree);
            return if faults.is_empty() { Ok(tree) } else { Err(faults) };
        };
        faults.push(object.wrong_type_diagnostic(&wrong.path, wrong.to_string()));
        // Remove the reported value, so that the next iteration finds the next error.
        match written.pointer_mut(&to_json_pointer(&wrong.path)) {
            Some(value) => *value = Value::Null,
            None => break,
        }
    }
    Err(faults)
}

/// Completes `generateName` as a server does, so that the rules for names apply to the result. A server chooses the last
/// letters at random.
fn generate_name(tree: &mut Tree) {
    let metadata = api_object::metadata_mut(tree);
    let prefix = api_object::string_member(metadata, "generateName");
    if api_object::string_member(metadata, "name").is_empty() && !prefix.is_empty() {
        let name = api_object::generate_name(prefix, Default::default());
        metadata.insert("name".to_owned(), name.into());
    }
}

/// Converts a path such as `webhooks[0].name` to a JSON Pointer.
fn to_json_pointer(path: &str) -> String {
    format!("/{}", path.replace(['.', '['], "/").replace(']', ""))
}

fn validation_errors(kind: ConfigurationKind, tree: &Tree, old: Option<&Tree>) -> FieldErrors {
    let mut errors =
        api_object::validate_metadata(tree, false, |name, is_prefix| match is_prefix {
            true => dns1123_subdomain_faults(&mask_trailing_dash(name)),
            false => dns1123_subdomain_faults(name),
        });
    errors.extend(match old {
        None => admission::validate_configuration_create(kind, tree),
        Some(old) => admission::validate_configuration_update(kind, tree, old),
    });
    errors
}

fn diagnostic_with_hint(
    object: &UnstructuredObject,
    error: field_errors::FieldError,
) -> Diagnostic {
    let is_registration =
        error.kind == FieldErrorKind::Forbidden && error.path.ends_with(".failurePolicy");
    let mut fault = object.field_diagnostic(error);
    if is_registration {
        let hint = "the API refuses to create an entry with `Fail`: create it with `Ignore`, then update \
                    it to `Fail`";
        fault.hint = Some(hint.to_owned());
    }
    fault
}
