//! Stories of somebody's cluster, in which the command line is a client.
//!
//! The role of the cluster is played by our own server, or by kube-apiserver if `PORTCULLIS_KUBE_APISERVER` names its binary:
//! `cargo xtask test --peers` builds one and sets the variable.

mod check_cluster;
mod cluster;
mod kube_apiserver;
mod live_questions;
mod random_policy;
mod webhook;
mod webhook_process;
