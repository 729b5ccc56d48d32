//! What operators see: families, series, and the files under `docs/monitoring` that use them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod admission;
mod authorization;
mod exposition;
mod monitoring_files;
