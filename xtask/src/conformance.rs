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
    // A relative path is meant from where the person stands, not from the root.
    let absolute: Vec<String> = with_absolute_paths(args, &std::env::current_dir()?);
    command.args(absolute);
    let status = process::run_for_status(&mut command)?;
    // A runner ended by a signal has no code; that is a failure like any other.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The flags of the runner whose values are paths.
const PATH_FLAGS: [&str; 3] = ["--vectors", "--program", "--certificate-authority"];

fn with_absolute_paths(args: &[&str], here: &std::path::Path) -> Vec<String> {
    let absolute = |path: &str| here.join(path).to_string_lossy().into_owned();
    let mut is_path = false;
    args.iter()
        .map(|arg| {
            let was_flag = std::mem::replace(&mut is_path, PATH_FLAGS.contains(arg));
            match arg.split_once('=') {
                Some((flag, path)) if PATH_FLAGS.contains(&flag) => {
                    format!("{flag}={}", absolute(path))
                }
                _ if was_flag => absolute(arg),
                _ => (*arg).to_owned(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::with_absolute_paths;
    use std::path::Path;

    #[test]
    fn only_paths_are_made_absolute() {
        let here = Path::new("/here");
        assert_eq!(
            with_absolute_paths(&["--vectors", "dir", "--suite", "abac"], here),
            ["--vectors", "/here/dir", "--suite", "abac"]
        );
        assert_eq!(with_absolute_paths(&["--vectors=dir"], here), ["--vectors=/here/dir"]);
        assert_eq!(with_absolute_paths(&["--vectors", "/there"], here), ["--vectors", "/there"]);
        assert_eq!(
            with_absolute_paths(&["--program", "p", "--server=https://h", "--token", "a=b"], here),
            ["--program", "/here/p", "--server=https://h", "--token", "a=b"]
        );
    }
}
