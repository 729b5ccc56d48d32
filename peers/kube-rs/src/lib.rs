//! kube-rs as a client of the server; everything is in the tests.
//!
//! Owns: nothing but tests.
//! Must not know: anything of the product but its program and its API.
