//! Decoding of request bodies into objects.

use api_object::{GroupKind, GroupVersion, Status, Tree};
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use crate::conform_to_kind::WrongTypeError;
use crate::content_type::BodyFormat;
use crate::field_shape::Message;
use crate::strict_finding::{Finding, Findings};
use crate::{conform_to_kind, field_tables, json, protobuf};

/// The kind that an endpoint accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedKind<'e> {
    /// The group; empty for the core group.
    pub group: &'e str,
    /// The version.
    pub version: &'e str,
    /// The kind.
    pub kind: &'e str,
    /// Whether the kind is defined by a CustomResourceDefinition; then its objects must say what
    /// they are.
    pub is_custom: bool,
}

/// A decoded body.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedObject {
    /// The object, with `apiVersion` and `kind`.
    pub tree: Tree,
    /// Unknown and duplicate fields, which strict validation refuses.
    pub findings: Vec<Finding>,
}

/// Upper bound on the bytes of a body in a message.
const EXCERPT_BYTES_MAX: usize = 30;

/// How many bytes of a body without kind a message shows.
const BODY_SHOWN_BYTES_MAX: usize = 4096;

impl ExpectedKind<'_> {
    fn group_version(&self) -> GroupVersion {
        GroupVersion::new(self.group, self.version)
    }

    fn message(&self) -> Option<&'static Message> {
        match self.is_custom {
            true => None,
            false => field_tables::fields_of_kind(self.group, self.version, self.kind),
        }
    }
}

/// Decodes the object of a create or an update.
///
/// 1. The bytes must have the declared format.
/// 2. Kind and version must be those of the endpoint; built-in kinds may omit them.
/// 3. Values must have the types of the field table. Unknown and duplicate fields are findings.
///
/// # Errors
/// 400 if one of these checks fails, 415 for protobuf of a kind without a field table, 422 for
/// another custom kind.
pub fn decode_object(
    bytes: &[u8],
    format: BodyFormat,
    expected: &ExpectedKind<'_>,
) -> Result<DecodedObject, Status> {
    let message = expected.message();
    let (mut tree, duplicates) = match (format, message) {
        (BodyFormat::Json | BodyFormat::Yaml, _) => parse_body(bytes, format, expected.kind)?,
        (BodyFormat::Protobuf, Some(message)) => {
            (read_protobuf(bytes, message, expected.kind)?, Vec::new())
        }
        (BodyFormat::Protobuf, None) => {
            let accepted = ["application/json", "application/yaml"];
            return Err(Status::unsupported_media_type(&accepted));
        }
    };
    check_type_meta(&mut tree, bytes, expected)?;
    let mut findings = Findings::default();
    if format != BodyFormat::Protobuf {
        conform_to_kind::conform_to_kind(&mut tree, message, &mut findings).map_err(|why| {
            let ExpectedKind { kind, version, .. } = expected;
            cannot_be_handled_error(kind, version, kind, &why.to_string())
        })?;
    }
    duplicates.into_iter().for_each(|finding| findings.push(finding));
    Ok(DecodedObject { tree, findings: findings.into_vec() })
}

/// Conforms a patched object to its kind, as [`decode_object`] does, and returns the findings.
///
/// # Errors
/// A value does not have the type of its field.
pub fn conform_object(
    tree: &mut Tree,
    expected: &ExpectedKind<'_>,
) -> Result<Vec<Finding>, WrongTypeError> {
    let mut findings = Findings::default();
    conform_to_kind::conform_to_kind(tree, expected.message(), &mut findings)?;
    Ok(findings.into_vec())
}

/// Reads the options of a delete. Clients send them with the version of the resource or with any
/// other, so it is not looked at.
///
/// # Errors
///
/// 400 if the bytes are not of their form, or not options of this kind.
pub fn decode_options(bytes: &[u8], format: BodyFormat) -> Result<Tree, Status> {
    const KIND: &str = "DeleteOptions";
    let mut tree = match format {
        BodyFormat::Json | BodyFormat::Yaml => parse_body(bytes, format, KIND)?.0,
        BodyFormat::Protobuf => read_protobuf(bytes, &field_tables::DELETE_OPTIONS, KIND)?,
    };
    let (api_version, kind) = read_type_meta(&mut tree, bytes, KIND)?;
    let version = GroupVersion::parse(&api_version).map_or(String::new(), |found| found.version);
    if !kind.is_empty() && kind != KIND {
        let why = format!("no conversion to {KIND} exists");
        return Err(cannot_be_handled_error(&kind, &version, KIND, &why));
    }
    if format != BodyFormat::Protobuf {
        conform_to_kind::conform_to_kind(
            &mut tree,
            Some(&field_tables::DELETE_OPTIONS),
            &mut Findings::default(),
        )
        .map_err(|why| cannot_be_handled_error(KIND, &version, KIND, &why.to_string()))?;
    }
    Ok(tree)
}

fn parse_body(
    bytes: &[u8],
    format: BodyFormat,
    kind: &str,
) -> Result<(Tree, Vec<Finding>), Status> {
    let (value, findings) = match format {
        BodyFormat::Yaml => {
            let read = document::yaml_to_json(bytes).map_err(|why| {
                unrecognized_error(kind, &format!("error converting YAML to JSON: {why}"), bytes)
            })?;
            let findings = read.duplicate_keys.into_iter().map(Finding::DuplicateField).collect();
            (read.value, findings)
        }
        BodyFormat::Json | BodyFormat::Protobuf => {
            let read = json::parse_json(bytes)
                .map_err(|why| not_json_error(kind, &why.to_string(), bytes))?;
            (read.value, read.findings)
        }
    };
    match value {
        Value::Object(tree) => Ok((tree, findings)),
        _ => Err(not_json_error(kind, "json: cannot unmarshal anything but an object", bytes)),
    }
}

fn read_protobuf(bytes: &[u8], message: &'static Message, kind: &str) -> Result<Tree, Status> {
    protobuf::decode(bytes, message)
        .map_err(|why| unrecognized_error(kind, &why.to_string(), bytes))
}

/// Checks kind and version against those of the endpoint, and adds them where they may be absent.
fn check_type_meta(
    tree: &mut Tree,
    bytes: &[u8],
    expected: &ExpectedKind<'_>,
) -> Result<(), Status> {
    let (mut api_version, mut kind) = read_type_meta(tree, bytes, expected.kind)?;
    let wanted = expected.group_version().to_string();
    if expected.is_custom && kind.is_empty() {
        let shown = bytes.get(..BODY_SHOWN_BYTES_MAX).unwrap_or(bytes);
        let why = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(shown));
        return Err(unrecognized_error(expected.kind, &why, bytes));
    }
    if !expected.is_custom {
        for (found, default) in [(&mut api_version, wanted.as_str()), (&mut kind, expected.kind)] {
            if found.is_empty() {
                default.clone_into(found);
            }
        }
    }
    if kind != expected.kind && !expected.is_custom {
        let version =
            GroupVersion::parse(&api_version).map_or(String::new(), |found| found.version);
        let why = format!("no conversion from {kind} to {} exists", expected.kind);
        return Err(cannot_be_handled_error(&kind, &version, expected.kind, &why));
    }
    if api_version != wanted {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version \
             ({wanted})"
        )));
    }
    if kind != expected.kind {
        let mut errors = FieldErrors::new();
        let must = format!("must be {}", expected.kind);
        errors.push(FieldPath::root("kind").invalid(kind.as_str(), &must));
        let group_kind = GroupKind::new(expected.group, expected.kind);
        return Err(Status::invalid(&group_kind, api_object::name(tree), &errors));
    }
    tree.insert("apiVersion".to_owned(), api_version.into());
    tree.insert("kind".to_owned(), kind.into());
    Ok(())
}

/// Reads `apiVersion` and `kind` of an object; missing ones are empty. Removes nulls.
fn read_type_meta(
    tree: &mut Tree,
    bytes: &[u8],
    expected: &str,
) -> Result<(String, String), Status> {
    let mut member = |name: &str| match tree.get(name) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Null) => {
            tree.shift_remove(name);
            Ok(String::new())
        }
        Some(_) => {
            let why = format!("json: cannot unmarshal field {name} into a string");
            Err(not_json_error(expected, &why, bytes))
        }
    };
    Ok((member("apiVersion")?, member("kind")?))
}

fn not_json_error(kind: &str, why: &str, bytes: &[u8]) -> Status {
    unrecognized_error(kind, &format!("couldn't get version/kind; json parse error: {why}"), bytes)
}

fn unrecognized_error(kind: &str, why: &str, bytes: &[u8]) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        body_excerpt(bytes)
    ))
}

fn cannot_be_handled_error(found: &str, version: &str, expected: &str, why: &str) -> Status {
    let version = go_compat::quote(version);
    Status::bad_request(format!(
        "{found} in version {version} cannot be handled as a {expected}: {why}"
    ))
}

/// The first bytes of a body: as text if it looks like JSON, else in hexadecimal.
fn body_excerpt(bytes: &[u8]) -> String {
    let (shown, more) = match bytes.split_at_checked(EXCERPT_BYTES_MAX) {
        Some((shown, rest)) if !rest.is_empty() => (shown, " ..."),
        _ => (bytes, ""),
    };
    match shown {
        [] => "<empty>".to_owned(),
        [b'{', ..] => format!("{}{more}", String::from_utf8_lossy(shown)),
        _ => shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + more,
    }
}

#[cfg(test)]
mod tests;
