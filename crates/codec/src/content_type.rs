//! The format of request bodies.

use api_object::Status;

use crate::decode::ExpectedKind;
use crate::field_tables;

/// The language of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

/// The kind of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' own, which knows how lists of built-in kinds are merged.
    StrategicMerge,
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

impl PatchType {
    /// The types offered for built-in kinds. The first two are also offered for others.
    const ALL: [Self; 3] = [Self::Json, Self::Merge, Self::StrategicMerge];

    /// Its media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::StrategicMerge => "application/strategic-merge-patch+json",
        }
    }
}

/// The form of the body of a create or an update. Without the header it is JSON; protobuf is read
/// for the kinds that have a table of fields.
///
/// # Errors
///
/// 415 for any other form.
pub fn body_format(
    content_type: Option<&str>,
    expected: &ExpectedKind<'_>,
) -> Result<BodyFormat, Status> {
    let has_field_table = !expected.is_custom
        && field_tables::has_field_table(expected.group, expected.version, expected.kind);
    parse_body_format(content_type, has_field_table)
}

/// The form of a body that holds options, such as that of a delete.
///
/// # Errors
///
/// 415 for a form that is not known here.
pub fn options_format(content_type: Option<&str>) -> Result<BodyFormat, Status> {
    parse_body_format(content_type, true)
}

fn parse_body_format(
    content_type: Option<&str>,
    reads_protobuf: bool,
) -> Result<BodyFormat, Status> {
    let content_type = content_type.unwrap_or_default();
    match media_type_essence(content_type).as_str() {
        "" if content_type.is_empty() => Ok(BodyFormat::Json),
        JSON => Ok(BodyFormat::Json),
        YAML => Ok(BodyFormat::Yaml),
        PROTOBUF if reads_protobuf => Ok(BodyFormat::Protobuf),
        _ if reads_protobuf => Err(Status::unsupported_media_type(&[JSON, YAML, PROTOBUF])),
        _ => Err(Status::unsupported_media_type(&[JSON, YAML])),
    }
}

/// The form of the body of a patch. There is no default, since the forms mean different things.
///
/// # Errors
///
/// 415 for a form that is not offered for this kind.
pub fn patch_type(content_type: Option<&str>, is_custom: bool) -> Result<PatchType, Status> {
    let essence = media_type_essence(content_type.unwrap_or_default());
    let offered = PatchType::ALL
        .into_iter()
        .filter(|offered| !(is_custom && *offered == PatchType::StrategicMerge));
    let found = offered.clone().find(|offered| offered.media_type() == essence);
    found.ok_or_else(|| {
        let names: Vec<_> = offered.map(PatchType::media_type).collect();
        Status::unsupported_media_type(&names)
    })
}

/// Request bodies are never decompressed.
///
/// # Errors
/// 415 for a body with a content encoding.
pub fn check_content_encoding(content_encoding: Option<&str>) -> Result<(), Status> {
    match content_encoding.map(str::trim) {
        None | Some("") => Ok(()),
        Some(encoding) if encoding.eq_ignore_ascii_case("identity") => Ok(()),
        Some(_) => Err(Status::unsupported_media_type(&[JSON, YAML, PROTOBUF])),
    }
}

/// The media type without parameters, in lower case.
fn media_type_essence(content_type: &str) -> String {
    let (essence, _) = content_type.split_once(';').unwrap_or((content_type, ""));
    essence.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG_MAP: ExpectedKind<'_> =
        ExpectedKind { group: "", version: "v1", kind: "ConfigMap", is_custom: false };
    const POD: ExpectedKind<'_> = ExpectedKind { kind: "Pod", ..CONFIG_MAP };
    const WIDGET: ExpectedKind<'_> =
        ExpectedKind { group: "example.com", version: "v1", kind: "Widget", is_custom: true };

    #[test]
    fn bodies() {
        let format =
            |content_type, expected| body_format(content_type, expected).map_err(|s| s.code);
        for json in
            [None, Some(""), Some("application/json; charset=utf-8"), Some("Application/JSON")]
        {
            assert_eq!(format(json, &WIDGET), Ok(BodyFormat::Json));
        }
        assert_eq!(format(Some(YAML), &CONFIG_MAP), Ok(BodyFormat::Yaml));
        assert_eq!(format(Some(PROTOBUF), &CONFIG_MAP), Ok(BodyFormat::Protobuf));
        assert_eq!(format(Some(PROTOBUF), &POD), Err(415));
        assert_eq!(format(Some(PROTOBUF), &WIDGET), Err(415));
        assert_eq!(format(Some("application/cbor"), &CONFIG_MAP), Err(415));
        assert_eq!(format(Some(";"), &CONFIG_MAP), Err(415));
        assert_eq!(options_format(Some(PROTOBUF)), Ok(BodyFormat::Protobuf));
    }

    #[test]
    fn a_refusal_lists_what_is_read() {
        let status = body_format(Some("text/plain"), &CONFIG_MAP).unwrap_err();
        assert_eq!(status.reason, "UnsupportedMediaType");
        assert_eq!(
            status.message,
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf"
        );
        let status = body_format(Some(PROTOBUF), &WIDGET).unwrap_err();
        assert!(status.message.ends_with(": application/json, application/yaml"));
    }

    #[test]
    fn patches() {
        let smp = Some("application/strategic-merge-patch+json; charset=utf-8");
        assert_eq!(patch_type(smp, false), Ok(PatchType::StrategicMerge));
        assert_eq!(patch_type(Some("application/json-patch+json"), true), Ok(PatchType::Json));
        assert_eq!(patch_type(Some("application/merge-patch+json"), true), Ok(PatchType::Merge));
        let status = patch_type(smp, true).unwrap_err();
        let list = ": application/json-patch+json, application/merge-patch+json";
        assert!(status.message.ends_with(list));
        for other in [None, Some("application/json"), Some("application/apply-patch+yaml")] {
            assert_eq!(patch_type(other, false).unwrap_err().code, 415);
        }
    }

    #[test]
    fn bodies_are_not_decompressed() {
        assert_eq!(check_content_encoding(None), Ok(()));
        assert_eq!(check_content_encoding(Some("Identity")), Ok(()));
        assert_eq!(check_content_encoding(Some("gzip")).unwrap_err().code, 415);
    }
}
