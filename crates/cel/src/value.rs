//! Values at run time. Where possible, they borrow the data of the host and the constants of the
//! program.

mod list_value;
mod map_value;
mod opaque_value;
mod str_and_bytes;
mod timestamp;
mod value_comparison;
mod value_display;

use std::sync::Arc;

pub use list_value::{List, ListSource, OwnedList};
pub use map_value::{Map, MapSource, OwnedMap, RecordSource};
pub use opaque_value::{
    AuthorizationValue, Authorizer, Cidr, CidrError, CidrFault, NamedFormat, OpaqueValue, Quantity,
    QuantityError, Semver, SemverError, SemverPart,
};
pub use str_and_bytes::{Bytes, Str};
pub(crate) use timestamp::WallTime;
pub use timestamp::{Timestamp, TimestampError};
pub(crate) use value_comparison::EqualityResult;

/// A CEL value. Cloning never copies text, lists or maps.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// The only value of `null_type`.
    Null,
    /// A value of type `bool`.
    Bool(bool),
    /// A value of type `int`.
    Int(i64),
    /// A value of type `uint`.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// A value of type `string`.
    String(Str<'a>),
    /// A value of type `bytes`.
    Bytes(Bytes<'a>),
    /// A value of type `list`.
    List(List<'a>),
    /// A map, or a record of the host, which behaves as a map with string keys.
    Map(Map<'a>),
    /// A span of time in nanoseconds.
    Duration(i64),
    /// A point in time.
    Timestamp(Timestamp),
    /// A type as a value.
    Type(TypeName<'a>),
    /// The value `optional.none()` or `optional.of(value)`.
    Optional(Option<Arc<Value<'a>>>),
    /// A value of one of the Kubernetes libraries.
    Opaque(Arc<OpaqueValue>),
}

/// The run-time name of a type, such as `int` or `google.protobuf.Timestamp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeName<'a>(pub &'a str);

impl<'a> Value<'a> {
    /// Returns a CEL string that owns its text.
    pub fn owned_string(text: impl Into<Arc<str>>) -> Self {
        Self::String(Str::Owned(text.into()))
    }

    /// Returns a CEL string that borrows its text.
    pub fn borrowed_string(text: &'a str) -> Self {
        Self::String(Str::Borrowed(text))
    }

    /// Returns a list that owns its elements.
    pub fn owned_list_value(elements: Vec<Value<'a>>) -> Self {
        Self::List(List::Owned(Arc::new(OwnedList::new(elements))))
    }

    /// Returns the value `optional.of(value)`.
    pub fn optional_some(value: Value<'a>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// Returns the value `optional.none()`.
    pub fn optional_none() -> Self {
        Self::Optional(None)
    }

    /// Returns a value of a Kubernetes library.
    pub fn opaque_value(opaque: OpaqueValue) -> Self {
        Self::Opaque(Arc::new(opaque))
    }

    /// The name of the value's type as `type(value)` and run-time errors show it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Opaque(opaque) => opaque.type_name(),
        }
    }

    /// The nesting depth of lists, maps and optional values that the evaluation created within each
    /// other; 0 for everything else.
    pub fn nesting_depth(&self) -> u32 {
        match self {
            Self::List(List::Owned(list)) => list.nesting_depth() + 1,
            Self::List(List::Constant(list)) => list.nesting_depth() + 1,
            Self::Map(Map::Owned(map)) => map.nesting_depth() + 1,
            Self::Optional(Some(inner)) => inner.nesting_depth() + 1,
            Self::List(List::Strings(_) | List::Source(_))
            | Self::Map(Map::Record(_) | Map::Source(_))
            | Self::Optional(None)
            | Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::String(_)
            | Self::Bytes(_)
            | Self::Duration(_)
            | Self::Timestamp(_)
            | Self::Type(_)
            | Self::Opaque(_) => 0,
        }
    }

    /// The size for the cost and for `size()`: code points of strings, bytes of `bytes`, elements
    /// of lists and maps. `None` for values without a size.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::String(text) => Some(text.char_count()),
            Self::Bytes(bytes) => Some(bytes.as_slice().len() as u64),
            Self::List(list) => Some(list.len() as u64),
            Self::Map(map) => Some(map.len() as u64),
            Self::Opaque(opaque) => opaque.size(),
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::Duration(_)
            | Self::Timestamp(_)
            | Self::Type(_)
            | Self::Optional(_) => None,
        }
    }
}
