//! Bodies that clients send, and random trees that a test encoder writes.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::field_tables;

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
        let message = field_tables::fields_of_kind(text("group"), "v1", text("kind")).unwrap();
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

/// A policy that is set to an empty text is invalid, which is not the same as an absent policy.
#[test]
fn empty_strings_of_pointer_fields_are_kept() {
    let message = field_tables::fields_of_kind(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
    );
    let webhook = json!({
        "clientConfig": {"service": {"port": 0}, "url": ""}, "failurePolicy": "",
        "matchPolicy": "", "reinvocationPolicy": "", "rules": [{"scope": ""}], "sideEffects": "",
        "timeoutSeconds": 0,
    });
    let object = json!({"webhooks": [webhook]});
    let mut given = object.clone();
    given["webhooks"][0]["name"] = "".into();
    let mut read = decode(&encode("v1", "M", message.unwrap(), &given), message.unwrap()).unwrap();
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
        (&b""[..], ProtobufError::Magic),
        (b"{}", ProtobufError::Magic),
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

/// Writes a body as clients do, but without zeros for unset fields.
fn encode(api_version: &str, kind: &str, message: &'static Message, value: &Value) -> Vec<u8> {
    let mut type_meta = Vec::new();
    put_bytes(&mut type_meta, 1, api_version.as_bytes());
    put_bytes(&mut type_meta, 2, kind.as_bytes());
    let mut out = MAGIC.to_vec();
    put_bytes(&mut out, 1, &type_meta);
    put_bytes(&mut out, 2, &encode_message(message, value));
    out
}

fn encode_message(message: &'static Message, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for field in message.0 {
        match (field.field_type, &value[field.name]) {
            (FieldType::Inline(inner), _) => {
                put_bytes(&mut out, field.number, &encode_message(inner, value));
            }
            (_, Value::Null) => {}
            (FieldType::List(field_type), Value::Array(items)) => {
                items.iter().for_each(|item| put(&mut out, field.number, *field_type, item));
            }
            (FieldType::Map(field_type), Value::Object(members)) => {
                for (key, value) in members {
                    let mut entry = Vec::new();
                    put_bytes(&mut entry, 1, key.as_bytes());
                    put(&mut entry, 2, *field_type, value);
                    put_bytes(&mut out, field.number, &entry);
                }
            }
            (field_type, value) => put(&mut out, field.number, field_type, value),
        }
    }
    out
}

fn put(out: &mut Vec<u8>, number: u32, field_type: FieldType, value: &Value) {
    let mut inner = Vec::new();
    match field_type {
        FieldType::Text => inner = value.as_str().unwrap().into(),
        FieldType::Bytes => inner = STANDARD.decode(value.as_str().unwrap()).unwrap(),
        FieldType::Bool => return put_varint_field(out, number, value.as_bool().unwrap().into()),
        FieldType::Int32 | FieldType::Int64 => {
            return put_varint_field(out, number, value.as_i64().unwrap());
        }
        FieldType::Time | FieldType::MicroTime => {
            let time: Timestamp = value.as_str().unwrap().parse().unwrap();
            put_varint_field(&mut inner, 1, time.as_second());
            put_varint_field(&mut inner, 2, time.subsec_nanosecond().into());
        }
        FieldType::Json => put_bytes(&mut inner, 1, value.to_string().as_bytes()),
        FieldType::IntOrString => match value {
            Value::String(text) => {
                put_varint_field(&mut inner, 1, 1);
                put_bytes(&mut inner, 3, text.as_bytes());
            }
            _ => put_varint_field(&mut inner, 2, value.as_i64().unwrap()),
        },
        FieldType::WrappedTexts => {
            for item in value.as_array().unwrap() {
                put_bytes(&mut inner, 1, item.as_str().unwrap().as_bytes());
            }
        }
        FieldType::Object(message) | FieldType::Inline(message) => {
            inner = encode_message(message, value)
        }
        FieldType::List(_) | FieldType::Map(_) => panic!("lists are no items"),
    }
    put_bytes(out, number, &inner);
}

fn put_varint_field(out: &mut Vec<u8>, number: u32, value: i64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value.cast_unsigned());
}

fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A random object of a message, without zeros that the decoder drops.
fn object_of(message: &'static Message) -> BoxedStrategy<Value> {
    let members: Vec<BoxedStrategy<Vec<(String, Value)>>> = message
        .0
        .iter()
        .filter(|field| field.number > 0)
        .map(|field| match field.field_type {
            FieldType::Inline(inner) => object_of(inner)
                .prop_map(|value| value.as_object().unwrap().clone().into_iter().collect())
                .boxed(),
            field_type => {
                let name = field.name.to_owned();
                let value = value_of(field_type, !field.keeps_zero);
                proptest::option::weighted(0.3, value)
                    .prop_map(move |value| {
                        value.map(|value| (name.clone(), value)).into_iter().collect()
                    })
                    .boxed()
            }
        })
        .collect();
    members.prop_map(|members| members.into_iter().flatten().collect()).boxed()
}

/// A message and a random object of it.
fn random(group: &str, version: &str, kind: &str) -> BoxedStrategy<(&'static Message, Value)> {
    let message = field_tables::fields_of_kind(group, version, kind).unwrap();
    object_of(message).prop_map(move |value| (message, value)).boxed()
}

fn value_of(field_type: FieldType, is_positive: bool) -> BoxedStrategy<Value> {
    let low = i32::from(is_positive);
    match field_type {
        FieldType::Text if is_positive => ".{1,5}".prop_map(Value::from).boxed(),
        FieldType::Text => ".{0,5}".prop_map(Value::from).boxed(),
        FieldType::Bytes => proptest::collection::vec(any::<u8>(), usize::from(is_positive)..5)
            .prop_map(|bytes| STANDARD.encode(bytes).into())
            .boxed(),
        FieldType::Bool if is_positive => Just(Value::Bool(true)).boxed(),
        FieldType::Bool => any::<bool>().prop_map(Value::from).boxed(),
        FieldType::Int32 => (low..i32::MAX).prop_map(Value::from).boxed(),
        FieldType::Int64 => (i64::MIN..-i64::from(low)).prop_map(Value::from).boxed(),
        FieldType::Time => (0..4_000_000_000_i64)
            .prop_map(|second| api_object::rfc3339(Timestamp::from_second(second).unwrap()).into())
            .boxed(),
        FieldType::MicroTime => (0..4_000_000_000_000_000_i64)
            .prop_map(|micro| {
                api_object::rfc3339_micro(Timestamp::from_microsecond(micro).unwrap()).into()
            })
            .boxed(),
        FieldType::Json => Just(json!({"f:a": {}})).boxed(),
        FieldType::IntOrString => {
            prop_oneof![any::<i32>().prop_map(Value::from), ".{0,5}".prop_map(Value::from),].boxed()
        }
        FieldType::WrappedTexts => {
            proptest::collection::vec(".{0,5}", 0..3).prop_map(Value::from).boxed()
        }
        FieldType::Object(message) | FieldType::Inline(message) => object_of(message),
        FieldType::List(field_type) => {
            proptest::collection::vec(value_of(*field_type, false), 1..3)
                .prop_map(Value::from)
                .boxed()
        }
        FieldType::Map(field_type) => {
            proptest::collection::hash_map(".{0,5}", value_of(*field_type, false), 1..3)
                .prop_map(|members| members.into_iter().collect())
                .boxed()
        }
    }
}

fn round_trips(message: &'static Message, mut value: Value) -> Result<(), TestCaseError> {
    let bytes = encode("v1", "Kind", message, &value);
    value["apiVersion"] = "v1".into();
    value["kind"] = "Kind".into();
    prop_assert_eq!(decode(&bytes, message), Ok(value.as_object().unwrap().clone()));
    // The object from protobuf equals the object from JSON.
    let mut tree = value.as_object().unwrap().clone();
    let mut findings = crate::strict_finding::StrictFindings::default();
    let shaped = crate::conform_to_kind::conform_to_kind(&mut tree, Some(message), &mut findings);
    prop_assert_eq!(shaped, Ok(()));
    prop_assert_eq!(findings.into_vec(), vec![]);
    prop_assert_eq!(Value::Object(tree), value);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn objects_round_trip((message, value) in prop_oneof![
        random("", "v1", "Service"),
        random("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
        random("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
        random("admissionregistration.k8s.io", "v1alpha1", "ExternalAdmissionHookConfiguration"),
        random("admissionregistration.k8s.io", "v1alpha1", "InitializerConfiguration"),
        random("authorization.k8s.io", "v1", "SubjectAccessReview"),
    ]) {
        round_trips(message, value)?;
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut framed = b"k8s\0\x12\x40".to_vec();
        framed.extend(&bytes);
        framed.resize(6 + 64, 0x0a);
        for kind in ["ConfigMap", "Service", "Event"] {
            let _ = read("", kind, &framed);
            let _ = read("", kind, &bytes);
        }
    }
}
