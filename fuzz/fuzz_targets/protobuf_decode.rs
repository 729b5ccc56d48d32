//! Any protobuf body of any built-in kind is decoded or refused. A decoded object is no longer than a JSON body may be and
//! not nested deeper, so the JSON reader takes what it is written as.

#![no_main]

use codec::{ExpectedKind, RequestBodyFormat};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const KINDS: [(&str, &str); 12] = [
    ("", "Binding"),
    ("", "Node"),
    ("", "Pod"),
    ("", "Service"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apps", "ControllerRevision"),
    ("apps", "Deployment"),
    ("authentication.k8s.io", "TokenRequest"),
    ("authorization.k8s.io", "SubjectAccessReview"),
    ("batch", "CronJob"),
    ("policy", "Eviction"),
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, object)) = bytes.split_first() else { return };
    let (group, kind) = KINDS[usize::from(choice) % KINDS.len()];
    let expected = ExpectedKind { group, version: "v1", kind, is_custom_resource: false };
    // The envelope without a kind, around the bytes of the object.
    let mut body = b"k8s\0\x12".to_vec();
    let mut len = object.len();
    while len >= 0x80 {
        body.push((len as u8) | 0x80);
        len >>= 7;
    }
    body.push(len as u8);
    body.extend(object);
    let _ = codec::decode_object(object, RequestBodyFormat::Protobuf, &expected);
    let _ = codec::decode_delete_options(&body, RequestBodyFormat::Protobuf);
    if let Ok(decoded) = codec::decode_object(&body, RequestBodyFormat::Protobuf, &expected) {
        let written = Value::Object(decoded.object_tree.clone()).to_string();
        let read = codec::parse_json(written.as_bytes()).expect("JSON of limited depth");
        assert_eq!(read.value, Value::Object(decoded.object_tree));
    }
});
