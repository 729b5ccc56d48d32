//! Starts the conformance runner.

use std::process::ExitCode;

use crate::process;

/// Hands all arguments to the runner and passes its exit code on: 0 agreed, 1 differences,
/// 2 unusable input.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<ExitCode> {
    let mut command = process::command(
        "cargo",
        &["run", "--quiet", "--package", "conformance", "--bin", "conformance", "--"],
    );
    // A relative `--vectors DIR` is meant from where the person stands, not from the root.
    let absolute: Vec<String> = with_absolute_vectors(args, &std::env::current_dir()?);
    command.args(absolute);
    let status = process::run_for_status(&mut command)?;
    // A runner ended by a signal has no code; that is a failure like any other.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn with_absolute_vectors(args: &[&str], here: &std::path::Path) -> Vec<String> {
    let absolute = |dir: &str| here.join(dir).to_string_lossy().into_owned();
    let mut is_dir = false;
    args.iter()
        .map(|arg| {
            let was_flag = std::mem::replace(&mut is_dir, *arg == "--vectors");
            match arg.strip_prefix("--vectors=") {
                Some(dir) => format!("--vectors={}", absolute(dir)),
                None if was_flag => absolute(arg),
                None => (*arg).to_owned(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::with_absolute_vectors;
    use std::path::Path;

    #[test]
    fn only_the_folder_of_vectors_is_made_absolute() {
        let here = Path::new("/here");
        assert_eq!(
            with_absolute_vectors(&["--vectors", "dir", "--suite", "abac"], here),
            ["--vectors", "/here/dir", "--suite", "abac"]
        );
        assert_eq!(with_absolute_vectors(&["--vectors=dir"], here), ["--vectors=/here/dir"]);
        assert_eq!(with_absolute_vectors(&["--vectors", "/there"], here), ["--vectors", "/there"]);
    }
}
