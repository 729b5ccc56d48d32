//! The static types of expressions.

use std::fmt;
use std::sync::Arc;

/// The static type of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// The type `dyn`, which is checked at run time only.
    Dyn,
    /// The type of `null`.
    Null,
    /// The CEL type `bool`.
    Bool,
    /// The CEL type `int`: signed 64-bit integers.
    Int,
    /// The CEL type `uint`: unsigned 64-bit integers.
    Uint,
    /// The CEL type `double`.
    Double,
    /// The CEL type `string`.
    String,
    /// The CEL type `bytes`.
    Bytes,
    /// The CEL type `google.protobuf.Duration`.
    Duration,
    /// The CEL type `google.protobuf.Timestamp`.
    Timestamp,
    /// The CEL type `list(T)`.
    List(Arc<Type>),
    /// The CEL type `map(K, V)`.
    Map(Arc<Type>, Arc<Type>),
    /// The type of a type; `None` when the inner type is not known.
    Type(Option<Arc<Type>>),
    /// The CEL type `optional_type(T)`.
    Optional(Arc<Type>),
    /// A scalar that may also be null: the protocol buffer wrapper messages.
    Wrapper(Arc<Type>),
    /// A type parameter of a declaration.
    Param(&'static str),
    /// A type variable of the checker.
    Var(u32),
    /// A type with functions but without fields or parameters, such as `kubernetes.URL`.
    Opaque(&'static str),
    /// A record with named fields.
    Object(Arc<ObjectType>),
    /// The type of a subexpression with a type error. It matches every type, to avoid follow-up
    /// errors.
    Error,
}

/// A record type: a name and its fields.
///
/// Two object types with the same name are equal.
#[derive(Debug)]
pub struct ObjectType {
    name: String,
    object_fields: Vec<(String, Type)>,
}

impl ObjectType {
    /// A type whose fields have the order in which records of the host number them
    /// (see [`crate::RecordSource::field`]).
    pub fn new(name: &str, fields: Vec<(&str, Type)>) -> Arc<Self> {
        let fields = fields.into_iter().map(|(field, ty)| (field.to_owned(), ty)).collect();
        Arc::new(Self { name: name.to_owned(), object_fields: fields })
    }

    /// Returns the qualified name of the type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names and types of the fields, in the order of the declaration.
    pub fn object_fields(&self) -> &[(String, Type)] {
        &self.object_fields
    }

    /// The index and the type of a field.
    pub fn field(&self, name: &str) -> Option<(usize, &Type)> {
        let (index, (_, ty)) =
            self.object_fields.iter().enumerate().find(|(_, (field, _))| field == name)?;
        Some((index, ty))
    }
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ObjectType {}

impl Type {
    /// Returns the type `list(element)`.
    pub fn list_type_of(element: Type) -> Self {
        Self::List(Arc::new(element))
    }

    /// Returns the type `map(key, value)`.
    pub fn map_type_of(key: Type, value: Type) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    /// Returns the type `optional_type(inner)`.
    pub fn optional_type_of(inner: Type) -> Self {
        Self::Optional(Arc::new(inner))
    }

    /// A type parameter of a declaration.
    pub fn type_param(name: &'static str) -> Self {
        Self::Param(name)
    }

    /// The name as `type(x)` shows it, with parameters: `null_type` and `google.protobuf.Duration`
    /// where [`Display`](fmt::Display) says `null` and `duration`.
    pub fn runtime_type_name(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::List(element) => format!("list({})", element.runtime_type_name()),
            Self::Map(key, value) => {
                format!("map({}, {})", key.runtime_type_name(), value.runtime_type_name())
            }
            Self::Type(Some(inner)) => format!("type({})", inner.runtime_type_name()),
            Self::Optional(inner) => format!("optional_type({})", inner.runtime_type_name()),
            other => other.to_string(),
        }
    }
}

/// Renders types as cel-go's checker does in messages.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::List(element) => write!(f, "list({element})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Type(None) => f.write_str("type"),
            Self::Type(Some(inner)) => write!(f, "type({inner})"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Wrapper(inner) => write!(f, "wrapper({inner})"),
            Self::Param(name) => f.write_str(name),
            Self::Var(n) => write!(f, "_var{n}"),
            Self::Opaque(name) => f.write_str(name),
            Self::Object(object) => f.write_str(&object.name),
            Self::Error => f.write_str("!error!"),
        }
    }
}
