//! The check of `'literal'.format([elements])` before evaluation.

use super::format_clause::{FormatClause, FormatPart, FormatScanner};
use super::index_out_of_range_message;
use crate::static_type::Type;

/// An error in a call of `format` whose format and list are literals.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FormatFault<N> {
    /// The list element, or the node inside it, that is wrong; `None` if the call itself is wrong.
    pub(crate) faulty_node: Option<N>,
    /// The message of the issue.
    pub(crate) message: String,
}

/// Functions that return the type and the nested nodes of a node.
#[derive(Clone, Copy)]
pub(crate) struct LiteralNodeAccess<'t, N> {
    /// The type of an expression.
    pub(crate) type_of_node: &'t dyn Fn(N) -> &'t Type,
    /// The elements of a list literal, or the keys and values of a map literal. Other nodes have no
    /// nested nodes.
    pub(crate) nested_literal_nodes: &'t dyn Fn(N) -> Vec<N>,
}

/// Checks a literal format against the elements of a list literal. Reports only the first fault,
/// because the rest of a format is ambiguous after a fault.
pub(crate) fn validate_format_literal<N: Copy>(
    format: &str,
    list: &[N],
    look: LiteralNodeAccess<'_, N>,
) -> Option<FormatFault<N>> {
    let call = |message: String| Some(FormatFault { faulty_node: None, message });
    let mut scanner = FormatScanner::new(format);
    let mut used = 0;
    while let Some(part) = scanner.next_format_part() {
        let FormatPart::Clause = part else { continue };
        // This check reports the end of the format before a missing element. At run time the order
        // is reversed.
        let element = match list.get(used) {
            None if !scanner.is_at_format_end() => return call(index_out_of_range_message(used)),
            element => element,
        };
        let clause = match scanner.read_clause() {
            Ok(clause) => clause,
            Err(error) => return call(error.to_string()),
        };
        if let Some(culprit) =
            element.and_then(|element| find_mismatched_node(clause, *element, look))
        {
            let refusal = clause.type_error_message(&bare_type_name((look.type_of_node)(culprit)));
            let message = format!("error during formatting: {refusal}");
            return Some(FormatFault { faulty_node: Some(culprit), message });
        }
        used += 1;
    }
    if list.len() > used {
        let given = list.len();
        return call(format!(
            "too many arguments supplied to string.format (expected {used}, got {given})"
        ));
    }
    None
}

/// Finds the node that a clause does not accept. For `%s`, this may be a node inside a literal.
fn find_mismatched_node<N: Copy>(
    clause: FormatClause,
    node: N,
    look: LiteralNodeAccess<'_, N>,
) -> Option<N> {
    if !clause_accepts_type(clause, (look.type_of_node)(node)) {
        return Some(node);
    }
    if clause != FormatClause::Text {
        return None;
    }
    (look.nested_literal_nodes)(node)
        .into_iter()
        .find_map(|part| find_mismatched_node(clause, part, look))
}

/// Reports whether a clause accepts values of a type. Floating point clauses accept some strings.
fn clause_accepts_type(clause: FormatClause, ty: &Type) -> bool {
    if let Type::Wrapper(inner) = ty {
        return clause_accepts_type(clause, inner);
    }
    use Type::{Bool, Bytes, Double, Duration, Dyn, Int, List, Map, Null, String, Timestamp, Uint};
    match clause {
        _ if *ty == Dyn => true,
        FormatClause::Text => matches!(
            ty,
            Bool | Bytes
                | Double
                | Duration
                | Int
                | List(_)
                | Map(..)
                | Null
                | String
                | Timestamp
                | Type::Type(_)
                | Uint
        ),
        FormatClause::Decimal | FormatClause::Octal => matches!(ty, Int | Uint),
        FormatClause::Fixed(_) | FormatClause::Scientific(_) => matches!(ty, Double | String),
        FormatClause::Binary => matches!(ty, Int | Uint | Bool),
        FormatClause::Hex | FormatClause::UpperHex => {
            matches!(ty, Int | Uint | String | Bytes)
        }
    }
}

/// The name of a type without its parameters.
fn bare_type_name(ty: &Type) -> String {
    match ty {
        Type::List(_) => "list".to_owned(),
        Type::Map(..) => "map".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        Type::Type(_) => "type".to_owned(),
        other => other.runtime_type_name(),
    }
}
