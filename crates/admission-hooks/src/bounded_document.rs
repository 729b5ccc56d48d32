//! Decodes the response of a hook into a bounded number of values.
//!
//! A response of four megabytes may have two million values, which take a hundred times as much memory and
//! milliseconds of a worker. An answer needs few: a patch is one string, and only the first warnings and
//! annotations count. Values beyond the limits are parsed and dropped, because a response that is too large still
//! says whether the request is allowed.

use std::cell::Cell;
use std::fmt;

use api_object::Tree;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Number, Value};

/// The members of the document that are kept. Some hooks send the request back as well, with an object of any size.
const DOCUMENT_MEMBERS: [&str; 8] =
    ["apiVersion", "kind", "response", "status", "message", "reason", "code", "details"];

/// The members of a response that are kept.
const RESPONSE_MEMBERS: [&str; 7] =
    ["uid", "allowed", "status", "patch", "patchType", "auditAnnotations", "warnings"];

/// The members of the status in a response that are kept.
const STATUS_MEMBERS: [&str; 5] = ["status", "message", "reason", "code", "details"];

/// The entries of any other list or object that are kept.
const ENTRIES_MAX: usize = 4_096;

/// The values in these lists and objects that are kept.
const VALUES_MAX: usize = 1 << 15;

/// The document in a response.
pub(crate) enum BoundedDocument {
    Object(Tree),
    /// Any other value, empty if it is a list.
    Other(Value),
}

impl<'de> Deserialize<'de> for BoundedDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let n_left = Cell::new(VALUES_MAX);
        let root = BoundedValueDecoder {
            n_values_left: &n_left,
            document_position: DocumentPosition::Document,
        };
        Ok(match root.deserialize(deserializer)? {
            Value::Object(tree) => Self::Object(tree),
            other => Self::Other(other),
        })
    }
}

/// The position of a value in the document.
#[derive(Clone, Copy)]
enum DocumentPosition {
    Document,
    /// The response, or the status of a v1alpha1 review, which is its response.
    Response,
    /// The status in a response.
    Status,
    Other,
}

impl DocumentPosition {
    /// The members that are always kept at this position; `None` if members are kept up to the limits.
    fn always_kept_members(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Document => Some(&DOCUMENT_MEMBERS),
            Self::Response => Some(&RESPONSE_MEMBERS),
            Self::Status => Some(&STATUS_MEMBERS),
            Self::Other => None,
        }
    }

    fn position_of_member(self, name: &str) -> Self {
        match (self, name) {
            (Self::Document, "response" | "status") => Self::Response,
            (Self::Response, "status") => Self::Status,
            (Self::Document | Self::Response | Self::Status | Self::Other, _) => Self::Other,
        }
    }
}

/// Decodes one value, and drops its parts beyond the limit on values.
#[derive(Clone, Copy)]
struct BoundedValueDecoder<'a> {
    n_values_left: &'a Cell<usize>,
    document_position: DocumentPosition,
}

impl BoundedValueDecoder<'_> {
    /// Counts one value against the limit. Returns `false` if the limit is reached.
    fn try_count_value(&self) -> bool {
        let n_left = self.n_values_left.get();
        self.n_values_left.set(n_left.saturating_sub(1));
        n_left > 0
    }

    /// Decodes the members of an object that have these names. They are few, so they do not count against the
    /// limit: other values cannot displace a uid or a patch that follows them.
    fn visit_known_members<'de, A: MapAccess<'de>>(
        self,
        known: &[&str],
        mut members: A,
    ) -> Result<Value, A::Error> {
        let mut kept = Tree::new();
        while let Some(key) = members.next_key::<String>()? {
            if known.contains(&key.as_str()) {
                let member = Self {
                    document_position: self.document_position.position_of_member(&key),
                    ..self
                };
                let value = members.next_value_seed(member)?;
                kept.insert(key, value);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(kept.into())
    }
}

impl<'de> DeserializeSeed<'de> for BoundedValueDecoder<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedValueDecoder<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        let item = Self { document_position: DocumentPosition::Other, ..self };
        let is_document = matches!(self.document_position, DocumentPosition::Document);
        while !is_document && kept.len() < ENTRIES_MAX && self.try_count_value() {
            match items.next_element_seed(item)? {
                Some(item) => kept.push(item),
                None => return Ok(kept.into()),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(kept.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        if let Some(known) = self.document_position.always_kept_members() {
            return self.visit_known_members(known, members);
        }
        let mut kept = Tree::new();
        while kept.len() < ENTRIES_MAX && self.try_count_value() {
            let Some(key) = members.next_key::<String>()? else { return Ok(kept.into()) };
            let value = members.next_value_seed(self)?;
            kept.insert(key, value);
        }
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(kept.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decode(text: &str) -> Result<Value, serde_json::Error> {
        Ok(match serde_json::from_str(text)? {
            BoundedDocument::Object(tree) => Value::Object(tree),
            BoundedDocument::Other(other) => other,
        })
    }

    fn n_values(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(n_values).sum(),
            Value::Object(members) => members.values().map(n_values).sum::<usize>(),
            _ => 0,
        }
    }

    #[test]
    fn answers_are_decoded_as_they_are() {
        let answer = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {
                "uid": "1", "allowed": false, "patch": "W10=", "warnings": ["a", null],
                "status": {"code": 403, "details": {"causes": [{"field": "x", "x": [1.5, -1, true]}]}},
            },
        });
        assert_eq!(decode(&answer.to_string()).unwrap(), answer);
        for other in ["null", "1", "\"x\"", "true", "[]"] {
            assert_eq!(decode(other).unwrap().to_string(), other);
        }
        assert!(decode("{\"response\":{\"a\":}}").is_err());
        // Of two members with the same name the last one applies, as in Go.
        assert_eq!(decode("{\"kind\":1,\"kind\":2}").unwrap(), json!({"kind": 2}));
    }

    /// A20: a million entries are read and left out, wherever they are.
    #[test]
    fn a20_what_is_too_much_is_left_out() {
        let texts = |n: usize| vec![json!("w"); n];
        let members = |n: usize| (0..n).map(|n| (n.to_string(), json!([]))).collect::<Tree>();
        let response = json!({"allowed": true, "uid": "1", "warnings": texts(300_000)});
        let request = json!({"object": members(200_000), "list": texts(200_000)});
        let document = json!({"request": request, "response": response});
        let decoded = decode(&document.to_string()).unwrap();
        assert_eq!(decoded["response"]["allowed"], true);
        assert_eq!(decoded["response"]["uid"], "1");
        assert_eq!(decoded["response"]["warnings"].as_array().unwrap().len(), ENTRIES_MAX);
        assert!(decoded.get("request").is_none());
        let wide: Vec<Value> = (0..200).map(|_| json!(members(1_000))).collect();
        let status = json!({"details": {"causes": wide}});
        let decoded = decode(&json!({"response": {"allowed": true, "status": status}}).to_string());
        let n = n_values(&decoded.unwrap());
        assert!(VALUES_MAX / 2 < n && n <= VALUES_MAX + 10, "{n}");
        assert_eq!(decode(&format!("[{}1]", "1,".repeat(100_000))).unwrap(), json!([]));
    }

    /// A20: whatever a hook says before its uid, its patch or its decision, these are kept.
    #[test]
    fn a20_long_members_do_not_displace_the_answer() {
        let large = vec![json!({"a": [1, 2]}); ENTRIES_MAX];
        let large =
            json!({"items": large.clone(), "more": large.clone(), "rest": large}).to_string();
        let text = format!(
            "{{\"request\":{large},\"details\":{large},\"response\":{{\"object\":{large},\"status\":{{\"x\":{large},\
             \"details\":{large},\"message\":\"m\",\"code\":403}},\"allowed\":true,\"uid\":\"1\",\"patch\":\"W10=\",\
             \"patchType\":\"JSONPatch\"}},\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\"}}"
        );
        let decoded = decode(&text).unwrap();
        assert!(n_values(&decoded) <= VALUES_MAX + 20);
        assert_eq!(decoded["kind"], "AdmissionReview");
        let response = &decoded["response"];
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("1"), &json!(true)));
        assert_eq!(
            (&response["patch"], &response["patchType"]),
            (&json!("W10="), &json!("JSONPatch"))
        );
        assert_eq!(
            (&response["status"]["message"], &response["status"]["code"]),
            (&json!("m"), &json!(403))
        );
        // Unknown members cost nothing: the warnings after them are complete.
        let text = format!(
            "{{\"response\":{{\"object\":{large},\"status\":{{\"x\":{large}}},\"warnings\":[\"a\",\"b\"]}}}}"
        );
        assert_eq!(decode(&text).unwrap()["response"]["warnings"], json!(["a", "b"]));
        // A v1alpha1 hook answers in the status.
        let text = format!(
            "{{\"status\":{{\"object\":{large},\"allowed\":true,\"status\":{{\"reason\":\"r\"}}}}}}"
        );
        let want = json!({"status": {"allowed": true, "status": {"reason": "r"}}});
        assert_eq!(decode(&text).unwrap(), want);
    }
}
