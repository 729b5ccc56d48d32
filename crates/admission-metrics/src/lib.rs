//! The numbers of dynamic admission, for Prometheus.
//!
//! Owns: the names, labels and buckets of what is counted about hooks, initializers and how new
//! their configuration is.
//! Must not know: who asks for the numbers, HTTP, the store.
