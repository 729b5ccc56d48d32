//! The JSON Patch of a mutating hook.

use api_object::Tree;
use object_patch::{OPERATIONS_MAX, PatchError, apply_json_patch};
use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;

use crate::call_failure::CallFailure;
use crate::hook_call::CallError;
use crate::hook_response::go_type_name;

/// The maximum number of values in a patch: operations, their members, and the values that they add. The largest
/// objects that can be stored hardly have more.
const PATCH_VALUES_MAX: usize = 200_000;

/// Decodes a patch; `None` if it has no operations.
///
/// A patch that is nested too deeply or has too many values refuses the request, whatever the failure policy: it may repeat the
/// object, whose author chooses the depth.
pub(crate) fn parse_patch(bytes: &[u8]) -> Result<Option<Value>, CallError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() > OPERATIONS_MAX
        && let Ok(PatchOperationCount(n_operations)) = serde_json::from_slice(bytes)
        && n_operations > OPERATIONS_MAX
    {
        let error = PatchError::TooManyOperations(n_operations);
        return Err(CallError::internal_error(error.to_string()));
    }
    if api_object::count_json_values(bytes, PATCH_VALUES_MAX + 1) > PATCH_VALUES_MAX {
        let why = format!("the patch of a webhook has more than {PATCH_VALUES_MAX} values");
        return Err(CallError::internal_error(why));
    }
    let patch: Value = serde_json::from_slice(bytes).map_err(|error| {
        let why = error.to_string();
        // serde_json has no other way to tell this error from others.
        match why.starts_with("recursion limit exceeded") {
            true => {
                CallError::internal_error(format!("the patch of a webhook cannot be read: {why}"))
            }
            false => CallFailure::invalid_patch(go_syntax_error(bytes).unwrap_or(why)).into(),
        }
    })?;
    Ok(check_patch_operations(patch)?)
}

/// The number of operations of a patch, which is counted without memory for them.
struct PatchOperationCount(usize);

impl<'de> Deserialize<'de> for PatchOperationCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Count;
        impl<'de> Visitor<'de> for Count {
            type Value = PatchOperationCount;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of operations")
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> Result<PatchOperationCount, A::Error> {
                let mut n_operations = 0;
                while items.next_element::<IgnoredAny>()?.is_some() {
                    n_operations += 1;
                }
                Ok(PatchOperationCount(n_operations))
            }
        }
        deserializer.deserialize_seq(Count)
    }
}

/// The error that Go reports about text that is not JSON; `None` if the reader of files accepts the text.
pub(crate) fn go_syntax_error(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    document::json::parse_json(&text).err().map(|error| error.message)
}

fn check_patch_operations(patch: Value) -> Result<Option<Value>, CallFailure> {
    match &patch {
        Value::Null => Ok(None),
        Value::Array(operations) if operations.is_empty() => Ok(None),
        Value::Array(operations) if operations.iter().all(is_patch_operation) => Ok(Some(patch)),
        Value::Array(operations) => {
            let found =
                operations.iter().find(|it| !is_patch_operation(it)).map_or("null", go_type_name);
            Err(CallFailure::invalid_patch(format!(
                "json: cannot unmarshal {found} into Go value of type jsonpatch.Operation"
            )))
        }
        other => Err(CallFailure::invalid_patch(format!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.Patch",
            go_type_name(other)
        ))),
    }
}

fn is_patch_operation(value: &Value) -> bool {
    value.is_object() || value.is_null()
}

/// Applies a patch. A patch that does not apply refuses the request, with the text of Kubernetes.
pub(crate) fn apply_patch(tree: &Tree, patch: &Value) -> Result<Tree, CallError> {
    apply_json_patch(tree.clone(), patch.clone())
        .map_err(|error| CallError::internal_error(patch_error_text(&error, patch)))
}

fn patch_error_text(error: &PatchError, patch: &Value) -> String {
    let operation = |idx: usize, name: &str| {
        let member = patch.get(idx).and_then(|operation| operation.get(name));
        member.and_then(Value::as_str).unwrap_or_default()
    };
    match error {
        PatchError::TestFailed(idx) => {
            format!("testing value {} failed: test failed", operation(*idx, "path"))
        }
        PatchError::MissingPath(idx) => {
            let (path, from) = (operation(*idx, "path"), operation(*idx, "from"));
            match operation(*idx, "op") {
                "add" => format!(
                    "add operation does not apply: doc is missing path: \"{path}\": missing value"
                ),
                "remove" => {
                    let key = path.rsplit('/').next().unwrap_or_default();
                    format!(
                        "error in remove for path: '{path}': Unable to remove nonexistent key: \
                         {key}: missing value"
                    )
                }
                "replace" => format!(
                    "replace operation does not apply: doc is missing path: {path}: missing value"
                ),
                op => format!(
                    "{op} operation does not apply: doc is missing from path: {from}: missing value"
                ),
            }
        }
        PatchError::BadOperation(idx) => format!("Unexpected kind: {}", operation(*idx, "op")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_patch_may_be() {
        for nothing in ["", "[]", "null", " [ ] "] {
            assert!(matches!(parse_patch(nothing.as_bytes()), Ok(None)), "{nothing}");
        }
        for broken in ["[{", "{}", "[1]", "\"x\"", "not json"] {
            let Err(CallError::HookFailed(failure)) = parse_patch(broken.as_bytes()) else {
                panic!("{broken}")
            };
            let start = "received undecodable patch in webhook response: ";
            assert!(failure.message.starts_with(start), "{failure}");
        }
        assert!(matches!(parse_patch(b"[{}]"), Ok(Some(_))));
    }

    /// The texts are those of Go's decoder, which authors of hooks know.
    #[test]
    fn syntax_errors_have_the_words_of_go() {
        for (patch, want) in [
            ("not json", "invalid character 'o' in literal null (expecting 'u')"),
            ("[{", "unexpected end of JSON input"),
            ("<html>", "invalid character '<' looking for beginning of value"),
            ("[] x", "invalid character 'x' after top-level value"),
        ] {
            let Err(CallError::HookFailed(failure)) = parse_patch(patch.as_bytes()) else {
                panic!("{patch}")
            };
            let want = format!("received undecodable patch in webhook response: {want}");
            assert_eq!(failure.message, want, "{patch}");
        }
    }

    /// The author of an object chooses its depth, and must not be able to make a hook fail by that.
    #[test]
    fn a_patch_that_is_too_deep_is_no_failure_of_the_hook() {
        let patch = |depth: usize| {
            let value = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
            parse_patch(
                format!("[{{\"op\":\"add\",\"path\":\"/a\",\"value\":{value}}}]").as_bytes(),
            )
        };
        assert!(matches!(patch(100), Ok(Some(_))));
        assert!(matches!(patch(130), Err(CallError::Rejected(_))));
    }

    /// A20: a million small operations are not decoded. The author of an object may be the cause, so no failure policy
    /// applies.
    #[test]
    fn a20_a_patch_of_too_many_operations_is_refused() {
        let patch = |n: usize| parse_patch(format!("[{}{{}}]", "{},".repeat(n - 1)).as_bytes());
        assert!(matches!(patch(OPERATIONS_MAX), Ok(Some(_))));
        assert!(matches!(patch(OPERATIONS_MAX + 1), Err(CallError::Rejected(_))));
        // Few operations with very many values are as bad.
        let patch = |n: usize| {
            let value = format!("[{}0]", "0,".repeat(n));
            parse_patch(
                format!("[{{\"op\":\"add\",\"path\":\"/a\",\"value\":{value}}}]").as_bytes(),
            )
        };
        assert!(matches!(patch(100_000), Ok(Some(_))));
        assert!(matches!(patch(1_000_000), Err(CallError::Rejected(_))));
    }

    #[test]
    fn patches_that_do_not_apply() {
        let Value::Object(tree) = json!({"spec": {"size": 1}}) else { panic!() };
        for (operation, want) in [
            (
                json!({"op": "remove", "path": "/spec/x"}),
                "error in remove for path: '/spec/x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                json!({"op": "test", "path": "/spec/size", "value": 2}),
                "testing value /spec/size failed: test failed",
            ),
            (
                json!({"op": "add", "path": "/a/b", "value": 2}),
                "add operation does not apply: doc is missing path: \"/a/b\": missing value",
            ),
            (json!({"op": "dance", "path": "/a"}), "Unexpected kind: dance"),
            (
                json!({"op": "move", "from": "/q", "path": "/a"}),
                "move operation does not apply: doc is missing from path: /q: missing value",
            ),
        ] {
            let patch = json!([operation]);
            let error = apply_json_patch(tree.clone(), patch.clone()).unwrap_err();
            assert_eq!(patch_error_text(&error, &patch), want);
        }
    }
}
