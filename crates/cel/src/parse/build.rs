//! From what the grammar finds to the tree that the rest of the crate works on.
//!
//! Each node gets the offset that cel-go gives it, since type errors are reported there.

use std::borrow::Cow;
use std::sync::Arc;

use crate::ast::{Ast, Kind, Literal, MapEntry, Node, NodeId, StructField};
use crate::budget::Budget;
use crate::issue::Place;

use super::nodes::{self, Nodes};
use super::report::{Abort, Reports};
use super::syntax::{Element, Entry, FieldName, MessageField, Syntax, SyntaxId, SyntaxTree};
use super::token::{Token, TokenKind};
use super::{DEPTH_MAX, RECURSION_MAX, literal, macros};

/// Builds the tree. What it reports makes the tree useless.
pub(super) fn build(
    source: &str,
    syntax: &SyntaxTree,
    root: SyntaxId,
    reports: &mut Reports,
    budget: &mut Budget,
) -> Result<Ast, Abort> {
    let nodes = Nodes::new(budget);
    let mut builder = Builder { source, syntax, reports, nodes, depth: 0, recursion: 0 };
    let root = builder.visit(root)?;
    Ok(builder.nodes.into_ast(root))
}

/// The offset of a node that stands for nothing in the source. It is never in a tree that is used.
const NO_OFFSET: u32 = u32::MAX;

/// Words that are no names of variables or functions.
const RESERVED: [&str; 17] = [
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

pub(super) struct Builder<'s> {
    source: &'s str,
    syntax: &'s SyntaxTree,
    reports: &'s mut Reports,
    nodes: Nodes<'s>,
    /// How many nodes are being visited.
    depth: u32,
    /// How many of them count against cel-go's limit.
    recursion: u32,
}

impl<'s> Builder<'s> {
    fn visit(&mut self, id: SyntaxId) -> Result<NodeId, Abort> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.reports.limit(nodes::depth_exceeded()));
        }
        let syntax = self.syntax;
        let node = match syntax.node(id) {
            Syntax::Missing => self.nothing(),
            Syntax::MissingOperand(offset) => {
                self.push(*offset, Kind::Literal(Literal::String(Arc::from("<<error>>"))))
            }
            Syntax::Conditional { question, condition, then, otherwise } => {
                self.visit_counted(|builder| {
                    let args = builder.visit_all(&[*condition, *then, *otherwise])?;
                    builder.call(*question, "_?_:_", args)
                })
            }
            Syntax::Logical { function, operands, operators } => {
                let operands = self.visit_all(operands)?;
                self.balance(function, &operands, operators)
            }
            Syntax::Binary { function, operator, left, right } => self.visit_counted(|builder| {
                let args = builder.visit_all(&[*left, *right])?;
                builder.call(*operator, function, args)
            }),
            // An even number of them cancels out.
            Syntax::Prefix { n_operators, operand, .. } if n_operators % 2 == 0 => {
                self.visit(*operand)
            }
            Syntax::Prefix { function, first, operand, .. } => {
                let operand = self.visit(*operand)?;
                self.call(*first, function, vec![operand])
            }
            Syntax::Select { operand, dot, optional, field } => {
                self.visit_counted(|builder| builder.select(*operand, *dot, *optional, *field))
            }
            Syntax::MemberCall { operand, name, open, arguments } => {
                self.visit_counted(|builder| {
                    let target = builder.visit(*operand)?;
                    let args = builder.visit_all(arguments)?;
                    builder.call_or_macro(*open, Some(target), name.text(builder.source), args)
                })
            }
            Syntax::Index { operand, open, optional, index } => self.visit_counted(|builder| {
                let args = builder.visit_all(&[*operand, *index])?;
                builder.call(*open, if *optional { "_[?_]" } else { "_[_]" }, args)
            }),
            Syntax::Ident { leading_dot, name } => self.ident(*leading_dot, *name),
            Syntax::Call { leading_dot, name, open, arguments } => {
                self.global_call(*leading_dot, *name, *open, arguments)
            }
            Syntax::List { open, elements } => self.list(*open, elements),
            Syntax::Map { open, entries } => self.map(*open, entries),
            Syntax::Message { leading_dot, names, open, fields } => {
                self.message(*leading_dot, names, *open, fields)
            }
            Syntax::Literal { sign, token } => self.literal(*sign, *token),
        }?;
        self.depth -= 1;
        self.nodes.set_span(node, syntax.span(id));
        Ok(node)
    }

    fn visit_all(&mut self, ids: &[SyntaxId]) -> Result<Vec<NodeId>, Abort> {
        ids.iter().map(|id| self.visit(*id)).collect()
    }

    /// Visits a node of a kind that cel-go limits the nesting of.
    fn visit_counted(
        &mut self,
        visit: impl FnOnce(&mut Self) -> Result<NodeId, Abort>,
    ) -> Result<NodeId, Abort> {
        self.recursion += 1;
        if self.recursion > RECURSION_MAX {
            return Err(self.reports.limit("max recursion depth exceeded".to_owned()));
        }
        let node = visit(self)?;
        self.recursion -= 1;
        Ok(node)
    }

    /// A chain of `&&` or `||` becomes a tree that is as flat as can be.
    fn balance(
        &mut self,
        function: &str,
        operands: &[NodeId],
        operators: &[u32],
    ) -> Result<NodeId, Abort> {
        if let [operand] = operands {
            return Ok(*operand);
        }
        let middle = operators.len() / 2;
        let Some(offset) = operators.get(middle) else {
            return self.nothing();
        };
        let (left_operands, right_operands) = operands.split_at(middle + 1);
        let left = self.balance(function, left_operands, operators.split_at(middle).0)?;
        let right = self.balance(function, right_operands, operators.split_at(middle + 1).1)?;
        self.call(*offset, function, vec![left, right])
    }

    fn select(
        &mut self,
        operand: SyntaxId,
        dot: u32,
        optional: bool,
        field: FieldName,
    ) -> Result<NodeId, Abort> {
        let operand = self.visit(operand)?;
        let name = self.field_name(field).unwrap_or_else(|message| {
            self.reports.misuse(Place::Offset(field.offset), message);
            Arc::default()
        });
        if optional {
            let name = self.push(field.offset, Kind::Literal(Literal::String(name)))?;
            self.call(dot, "_?._", vec![operand, name])
        } else {
            self.push(dot, Kind::Select { operand, field: name, test_only: false })
        }
    }

    fn field_name(&self, field: FieldName) -> Result<Arc<str>, String> {
        let Some(token) = field.name else {
            return Err("unsupported ident kind".to_owned());
        };
        let text = token.text(self.source);
        Ok(Arc::from(match token.kind {
            TokenKind::EscapedIdentifier => text.trim_matches('`'),
            _ => text,
        }))
    }

    fn ident(&mut self, leading_dot: Option<u32>, name: Token) -> Result<NodeId, Abort> {
        match self.unreserved(leading_dot, name) {
            Some(ident) => self.push(name.offset, Kind::Ident(Arc::from(ident))),
            None => self.nothing_at(Place::Offset(leading_dot.unwrap_or(name.offset))),
        }
    }

    fn global_call(
        &mut self,
        leading_dot: Option<u32>,
        name: Token,
        open: u32,
        arguments: &[SyntaxId],
    ) -> Result<NodeId, Abort> {
        match self.unreserved(leading_dot, name) {
            Some(function) => {
                let args = self.visit_all(arguments)?;
                self.call_or_macro(open, None, &function, args)
            }
            None => self.nothing_at(Place::Offset(leading_dot.unwrap_or(name.offset))),
        }
    }

    /// A name with its leading dot, unless it is a reserved word, which is reported.
    fn unreserved(&mut self, leading_dot: Option<u32>, name: Token) -> Option<Cow<'s, str>> {
        let text = name.text(self.source);
        if RESERVED.contains(&text) {
            let place = Place::Offset(leading_dot.unwrap_or(name.offset));
            self.reports.misuse(place, format!("reserved identifier: {text}"));
            return None;
        }
        match leading_dot {
            Some(_) => Some(Cow::Owned(format!(".{text}"))),
            None => Some(Cow::Borrowed(text)),
        }
    }

    fn call_or_macro(
        &mut self,
        open: u32,
        target: Option<NodeId>,
        function: &str,
        args: Vec<NodeId>,
    ) -> Result<NodeId, Abort> {
        match macros::expand(self, open, target, function, &args)? {
            macros::Expansion::Expanded(node) => Ok(node),
            macros::Expansion::NoMacro => {
                self.push(open, Kind::Call { target, function: Arc::from(function), args })
            }
            macros::Expansion::Misused { node, message } => {
                let place = self.place(node);
                self.reports.misuse(place, message);
                self.nothing_at(place)
            }
        }
    }

    fn list(&mut self, open: u32, elements: &[Element]) -> Result<NodeId, Abort> {
        let optional = elements.iter().enumerate().filter(|(_, element)| element.optional);
        let optional = optional.map(|(index, _)| index).collect();
        let elements: Result<_, _> =
            elements.iter().map(|element| self.visit(element.value)).collect();
        self.push(open, Kind::List { elements: elements?, optional })
    }

    fn map(&mut self, open: u32, entries: &[Entry<Element>]) -> Result<NodeId, Abort> {
        let mut built = Vec::with_capacity(entries.len());
        for Entry { key, colon, value } in entries {
            let optional = key.optional;
            let key = self.visit(key.value)?;
            let value = self.visit(*value)?;
            built.push(MapEntry { key, value, optional, offset: *colon });
        }
        self.push(open, Kind::Map { entries: built })
    }

    fn message(
        &mut self,
        leading_dot: bool,
        names: &[Token],
        open: u32,
        fields: &[Entry<MessageField>],
    ) -> Result<NodeId, Abort> {
        let mut name = String::new();
        for (n, part) in names.iter().enumerate() {
            if leading_dot || n > 0 {
                name.push('.');
            }
            name.push_str(part.text(self.source));
        }
        let mut built = Vec::with_capacity(fields.len());
        for Entry { key, colon, value } in fields {
            let missing = FieldName { offset: key.fields_start, name: None };
            match self.field_name(key.name.unwrap_or(missing)) {
                Ok(name) => {
                    let value = self.visit(*value)?;
                    let optional = key.optional;
                    built.push(StructField { name, value, optional, offset: *colon });
                }
                Err(message) => {
                    self.reports.misuse(Place::Offset(key.fields_start), message);
                }
            }
        }
        self.push(open, Kind::Struct { name: Arc::from(name), fields: built })
    }

    fn literal(&mut self, sign: Option<Token>, token: Token) -> Result<NodeId, Abort> {
        let offset = sign.map_or(token.offset, |sign| sign.offset);
        match literal::value(token.kind, sign.is_some(), token.text(self.source)) {
            Ok(value) => self.push(offset, Kind::Literal(value)),
            Err(message) => {
                self.reports.misuse(Place::Offset(offset), message.to_owned());
                self.nothing_at(Place::Offset(offset))
            }
        }
    }

    /// A node for what is not in the source, or is wrong. Something has been reported.
    fn nothing(&mut self) -> Result<NodeId, Abort> {
        self.nothing_at(Place::Nothing)
    }

    fn nothing_at(&mut self, place: Place) -> Result<NodeId, Abort> {
        let offset = match place {
            Place::Offset(offset) => offset,
            Place::Nothing | Place::Whole => NO_OFFSET,
        };
        self.push(offset, Kind::Literal(Literal::Null))
    }

    fn place(&self, node: NodeId) -> Place {
        match self.node(node) {
            Some(Node { offset: NO_OFFSET, .. }) | None => Place::Nothing,
            Some(Node { offset, .. }) => Place::Offset(*offset),
        }
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id)
    }

    pub(super) fn call(
        &mut self,
        offset: u32,
        function: &str,
        args: Vec<NodeId>,
    ) -> Result<NodeId, Abort> {
        self.push(offset, Kind::Call { target: None, function: Arc::from(function), args })
    }

    /// Adds a node whose children are there already.
    pub(super) fn push(&mut self, offset: u32, kind: Kind) -> Result<NodeId, Abort> {
        let pushed = self.nodes.push(Node { kind, offset, span: None });
        pushed.map_err(|message| self.reports.limit(message))
    }
}
