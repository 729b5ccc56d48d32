//! Tests of the public interface.

mod malformed;
mod recorded;
