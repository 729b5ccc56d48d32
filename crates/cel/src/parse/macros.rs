//! Macro expansion: macro calls are replaced while the AST is built.
//!
//! The expansions are those of cel-go, node by node, since cost and type errors depend on them.
//! All nodes that a macro adds have the offset of the opening parenthesis of its call. A call with
//! the name of a macro and another number of arguments is an ordinary call.

use std::sync::Arc;

use crate::ast::{ExprKind, Literal, NodeId};

use super::ast_builder::AstBuilder;
use super::parse_issues::ParseAborted;

mod binding_macros;
mod comprehension_macros;
mod copy_nodes;

/// The result of a macro expansion.
pub(super) enum MacroExpansion {
    Expanded(NodeId),
    /// The call is an ordinary one.
    NoMacro,
    /// The macro does not accept the arguments.
    Misused {
        /// The argument that is not accepted.
        node: NodeId,
        message: String,
    },
}

/// The reason why a macro call cannot be expanded.
enum ExpansionError {
    Abort(ParseAborted),
    Misuse { node: NodeId, message: String },
}

impl From<ParseAborted> for ExpansionError {
    fn from(abort: ParseAborted) -> Self {
        Self::Abort(abort)
    }
}

fn macro_misuse_error(node: NodeId, message: &str) -> ExpansionError {
    ExpansionError::Misuse { node, message: message.to_owned() }
}

/// Expands the call of a macro.
pub(super) fn expand_macro(
    builder: &mut AstBuilder<'_>,
    open_paren_offset: u32,
    target: Option<NodeId>,
    function: &str,
    args: &[NodeId],
) -> Result<MacroExpansion, ParseAborted> {
    let mut at = MacroExpander { ast_builder: builder, open_paren_offset };
    let expanded = match (target, function, args) {
        (None, "has", &[argument]) => at.expand_has(argument),
        (Some(range), "all" | "exists" | "exists_one", &[variable, test]) => {
            at.expand_quantifier(function, range, &[variable], test)
        }
        (Some(range), "all" | "exists" | "exists_one" | "existsOne", &[first, second, test]) => {
            at.expand_quantifier(function, range, &[first, second], test)
        }
        (Some(range), "map", &[variable, transform]) => {
            at.expand_map(range, variable, None, transform)
        }
        (Some(range), "map", &[variable, filter, transform]) => {
            at.expand_map(range, variable, Some(filter), transform)
        }
        (Some(range), "filter", &[variable, test]) => at.expand_filter(range, variable, test),
        (
            Some(range),
            "transformList" | "transformMap" | "transformMapEntry",
            &[first, second, ref rest @ .., transform],
        ) if rest.len() < 2 => {
            at.expand_transform(function, range, &[first, second], rest.first().copied(), transform)
        }
        (Some(target), "optMap", &[variable, value]) => at.expand_opt_map(target, variable, value),
        (Some(target), "optFlatMap", &[variable, value]) => {
            at.expand_opt_flat_map(target, variable, value)
        }
        (Some(target), "sortBy", &[variable, key]) => at.expand_sort_by(target, variable, key),
        _ => return Ok(MacroExpansion::NoMacro),
    };
    match expanded {
        Ok(node) => Ok(MacroExpansion::Expanded(node)),
        Err(ExpansionError::Abort(abort)) => Err(abort),
        Err(ExpansionError::Misuse { node, message }) => {
            Ok(MacroExpansion::Misused { node, message })
        }
    }
}

/// Adds the nodes of one macro expansion to the AST.
struct MacroExpander<'a, 'b> {
    ast_builder: &'a mut AstBuilder<'b>,
    open_paren_offset: u32,
}

impl MacroExpander<'_, '_> {
    /// Expands `has(a.b)`, which tests whether `a` has a field `b`.
    fn expand_has(&mut self, argument: NodeId) -> Result<NodeId, ExpansionError> {
        match self.node_kind(argument) {
            Some(ExprKind::Select { operand, field, .. }) => {
                let (operand, field) = (*operand, Arc::clone(field));
                Ok(self.push(ExprKind::Select { operand, field, test_only: true })?)
            }
            _ => Err(macro_misuse_error(argument, "invalid argument to has() macro")),
        }
    }

    fn node_kind(&self, node: NodeId) -> Option<&ExprKind> {
        self.ast_builder.find_node(node).map(|node| &node.kind)
    }

    /// The name of an identifier node; `None` for other nodes.
    fn ident_name(&self, node: NodeId) -> Option<Arc<str>> {
        match self.node_kind(node) {
            Some(ExprKind::Ident(name)) => Some(Arc::clone(name)),
            _ => None,
        }
    }

    fn push(&mut self, kind: ExprKind) -> Result<NodeId, ParseAborted> {
        self.ast_builder.push(self.open_paren_offset, kind)
    }

    fn push_literal(&mut self, literal: Literal) -> Result<NodeId, ParseAborted> {
        self.push(ExprKind::Literal(literal))
    }

    fn push_ident(&mut self, name: &str) -> Result<NodeId, ParseAborted> {
        self.push(ExprKind::Ident(Arc::from(name)))
    }

    fn push_list(&mut self, elements: Vec<NodeId>) -> Result<NodeId, ParseAborted> {
        self.push(ExprKind::List { elements, optional_indices: Vec::new() })
    }

    fn push_global_call(
        &mut self,
        function: &str,
        args: Vec<NodeId>,
    ) -> Result<NodeId, ParseAborted> {
        self.ast_builder.push_call(self.open_paren_offset, function, args)
    }

    fn push_member_call(
        &mut self,
        target: NodeId,
        function: &str,
        args: Vec<NodeId>,
    ) -> Result<NodeId, ParseAborted> {
        let function = Arc::from(function);
        self.push(ExprKind::Call { target: Some(target), function, args })
    }
}
