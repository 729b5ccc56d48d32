//! The format of request bodies.

use crate::decode::ExpectedKind;
use crate::field_tables;

/// The format of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestBodyFormat {
    /// The media type `application/json`.
    Json,
    /// The media type `application/yaml`.
    Yaml,
    /// The media type `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

/// The type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// JSON Patch (RFC 6902).
    Json,
    /// JSON merge patch (RFC 7386).
    Merge,
    /// Strategic merge patch, which merges the lists of built-in kinds by key.
    StrategicMerge,
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The server does not read bodies of this media type here, or with this content encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the body of the request was in an unknown format - accepted media types include: {}",
    accepted_media_types.join(", ")
)]
pub struct UnsupportedMediaType {
    /// The media types that the server reads here.
    pub accepted_media_types: &'static [&'static str],
}

impl UnsupportedMediaType {
    /// The error of an endpoint that reads protobuf.
    const WITH_PROTOBUF: Self = Self { accepted_media_types: &[JSON, YAML, PROTOBUF] };
    /// The error of an endpoint that does not read protobuf.
    pub(crate) const WITHOUT_PROTOBUF: Self = Self { accepted_media_types: &[JSON, YAML] };
    /// The error for a patch of a built-in kind.
    const PATCH: Self = Self {
        accepted_media_types: &[
            PatchType::Json.media_type(),
            PatchType::Merge.media_type(),
            PatchType::StrategicMerge.media_type(),
        ],
    };
    /// The error for a patch of a custom kind.
    const CUSTOM_PATCH: Self = Self {
        accepted_media_types: &[PatchType::Json.media_type(), PatchType::Merge.media_type()],
    };
}

impl PatchType {
    const ALL: [Self; 3] = [Self::Json, Self::Merge, Self::StrategicMerge];

    /// The media type of a patch of this type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::StrategicMerge => "application/strategic-merge-patch+json",
        }
    }
}

/// Determines the format of the body of a create or an update from its `Content-Type`. Without the
/// header it is JSON. Protobuf is read for kinds that have a field table.
///
/// # Errors
/// The media type is not supported for this kind.
pub fn request_body_format(
    content_type: Option<&str>,
    expected: &ExpectedKind<'_>,
) -> Result<RequestBodyFormat, UnsupportedMediaType> {
    let has_field_table = !expected.is_custom_resource
        && field_tables::has_field_table(expected.group, expected.version, expected.kind);
    parse_request_body_format(content_type, has_field_table)
}

/// Determines the format of a body that holds options, such as that of a delete.
///
/// # Errors
/// The media type is not supported.
pub fn delete_options_format(
    content_type: Option<&str>,
) -> Result<RequestBodyFormat, UnsupportedMediaType> {
    parse_request_body_format(content_type, true)
}

fn parse_request_body_format(
    content_type: Option<&str>,
    reads_protobuf: bool,
) -> Result<RequestBodyFormat, UnsupportedMediaType> {
    let content_type = content_type.unwrap_or_default();
    let error = match reads_protobuf {
        true => UnsupportedMediaType::WITH_PROTOBUF,
        false => UnsupportedMediaType::WITHOUT_PROTOBUF,
    };
    if !has_valid_media_parameters(content_type) {
        return Err(error);
    }
    match media_type_essence(content_type).as_str() {
        "" if content_type.is_empty() => Ok(RequestBodyFormat::Json),
        JSON => Ok(RequestBodyFormat::Json),
        YAML => Ok(RequestBodyFormat::Yaml),
        PROTOBUF if reads_protobuf => Ok(RequestBodyFormat::Protobuf),
        _ => Err(error),
    }
}

/// Determines the type of a patch from its `Content-Type`. There is no default, because the same body
/// means different things in different patch types.
///
/// # Errors
/// The patch type is not supported for this kind.
pub fn patch_type_of_content_type(
    content_type: Option<&str>,
    is_custom: bool,
) -> Result<PatchType, UnsupportedMediaType> {
    let essence = media_type_essence(content_type.unwrap_or_default());
    let error = match is_custom {
        true => UnsupportedMediaType::CUSTOM_PATCH,
        false => UnsupportedMediaType::PATCH,
    };
    let found = PatchType::ALL.into_iter().find(|offered| offered.media_type() == essence);
    found.filter(|found| error.accepted_media_types.contains(&found.media_type())).ok_or(error)
}

/// Checks that a body has no content encoding, because request bodies are never decompressed.
///
/// # Errors
/// The body has a content encoding.
pub fn check_content_encoding(content_encoding: Option<&str>) -> Result<(), UnsupportedMediaType> {
    match content_encoding.map(str::trim) {
        None | Some("") => Ok(()),
        Some(encoding) if encoding.eq_ignore_ascii_case("identity") => Ok(()),
        Some(_) => Err(UnsupportedMediaType::WITH_PROTOBUF),
    }
}

/// Reports whether each parameter of a media type is a name and a value. A semicolon at the end is ignored.
fn has_valid_media_parameters(content_type: &str) -> bool {
    let Some((_, mut rest)) = content_type.split_once(';') else { return true };
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return true;
        }
        let Some((name, after)) = rest.split_once('=') else { return false };
        let is_token = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b';')
        };
        if !is_token(name.trim_end()) {
            return false;
        }
        let after = after.trim_start();
        let after_value = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').map(|(_, after)| after),
            None => {
                let end = after.find(';').unwrap_or(after.len());
                after
                    .split_at_checked(end)
                    .filter(|(value, _)| is_token(value.trim_end()))
                    .map(|(_, after)| after)
            }
        };
        let Some(after_value) = after_value.map(str::trim_start) else { return false };
        rest = match after_value.strip_prefix(';') {
            Some(next) => next,
            None if after_value.is_empty() => return true,
            None => return false,
        };
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
        ExpectedKind { group: "", version: "v1", kind: "ConfigMap", is_custom_resource: false };
    const POD: ExpectedKind<'_> = ExpectedKind { kind: "Pod", ..CONFIG_MAP };
    const WIDGET: ExpectedKind<'_> = ExpectedKind {
        group: "example.com",
        version: "v1",
        kind: "Widget",
        is_custom_resource: true,
    };

    #[test]
    fn body_formats_by_content_type() {
        let format = request_body_format;
        let with_protobuf = Err(UnsupportedMediaType::WITH_PROTOBUF);
        let without_protobuf = Err(UnsupportedMediaType::WITHOUT_PROTOBUF);
        for json in
            [None, Some(""), Some("application/json; charset=utf-8"), Some("Application/JSON")]
        {
            assert_eq!(format(json, &WIDGET), Ok(RequestBodyFormat::Json));
        }
        assert_eq!(format(Some(YAML), &CONFIG_MAP), Ok(RequestBodyFormat::Yaml));
        assert_eq!(format(Some(PROTOBUF), &CONFIG_MAP), Ok(RequestBodyFormat::Protobuf));
        assert_eq!(format(Some(PROTOBUF), &POD), Ok(RequestBodyFormat::Protobuf));
        assert_eq!(format(Some(PROTOBUF), &WIDGET), without_protobuf);
        assert_eq!(format(Some("application/cbor"), &CONFIG_MAP), with_protobuf);
        assert_eq!(format(Some("text/plain"), &CONFIG_MAP), with_protobuf);
        assert_eq!(format(Some(";"), &CONFIG_MAP), with_protobuf);
        for json in
            ["application/json;", "application/json; a=b", "application/json;a=\"b;c\" ; d = e"]
        {
            assert_eq!(format(Some(json), &CONFIG_MAP), Ok(RequestBodyFormat::Json), "{json}");
        }
        for other in ["application/json;x", "application/json;=x", "application/json;a=\"b"] {
            assert_eq!(format(Some(other), &CONFIG_MAP), with_protobuf, "{other}");
        }
        assert_eq!(delete_options_format(Some(PROTOBUF)), Ok(RequestBodyFormat::Protobuf));
    }

    #[test]
    fn patch_types_by_content_type() {
        let smp = Some("application/strategic-merge-patch+json; charset=utf-8");
        assert_eq!(patch_type_of_content_type(smp, false), Ok(PatchType::StrategicMerge));
        assert_eq!(
            patch_type_of_content_type(Some("application/json-patch+json"), true),
            Ok(PatchType::Json)
        );
        assert_eq!(
            patch_type_of_content_type(Some("application/merge-patch+json"), true),
            Ok(PatchType::Merge)
        );
        assert_eq!(patch_type_of_content_type(smp, true), Err(UnsupportedMediaType::CUSTOM_PATCH));
        for other in [None, Some("application/json"), Some("application/apply-patch+yaml")] {
            assert_eq!(patch_type_of_content_type(other, false), Err(UnsupportedMediaType::PATCH));
        }
    }

    #[test]
    fn content_encodings_are_refused() {
        assert_eq!(check_content_encoding(None), Ok(()));
        assert_eq!(check_content_encoding(Some("Identity")), Ok(()));
        let error = Err(UnsupportedMediaType::WITH_PROTOBUF);
        assert_eq!(check_content_encoding(Some("gzip")), error);
    }
}
