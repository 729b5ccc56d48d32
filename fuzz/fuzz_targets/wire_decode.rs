//! Any body in any format is decoded or refused. A decoded object can be stored, shown and read again. Any
//! `Accept` header is negotiated or refused.

#![no_main]

use codec::{EndpointKind, ExpectedKind, FormatRequest, IncludeTypeMeta, RequestBodyFormat};
use libfuzzer_sys::fuzz_target;

const KINDS: [(&str, &str, bool); 4] = [
    ("", "ConfigMap", false),
    ("rbac.authorization.k8s.io", "Role", false),
    ("apps", "Deployment", false),
    ("example.com", "Widget", true),
];
const FORMATS: [RequestBodyFormat; 3] =
    [RequestBodyFormat::Json, RequestBodyFormat::Yaml, RequestBodyFormat::Protobuf];

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, body)) = bytes.split_first() else { return };
    let (group, kind, is_custom) = KINDS[usize::from(choice) % KINDS.len()];
    let format = FORMATS[usize::from(choice >> 4) % FORMATS.len()];
    let expected = ExpectedKind { group, version: "v1", kind, is_custom_resource: is_custom };
    let _ = codec::decode_delete_options(body, format);
    if let Ok(decoded) = codec::decode_object(body, format, &expected) {
        let mut tree = decoded.object_tree;
        if api_object::normalize_metadata(&mut tree).is_ok() {
            let stored = codec::encode_stored_object(&tree);
            let mut shown = Vec::new();
            codec::splice_resource_version(&stored, 7, IncludeTypeMeta::Keep, &mut shown)
                .expect("stored");
            let shown: api_object::Tree = serde_json::from_slice(&shown).expect("JSON");
            assert_eq!(
                api_object::string_member(api_object::metadata(&shown), "resourceVersion"),
                "7"
            );
            assert_eq!(codec::encode_stored_object(&shown), stored);
        }
    }
    if let Ok(accept) = std::str::from_utf8(body) {
        let asked = FormatRequest { accept_header: accept, pretty_parameter: None, user_agent: "" };
        for endpoint in
            [EndpointKind::Object, EndpointKind::List, EndpointKind::Watch, EndpointKind::Plain]
        {
            let _ = codec::negotiate_response_format(&asked, endpoint);
        }
        let _ = codec::negotiate_discovery_format(&asked);
        let _ = codec::accepts_gzip(accept);
        let _ = api_object::ContinueToken::decode_token(accept);
    }
});
