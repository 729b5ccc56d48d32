//! Warnings about objects that the API accepts, but that have no effect or an unintended one.
//!
//! [`lint_object`] finds the warnings about a single object while it is read, when the spans of its fields
//! are available. [`lint_role_references`] finds the warnings that need all objects.

mod built_in_resources;
mod role_ref_lint;
mod rule_lint;
mod subject_lint;

use document::{Node, NodePath, SpannedWarning, WarningCode};

use super::locate_field::locate_field;
use crate::rbac;

pub use role_ref_lint::lint_role_references;

/// Adds warnings for RBAC rules and subjects that match no request.
pub(super) fn lint_object(
    object: &rbac::RbacObject,
    root_node: &Node,
    at: &NodePath<'_>,
    add_warning: &mut dyn FnMut(SpannedWarning),
) {
    let mut ctx = LintContext { root: root_node, at, add_warning };
    match object {
        rbac::RbacObject::Role(role) => rule_lint::lint_rules(role, &mut ctx),
        rbac::RbacObject::Binding(binding) => subject_lint::lint_subjects(binding, &mut ctx),
    }
}

/// The object that is being checked, and the function that receives warnings.
struct LintContext<'a> {
    root: &'a Node,
    at: &'a NodePath<'a>,
    add_warning: &'a mut dyn FnMut(SpannedWarning),
}

impl LintContext<'_> {
    /// Adds a warning about the field at `path` of the object.
    fn warn_at_field(
        &mut self,
        code: WarningCode,
        path: &str,
        message: String,
        hint: Option<String>,
    ) {
        let span = locate_field(self.root, path).span;
        let field = self.at.child_path(path).path_with_indices();
        (self.add_warning)(SpannedWarning { code, field, message, span, hint });
    }
}
