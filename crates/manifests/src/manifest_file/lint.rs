//! What the API accepts although it does nothing, or not what its author meant.
//!
//! What an object shows by itself is found while it is read, when the places of its fields are at
//! hand; what takes all objects together is found by [`lint`].

mod built_in;
mod role_ref;
mod rule;
mod subject;

use document::decode::At;
use document::{Caution, Node, WarningCode};

use super::locate::locate;
use crate::rbac;

pub use role_ref::lint;

/// Looks at one object.
pub(super) fn object(
    object: &rbac::Object,
    root: &Node,
    at: &At<'_>,
    report: &mut dyn FnMut(Caution),
) {
    let mut scope = Scope { root, at, report };
    match object {
        rbac::Object::Role(role) => rule::check(role, &mut scope),
        rbac::Object::Binding(binding) => subject::check(binding, &mut scope),
    }
}

/// The object that is looked at.
struct Scope<'a> {
    root: &'a Node,
    at: &'a At<'a>,
    report: &'a mut dyn FnMut(Caution),
}

impl Scope<'_> {
    /// Reports something about the field at `path` of the object.
    fn warn(&mut self, code: WarningCode, path: &str, message: String, hint: Option<String>) {
        let span = locate(self.root, path).span;
        let field = self.at.child(path).indexed();
        (self.report)(Caution { code, field, message, span, hint });
    }
}
