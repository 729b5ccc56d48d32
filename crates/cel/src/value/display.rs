//! The text forms of values in error messages.

use std::fmt;

use super::{List, Opaque, Value};
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
                Opaque::Authorization(authorization) => authorization.go_type_name(),
                Opaque::Cidr(_) => "cel.CIDR",
                Opaque::Format(_) => "cel.Format",
                Opaque::Ip(_) => "cel.IP",
                Opaque::Quantity(quantity) if quantity.is_arithmetic_result() => "*cel.Quantity",
                Opaque::Quantity(_) => "cel.Quantity",
                Opaque::Semver(_) => "cel.Semver",
                Opaque::Url(_) => "cel.URL",
            },
        }
    }
}
