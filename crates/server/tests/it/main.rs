//! The server as clients see it, over real sockets and TLS.
//!
//! The background loops of the server run in real time. A test that depends on them polls in a loop with a
//! short sleep until the expected state is reached. Timers of initializers use the injected clock. Any other
//! sleep has a comment with the reason.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod aborted;
mod address_reservations;
mod admission;
mod admission_hooks;
mod admission_rows;
mod attacks;
mod audit;
mod authorities;
mod bad_peers;
mod certificate_requests;
mod chain_rows;
mod client;
mod cluster;
mod compaction;
mod configurations;
mod connect;
mod connections;
mod coverage;
mod create_preconditions;
mod custom_objects;
mod data_fixture;
mod every_row;
mod failure_causes;
mod first_minute;
mod flow_control_objects;
mod flow_control_requests;
mod grants;
mod hooks;
mod identity;
mod initializers;
mod life;
mod limits;
mod node_graph;
mod openapi;
mod ordinary_writes;
mod own_requests;
mod owner_permissions;
mod pattern;
mod peer_trust;
mod pod_actions;
mod pods;
mod polling;
mod races;
mod repeated_reads;
mod resource_access_reviews;
mod rows;
mod service_addresses;
mod services;
mod shadowing;
mod shared_state;
mod slow_deletes;
mod small_doors;
mod store_space;
mod three_servers;
mod undecodable;
mod unenforced;
mod watches;
mod webhooks;
