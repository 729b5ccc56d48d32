//! `portcullis completion`: prints a completion script for a shell.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::command_line::Cli;
use crate::exit::Exit;
use crate::output_helpers::ignore_closed_pipe;

/// Print a completion script for a shell
///
/// With the script the shell completes commands, flags and their values.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis completion bash > /etc/bash_completion.d/portcullis
  portcullis completion zsh > \"${fpath[1]}/_portcullis\"
  portcullis completion fish > ~/.config/fish/completions/portcullis.fish
  source <(portcullis completion bash)")]
pub(crate) struct Args {
    /// Shell to generate the script for
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the completion script.
///
/// # Errors
/// Fails if the script cannot be written.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> io::Result<Exit> {
    // The generator panics when it cannot write, so it writes to memory.
    let mut script = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    ignore_closed_pipe(out.write_all(&script))?;
    Ok(Exit::Clean)
}
