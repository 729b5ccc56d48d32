//! Copies nodes for macros whose expansion uses an operand twice.

use crate::ast::{Comprehension, ExprKind, NodeId};

use super::MacroExpander;
use crate::parse::parse_issues::ParseAborted;

impl MacroExpander<'_, '_> {
    /// Copies a node with its subtree. Chained macros copy copies; the limit on the number of nodes
    /// bounds this.
    pub(super) fn copy_subtree(&mut self, id: NodeId) -> Result<NodeId, ParseAborted> {
        let Some(node) = self.ast_builder.find_node(id) else {
            return Ok(id);
        };
        let (offset, mut kind) = (node.source_offset, node.kind.clone());
        match &mut kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select { operand, .. } => self.replace_with_subtree_copy(operand)?,
            ExprKind::Call { target, args, .. } => {
                for child in target.iter_mut().chain(args) {
                    self.replace_with_subtree_copy(child)?;
                }
            }
            ExprKind::List { elements, .. } => {
                for child in elements {
                    self.replace_with_subtree_copy(child)?;
                }
            }
            // A copied entry gets the offset of the macro call, as in cel-go.
            ExprKind::Map { entries } => {
                for entry in entries {
                    entry.colon_offset = self.open_paren_offset;
                    self.replace_with_subtree_copy(&mut entry.key)?;
                    self.replace_with_subtree_copy(&mut entry.value)?;
                }
            }
            ExprKind::Struct { fields, .. } => {
                for field in fields {
                    field.colon_offset = self.open_paren_offset;
                    self.replace_with_subtree_copy(&mut field.value)?;
                }
            }
            ExprKind::Comprehension(fold) => self.copy_comprehension_parts(fold)?,
        }
        self.ast_builder.push(offset, kind)
    }

    fn replace_with_subtree_copy(&mut self, id: &mut NodeId) -> Result<(), ParseAborted> {
        *id = self.copy_subtree(*id)?;
        Ok(())
    }

    fn copy_comprehension_parts(&mut self, fold: &mut Comprehension) -> Result<(), ParseAborted> {
        self.replace_with_subtree_copy(&mut fold.iter_range)?;
        self.replace_with_subtree_copy(&mut fold.accu_init)?;
        self.replace_with_subtree_copy(&mut fold.loop_condition)?;
        self.replace_with_subtree_copy(&mut fold.loop_step)?;
        self.replace_with_subtree_copy(&mut fold.result_expr)
    }
}
