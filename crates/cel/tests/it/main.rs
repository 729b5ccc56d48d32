//! Tests of the public interface of this crate: recorded results of Kubernetes, the CEL project's
//! conformance tests, and random expressions.

#[cfg(test)]
mod authorizer;
mod robustness;
mod spec;
