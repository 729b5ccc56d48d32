//! Builds the AST from the concrete syntax tree.
//!
//! Each node gets the offset that cel-go gives it, since type errors are reported there.

use std::borrow::Cow;
use std::sync::Arc;

use crate::ast::{Ast, AstNode, ExprKind, Literal, MapLiteralEntry, MessageLiteralField, NodeId};
use crate::compile_budget::CompileBudget;
use crate::issues::IssueLocation;

use super::concrete_syntax_tree::{
    ConcreteSyntaxTree, ElementSyntax, FieldName, KeyValueSyntax, MessageFieldKey, SyntaxNode,
    SyntaxNodeId,
};
use super::node_arena::{NodeArena, NodeLimitError};
use super::parse_issues::{ParseAborted, ParseIssues};
use super::token::{Token, TokenKind};
use super::{DEPTH_MAX, RECURSION_MAX, literal, macros};

/// Builds the AST. It must not be used if an issue is reported.
pub(super) fn build_ast(
    source: &str,
    syntax_tree: &ConcreteSyntaxTree,
    root: SyntaxNodeId,
    issues: &mut ParseIssues,
    compile_budget: &mut CompileBudget,
) -> Result<Ast, ParseAborted> {
    let nodes = NodeArena::new(compile_budget);
    let mut builder = AstBuilder {
        source,
        concrete_syntax_tree: syntax_tree,
        issues,
        nodes,
        ast_depth: 0,
        recursion_depth: 0,
    };
    let root = builder.build_node(root)?;
    Ok(builder.nodes.into_ast(root))
}

/// The offset of placeholder nodes, which occur only in an AST with issues.
const NO_OFFSET: u32 = u32::MAX;

/// cel-go's message for a field without a valid name.
const MISSING_FIELD_NAME: &str = "unsupported ident kind";

/// Words that cannot be identifiers.
const RESERVED_WORDS: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

pub(super) struct AstBuilder<'s> {
    source: &'s str,
    concrete_syntax_tree: &'s ConcreteSyntaxTree,
    issues: &'s mut ParseIssues,
    nodes: NodeArena<'s>,
    /// The depth of the node that is being built.
    ast_depth: u32,
    /// The depth that counts against cel-go's limit.
    recursion_depth: u32,
}

impl<'s> AstBuilder<'s> {
    fn build_node(&mut self, id: SyntaxNodeId) -> Result<NodeId, ParseAborted> {
        self.ast_depth += 1;
        if self.ast_depth > DEPTH_MAX {
            return Err(self.issues.report_limit_exceeded(NodeLimitError::Depth.to_string()));
        }
        let syntax = self.concrete_syntax_tree;
        let node =
            match syntax.syntax_node(id) {
                SyntaxNode::Missing => self.push_placeholder(),
                SyntaxNode::MissingOperand(offset) => {
                    self.push(*offset, ExprKind::Literal(Literal::String(Arc::from("<<error>>"))))
                }
                SyntaxNode::Conditional { question, condition, then, otherwise } => self
                    .build_with_depth_check(|builder| {
                        let args = builder.build_nodes(&[*condition, *then, *otherwise])?;
                        builder.push_call(*question, "_?_:_", args)
                    }),
                SyntaxNode::Logical { function, operands, operators } => {
                    let operands = self.build_nodes(operands)?;
                    self.build_balanced_logical_tree(function, &operands, operators)
                }
                SyntaxNode::Binary { function, operator, left, right } => self
                    .build_with_depth_check(|builder| {
                        let args = builder.build_nodes(&[*left, *right])?;
                        builder.push_call(*operator, function, args)
                    }),
                // An even number of prefix operators cancels out.
                SyntaxNode::Prefix { n_operators, operand, .. } if n_operators % 2 == 0 => {
                    self.build_node(*operand)
                }
                SyntaxNode::Prefix { function, first, operand, .. } => {
                    let operand = self.build_node(*operand)?;
                    self.push_call(*first, function, vec![operand])
                }
                SyntaxNode::Select { operand, dot, is_optional, field } => self
                    .build_with_depth_check(|builder| {
                        builder.build_select(*operand, *dot, *is_optional, *field)
                    }),
                SyntaxNode::MemberCall { operand, name, open, arguments } => self
                    .build_with_depth_check(|builder| {
                        let target = builder.build_node(*operand)?;
                        let args = builder.build_nodes(arguments)?;
                        builder.build_call_or_macro(
                            *open,
                            Some(target),
                            name.source_text(builder.source),
                            args,
                        )
                    }),
                SyntaxNode::Index { operand, open, is_optional, index } => self
                    .build_with_depth_check(|builder| {
                        let args = builder.build_nodes(&[*operand, *index])?;
                        builder.push_call(*open, if *is_optional { "_[?_]" } else { "_[_]" }, args)
                    }),
                SyntaxNode::Ident { leading_dot, name } => self.build_ident(*leading_dot, *name),
                SyntaxNode::Call { leading_dot, name, open, arguments } => {
                    self.build_global_call(*leading_dot, *name, *open, arguments)
                }
                SyntaxNode::List { open, elements } => self.build_list_literal(*open, elements),
                SyntaxNode::Map { open, entries } => self.build_map_literal(*open, entries),
                SyntaxNode::Message { leading_dot, names, open, fields } => {
                    self.build_message_literal(*leading_dot, names, *open, fields)
                }
                SyntaxNode::Literal { sign, token } => self.build_literal(*sign, *token),
            }?;
        self.ast_depth -= 1;
        self.nodes.set_node_span(node, syntax.source_span(id));
        Ok(node)
    }

    fn build_nodes(&mut self, ids: &[SyntaxNodeId]) -> Result<Vec<NodeId>, ParseAborted> {
        ids.iter().map(|id| self.build_node(*id)).collect()
    }

    /// Builds a node of a kind whose nesting cel-go limits.
    fn build_with_depth_check(
        &mut self,
        visit: impl FnOnce(&mut Self) -> Result<NodeId, ParseAborted>,
    ) -> Result<NodeId, ParseAborted> {
        self.recursion_depth += 1;
        if self.recursion_depth > RECURSION_MAX {
            return Err(self
                .issues
                .report_limit_exceeded("max recursion depth exceeded".to_owned()));
        }
        let node = visit(self)?;
        self.recursion_depth -= 1;
        Ok(node)
    }

    /// Builds a balanced tree from a run of `&&` or `||` operators.
    fn build_balanced_logical_tree(
        &mut self,
        function: &str,
        operands: &[NodeId],
        operators: &[u32],
    ) -> Result<NodeId, ParseAborted> {
        if let [operand] = operands {
            return Ok(*operand);
        }
        let middle = operators.len() / 2;
        let Some(offset) = operators.get(middle) else {
            return self.push_placeholder();
        };
        let (left_operands, right_operands) = operands.split_at(middle + 1);
        let left = self.build_balanced_logical_tree(
            function,
            left_operands,
            operators.split_at(middle).0,
        )?;
        let right = self.build_balanced_logical_tree(
            function,
            right_operands,
            operators.split_at(middle + 1).1,
        )?;
        self.push_call(*offset, function, vec![left, right])
    }

    fn build_select(
        &mut self,
        operand: SyntaxNodeId,
        dot: u32,
        is_optional: bool,
        field: FieldName,
    ) -> Result<NodeId, ParseAborted> {
        let operand = self.build_node(operand)?;
        let name = self.read_field_name(field).unwrap_or_else(|| {
            let location = IssueLocation::Offset(field.source_offset);
            self.issues.report_semantic_error(location, MISSING_FIELD_NAME.to_owned());
            Arc::default()
        });
        if is_optional {
            let name = self.push(field.source_offset, ExprKind::Literal(Literal::String(name)))?;
            self.push_call(dot, "_?._", vec![operand, name])
        } else {
            self.push(dot, ExprKind::Select { operand, field: name, test_only: false })
        }
    }

    /// The name of a field without backticks; `None` if the source has no valid name there.
    fn read_field_name(&self, field: FieldName) -> Option<Arc<str>> {
        let token = field.name?;
        let text = token.source_text(self.source);
        Some(Arc::from(match token.kind {
            TokenKind::EscapedIdentifier => text.trim_matches('`'),
            _ => text,
        }))
    }

    fn build_ident(
        &mut self,
        leading_dot: Option<u32>,
        name: Token,
    ) -> Result<NodeId, ParseAborted> {
        match self.read_unreserved_name(leading_dot, name) {
            Some(ident) => self.push(name.source_offset, ExprKind::Ident(Arc::from(ident))),
            None => self.push_placeholder_at(IssueLocation::Offset(
                leading_dot.unwrap_or(name.source_offset),
            )),
        }
    }

    fn build_global_call(
        &mut self,
        leading_dot: Option<u32>,
        name: Token,
        open: u32,
        arguments: &[SyntaxNodeId],
    ) -> Result<NodeId, ParseAborted> {
        match self.read_unreserved_name(leading_dot, name) {
            Some(function) => {
                let args = self.build_nodes(arguments)?;
                self.build_call_or_macro(open, None, &function, args)
            }
            None => self.push_placeholder_at(IssueLocation::Offset(
                leading_dot.unwrap_or(name.source_offset),
            )),
        }
    }

    /// A name with its leading dot, unless it is a reserved word, which is reported.
    fn read_unreserved_name(
        &mut self,
        leading_dot: Option<u32>,
        name: Token,
    ) -> Option<Cow<'s, str>> {
        let text = name.source_text(self.source);
        if RESERVED_WORDS.contains(&text) {
            let location = IssueLocation::Offset(leading_dot.unwrap_or(name.source_offset));
            self.issues.report_semantic_error(location, format!("reserved identifier: {text}"));
            return None;
        }
        match leading_dot {
            Some(_) => Some(Cow::Owned(format!(".{text}"))),
            None => Some(Cow::Borrowed(text)),
        }
    }

    fn build_call_or_macro(
        &mut self,
        open: u32,
        target: Option<NodeId>,
        function: &str,
        args: Vec<NodeId>,
    ) -> Result<NodeId, ParseAborted> {
        match macros::expand_macro(self, open, target, function, &args)? {
            macros::MacroExpansion::Expanded(node) => Ok(node),
            macros::MacroExpansion::NoMacro => {
                self.push(open, ExprKind::Call { target, function: Arc::from(function), args })
            }
            macros::MacroExpansion::Misused { node, message } => {
                let location = self.issue_location_of(node);
                self.issues.report_semantic_error(location, message);
                self.push_placeholder_at(location)
            }
        }
    }

    fn build_list_literal(
        &mut self,
        open: u32,
        elements: &[ElementSyntax],
    ) -> Result<NodeId, ParseAborted> {
        let optional_indices =
            elements.iter().enumerate().filter(|(_, element)| element.has_optional_mark);
        let optional_indices = optional_indices.map(|(index, _)| index).collect();
        let elements: Result<_, _> =
            elements.iter().map(|element| self.build_node(element.value)).collect();
        self.push(open, ExprKind::List { elements: elements?, optional_indices })
    }

    fn build_map_literal(
        &mut self,
        open: u32,
        entries: &[KeyValueSyntax<ElementSyntax>],
    ) -> Result<NodeId, ParseAborted> {
        let mut built = Vec::with_capacity(entries.len());
        for KeyValueSyntax { key, colon_offset: colon, value } in entries {
            let is_optional = key.has_optional_mark;
            let key = self.build_node(key.value)?;
            let value = self.build_node(*value)?;
            built.push(MapLiteralEntry {
                key,
                value,
                is_optional_entry: is_optional,
                colon_offset: *colon,
            });
        }
        self.push(open, ExprKind::Map { entries: built })
    }

    fn build_message_literal(
        &mut self,
        leading_dot: bool,
        names: &[Token],
        open: u32,
        fields: &[KeyValueSyntax<MessageFieldKey>],
    ) -> Result<NodeId, ParseAborted> {
        let mut name = String::new();
        for (n, part) in names.iter().enumerate() {
            if leading_dot || n > 0 {
                name.push('.');
            }
            name.push_str(part.source_text(self.source));
        }
        let mut built = Vec::with_capacity(fields.len());
        for KeyValueSyntax { key, colon_offset: colon, value } in fields {
            let missing = FieldName { source_offset: key.first_field_offset, name: None };
            match self.read_field_name(key.name.unwrap_or(missing)) {
                Some(name) => {
                    let value = self.build_node(*value)?;
                    let is_optional = key.has_optional_mark;
                    built.push(MessageLiteralField {
                        name,
                        value,
                        is_optional_field: is_optional,
                        colon_offset: *colon,
                    });
                }
                None => {
                    let location = IssueLocation::Offset(key.first_field_offset);
                    self.issues.report_semantic_error(location, MISSING_FIELD_NAME.to_owned());
                }
            }
        }
        self.push(open, ExprKind::Struct { name: Arc::from(name), fields: built })
    }

    fn build_literal(&mut self, sign: Option<Token>, token: Token) -> Result<NodeId, ParseAborted> {
        let offset = sign.map_or(token.source_offset, |sign| sign.source_offset);
        match literal::parse_literal(token.kind, sign.is_some(), token.source_text(self.source)) {
            Ok(value) => self.push(offset, ExprKind::Literal(value)),
            Err(error) => {
                let location = IssueLocation::Offset(offset);
                self.issues.report_semantic_error(location, error.to_string());
                self.push_placeholder_at(IssueLocation::Offset(offset))
            }
        }
    }

    /// Adds a placeholder for a missing or invalid node; the issue is already reported.
    fn push_placeholder(&mut self) -> Result<NodeId, ParseAborted> {
        self.push_placeholder_at(IssueLocation::NoSource)
    }

    fn push_placeholder_at(&mut self, location: IssueLocation) -> Result<NodeId, ParseAborted> {
        let offset = match location {
            IssueLocation::Offset(offset) => offset,
            IssueLocation::NoSource | IssueLocation::WholeExpression => NO_OFFSET,
        };
        self.push(offset, ExprKind::Literal(Literal::Null))
    }

    fn issue_location_of(&self, node: NodeId) -> IssueLocation {
        match self.find_node(node) {
            Some(AstNode { source_offset: NO_OFFSET, .. }) | None => IssueLocation::NoSource,
            Some(AstNode { source_offset: offset, .. }) => IssueLocation::Offset(*offset),
        }
    }

    pub(super) fn find_node(&self, id: NodeId) -> Option<&AstNode> {
        self.nodes.get(id)
    }

    pub(super) fn push_call(
        &mut self,
        offset: u32,
        function: &str,
        args: Vec<NodeId>,
    ) -> Result<NodeId, ParseAborted> {
        self.push(offset, ExprKind::Call { target: None, function: Arc::from(function), args })
    }

    /// Adds a node whose children are already in the arena.
    pub(super) fn push(&mut self, offset: u32, kind: ExprKind) -> Result<NodeId, ParseAborted> {
        let pushed = self.nodes.push(AstNode { kind, source_offset: offset, source_span: None });
        pushed.map_err(|error| self.issues.report_limit_exceeded(error.to_string()))
    }
}
