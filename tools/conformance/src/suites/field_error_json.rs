//! Field errors in the form of the vectors.

use field_errors::{BadValue, FieldError};
use serde_json::{Value, json};

/// Converts one field error to the JSON of the vectors.
pub(super) fn field_error_to_json(error: &FieldError) -> Value {
    let bad_value = match &error.value {
        BadValue::Omitted => Value::Null,
        BadValue::Text(text) => Value::String(text.clone()),
        // Text that is not JSON stays as it is, so that it differs from the recorded value.
        BadValue::Json(json) => {
            serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.clone()))
        }
    };
    json!({
        "type": error.kind.name(),
        "field": error.path,
        "badValue": bad_value,
        "detail": error.detail,
        "message": error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use field_errors::FieldPath;

    #[test]
    fn values_keep_their_kind() {
        let at = FieldPath::root("a");
        let want = json!({
            "type": "TooMany", "field": "a", "badValue": 65,
            "detail": "must have at most 64 items",
            "message": "a: Too many: 65: must have at most 64 items",
        });
        assert_eq!(field_error_to_json(&at.too_many(65, 64)), want);
        assert_eq!(field_error_to_json(&at.required(""))["badValue"], Value::Null);
        assert_eq!(field_error_to_json(&at.duplicate("65"))["badValue"], "65");
    }
}
