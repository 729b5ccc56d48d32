//! The program `portcullis`, with the built-in authorizers alone.

use std::process::ExitCode;

use allocator as _;

fn main() -> ExitCode {
    cli::Program::new().run()
}
