//! What the crate promises to those who build a server on it. Rows are those of the specification.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod before_write;
mod built_in;
mod columns;
mod configurations;
mod definitions;
mod discovery;
mod enforcement;
mod field_selector;
mod fixed;
mod objects;
mod openapi;
mod parts;
mod world;
