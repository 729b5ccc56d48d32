//! Bodies that clients send, and random trees that a test encoder writes.

mod random_objects;
mod recorded_bodies;
mod test_encoder;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use test_encoder::{encode, put_bytes};

fn decode(body: &[u8], message: &'static Message) -> Result<Tree, ProtobufError> {
    let envelope = ProtobufEnvelope::read(body)?;
    let mut tree = envelope.type_meta.clone();
    envelope.read_object(message, &mut tree)?;
    Ok(tree)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn read(group: &str, kind: &str, bytes: &[u8]) -> Result<Value, ProtobufError> {
    decode(bytes, field_tables::fields_of_kind(group, "v1", kind).unwrap()).map(Value::Object)
}

#[test]
fn a_config_map_of_kubectl_is_decoded() {
    // A ConfigMap as kubectl sends it.
    let bytes = hex(
        "6b387300 0a0f 0a027631 1209436f6e6669674d6170 121b 0a11 0a0161 1200 1a00 2200 2a00 3200 \
         3800 4200 1206 0a016b 120176 1a00 2200",
    );
    let want = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"},
    });
    assert_eq!(read("", "ConfigMap", &bytes), Ok(want));
}

/// Random objects of every kind, encoded by Kubernetes' own types (`k8s.io/api` v0.37.2) as protobuf
/// and as JSON.
#[test]
fn protobuf_and_json_of_kubernetes_types_agree() {
    let mut n_cases = 0;
    for line in include_str!("../../testdata/protobuf.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| case[name].as_str().unwrap();
        let (group, kind) = (text("group"), text("kind"));
        let message = field_tables::json_fields_of_kind(group, "v1", kind).unwrap();
        let decoded = decode(&hex(text("protobuf")), message).unwrap();
        let mut json = case["json"].as_object().unwrap().clone();
        let mut findings = crate::strict_finding::StrictFindings::default();
        crate::conform_to_kind::conform_to_kind(&mut json, Some(message), &mut findings).unwrap();
        assert_eq!(findings.into_vec(), [], "{line}");
        assert_eq!(without_empty(decoded.into()), without_empty(json.into()), "{line}");
        n_cases += 1;
    }
    assert!(n_cases > 50);
}

/// Removes values that Go's JSON encoder omits for some fields and not for others: empty texts, zeros and empty
/// objects.
fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, without_empty(value)))
            .filter(|(_, value)| {
                let is_empty = value == &json!({}) || value == "" || value == 0 || value == false;
                !is_empty && !value.is_null()
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        scalar => scalar,
    }
}

#[test]
fn zeros_are_dropped_unless_the_field_keeps_them() {
    let role = encode(
        "v1",
        "Role",
        field_tables::fields_of_kind("rbac.authorization.k8s.io", "v1", "Role").unwrap(),
        &json!({
            "metadata": {"name": "", "generation": 0, "deletionGracePeriodSeconds": 0},
            "rules": [{"apiGroups": [""], "verbs": ["get"]}],
        }),
    );
    let want = json!({
        "apiVersion": "v1", "kind": "Role",
        "metadata": {"deletionGracePeriodSeconds": 0},
        "rules": [{"apiGroups": [""], "verbs": ["get"]}],
    });
    assert_eq!(read("rbac.authorization.k8s.io", "Role", &role), Ok(want));
    let secret = field_tables::fields_of_kind("", "v1", "Secret").unwrap();
    let bytes = encode(
        "v1",
        "Secret",
        secret,
        &json!({
            "metadata": {}, "data": {"a": ""}, "type": "", "immutable": false,
        }),
    );
    let want = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {}, "data": {"a": ""}, "immutable": false,
    });
    assert_eq!(read("", "Secret", &bytes), Ok(want));
}

/// A policy that is set to an empty text is invalid, which is not the same as an absent policy. Kubernetes writes the name
/// to JSON in any case.
#[test]
fn empty_strings_of_pointer_fields_are_kept() {
    let message = field_tables::fields_of_kind(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
    );
    let webhook = json!({
        "name": "", "clientConfig": {"service": {"port": 0}, "url": ""}, "failurePolicy": "",
        "matchPolicy": "", "reinvocationPolicy": "", "rules": [{"scope": ""}], "sideEffects": "",
        "timeoutSeconds": 0,
    });
    let object = json!({"webhooks": [webhook]});
    let mut read = decode(&encode("v1", "M", message.unwrap(), &object), message.unwrap()).unwrap();
    assert_eq!(read.remove("webhooks").unwrap(), object["webhooks"]);
}

/// The numbers are those of 1.8, written out by hand.
#[test]
fn v1alpha1_hooks_have_the_field_numbers_of_kubernetes_1_8() {
    let message = field_tables::fields_of_kind(
        "admissionregistration.k8s.io",
        "v1alpha1",
        "ExternalAdmissionHookConfiguration",
    );
    let rule = b"\x0a\x01*\x12\x09\x0a\x01g\x12\x01v\x1a\x01r";
    let client = b"\x0a\x06\x0a\x01n\x12\x01s\x12\x01c\x1a\x02/p";
    let mut hook = b"\x0a\x05a.b.c".to_vec();
    put_bytes(&mut hook, 2, client);
    put_bytes(&mut hook, 3, rule);
    put_bytes(&mut hook, 4, b"Ignore");
    let (mut raw, mut body) = (Vec::new(), MAGIC.to_vec());
    put_bytes(&mut raw, 2, &hook);
    put_bytes(&mut body, 2, &raw);
    let want = json!({"externalAdmissionHooks": [{
        "name": "a.b.c",
        "clientConfig": {
            "service": {"namespace": "n", "name": "s"}, "caBundle": "Yw==", "urlPath": "/p",
        },
        "rules": [
            {"operations": ["*"], "apiGroups": ["g"], "apiVersions": ["v"], "resources": ["r"]},
        ],
        "failurePolicy": "Ignore",
    }]});
    assert_eq!(decode(&body, message.unwrap()).map(Value::Object), Ok(want));
}

#[test]
fn wrapped_values_are_unwrapped() {
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "creationTimestamp": "2026-11-15T18:02:38Z",
            "managedFields": [{"fieldsV1": {"f:spec": {}}}],
        },
        "spec": {"ports": [{"targetPort": 0}, {"targetPort": 80}, {"targetPort": "http"}]},
    });
    let message = field_tables::fields_of_kind("", "v1", "Service").unwrap();
    assert_eq!(read("", "Service", &encode("v1", "Service", message, &service)), Ok(service));
    let lease = json!({
        "apiVersion": "v1", "kind": "Lease",
        "spec": {"renewTime": "2026-11-15T18:02:38.000007Z", "leaseTransitions": 0},
    });
    let message = field_tables::fields_of_kind("coordination.k8s.io", "v1", "Lease").unwrap();
    let read = read("coordination.k8s.io", "Lease", &encode("v1", "Lease", message, &lease));
    assert_eq!(read, Ok(lease));
}

#[test]
fn malformed_bodies_are_refused() {
    for (bytes, want) in [
        (&b""[..], ProtobufError::NoData),
        (b"{}", ProtobufError::Magic),
        (b"k8s\0", ProtobufError::NoBody),
        (b"k8s\0\xff", ProtobufError::Truncated),
        (b"k8s\0\x0a\x7f", ProtobufError::Truncated),
        (b"k8s\0\x12\x02\x08\x01", ProtobufError::WrongWireType("metadata")),
        (b"k8s\0\x12\x05\x0a\x03\x0a\x01\xff", ProtobufError::Utf8("name")),
        (b"k8s\0\x08\x01", ProtobufError::WrongWireType("Unknown")),
    ] {
        assert_eq!(read("", "ConfigMap", bytes), Err(want), "{bytes:?}");
    }
}

#[test]
fn fields_of_unknown_numbers_are_skipped() {
    let bytes = b"k8s\0\x12\x0d\x0a\x03\x0a\x01a\xf8\x01\x05\xfa\x01\x01x";
    let mut bytes = bytes.to_vec();
    bytes[5] = (bytes.len() - 6) as u8;
    assert_eq!(read("", "ConfigMap", &bytes), Ok(json!({"metadata": {"name": "a"}})));
}

/// The names of fields are long, and protobuf has only their numbers.
#[test]
fn an_object_is_at_most_as_long_as_in_a_json_body() {
    let pod = field_tables::fields_of_kind("", "v1", "Pod").unwrap();
    let body = |n_containers: usize| {
        let (mut object, mut body) = (Vec::new(), MAGIC.to_vec());
        put_bytes(&mut object, 2, &[0x12, 0x00].repeat(n_containers));
        put_bytes(&mut body, 2, &object);
        body
    };
    let tree = decode(&body(1_000), pod).unwrap();
    assert_eq!(tree["spec"]["containers"].as_array().unwrap().len(), 1_000);
    let n_too_many = JSON_BYTES_MAX / "{},".len() + 1;
    assert_eq!(decode(&body(n_too_many), pod), Err(ProtobufError::TooLong));
    for (character, n_bytes) in [("\u{1}", 6), ("\"", 2), ("\\", 2), ("a", 1), ("é", 2)] {
        let json = serde_json::to_string(character).unwrap();
        assert_eq!((json.len() - 2, escaped_json_len(character)), (n_bytes, n_bytes), "{json}");
    }
}

/// L15: schemas contain schemas. One that is nested too deeply is refused, and decoding it does not exhaust the stack.
#[test]
fn nesting_is_limited_and_fits_a_small_stack() {
    let nested = |field_number: u32, n_levels: usize| {
        let mut schema = Vec::new();
        for _ in 0..n_levels {
            let mut outer = Vec::new();
            put_bytes(&mut outer, field_number, &schema);
            schema = outer;
        }
        let (mut validation, mut version, mut spec) = (Vec::new(), Vec::new(), Vec::new());
        put_bytes(&mut validation, 1, &schema);
        put_bytes(&mut version, 4, &validation);
        put_bytes(&mut spec, 7, &version);
        let (mut object, mut body) = (Vec::new(), MAGIC.to_vec());
        put_bytes(&mut object, 2, &spec);
        put_bytes(&mut body, 2, &object);
        body
    };
    let check = move || {
        let message =
            field_tables::fields_of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        // `not` nests by one, `allOf` by two: the list and its item.
        for (field_number, n_levels) in [(28, 245), (25, 120)] {
            let tree = decode(&nested(field_number, n_levels), message.unwrap()).unwrap();
            assert!(tree["spec"]["versions"][0]["schema"]["openAPIV3Schema"].is_object());
            let error = decode(&nested(field_number, n_levels + 20), message.unwrap());
            assert_eq!(error, Err(ProtobufError::TooDeep));
        }
    };
    // The threads that serve requests have 2 MiB.
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(check);
    thread.unwrap().join().unwrap();
}

#[test]
fn packed_lists_are_read() {
    let pod = field_tables::fields_of_kind("", "v1", "Pod").unwrap();
    let (mut context, mut spec, mut object, mut body) =
        (vec![0x20, 0x05], Vec::new(), Vec::new(), MAGIC.to_vec());
    put_bytes(&mut context, 4, &[0x01, 0x96, 0x01]);
    put_bytes(&mut spec, 14, &context);
    put_bytes(&mut object, 2, &spec);
    put_bytes(&mut body, 2, &object);
    let tree = decode(&body, pod).unwrap();
    assert_eq!(tree["spec"]["securityContext"]["supplementalGroups"], json!([5, 1, 150]));
}

#[test]
fn an_object_can_contain_an_object_with_its_own_envelope() {
    let message = field_tables::fields_of_kind("apps", "v1", "ControllerRevision").unwrap();
    let map = field_tables::fields_of_kind("", "v1", "ConfigMap").unwrap();
    let inner = encode("v1", "ConfigMap", map, &json!({"data": {"k": "v"}}));
    let unknown = encode("example.com/v1", "Widget", map, &json!({"data": {"k": "v"}}));
    for (raw, want) in [
        (inner, Ok(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}}))),
        (br#"{"spec": [1]}"#.to_vec(), Ok(json!({"spec": [1]}))),
        (b"{".to_vec(), Err(ProtobufError::Json("data"))),
        (unknown, Err(ProtobufError::Json("data"))),
    ] {
        let (mut extension, mut object, mut body) = (Vec::new(), Vec::new(), MAGIC.to_vec());
        put_bytes(&mut extension, 1, &raw);
        put_bytes(&mut object, 2, &extension);
        put_bytes(&mut body, 2, &object);
        assert_eq!(decode(&body, message).map(|mut tree| tree.remove("data").unwrap()), want);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut framed = b"k8s\0\x12\x40".to_vec();
        framed.extend(&bytes);
        framed.resize(6 + 64, 0x0a);
        for kind in ["ConfigMap", "Service", "Event", "Pod"] {
            let _ = read("", kind, &framed);
            let _ = read("", kind, &bytes);
        }
    }
}
