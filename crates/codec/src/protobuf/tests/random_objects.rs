//! Random objects of every kind are the same after the test encoder and the decoder, and the JSON reader takes them as they
//! are.

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::conform_to_kind::conform_to_kind;
use crate::strict_finding::StrictFindings;

/// Upper bound on the levels of messages below the object. Deeper ones are empty.
const LEVELS_MAX: usize = 6;

/// Draws numbers from a seed.
struct Draw(u64);

impl Draw {
    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        // The generator splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }

    fn text(&mut self, is_positive: bool) -> String {
        let alphabet = ['a', 'Z', '9', '-', '\u{e9}', '\u{1f600}', '"', '\n'];
        let len = self.below(5) + u64::from(is_positive);
        (0..len).map(|_| alphabet[self.below(8) as usize]).collect()
    }

    /// A random object of a message, without zeros that the decoder drops.
    fn object(&mut self, message: &'static Message, n_levels: usize) -> Value {
        let mut tree = Tree::new();
        for field in message.fields.iter().filter(|field| field.protobuf_number > 0) {
            let is_inline = matches!(field.field_type, FieldType::Inline(_));
            // Wide messages have fewer of their fields, so that objects stay small.
            let one_of = (message.fields.len() as u64 / 4).max(2);
            if !is_inline && self.below(one_of) > 0 {
                continue;
            }
            let count = 1 + self.below(2);
            let value = match field.field_type {
                FieldType::Inline(inner) => {
                    let Value::Object(members) = self.object(inner.message(), n_levels) else {
                        continue;
                    };
                    tree.extend(members);
                    continue;
                }
                FieldType::One(value_type) => {
                    self.value(value_type, !field.keeps_zero_value, n_levels)
                }
                FieldType::List(value_type) => {
                    (0..count).map(|_| self.value(value_type, false, n_levels)).collect()
                }
                FieldType::Map(value_type) => {
                    let entry = |_| (self.text(false), self.value(value_type, false, n_levels));
                    Value::Object((0..count).map(entry).collect())
                }
            };
            tree.insert(field.name.to_owned(), value);
        }
        Value::Object(tree)
    }

    fn value(&mut self, value_type: ValueType, is_positive: bool, n_levels: usize) -> Value {
        let low = i64::from(is_positive);
        match value_type {
            ValueType::Text => self.text(is_positive).into(),
            ValueType::Bytes => STANDARD.encode(self.text(is_positive)).into(),
            ValueType::Bool => (is_positive || self.below(2) == 0).into(),
            ValueType::Int32 => (low + self.below(1 << 30) as i64).into(),
            ValueType::Int64 => (-low - self.below(1 << 62) as i64).into(),
            ValueType::Double => (low as f64 + self.below(9) as f64 / 4.0).into(),
            ValueType::Time => {
                let second = self.below(4_000_000_000) as i64;
                api_object::format_rfc3339(Timestamp::from_second(second).unwrap()).into()
            }
            ValueType::MicroTime => {
                let micro = self.below(4_000_000_000_000_000) as i64;
                api_object::format_rfc3339_micro(Timestamp::from_microsecond(micro).unwrap()).into()
            }
            ValueType::Quantity => ["0", "1", "100m", "2Gi"][self.below(4) as usize].into(),
            ValueType::Json => match self.below(2) {
                0 => json!({"f:a": {}}),
                _ => json!([1.5, "x", null]),
            },
            ValueType::IntOrString => match self.below(2) {
                0 => self.below(70_000).into(),
                _ => self.text(false).into(),
            },
            ValueType::WrappedTexts => (0..self.below(3)).map(|_| self.text(false)).collect(),
            ValueType::SchemaOr(alternative) => match (alternative, self.below(2)) {
                (SchemaAlternative::Bool, 0) => (self.below(2) == 0).into(),
                (SchemaAlternative::Schemas, 0) => Value::Array(vec![
                    self.message(field_tables::json_schema_fields().message(), n_levels),
                ]),
                (SchemaAlternative::Texts, 0) => json!([self.text(false)]),
                _ => self.message(field_tables::json_schema_fields().message(), n_levels),
            },
            ValueType::Object(message) => self.message(message.message(), n_levels),
        }
    }

    fn message(&mut self, message: &'static Message, n_levels: usize) -> Value {
        match n_levels {
            0 => json!({}),
            n_levels => self.object(message, n_levels - 1),
        }
    }
}

fn round_trips(message: &'static Message, mut value: Value) -> Result<(), TestCaseError> {
    let bytes = encode("v1", "Kind", message, &value);
    value["apiVersion"] = "v1".into();
    value["kind"] = "Kind".into();
    prop_assert_eq!(decode(&bytes, message).map(Value::Object), Ok(value.clone()));
    // The object from protobuf equals the object from JSON.
    let mut tree = value.as_object().unwrap().clone();
    let mut findings = StrictFindings::default();
    prop_assert_eq!(conform_to_kind(&mut tree, Some(message), &mut findings), Ok(()));
    prop_assert_eq!(findings.into_vec(), vec![]);
    prop_assert_eq!(Value::Object(tree), value);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn objects_of_every_kind_round_trip(seed in any::<u64>()) {
        let mut draw = Draw(seed);
        for message in field_tables::messages_of_all_kinds().chain([field_tables::delete_options_fields()]) {
            round_trips(message, draw.object(message, LEVELS_MAX))?;
        }
    }
}
