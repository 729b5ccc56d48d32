//! Runs a program with limits on its time and its output.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The longest output of a program, in bytes. Credentials have a few thousand.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// The longest part of the error output that a message shows, in characters.
const ERROR_OUTPUT_CHARS_MAX: usize = 500;

/// The pause between two looks at a running program.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The reason why a program gives no output.
#[derive(Debug, thiserror::Error)]
pub enum CredentialProgramError {
    /// The program cannot be started.
    #[error("cannot start it: {0}")]
    Start(#[source] io::Error),
    /// The program ran longer than the limit and was ended.
    #[error("it did not end within {} s and was stopped", .0.as_secs_f32())]
    Timeout(Duration),
    /// The program ended with an error code or by a signal.
    #[error("it ended with {status}{}", format_stderr_suffix(.stderr))]
    Failed {
        /// How it ended, such as `exit status: 1`.
        status: std::process::ExitStatus,
        /// The beginning of its error output.
        stderr: String,
    },
    /// The output is longer than the limit.
    #[error("it printed more than {OUTPUT_BYTES_MAX} bytes")]
    TooLong,
    /// The output cannot be read.
    #[error("its output cannot be read: {0}")]
    Output(#[source] io::Error),
}

fn format_stderr_suffix(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(" and said: {stderr}") }
}

/// Runs a program to its end and returns its output. The caller sets arguments, environment and standard input.
///
/// # Errors
///
/// The program cannot be started, fails, prints too much or takes too long.
pub(crate) fn run_program(
    mut command: Command,
    limit: Duration,
) -> Result<Vec<u8>, CredentialProgramError> {
    let deadline = Instant::now() + limit;
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(CredentialProgramError::Start)?;
    // Both streams are read at the same time, because a program blocks when nobody reads what it prints.
    let stdout = child.stdout.take().map(|stream| read_in_thread(stream, OUTPUT_BYTES_MAX + 1));
    let stderr = child.stderr.take().map(|stream| read_in_thread(stream, 64 << 10));
    let status = loop {
        match child.try_wait().map_err(CredentialProgramError::Output)? {
            Some(status) => break status,
            None if Instant::now() >= deadline => {
                stop(&mut child);
                return Err(CredentialProgramError::Timeout(limit));
            }
            None => thread::sleep(POLL_INTERVAL),
        }
    };
    // A child of the program may still hold the pipes, so the threads are not joined without a limit.
    let stdout =
        wait_for_output(stdout, deadline, limit)?.map_err(CredentialProgramError::Output)?;
    if !status.success() {
        let stderr = match wait_for_output(stderr, deadline, limit) {
            Ok(Ok(bytes)) => String::from_utf8_lossy(&bytes).trim().to_owned(),
            Ok(Err(_)) | Err(_) => String::new(),
        };
        let stderr = stderr.chars().take(ERROR_OUTPUT_CHARS_MAX).collect();
        return Err(CredentialProgramError::Failed { status, stderr });
    }
    if stdout.len() as u64 > OUTPUT_BYTES_MAX {
        return Err(CredentialProgramError::TooLong);
    }
    Ok(stdout)
}

type OutputReaderThread = thread::JoinHandle<io::Result<Vec<u8>>>;

/// Reads a stream up to a limit of bytes, and discards the rest.
fn read_in_thread(stream: impl Read + Send + 'static, bytes_max: u64) -> OutputReaderThread {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut stream = stream.take(bytes_max);
        stream.read_to_end(&mut bytes)?;
        io::copy(&mut stream.into_inner(), &mut io::sink())?;
        Ok(bytes)
    })
}

fn wait_for_output(
    output: Option<OutputReaderThread>,
    deadline: Instant,
    limit: Duration,
) -> Result<io::Result<Vec<u8>>, CredentialProgramError> {
    let Some(output) = output else { return Ok(Ok(Vec::new())) };
    while !output.is_finished() {
        if Instant::now() >= deadline {
            return Err(CredentialProgramError::Timeout(limit));
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(output.join().unwrap_or_else(|_| Ok(Vec::new())))
}

/// Ends a program. It may have ended by itself in the meantime, so errors do not matter.
fn stop(child: &mut Child) {
    drop(child.kill());
    drop(child.wait());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_stopped() {
        let mut command = Command::new("sleep");
        command.arg("600");
        let begin = Instant::now();
        let error = run_program(command, Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.to_string(), "it did not end within 0.1 s and was stopped");
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
}
