//! `portcullis` with one more authorizer, which an AuthorizationConfiguration names by `type: Freeze`.

use std::process::ExitCode;
use std::sync::Arc;

use freeze_authorizer::Freeze;

/// The variable that names the file of the switch: the cluster is frozen while the file exists.
const FILE_VARIABLE: &str = "FREEZE_FILE";

fn main() -> ExitCode {
    let freeze = Arc::new(Freeze::default());
    if let Some(file) = std::env::var_os(FILE_VARIABLE)
        && let Err(error) = freeze.follow_file(file.into())
    {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    cli::Program::new().with_authorizer("Freeze", freeze).run()
}
