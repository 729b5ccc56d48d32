//! The function libraries. Each file declares the overloads of one library and implements them.

mod arithmetic;
mod authorizer;
mod cidr;
pub(crate) mod comprehensions;
mod conversions;
mod ip;
mod kube_lists;
mod lists;
mod named_format;
mod operators;
mod optionals;
mod printed;
mod quantity;
pub(crate) mod regex;
mod semver;
mod sets;
mod standard;
pub(crate) mod string_format;
mod strings;
pub(crate) mod time;
mod url;

pub(crate) use conversions::double_text;
pub(crate) use printed::printed;

use crate::function::Functions;

/// Everything that Kubernetes enables.
pub(crate) fn kubernetes() -> Functions {
    let mut functions = Functions::default();
    conversions::declare(&mut functions);
    operators::declare(&mut functions);
    standard::declare(&mut functions);
    time::declare(&mut functions);
    // The order in which Kubernetes adds its libraries decides about functions that they share.
    url::declare(&mut functions);
    regex::declare(&mut functions);
    authorizer::declare(&mut functions);
    optionals::declare(&mut functions);
    quantity::declare(&mut functions);
    strings::declare(&mut functions);
    sets::declare(&mut functions);
    ip::declare(&mut functions);
    cidr::declare(&mut functions);
    named_format::declare(&mut functions);
    comprehensions::declare(&mut functions);
    semver::declare(&mut functions);
    lists::declare(&mut functions);
    kube_lists::declare(&mut functions);
    functions
}
