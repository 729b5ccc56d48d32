//! The environment of an expression: the variables, types and functions that it may refer to.

use std::collections::HashMap;
use std::sync::Arc;

use crate::function::FunctionRegistry;
use crate::library::{self, LibrarySet};
use crate::static_type::{ObjectType, Type};
use crate::value::TypeName;
use crate::well_known_message::WellKnownMessage;

/// The variables, types and functions of a family of expressions.
#[derive(Debug)]
pub struct Environment {
    variables: Vec<(String, Type)>,
    /// The types that an expression can name, by identifier.
    named_types: HashMap<&'static str, Type>,
    object_types: HashMap<String, Arc<ObjectType>>,
    functions: FunctionRegistry,
}

impl Environment {
    /// The environment that Kubernetes uses for stored expressions: all libraries, and these
    /// variables. [`Program::evaluate`](crate::Program::evaluate) takes their values in this order.
    pub fn for_stored_expressions(variables: Vec<(&str, Type)>) -> Self {
        Self::with_library_set(variables, LibrarySet::StoredExpressions)
    }

    /// The environment that Kubernetes uses for new expressions: without the functions that this
    /// minor version introduces.
    ///
    /// The server checks an expression in this environment before it stores it, so that a server of
    /// the previous minor version can still evaluate it. Programs are compiled in
    /// [`Environment::for_stored_expressions`].
    pub fn for_new_expressions(variables: Vec<(&str, Type)>) -> Self {
        Self::with_library_set(variables, LibrarySet::NewExpressions)
    }

    fn with_library_set(variables: Vec<(&str, Type)>, extent: LibrarySet) -> Self {
        let mut objects = HashMap::new();
        for (_, ty) in &variables {
            collect_object_types(ty, &mut objects);
        }
        let types = standard_named_types();
        let variables = variables.into_iter().map(|(name, ty)| (name.to_owned(), ty)).collect();
        Self {
            variables,
            named_types: types,
            object_types: objects,
            functions: library::kubernetes_functions(extent),
        }
    }

    /// The index and the type of a variable.
    pub(crate) fn find_variable(&self, name: &str) -> Option<(usize, &Type)> {
        let (index, (_, ty)) = self.variables.iter().enumerate().find(|(_, (n, _))| n == name)?;
        Some((index, ty))
    }

    /// The type that an identifier denotes.
    pub(crate) fn find_named_type(&self, name: &str) -> Option<Type> {
        match (self.named_types.get(name), name) {
            (Some(ty), _) => Some(ty.clone()),
            // Only the type checker knows these two names of Kubernetes.
            (None, "duration") => Some(Type::Duration),
            (None, "timestamp") => Some(Type::Timestamp),
            (None, _) => self.find_message_type(name),
        }
    }

    /// The type of a message literal with this name. Message names cannot be used as values.
    pub(crate) fn find_message_type(&self, name: &str) -> Option<Type> {
        match self.object_types.get(name) {
            Some(object) => Some(Type::Object(Arc::clone(object))),
            None => WellKnownMessage::find_message_by_name(name).map(WellKnownMessage::result_type),
        }
    }

    /// The runtime value of a type name.
    pub(crate) fn find_type_value(&self, name: &str) -> Option<TypeName<'static>> {
        self.named_types.get_key_value(name).map(|(name, _)| TypeName(name))
    }

    pub(crate) fn functions(&self) -> &FunctionRegistry {
        &self.functions
    }
}

/// Types that an expression can name, such as in `type(x) == int`.
fn standard_named_types() -> HashMap<&'static str, Type> {
    HashMap::from([
        ("bool", Type::Bool),
        ("bytes", Type::Bytes),
        ("double", Type::Double),
        ("google.protobuf.Duration", Type::Duration),
        ("google.protobuf.Timestamp", Type::Timestamp),
        ("int", Type::Int),
        ("list", Type::list_type_of(Type::Dyn)),
        ("map", Type::map_type_of(Type::Dyn, Type::Dyn)),
        ("net.CIDR", Type::Opaque("net.CIDR")),
        ("net.IP", Type::Opaque("net.IP")),
        ("null_type", Type::Null),
        ("optional_type", Type::optional_type_of(Type::Dyn)),
        ("string", Type::String),
        ("type", Type::Type(None)),
        ("uint", Type::Uint),
    ])
}

/// Collects all object types inside a type. Object types cannot be recursive because a type is
/// constructed after the types of its fields.
fn collect_object_types(ty: &Type, found: &mut HashMap<String, Arc<ObjectType>>) {
    match ty {
        Type::Object(object) => {
            found.insert(object.name().to_owned(), Arc::clone(object));
            for (_, field) in object.object_fields() {
                collect_object_types(field, found);
            }
        }
        Type::List(inner) | Type::Optional(inner) | Type::Type(Some(inner)) => {
            collect_object_types(inner, found);
        }
        Type::Map(key, value) => {
            collect_object_types(key, found);
            collect_object_types(value, found);
        }
        _ => {}
    }
}
