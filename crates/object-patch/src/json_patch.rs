//! JSON Patch (RFC 6902), as Kubernetes applies it.
//!
//! The implementation of Kubernetes is more lenient than the standard, and clients rely on that: `replace`
//! sets an absent member, an absent `value` is null, `test` treats an absent member as null, and an index
//! may be negative.

use api_object::Tree;
use serde_json::Value;

use crate::json_pointer::{JsonPointer, existing_index, insertion_index, resolve_pointer_steps};
use crate::nesting_depth::{NESTING_MAX, measure_tree};
use crate::patch_error::PatchError;

/// Upper bound on the operations of a patch.
pub const OPERATIONS_MAX: usize = 10_000;

/// Upper bound on the JSON bytes that all `copy` operations of a patch produce.
pub const COPIED_BYTES_MAX: usize = 3 << 20;

/// Upper bound on the values that all operations of a patch move or read together.
///
/// An insertion moves all later items of a list, so ten thousand of them into a list of a hundred
/// thousand would take seconds. Real patches stay far below.
pub const PATCH_STEPS_MAX: usize = 20_000_000;

/// Applies the operations of a patch, all or none.
///
/// # Errors
/// The patch is not a list, is too long, or one of its operations cannot be applied.
pub fn apply_json_patch(tree: Tree, patch: Value) -> Result<Tree, PatchError> {
    let Value::Array(operations) = patch else {
        return Err(PatchError::Shape("a JSON patch is a list of operations"));
    };
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooManyOperations(operations.len()));
    }
    if !operations.iter().all(|operation| operation.is_object() || operation.is_null()) {
        return Err(PatchError::Shape("an operation of a JSON patch is an object"));
    }
    let mut run = JsonPatchApplier {
        patched_document: Value::Object(tree),
        n_work_steps: 0,
        n_copied_bytes: 0,
        operation_index: 0,
    };
    for (idx, operation) in operations.into_iter().enumerate() {
        run.operation_index = idx;
        run.apply_operation(operation)?;
    }
    match run.patched_document {
        Value::Object(tree) => Ok(tree),
        _ => Err(PatchError::NotAnObject),
    }
}

/// The state while a patch is applied.
struct JsonPatchApplier {
    patched_document: Value,
    n_work_steps: usize,
    n_copied_bytes: usize,
    /// The index of the current operation, for errors.
    operation_index: usize,
}

impl JsonPatchApplier {
    fn apply_operation(&mut self, mut operation: Value) -> Result<(), PatchError> {
        let path = self.parse_pointer(&operation, "path")?;
        let kind = operation.get("op").and_then(Value::as_str).unwrap_or_default().to_owned();
        let value = operation.get_mut("value").map(Value::take).unwrap_or_default();
        match kind.as_str() {
            "add" => self.add_value(&path, value),
            "remove" => self.remove(&path).map(drop),
            "replace" => self.replace_value(&path, value),
            "test" => self.test(&path, &value),
            "move" => {
                let from = self.parse_pointer(&operation, "from")?;
                let moved = self.remove(&from)?;
                self.add_value(&path, moved)
            }
            "copy" => {
                let from = self.parse_pointer(&operation, "from")?;
                let copied = self.copy_value(&from)?;
                self.add_value(&path, copied)
            }
            _ => Err(PatchError::BadOperation(self.operation_index)),
        }
    }

    fn parse_pointer(&self, operation: &Value, name: &str) -> Result<JsonPointer, PatchError> {
        let text = operation.get(name).and_then(Value::as_str);
        text.and_then(JsonPointer::parse).ok_or(PatchError::BadOperation(self.operation_index))
    }

    fn add_value(&mut self, path: &JsonPointer, value: Value) -> Result<(), PatchError> {
        self.check_depth(path, &value)?;
        let missing = PatchError::MissingPath(self.operation_index);
        let (last, parents) = path.split_last_step().ok_or(missing.clone())?;
        let n_moved = match resolve_pointer_steps(&mut self.patched_document, parents) {
            Some(Value::Object(members)) => {
                members.insert(last.to_owned(), value);
                0
            }
            Some(Value::Array(items)) => {
                let idx = insertion_index(last, items.len()).ok_or(missing)?;
                items.insert(idx, value);
                items.len() - idx
            }
            _ => return Err(missing),
        };
        self.charge_work_steps(n_moved)
    }

    fn remove(&mut self, path: &JsonPointer) -> Result<Value, PatchError> {
        let missing = PatchError::MissingPath(self.operation_index);
        let (last, parents) = path.split_last_step().ok_or(missing.clone())?;
        let (removed, n_moved) = match resolve_pointer_steps(&mut self.patched_document, parents) {
            Some(Value::Object(members)) => {
                (members.shift_remove(last).ok_or(missing)?, members.len())
            }
            Some(Value::Array(items)) => {
                let idx = existing_index(last, items.len()).ok_or(missing)?;
                (items.remove(idx), items.len() - idx)
            }
            _ => return Err(missing),
        };
        self.charge_work_steps(n_moved)?;
        Ok(removed)
    }

    fn replace_value(&mut self, path: &JsonPointer, value: Value) -> Result<(), PatchError> {
        self.check_depth(path, &value)?;
        let missing = PatchError::MissingPath(self.operation_index);
        let Some((last, parents)) = path.split_last_step() else {
            if !value.is_object() && !value.is_array() {
                return Err(PatchError::BadOperation(self.operation_index));
            }
            self.patched_document = value;
            return Ok(());
        };
        match resolve_pointer_steps(&mut self.patched_document, parents) {
            Some(Value::Object(members)) => {
                members.insert(last.to_owned(), value);
            }
            Some(Value::Array(items)) => {
                let idx = existing_index(last, items.len()).ok_or(missing.clone())?;
                *items.get_mut(idx).ok_or(missing)? = value;
            }
            _ => return Err(missing),
        }
        Ok(())
    }

    fn test(&mut self, path: &JsonPointer, value: &Value) -> Result<(), PatchError> {
        let found = match path.split_last_step() {
            None => Some(&mut self.patched_document),
            Some((last, parents)) => {
                let missing = PatchError::MissingPath(self.operation_index);
                match resolve_pointer_steps(&mut self.patched_document, parents)
                    .ok_or(missing.clone())?
                {
                    Value::Object(members) => members.get_mut(last),
                    Value::Array(items) => {
                        let idx = existing_index(last, items.len()).ok_or(missing)?;
                        items.get_mut(idx)
                    }
                    _ => return Err(missing),
                }
            }
        };
        let holds = found.map_or(value.is_null(), |found| found == value);
        if holds { Ok(()) } else { Err(PatchError::TestFailed(self.operation_index)) }
    }

    fn copy_value(&mut self, from: &JsonPointer) -> Result<Value, PatchError> {
        let missing = PatchError::MissingPath(self.operation_index);
        let (last, parents) = from.split_last_step().ok_or(missing.clone())?;
        let found = match resolve_pointer_steps(&mut self.patched_document, parents) {
            Some(Value::Object(members)) => members.get(last).cloned().unwrap_or_default(),
            Some(Value::Array(items)) => {
                let idx = existing_index(last, items.len()).ok_or(missing.clone())?;
                items.get(idx).cloned().ok_or(missing)?
            }
            _ => return Err(missing),
        };
        self.n_copied_bytes = self.n_copied_bytes.saturating_add(found.to_string().len());
        if self.n_copied_bytes > COPIED_BYTES_MAX {
            return Err(PatchError::CopiesTooLarge);
        }
        Ok(found)
    }

    /// Rejects a value that would make the document nested too deeply, so that other functions may recurse.
    fn check_depth(&mut self, path: &JsonPointer, value: &Value) -> Result<(), PatchError> {
        let extent = measure_tree(value);
        self.charge_work_steps(extent.n_values)?;
        if path.n_pointer_steps() + extent.nesting_depth > NESTING_MAX {
            return Err(PatchError::TooDeep);
        }
        Ok(())
    }

    fn charge_work_steps(&mut self, n_steps: usize) -> Result<(), PatchError> {
        self.n_work_steps = self.n_work_steps.saturating_add(n_steps);
        if self.n_work_steps > PATCH_STEPS_MAX { Err(PatchError::TooMuchWork) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
