//! Writes a data directory with the present code, for later versions to serve.

use anyhow::bail;

use crate::process;

/// The folder of the fixtures, and the variable from which the test reads the name of a new one.
const FOLDER: &str = "crates/server/tests/data";
const VARIABLE: &str = "PORTCULLIS_FIXTURE";

/// Runs the test that writes and serves a data directory, and keeps the directory.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let name = name(args)?;
    let folder = process::workspace_root().join(FOLDER).join(name);
    if folder.exists() {
        bail!("`{FOLDER}/{name}` exists: a fixture is never changed");
    }
    let filter = "data_fixture::data_of_this_version_is_served";
    let test = ["test", "--package", "server", "--test", "it", "--", "--exact", filter];
    process::run(process::command("cargo", &test).env(VARIABLE, &folder))?;
    println!("wrote {FOLDER}/{name}: commit it");
    Ok(())
}

/// Reads the name of a fixture, which is one segment of a path.
fn name<'a>(args: &[&'a str]) -> anyhow::Result<&'a str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    match args {
        [name] if name.starts_with(char::is_alphanumeric) && name.chars().all(is_plain) => Ok(name),
        _ => bail!("expected `fixture NAME`, such as `fixture format-2`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixture_has_a_plain_name_and_is_never_written_twice() {
        assert_eq!(name(&["format-2"]).unwrap(), "format-2");
        for args in [&[][..], &["a", "b"], &[".."], &["-a"], &["a/b"], &[""]] {
            assert!(name(args).is_err(), "{args:?}");
        }
        let error = run(&["format-1"]).unwrap_err().to_string();
        assert!(error.ends_with("exists: a fixture is never changed"), "{error}");
    }
}
