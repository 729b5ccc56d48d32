//! Tests of the loader as a whole: recorded answers of Kubernetes, and properties of any input.

mod every_field;
mod properties;
mod vectors;
