//! The check of `'literal'.format([elements])` before evaluation.

use super::clause::{Clause, Part, Scanner};
use super::out_of_range;
use crate::ty::Type;

/// What is wrong with a call of `format` whose format and list are literals.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The element of the list to blame; the call itself if there is none.
    pub(crate) argument: Option<usize>,
    /// The message of the issue.
    pub(crate) message: String,
}

/// Checks a literal format against the types of the elements of a list literal. There is one fault
/// at most, since the rest of a format can not be understood after a fault.
pub(crate) fn validate(format: &str, types: &[&Type]) -> Option<Fault> {
    let call = |message: String| Some(Fault { argument: None, message });
    let mut scanner = Scanner::new(format);
    let mut used = 0;
    while let Some(part) = scanner.next_part() {
        let Part::Clause = part else { continue };
        // Here the end of the format is noticed before the lack of elements; at run time it is the
        // other way around.
        let ty = match types.get(used) {
            None if !scanner.is_at_end() => return call(out_of_range(used)),
            ty => ty,
        };
        match (scanner.clause(), ty) {
            (Err(message), _) => return call(message),
            (Ok(clause), Some(ty)) if !takes(clause, ty) => {
                let message = format!("error during formatting: {}", clause.refusal(&name(ty)));
                return Some(Fault { argument: Some(used), message });
            }
            (Ok(_), _) => used += 1,
        }
    }
    if types.len() > used {
        let given = types.len();
        return call(format!(
            "too many arguments supplied to string.format (expected {used}, got {given})"
        ));
    }
    None
}

/// Whether values of a type may go with a clause. Of text, some go with floating point clauses.
fn takes(clause: Clause, ty: &Type) -> bool {
    if let Type::Wrapper(inner) = ty {
        return takes(clause, inner);
    }
    match (clause, ty) {
        (_, Type::Dyn) => true,
        (
            Clause::Text,
            Type::Bool
            | Type::Bytes
            | Type::Double
            | Type::Duration
            | Type::Int
            | Type::List(_)
            | Type::Map(..)
            | Type::Null
            | Type::String
            | Type::Timestamp
            | Type::Type(_)
            | Type::Uint,
        )
        | (Clause::Decimal | Clause::Octal, Type::Int | Type::Uint)
        | (Clause::Fixed(_) | Clause::Scientific(_), Type::Double | Type::String)
        | (Clause::Binary, Type::Int | Type::Uint | Type::Bool)
        | (
            Clause::Hex | Clause::UpperHex,
            Type::Int | Type::Uint | Type::String | Type::Bytes,
        ) => true,
        _ => false,
    }
}

/// The name of a type without its parameters.
fn name(ty: &Type) -> String {
    match ty {
        Type::List(_) => "list".to_owned(),
        Type::Map(..) => "map".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        Type::Type(_) => "type".to_owned(),
        other => other.runtime_name(),
    }
}
