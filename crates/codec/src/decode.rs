//! Decoding of request bodies into objects.

use api_object::{GroupKind, GroupVersion, Tree};
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use crate::conform_to_kind::WrongTypeError;
use crate::content_type::{RequestBodyFormat, UnsupportedMediaType};
use crate::field_types::Message;
use crate::protobuf::{ProtobufEnvelope, ProtobufError};
use crate::strict_finding::{StrictFinding, StrictFindings};
use crate::{conform_to_kind, field_tables, json_parser};

/// The kind that an endpoint accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedKind<'e> {
    /// The group; empty for the core group.
    pub group: &'e str,
    /// The version of the group, such as `v1`.
    pub version: &'e str,
    /// The kind, such as `ConfigMap`.
    pub kind: &'e str,
    /// Whether the kind is defined by a CustomResourceDefinition; then its objects must have `apiVersion`
    /// and `kind`.
    pub is_custom_resource: bool,
}

/// An object that was decoded from a request body.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedObject {
    /// The object, with `apiVersion` and `kind`.
    pub object_tree: Tree,
    /// Unknown and duplicate fields, which strict field validation rejects.
    pub strict_findings: Vec<StrictFinding>,
}

/// The body is not an object of the expected kind. The client is at fault, and the texts are those of
/// Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Protobuf is not read for this kind.
    #[error(transparent)]
    UnsupportedMediaType(#[from] UnsupportedMediaType),
    /// The bytes do not have the declared format, or do not name their kind.
    #[error(
        "the object provided is unrecognized (must be of type {expected_kind}): {why} ({excerpt})"
    )]
    Unrecognized {
        /// The kind of the endpoint.
        expected_kind: String,
        /// The first fault of the body.
        why: String,
        /// The first bytes of the body.
        excerpt: String,
    },
    /// The object is longer in JSON than a JSON body may be.
    #[error("{}", ProtobufError::TooLong)]
    TooLong,
    /// The object has another kind than the endpoint, or a value of the wrong type.
    #[error(
        "{found_kind} in version {} cannot be handled as a {expected_kind}: {why}",
        go_compat::quote(found_version)
    )]
    CannotBeHandled {
        /// The kind in the body.
        found_kind: String,
        /// The version in the body.
        found_version: String,
        /// The kind of the endpoint.
        expected_kind: String,
        /// The first fault of the object.
        why: String,
    },
    /// The object has another `apiVersion` than the endpoint.
    #[error(
        "the API version in the data ({found}) does not match the expected API version ({expected})"
    )]
    ApiVersionMismatch {
        /// The `apiVersion` in the body.
        found: String,
        /// The `apiVersion` of the endpoint.
        expected: String,
    },
    /// The object of a custom kind names another kind than the endpoint.
    #[error("{expected} {} is invalid: {errors}", go_compat::quote(name))]
    KindMismatch {
        /// The kind of the endpoint.
        expected: GroupKind,
        /// The name of the object.
        name: String,
        /// The error of the field `kind`.
        errors: FieldErrors,
    },
}

/// Upper bound on the bytes of a body in a message.
const EXCERPT_BYTES_MAX: usize = 30;

/// Upper bound on the bytes that a message shows of a body without `kind`.
const BODY_SHOWN_BYTES_MAX: usize = 4096;

impl ExpectedKind<'_> {
    fn group_version(&self) -> GroupVersion {
        GroupVersion::new(self.group, self.version)
    }

    /// The table for protobuf bodies.
    fn field_table(&self) -> Option<&'static Message> {
        match self.is_custom_resource {
            true => None,
            false => field_tables::fields_of_kind(self.group, self.version, self.kind),
        }
    }

    /// The table that JSON bodies follow.
    fn json_field_table(&self) -> Option<&'static Message> {
        match self.is_custom_resource {
            true => None,
            false => field_tables::json_fields_of_kind(self.group, self.version, self.kind),
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
/// One of these checks fails.
pub fn decode_object(
    bytes: &[u8],
    format: RequestBodyFormat,
    expected: &ExpectedKind<'_>,
) -> Result<DecodedObject, DecodeError> {
    if format == RequestBodyFormat::Protobuf {
        return decode_protobuf(bytes, expected);
    }
    let (mut tree, duplicates) = parse_body(bytes, format, expected.kind)?;
    check_type_meta(&mut tree, bytes, expected)?;
    let mut findings = StrictFindings::default();
    conform_to_kind::conform_to_kind(&mut tree, expected.json_field_table(), &mut findings)
        .map_err(|why| {
            let ExpectedKind { kind, version, .. } = expected;
            cannot_be_handled_error(kind, version, kind, &why.to_string())
        })?;
    duplicates.into_iter().for_each(|finding| findings.push(finding));
    Ok(DecodedObject { object_tree: tree, strict_findings: findings.into_vec() })
}

/// Decodes an object in protobuf. Kind and version are checked first, because they say which fields the numbers mean.
/// Unknown numbers are no findings, as in Kubernetes.
fn decode_protobuf(
    bytes: &[u8],
    expected: &ExpectedKind<'_>,
) -> Result<DecodedObject, DecodeError> {
    let message = expected.field_table().ok_or(UnsupportedMediaType::WITHOUT_PROTOBUF)?;
    let kind = expected.kind;
    let mut envelope =
        ProtobufEnvelope::read(bytes).map_err(|why| protobuf_error(kind, why, bytes))?;
    let mut tree = std::mem::take(&mut envelope.type_meta);
    check_type_meta(&mut tree, bytes, expected)?;
    let read = envelope.read_object(message, &mut tree);
    read.map_err(|why| protobuf_error(kind, why, bytes))?;
    Ok(DecodedObject { object_tree: tree, strict_findings: Vec::new() })
}

/// Conforms a patched object to its kind, as [`decode_object`] does, and returns the findings.
///
/// # Errors
/// A value does not have the type of its field.
pub fn conform_object(
    tree: &mut Tree,
    expected: &ExpectedKind<'_>,
) -> Result<Vec<StrictFinding>, WrongTypeError> {
    let mut findings = StrictFindings::default();
    conform_to_kind::conform_to_kind(tree, expected.json_field_table(), &mut findings)?;
    Ok(findings.into_vec())
}

/// Decodes the options of a delete. Clients send them with the version of the resource or with any
/// other version, so the version is not checked.
///
/// # Errors
/// The bytes do not have the declared format, or are not `DeleteOptions`.
pub fn decode_delete_options(bytes: &[u8], format: RequestBodyFormat) -> Result<Tree, DecodeError> {
    const KIND: &str = "DeleteOptions";
    let protobuf_error = |why| protobuf_error(KIND, why, bytes);
    let (mut tree, envelope) = match format {
        RequestBodyFormat::Json | RequestBodyFormat::Yaml => {
            (parse_body(bytes, format, KIND)?.0, None)
        }
        RequestBodyFormat::Protobuf => {
            let mut envelope = ProtobufEnvelope::read(bytes).map_err(protobuf_error)?;
            (std::mem::take(&mut envelope.type_meta), Some(envelope))
        }
    };
    let (api_version, kind) = read_type_meta(&mut tree, bytes, KIND)?;
    let version =
        GroupVersion::parse_api_version(&api_version).map_or(String::new(), |found| found.version);
    if !kind.is_empty() && kind != KIND {
        let why = format!("no conversion to {KIND} exists");
        return Err(cannot_be_handled_error(&kind, &version, KIND, &why));
    }
    let message = field_tables::delete_options_fields();
    match envelope {
        Some(envelope) => envelope.read_object(message, &mut tree).map_err(protobuf_error)?,
        None => {
            let mut ignored = StrictFindings::default();
            conform_to_kind::conform_to_kind(&mut tree, Some(message), &mut ignored)
                .map_err(|why| cannot_be_handled_error(KIND, &version, KIND, &why.to_string()))?;
        }
    }
    Ok(tree)
}

fn parse_body(
    bytes: &[u8],
    format: RequestBodyFormat,
    kind: &str,
) -> Result<(Tree, Vec<StrictFinding>), DecodeError> {
    let (value, findings) = match format {
        RequestBodyFormat::Yaml => {
            let read = document::yaml_to_json(bytes).map_err(|why| {
                unrecognized_error(kind, &format!("error converting YAML to JSON: {why}"), bytes)
            })?;
            let findings =
                read.duplicate_keys.into_iter().map(StrictFinding::DuplicateField).collect();
            (read.value, findings)
        }
        RequestBodyFormat::Json | RequestBodyFormat::Protobuf => {
            let read = json_parser::parse_json(bytes)
                .map_err(|why| not_json_error(kind, &why.to_string(), bytes))?;
            (read.value, read.duplicate_fields)
        }
    };
    match value {
        Value::Object(tree) => Ok((tree, findings)),
        _ => Err(not_json_error(kind, "json: cannot unmarshal anything but an object", bytes)),
    }
}

fn protobuf_error(kind: &str, why: ProtobufError, bytes: &[u8]) -> DecodeError {
    match why {
        ProtobufError::TooLong => DecodeError::TooLong,
        why => unrecognized_error(kind, &why.to_string(), bytes),
    }
}

/// Checks kind and version against those of the endpoint, and adds them where they may be absent.
fn check_type_meta(
    tree: &mut Tree,
    bytes: &[u8],
    expected: &ExpectedKind<'_>,
) -> Result<(), DecodeError> {
    let (mut api_version, mut kind) = read_type_meta(tree, bytes, expected.kind)?;
    let wanted = expected.group_version().to_string();
    if expected.is_custom_resource && kind.is_empty() {
        let shown = bytes.get(..BODY_SHOWN_BYTES_MAX).unwrap_or(bytes);
        let why = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(shown));
        return Err(unrecognized_error(expected.kind, &why, bytes));
    }
    if !expected.is_custom_resource {
        for (found, default) in [(&mut api_version, wanted.as_str()), (&mut kind, expected.kind)] {
            if found.is_empty() {
                default.clone_into(found);
            }
        }
    }
    if kind != expected.kind && !expected.is_custom_resource {
        let version = GroupVersion::parse_api_version(&api_version)
            .map_or(String::new(), |found| found.version);
        let why = format!("no conversion from {kind} to {} exists", expected.kind);
        return Err(cannot_be_handled_error(&kind, &version, expected.kind, &why));
    }
    if api_version != wanted {
        return Err(DecodeError::ApiVersionMismatch { found: api_version, expected: wanted });
    }
    if kind != expected.kind {
        let mut errors = FieldErrors::new();
        let must = format!("must be {}", expected.kind);
        errors.push(FieldPath::root("kind").invalid(kind.as_str(), &must));
        return Err(DecodeError::KindMismatch {
            expected: GroupKind::new(expected.group, expected.kind),
            name: api_object::name(tree).to_owned(),
            errors,
        });
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
) -> Result<(String, String), DecodeError> {
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

fn not_json_error(kind: &str, why: &str, bytes: &[u8]) -> DecodeError {
    unrecognized_error(kind, &format!("couldn't get version/kind; json parse error: {why}"), bytes)
}

fn unrecognized_error(kind: &str, why: &str, bytes: &[u8]) -> DecodeError {
    DecodeError::Unrecognized {
        expected_kind: kind.to_owned(),
        why: why.to_owned(),
        excerpt: body_excerpt(bytes),
    }
}

fn cannot_be_handled_error(found: &str, version: &str, expected: &str, why: &str) -> DecodeError {
    DecodeError::CannotBeHandled {
        found_kind: found.to_owned(),
        found_version: version.to_owned(),
        expected_kind: expected.to_owned(),
        why: why.to_owned(),
    }
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
