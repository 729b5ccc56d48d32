//! Kubernetes' CIDR library: `cidr`, `isCIDR`, the parts of networks, and containment.

use super::ip;
use crate::cost;
use crate::function::{CostFormula, EvalError, EvalResult, FunctionRegistry, Overload};
use crate::static_type::Type;
use crate::value::{Cidr, OpaqueValue, Value};

/// Declares the functions of Kubernetes' CIDR library.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let cidr = || Type::Opaque(OpaqueValue::CIDR);
    let ip = || Type::Opaque(OpaqueValue::IP);
    let text = || vec![Type::String];
    let read = Overload::new_global_overload("string_to_cidr", text(), cidr(), string_to_cidr);
    functions.add_overloads("cidr", vec![read.with_cost_formula(CostFormula::Scan(0))]);
    let test = Overload::new_global_overload("is_cidr", text(), Type::Bool, is_cidr);
    functions.add_overloads("isCIDR", vec![test.with_cost_formula(CostFormula::Scan(0))]);
    let write =
        Overload::new_global_overload("cidr_to_string", vec![cidr()], Type::String, cidr_to_string);
    functions.add_overloads("string", vec![write]);
    let mut part = |name, id, result, implementation| {
        let overload = Overload::new_member_overload(id, vec![cidr()], result, implementation);
        functions.add_overloads(name, vec![overload]);
    };
    part("ip", "cidr_ip", ip(), cidr_ip);
    part("prefixLength", "cidr_prefix_length", Type::Int, cidr_prefix_length);
    part("masked", "cidr_masked", cidr(), cidr_masked);
    let contains = |id, other, implementation| {
        Overload::new_member_overload(id, vec![cidr(), other], Type::Bool, implementation)
    };
    functions.add_overloads(
        "containsIP",
        vec![
            contains("cidr_contains_ip_string", Type::String, cidr_contains_ip)
                .with_cost_formula(CostFormula::Custom(cost_of_containing_ip_text)),
            contains("cidr_contains_ip_ip", ip(), cidr_contains_ip)
                .with_cost_formula(CostFormula::Custom(cost_of_containing_ip)),
        ],
    );
    functions.add_overloads(
        "containsCIDR",
        vec![
            contains("cidr_contains_cidr_string", Type::String, cidr_contains_cidr)
                .with_cost_formula(CostFormula::Custom(cost_of_containing_cidr_text)),
            contains("cidr_contains_cidr", cidr(), cidr_contains_cidr)
                .with_cost_formula(CostFormula::Custom(cost_of_containing_cidr)),
        ],
    );
}

fn parse_cidr(text: &str) -> Result<Cidr, EvalError> {
    Cidr::parse(text).map_err(|error| {
        EvalError::new(format!(
            "network address parse error during conversion from string: {error}"
        ))
    })
}

fn string_to_cidr<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::String(text)] => {
            Ok(Value::opaque_value(OpaqueValue::Cidr(parse_cidr(text.as_str())?)))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn is_cidr<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::String(text)] => Ok(Value::Bool(Cidr::parse(text.as_str()).is_ok())),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn cidr_to_string<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::owned_string(receiver_cidr(arguments)?.to_string()))
}

fn cidr_ip<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::opaque_value(OpaqueValue::Ip(receiver_cidr(arguments)?.address())))
}

fn cidr_prefix_length<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Int(receiver_cidr(arguments)?.prefix_bits().into()))
}

fn cidr_masked<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::opaque_value(OpaqueValue::Cidr(receiver_cidr(arguments)?.masked_network())))
}

fn cidr_contains_ip<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let network = receiver_cidr(arguments)?;
    let contains = match arguments.get(1) {
        // Unlike for `containsCIDR`, Kubernetes does not report why the text is not an address.
        Some(Value::String(text)) => match ip::parse_ip(text.as_str()) {
            Ok(address) => network.contains(address),
            Err(_) => return Err(EvalError::no_such_overload()),
        },
        Some(Value::Opaque(value)) => match **value {
            OpaqueValue::Ip(address) => network.contains(address),
            _ => return Err(EvalError::no_such_overload()),
        },
        _ => return Err(EvalError::no_such_overload()),
    };
    Ok(Value::Bool(contains))
}

fn cidr_contains_cidr<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let network = receiver_cidr(arguments)?;
    let contains = match arguments.get(1) {
        Some(Value::String(text)) => network.contains_cidr(&parse_cidr(text.as_str())?),
        Some(other) => network.contains_cidr(as_cidr(other)?),
        None => return Err(EvalError::no_such_overload()),
    };
    Ok(Value::Bool(contains))
}

fn receiver_cidr<'v>(arguments: &'v [Value<'_>]) -> Result<&'v Cidr, EvalError> {
    arguments.first().map_or_else(|| Err(EvalError::no_such_overload()), as_cidr)
}

fn as_cidr<'v>(value: &'v Value<'_>) -> Result<&'v Cidr, EvalError> {
    if let Value::Opaque(value) = value
        && let OpaqueValue::Cidr(cidr) = &**value
    {
        return Ok(cidr);
    }
    Err(EvalError::no_such_overload())
}

/// The cost of comparing the prefix with as many bytes of the address.
fn cost_of_containing_ip(arguments: &[Value<'_>]) -> u64 {
    cost::traversal_cost(2 * cost::argument_size(arguments.first()))
}

fn cost_of_containing_ip_text(arguments: &[Value<'_>]) -> u64 {
    cost_of_containing_ip(arguments) + cost_of_parsing_second_argument(arguments)
}

/// The cost of comparing the prefix as for an address, of masking it, and of comparing the lengths.
fn cost_of_containing_cidr(arguments: &[Value<'_>]) -> u64 {
    let masking = cost::traversal_cost(cost::argument_size(arguments.first()));
    cost_of_containing_ip(arguments) + masking + 1
}

fn cost_of_containing_cidr_text(arguments: &[Value<'_>]) -> u64 {
    cost_of_containing_cidr(arguments) + cost_of_parsing_second_argument(arguments)
}

/// The cost of parsing the text of the second argument.
fn cost_of_parsing_second_argument(arguments: &[Value<'_>]) -> u64 {
    cost::traversal_cost(cost::argument_size(arguments.get(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::operators::tests::{assert_outcome, implementation};

    fn cidr(text: &str) -> Value<'static> {
        Value::opaque_value(OpaqueValue::Cidr(parse_cidr(text).unwrap()))
    }

    fn address(text: &str) -> Value<'static> {
        Value::opaque_value(OpaqueValue::Ip(ip::parse_ip(text).unwrap()))
    }

    /// The cost of a call by the overload of that id.
    fn cost_of(name: &str, id: &str, arguments: &[Value<'_>]) -> u64 {
        let functions =
            crate::library::kubernetes_functions(crate::library::LibrarySet::StoredExpressions);
        let overloads = &functions.get(name).unwrap().overloads;
        overloads
            .iter()
            .find(|overload| overload.id == id)
            .unwrap()
            .cost_formula
            .cost_of_call(arguments, None)
    }

    #[test]
    fn containment_accepts_texts_and_values() {
        for (name, other, want) in [
            ("containsIP", Value::borrowed_string("10.1.2.3"), Ok(Value::Bool(true))),
            ("containsIP", address("10.1.2.3"), Ok(Value::Bool(true))),
            ("containsIP", address("::1"), Ok(Value::Bool(false))),
            ("containsIP", Value::borrowed_string("bad"), Err("no such overload")),
            ("containsIP", Value::Int(1), Err("no such overload")),
            ("containsCIDR", Value::borrowed_string("10.1.0.0/16"), Ok(Value::Bool(true))),
            ("containsCIDR", cidr("10.1.0.0/16"), Ok(Value::Bool(true))),
            ("containsCIDR", cidr("10.1.0.0/7"), Ok(Value::Bool(false))),
            (
                "containsCIDR",
                Value::borrowed_string("bad"),
                Err("network address parse error during conversion from string: network address \
                     parse error during conversion from string: netip.ParsePrefix(\"bad\"): no '/'"),
            ),
        ] {
            let arguments = [cidr("10.0.0.0/8"), other];
            assert_outcome(&arguments, &implementation(name, "cidr_")(&arguments), &want);
        }
    }

    #[test]
    fn accessors_return_the_unmasked_address() {
        let arguments = [cidr("10.1.2.3/8")];
        for (name, id, want) in [
            ("ip", "cidr_ip", address("10.1.2.3")),
            ("prefixLength", "cidr_prefix_length", Value::Int(8)),
            ("masked", "cidr_masked", cidr("10.0.0.0/8")),
            ("string", "cidr_to_string", Value::borrowed_string("10.1.2.3/8")),
        ] {
            assert_outcome(&arguments, &implementation(name, id)(&arguments), &Ok(want));
        }
    }

    #[test]
    fn containment_cost_depends_on_prefix_and_text() {
        let text = Value::borrowed_string("2001:db8:0:0:0:0:0:1");
        for (name, id, network, other, want) in [
            ("containsIP", "cidr_contains_ip_string", "::/128", text.clone(), 4 + 2),
            ("containsIP", "cidr_contains_ip_ip", "::/128", address("::1"), 4),
            ("containsIP", "cidr_contains_ip_ip", "10.0.0.0/8", address("::1"), 1),
            ("containsIP", "cidr_contains_ip_ip", "0.0.0.0/0", address("::1"), 0),
            ("containsCIDR", "cidr_contains_cidr_string", "::/128", text, 4 + 2 + 1 + 2),
            ("containsCIDR", "cidr_contains_cidr", "::/128", cidr("::/0"), 4 + 2 + 1),
        ] {
            assert_eq!(cost_of(name, id, &[cidr(network), other]), want, "{network} {id}");
        }
    }
}
