//! The text forms of values in error messages.

use std::fmt;

use super::{List, OpaqueValue, Value};
use crate::library::print_as_go;

/// Writes the text that error messages show. Long values are truncated.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print_as_go(self))
    }
}

impl Value<'_> {
    /// The Go type that cel-go uses for the value. Some of its error messages show it.
    pub(crate) fn go_type_name(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Duration(_) => "types.Duration",
            Self::Timestamp(_) => "types.Timestamp",
            Self::Type(_) => "*types.Type",
            Self::Optional(_) => "*types.Optional",
            Self::List(List::Strings(_)) => "[]string",
            Self::List(_) => "*types.baseList",
            Self::Map(_) => "*types.baseMap",
            Self::Opaque(opaque) => match &**opaque {
                OpaqueValue::Authorization(authorization) => authorization.go_type_name(),
                OpaqueValue::Cidr(_) => "cel.CIDR",
                OpaqueValue::Format(_) => "cel.Format",
                OpaqueValue::Ip(_) => "cel.IP",
                OpaqueValue::Quantity(quantity) if quantity.is_arithmetic_result() => {
                    "*cel.Quantity"
                }
                OpaqueValue::Quantity(_) => "cel.Quantity",
                OpaqueValue::Semver(_) => "cel.Semver",
                OpaqueValue::Url(_) => "cel.URL",
            },
        }
    }
}
