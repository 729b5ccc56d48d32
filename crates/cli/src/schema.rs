//! `portcullis schema`: prints the JSON Schema of a configuration kind.

use std::io::{self, Write};

use crate::exit::Exit;
use crate::file_kinds::ConfigKindWithSchema;
use crate::output_helpers::{ignore_closed_pipe, write_pretty_json};

/// Print the JSON Schema of a configuration kind
///
/// Editors use the schema (draft 7) to complete and check YAML, and tools such as kubeconform to
/// validate it. It defines the fields and their values. `portcullis check` also verifies the rules
/// that a schema cannot express, such as unique names and valid expressions.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis schema > authorization.schema.json
  portcullis schema ExternalAuthorizationHookConfiguration > hooks.schema.json

With yaml-language-server (VS Code, Neovim, Helix and others), start the file with
  # yaml-language-server: $schema=./authorization.schema.json")]
pub(crate) struct Args {
    /// Kind of the configuration file
    #[arg(value_enum, ignore_case = true, default_value = "AuthorizationConfiguration")]
    kind: ConfigKindWithSchema,
}

/// Prints the JSON Schema.
///
/// # Errors
/// Fails if it cannot be written.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> io::Result<Exit> {
    ignore_closed_pipe(write_pretty_json(out, &args.kind.json_schema()))?;
    Ok(Exit::Clean)
}
