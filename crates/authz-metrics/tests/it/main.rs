//! What operators see: families, series, and the files under `docs/monitoring` that use them.

mod cost;
mod everything;
mod exposed;
mod exposition;
mod monitoring;
mod promql;
mod rows;
