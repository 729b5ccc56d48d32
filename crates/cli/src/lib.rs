//! `portcullis`: runs the API server or an authorization webhook, checks files, answers access questions from them, and prints
//! schemas and shell completions.
//!
//! Owns: flags, the output for people and programs, exit codes.
//! Must not know: the rules that make a file valid, how an authorizer decides.
//!
//! Each subcommand is a module with its `Args` and a function `run` that returns an `Exit`.
//!
//! This is a library so that other programs can add authorizers: see [`Program`].

mod admission_validation;
mod authorization_settings;
mod check;
mod colour;
mod command_line;
mod completion;
mod convert;
mod eval;
mod exit;
mod explain;
mod file_arguments;
mod file_kinds;
mod flag_spelling;
mod matrix;
mod offline;
mod output_helpers;
mod pki;
mod program;
mod rules;
mod schema;
mod serve;
mod server_setup;
mod webhook;
mod who_can;

pub use program::Program;
