//! The `Status` of bodies that cannot be decoded and of responses that cannot be encoded as requested.

use api_object::Status;
use codec::{DecodeError, NegotiationError, StrictDecodingError, UnsupportedMediaType};

use super::IntoStatus;

impl IntoStatus for UnsupportedMediaType {
    fn into_status(self) -> Status {
        Status::unsupported_media_type(self.to_string())
    }
}

impl IntoStatus for DecodeError {
    fn into_status(self) -> Status {
        match self {
            Self::UnsupportedMediaType(error) => error.into_status(),
            Self::TooLong => Status::too_large(codec::JSON_BYTES_MAX),
            Self::Unrecognized { .. }
            | Self::CannotBeHandled { .. }
            | Self::ApiVersionMismatch { .. } => Status::bad_request(self.to_string()),
            Self::KindMismatch { expected, name, errors } => {
                Status::invalid_object(&expected, &name, &errors)
            }
        }
    }
}

impl IntoStatus for StrictDecodingError {
    fn into_status(self) -> Status {
        Status::bad_request(self.to_string())
    }
}

impl IntoStatus for NegotiationError {
    fn into_status(self) -> Status {
        Status::not_acceptable(self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use codec::{EndpointKind, ExpectedKind, FormatRequest, RequestBodyFormat, StrictFinding};

    use super::*;

    const CONFIG_MAP: ExpectedKind<'_> =
        ExpectedKind { group: "", version: "v1", kind: "ConfigMap", is_custom_resource: false };
    const WIDGET: ExpectedKind<'_> = ExpectedKind {
        group: "example.com",
        version: "v1",
        kind: "Widget",
        is_custom_resource: true,
    };

    fn decode(body: &str, format: RequestBodyFormat, expected: &ExpectedKind<'_>) -> (u16, String) {
        let error = codec::decode_object(body.as_bytes(), format, expected).unwrap_err();
        let status = error.into_status();
        (status.code, status.message)
    }

    #[test]
    fn bodies_that_can_not_be_decoded() {
        for (body, expected, code, message) in [
            (
                "",
                &CONFIG_MAP,
                400,
                "the object provided is unrecognized (must be of type ConfigMap): couldn't get \
                 version/kind; json parse error: unexpected end of JSON input \
                 (<empty>)",
            ),
            (
                r#"{"kind":"Widget","apiVersion":"example.com/v2"}"#,
                &WIDGET,
                400,
                "the API version in the data (example.com/v2) does not match the expected API \
                 version (example.com/v1)",
            ),
            (
                r#"{"kind":"Gadget","apiVersion":"example.com/v1","metadata":{"name":"a"}}"#,
                &WIDGET,
                422,
                "Widget.example.com \"a\" is invalid: kind: Invalid value: \"Gadget\": must be \
                 Widget",
            ),
            (
                r#"{"kind":"Secret","apiVersion":"v1"}"#,
                &CONFIG_MAP,
                400,
                "Secret in version \"v1\" cannot be handled as a ConfigMap: no conversion from \
                 Secret to ConfigMap exists",
            ),
        ] {
            let found = decode(body, RequestBodyFormat::Json, expected);
            assert_eq!(found, (code, message.to_owned()), "{body}");
        }
    }

    #[test]
    fn unsupported_media_types_list_the_accepted_ones() {
        let (code, message) = decode("k8s", RequestBodyFormat::Protobuf, &WIDGET);
        let want = "the body of the request was in an unknown format - accepted media types \
                    include: application/json, application/yaml";
        assert_eq!((code, message.as_str()), (415, want));
        let error = codec::request_body_format(Some("text/plain"), &CONFIG_MAP).unwrap_err();
        let status = error.into_status();
        assert_eq!((status.code, status.reason.as_ref()), (415, "UnsupportedMediaType"));
        assert!(status.message.ends_with(", application/vnd.kubernetes.protobuf"));
    }

    /// Protobuf has numbers in place of the names of fields, so a short body can be a long object.
    #[test]
    fn protobuf_bodies_have_the_limit_of_json_bodies() {
        assert_eq!(codec::JSON_BYTES_MAX, crate::request::BODY_BYTES_MAX);
        let status = DecodeError::TooLong.into_status();
        assert_eq!(status.code, 413);
        assert_eq!(status.message, "Request entity too large: limit is 3145728");
    }

    #[test]
    fn findings_of_strict_decoding() {
        let findings = [StrictFinding::UnknownField("foo".into())];
        let error = codec::check_no_strict_findings("ConfigMap", "v1", &findings).unwrap_err();
        let status = error.into_status();
        let want = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding \
                    error: unknown field \"foo\"";
        assert_eq!((status.code, status.message.as_str()), (400, want));
    }

    #[test]
    fn responses_that_can_not_be_encoded_as_requested() {
        for (accept, endpoint, message) in [
            (
                "text/plain",
                EndpointKind::Object,
                "only the following media types are accepted: application/json, application/yaml",
            ),
            (
                "text/plain",
                EndpointKind::Watch,
                "only the following media types are accepted: application/json;stream=watch",
            ),
            (
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                EndpointKind::List,
                "you requested PartialObjectMetadata, but the requested object is a list (ask for \
                 PartialObjectMetadataList)",
            ),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                EndpointKind::Object,
                "you requested PartialObjectMetadataList, but the requested object is not a list \
                 (ask for PartialObjectMetadata)",
            ),
        ] {
            let request =
                FormatRequest { accept_header: accept, pretty_parameter: None, user_agent: "" };
            let status =
                codec::negotiate_response_format(&request, endpoint).unwrap_err().into_status();
            assert_eq!((status.code, status.reason.as_ref()), (406, "NotAcceptable"));
            assert_eq!((status.message.as_str(), &status.details), (message, &None));
        }
    }
}
