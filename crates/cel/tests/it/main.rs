//! Runs tests that others wrote against the public interface of this crate.

mod authorizer;
mod robustness;
mod spec;
