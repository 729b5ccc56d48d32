//! Runs tests that others wrote against the public interface of this crate.

#[cfg(test)]
mod authorizer;
mod robustness;
mod spec;
