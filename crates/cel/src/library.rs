//! The function libraries. Each file declares the overloads of one library and implements them.

mod arithmetic;
mod authorizer;
mod cidr;
mod go_print;
mod ip;
mod kubernetes_lists;
mod list_extensions;
pub(crate) mod map_insert;
mod named_format;
mod operators;
mod optionals;
mod quantity;
pub(crate) mod regex;
mod semver;
mod sets;
mod standard_functions;
pub(crate) mod string_format;
mod strings;
pub(crate) mod timestamps_and_durations;
mod type_conversions;
mod url;

pub use authorizer::AUTHORIZER_CHECK_COST;
pub(crate) use go_print::print_as_go;
pub(crate) use type_conversions::format_double;

use crate::function::FunctionRegistry;

/// The set of functions of an environment, as Kubernetes distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LibrarySet {
    /// All functions that Kubernetes enables.
    StoredExpressions,
    /// Without the functions that this minor version of Kubernetes introduces.
    NewExpressions,
}

/// Declares the functions of Kubernetes' environments.
pub(crate) fn kubernetes_functions(library_set: LibrarySet) -> FunctionRegistry {
    let mut functions = FunctionRegistry::default();
    type_conversions::declare_functions(&mut functions);
    operators::declare_functions(&mut functions);
    standard_functions::declare_functions(&mut functions);
    timestamps_and_durations::declare_functions(&mut functions);
    // Some functions have overloads in several libraries. Their order is that of Kubernetes.
    url::declare_functions(&mut functions);
    regex::declare_functions(&mut functions);
    if library_set == LibrarySet::NewExpressions {
        kubernetes_lists::declare_functions(&mut functions);
    }
    authorizer::declare_functions(&mut functions);
    optionals::declare_functions(&mut functions);
    quantity::declare_functions(&mut functions);
    strings::declare_functions(&mut functions);
    sets::declare_functions(&mut functions);
    ip::declare_functions(&mut functions);
    cidr::declare_functions(&mut functions);
    named_format::declare_functions(&mut functions);
    map_insert::declare_functions(&mut functions);
    semver::declare_functions(&mut functions);
    list_extensions::declare_functions(&mut functions);
    // Kubernetes adds a library that has a new version last.
    if library_set == LibrarySet::StoredExpressions {
        kubernetes_lists::declare_functions(&mut functions);
        kubernetes_lists::declare_includes(&mut functions);
    }
    functions
}
