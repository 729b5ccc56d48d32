//! Writes results to a stream whose reader may close it early.

use std::io::{self, Write};

use serde_json::Value;

/// Writes a JSON value with indentation, and a line feed.
///
/// # Errors
/// Fails if it cannot be written.
pub(crate) fn write_pretty_json(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Converts the error of a closed pipe to success. A reader such as `head` closes the pipe when it has read
/// enough; the exit code is still that of the result.
pub(crate) fn ignore_closed_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Formats a number with a noun, such as `1 file` or `2 files`.
pub(crate) fn pluralize_count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_known_behind_json() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let error = write_pretty_json(&mut Closed, &Value::Null).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn only_a_closed_pipe_is_ignored() {
        assert!(ignore_closed_pipe(Ok(())).is_ok());
        assert!(ignore_closed_pipe(Err(io::ErrorKind::BrokenPipe.into())).is_ok());
        assert!(ignore_closed_pipe(Err(io::ErrorKind::StorageFull.into())).is_err());
    }
}
