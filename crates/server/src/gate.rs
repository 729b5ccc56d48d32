//! Proofs: values that only the step which grants them can make, and that the next step demands.

use std::sync::Arc;

use authz::{Attributes, RequestInfo, User};
use object::Tree;

use crate::view::View;

/// A request that the chain allowed: who asks, for what, and the picture it was decided from.
pub struct Authorized {
    user: Arc<User>,
    info: RequestInfo,
    view: Arc<View>,
}

/// An object, or the end of one, that admission let in.
pub struct Admitted {
    tree: Tree,
}

impl Authorized {
    /// Only [`crate::authorize`] decides.
    pub(crate) fn new(user: Arc<User>, info: RequestInfo, view: Arc<View>) -> Self {
        Self { user, info, view }
    }

    /// Who asks, after impersonation.
    pub fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// What is asked for.
    pub fn info(&self) -> &RequestInfo {
        &self.info
    }

    /// What it was decided from.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// The question that was answered, for related questions.
    pub fn attributes(&self) -> Attributes<'_> {
        self.info.attributes(Some(&self.user))
    }
}

impl Admitted {
    /// Only [`crate::admit`] admits.
    pub(crate) fn new(tree: Tree) -> Self {
        Self { tree }
    }

    /// The object on its way out: its end was admitted, and this is the next step of that.
    pub(crate) fn ending(&self, tree: Tree) -> Self {
        Self { tree }
    }

    /// The object as it may be stored.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The object as it may be stored.
    pub fn into_tree(self) -> Tree {
        self.tree
    }
}
