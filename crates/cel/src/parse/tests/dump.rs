//! Renders an AST as text, to compare it with that of cel-go.

use std::fmt::Write;

use crate::ast::{Ast, ExprKind, Literal, NodeId};

/// Renders an AST. The offset of each node follows an `@`.
pub(super) fn dump(ast: &Ast) -> String {
    let mut text = String::new();
    dump_node(ast, ast.root_node, &mut text);
    text
}

fn dump_node(ast: &Ast, id: NodeId, out: &mut String) {
    match ast.kind(id) {
        ExprKind::Literal(literal) => out.push_str(&literal_text(literal)),
        ExprKind::Ident(name) => out.push_str(name),
        ExprKind::Select { operand, field, test_only } => {
            out.push_str(if *test_only { "(has " } else { "(select " });
            dump_node(ast, *operand, out);
            write!(out, " {field})").unwrap();
        }
        ExprKind::Call { target: None, function, args } => {
            write!(out, "(call {function}").unwrap();
            dump_all(ast, args, out);
        }
        ExprKind::Call { target: Some(target), function, args } => {
            out.push_str("(method ");
            dump_node(ast, *target, out);
            write!(out, " {function}").unwrap();
            dump_all(ast, args, out);
        }
        ExprKind::List { elements, optional_indices } => {
            out.push_str("(list");
            for (n, element) in elements.iter().enumerate() {
                out.push_str(if optional_indices.contains(&n) { " ?" } else { " " });
                dump_node(ast, *element, out);
            }
            out.push(')');
        }
        ExprKind::Map { entries } => {
            out.push_str("(map");
            for entry in entries {
                let mark = if entry.is_optional_entry { "?" } else { "" };
                write!(out, " ({mark}entry@{}", entry.colon_offset).unwrap();
                dump_all(ast, &[entry.key, entry.value], out);
            }
            out.push(')');
        }
        ExprKind::Struct { name, fields } => {
            write!(out, "(struct {name}").unwrap();
            for field in fields {
                let mark = if field.is_optional_field { "?" } else { "" };
                write!(out, " ({mark}field@{} {}", field.colon_offset, field.name).unwrap();
                dump_all(ast, &[field.value], out);
            }
            out.push(')');
        }
        ExprKind::Comprehension(fold) => {
            write!(out, "(fold {}", fold.iter_var).unwrap();
            if let Some(name) = &fold.iter_var2 {
                write!(out, ",{name}").unwrap();
            }
            out.push(' ');
            dump_node(ast, fold.iter_range, out);
            write!(out, " {}", fold.accu_var).unwrap();
            let parts = [fold.accu_init, fold.loop_condition, fold.loop_step, fold.result_expr];
            dump_all(ast, &parts, out);
        }
    }
    write!(out, "@{}", ast.source_offset(id)).unwrap();
}

/// Appends the nodes of a list, each after a blank, and the closing parenthesis.
fn dump_all(ast: &Ast, ids: &[NodeId], out: &mut String) {
    for id in ids {
        out.push(' ');
        dump_node(ast, *id, out);
    }
    out.push(')');
}

fn literal_text(literal: &Literal) -> String {
    match literal {
        Literal::Null => "null".to_owned(),
        Literal::Bool(value) => value.to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Uint(value) => format!("{value}u"),
        Literal::Double(value) => format!("{value:?}"),
        Literal::String(value) => quoted(value),
        Literal::Bytes(value) => {
            let digits: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("b\"{digits}\"")
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            ' '..='~' if c != '"' && c != '\\' => out.push(c),
            _ => write!(out, "\\u{{{:x}}}", u32::from(c)).unwrap(),
        }
    }
    out.push('"');
    out
}
