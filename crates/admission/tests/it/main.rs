//! The rows of the specification's tables as data, and properties of matching.

#[cfg(test)]
mod authorizer;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod every_field;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod initialization;
#[cfg(test)]
mod matching;
#[cfg(test)]
mod order;
#[cfg(test)]
mod property;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod v1;
#[cfg(test)]
mod v1alpha1;
