//! What the API accepts although it does nothing, or not what its author meant.
//!
//! What an object shows by itself is found while it is read, when the places of its fields are at
//! hand; what takes all objects together is found by [`lint`].

mod built_in_resources;
mod role_ref;
mod rule;
mod subject;

use document::{Node, NodePath, SpannedWarning, WarningCode};

use super::locate::locate_field;
use crate::rbac;

pub use role_ref::lint;

/// Looks at one object.
pub(super) fn lint_object(
    object: &rbac::Object,
    root: &Node,
    at: &NodePath<'_>,
    report: &mut dyn FnMut(SpannedWarning),
) {
    let mut scope = LintScope { root, at, report };
    match object {
        rbac::Object::Role(role) => rule::lint_rules(role, &mut scope),
        rbac::Object::Binding(binding) => subject::lint_subjects(binding, &mut scope),
    }
}

/// The object that is looked at.
struct LintScope<'a> {
    root: &'a Node,
    at: &'a NodePath<'a>,
    report: &'a mut dyn FnMut(SpannedWarning),
}

impl LintScope<'_> {
    /// Reports something about the field at `path` of the object.
    fn warn(&mut self, code: WarningCode, path: &str, message: String, hint: Option<String>) {
        let span = locate_field(self.root, path).span;
        let field = self.at.child(path).to_indexed_path();
        (self.report)(SpannedWarning { code, field, message, span, hint });
    }
}
