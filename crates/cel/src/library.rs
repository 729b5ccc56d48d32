//! The function libraries. Each file declares the overloads of one library and implements them.

mod arithmetic;
mod authorizer;
mod cidr;
mod conversions;
mod go_print;
mod ip;
mod kubernetes_lists;
mod lists;
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
pub(crate) mod time;
mod url;

pub use authorizer::AUTHORIZER_CHECK_COST;
pub(crate) use conversions::format_double;
pub(crate) use go_print::print_as_go;

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
    conversions::declare(&mut functions);
    operators::declare(&mut functions);
    standard_functions::declare(&mut functions);
    time::declare(&mut functions);
    // Some functions have overloads in several libraries. Their order is that of Kubernetes.
    url::declare(&mut functions);
    regex::declare(&mut functions);
    if library_set == LibrarySet::NewExpressions {
        kubernetes_lists::declare(&mut functions);
    }
    authorizer::declare(&mut functions);
    optionals::declare(&mut functions);
    quantity::declare(&mut functions);
    strings::declare(&mut functions);
    sets::declare(&mut functions);
    ip::declare(&mut functions);
    cidr::declare(&mut functions);
    named_format::declare(&mut functions);
    map_insert::declare(&mut functions);
    semver::declare(&mut functions);
    lists::declare(&mut functions);
    // Kubernetes adds a library that has a new version last.
    if library_set == LibrarySet::StoredExpressions {
        kubernetes_lists::declare(&mut functions);
        kubernetes_lists::declare_includes(&mut functions);
    }
    functions
}
