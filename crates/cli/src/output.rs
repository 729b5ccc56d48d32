//! Writing results, perhaps to a reader who goes away.

use std::io::{self, Write};

use serde_json::Value;

/// Writes a JSON value with indentation, and a line feed.
///
/// # Errors
/// Fails if it can not be written.
pub(crate) fn write_json(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Success if the reader has closed the pipe, as `head` does when it has seen enough: nothing is
/// wrong then, and the exit code is still that of the result.
pub(crate) fn ignore_closed_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
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
        let error = write_json(&mut Closed, &Value::Null).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn only_a_closed_pipe_is_ignored() {
        assert!(ignore_closed_pipe(Ok(())).is_ok());
        assert!(ignore_closed_pipe(Err(io::ErrorKind::BrokenPipe.into())).is_ok());
        assert!(ignore_closed_pipe(Err(io::ErrorKind::StorageFull.into())).is_err());
    }
}
