//! Runs the recorded answers of Kubernetes against this crate.

mod request_attributes;
