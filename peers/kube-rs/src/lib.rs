//! kube-rs as a client of the server. The package consists of tests.
//!
//! Owns: tests of the server with kube-rs.
//! Must not know: anything of the product except its program and its API.
