//! Negotiation of response formats from `Accept` headers.

use super::*;

const KUBECTL_TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,\
                             application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const KUBECTL_DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;\
     as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;\
     as=APIGroupDiscoveryList,application/json";

fn format_request(accept: &str) -> FormatRequest<'_> {
    FormatRequest { accept_header: accept, pretty_parameter: None, user_agent: "t/1" }
}

fn answer(
    accept: &str,
    endpoint: EndpointKind,
) -> Result<(ResponseBodyFormat, Option<ObjectTransform>), NegotiationError> {
    negotiate_response_format(&format_request(accept), endpoint)
        .map(|answer| (answer.response_body_format, answer.object_transform))
}

#[test]
fn response_formats_by_accept_header() {
    for accept in [
        "",
        "*/*",
        "application/*",
        "application/json",
        "application/vnd.kubernetes.protobuf,application/json",
        "application/vnd.kubernetes.protobuf, */*",
        "application/json;stream=watch",
        "application/json;odd=1",
        "application/json;as=Nothing;g=meta.k8s.io;v=v1,application/json",
        "application/yaml;q=0.5,application/json",
    ] {
        assert_eq!(
            answer(accept, EndpointKind::Object),
            Ok((ResponseBodyFormat::Json, None)),
            "{accept}"
        );
    }
    for accept in ["application/yaml", "application/yaml,application/json", "*/*, application/yaml"]
    {
        assert_eq!(
            answer(accept, EndpointKind::Object),
            Ok((ResponseBodyFormat::Yaml, None)),
            "{accept}"
        );
    }
}

#[test]
fn unservable_formats_are_not_acceptable() {
    for accept in [
        "application/xml",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Nothing;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v7",
        "application/json;as=Table;g=other;v=v1",
        "application/json;as=Table",
        "application/json;stream=other",
        "application/json;sv=v1",
        "application/json;q=0",
        "nonsense",
    ] {
        let message =
            "only the following media types are accepted: application/json, application/yaml";
        let error = answer(accept, EndpointKind::Object).unwrap_err();
        assert_eq!(error.to_string(), message, "{accept}");
    }
}

#[test]
fn watches_are_json() {
    assert_eq!(
        answer("application/json;stream=watch", EndpointKind::Watch),
        Ok((ResponseBodyFormat::Json, None))
    );
    assert_eq!(answer("*/*", EndpointKind::Watch), Ok((ResponseBodyFormat::Json, None)));
    let message = "only the following media types are accepted: application/json;stream=watch";
    let error = answer("application/yaml", EndpointKind::Watch).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn table_and_partial_metadata() {
    use MetaVersion::{V1, V1Beta1};
    let table = Some(ObjectTransform::Table(V1));
    for endpoint in [EndpointKind::Object, EndpointKind::List, EndpointKind::Watch] {
        assert_eq!(answer(KUBECTL_TABLE, endpoint), Ok((ResponseBodyFormat::Json, table)));
    }
    assert_eq!(answer(KUBECTL_TABLE, EndpointKind::Plain), Ok((ResponseBodyFormat::Json, None)));
    assert_eq!(
        answer("application/yaml;as=Table;g=meta.k8s.io;v=v1beta1", EndpointKind::List),
        Ok((ResponseBodyFormat::Yaml, Some(ObjectTransform::Table(V1Beta1))))
    );
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    assert_eq!(
        answer(one, EndpointKind::Object),
        Ok((ResponseBodyFormat::Json, Some(ObjectTransform::PartialObjectMetadata(V1))))
    );
    assert_eq!(
        answer(list, EndpointKind::List),
        Ok((ResponseBodyFormat::Json, Some(ObjectTransform::PartialObjectMetadataList(V1))))
    );
    let start = "you requested PartialObjectMetadata, but the requested object is a list (";
    assert!(answer(one, EndpointKind::List).unwrap_err().to_string().starts_with(start));
    let start = "you requested PartialObjectMetadataList, but the requested object is not a list (";
    assert!(answer(list, EndpointKind::Object).unwrap_err().to_string().starts_with(start));
}

#[test]
fn indentation_depends_on_query_accept_header_and_user_agent() {
    let pretty = |query, user_agent, accept| {
        let format_request =
            FormatRequest { accept_header: accept, pretty_parameter: query, user_agent };
        negotiate_response_format(&format_request, EndpointKind::Object).unwrap().is_pretty
    };
    assert!(pretty(Some("true"), "t/1", ""));
    assert!(pretty(Some("1"), "t/1", "*/*"));
    assert!(!pretty(Some("yes"), "curl/8", ""));
    assert!(!pretty(Some("false"), "curl/8", ""));
    assert!(pretty(Some(""), "curl/8", ""));
    assert!(pretty(None, "Wget/1", "") && pretty(None, "Mozilla/5.0 (X)", ""));
    assert!(!pretty(None, "kubectl/v1.32", ""));
    assert!(pretty(None, "t/1", "application/json;pretty=1"));
    assert!(!pretty(None, "t/1", "application/json;pretty=0"));
}

#[test]
fn discovery_is_aggregated_when_asked() {
    let answer = |accept| negotiate_discovery_format(&format_request(accept));
    let version = |accept| match answer(accept) {
        Ok(DiscoveryFormat::Aggregated { version, .. }) => Some(version),
        _ => None,
    };
    assert_eq!(version(KUBECTL_DISCOVERY), Some(DiscoveryVersion::V2));
    let profile =
        "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io;profile=nopeer";
    assert_eq!(version(profile), Some(DiscoveryVersion::V2));
    let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    assert_eq!(version(beta), Some(DiscoveryVersion::V2Beta1));
    let plain = ResponseEncoding {
        response_body_format: ResponseBodyFormat::Json,
        is_pretty: false,
        object_transform: None,
    };
    for accept in [
        "",
        "application/json",
        "application/json,application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
    ] {
        assert_eq!(answer(accept), Ok(DiscoveryFormat::Plain(plain)), "{accept}");
    }
    let future = "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList";
    assert!(matches!(answer(future), Err(NegotiationError::NotAcceptable { .. })));
}
