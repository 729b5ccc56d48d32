//! Any flow schema or priority level is accepted or refused. An accepted one can be decoded, and setting its
//! defaults again changes nothing.

#![no_main]

use codec::{ExpectedKind, RequestBodyFormat};
use libfuzzer_sys::fuzz_target;
use manifests::flow_control::{
    GROUP, Kind, decode_flow_schema, decode_priority_level, set_flow_control_defaults,
    validate_flow_schema, validate_priority_level,
};

const KINDS: [Kind; 2] = [Kind::FlowSchema, Kind::PriorityLevelConfiguration];
const FORMATS: [RequestBodyFormat; 3] =
    [RequestBodyFormat::Json, RequestBodyFormat::Yaml, RequestBodyFormat::Protobuf];

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, body)) = bytes.split_first() else { return };
    let kind = KINDS[usize::from(choice) % KINDS.len()];
    let format = FORMATS[usize::from(choice >> 4) % FORMATS.len()];
    let expected =
        ExpectedKind { group: GROUP, version: "v1", kind: kind.name(), is_custom_resource: false };
    let Ok(decoded) = codec::decode_object(body, format, &expected) else { return };
    let mut tree = decoded.object_tree;
    set_flow_control_defaults(kind, &mut tree);
    let mut again = tree.clone();
    set_flow_control_defaults(kind, &mut again);
    assert_eq!(tree, again);
    let (errors, is_decoded) = match kind {
        Kind::FlowSchema => (validate_flow_schema(&tree), decode_flow_schema(&tree).is_ok()),
        Kind::PriorityLevelConfiguration => {
            (validate_priority_level(&tree), decode_priority_level(&tree).is_ok())
        }
    };
    assert!(is_decoded || !errors.is_empty(), "{tree:?}");
});
