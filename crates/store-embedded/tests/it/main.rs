//! The embedded store as its users see it: a directory that is opened, used, killed and opened again.

mod contract;
mod crash;
mod damage;
mod history;
mod restart;
mod scratch;
mod write_errors;
