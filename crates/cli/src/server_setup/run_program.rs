//! Runs a command that listens: its runtime, its log, and its exit code.

use std::io::{self, Write};
use std::pin::Pin;
use std::time::Duration;

use component_base::Log;

use super::return_freed_memory;
use crate::exit::Exit;
use crate::offline::LoadFailure;

/// How long the end of the process waits for standard error to take the lines of the log.
const LOG_FLUSH_TIME_MAX: Duration = Duration::from_secs(2);

/// Stack size of each thread. Functions recurse as deep as objects are nested, and debug builds need
/// more. It reserves address space, not memory.
const STACK_BYTES: usize = 8 << 20;

/// A program that listens: how it loads its configuration, and how it serves with it.
pub(crate) struct ServerProgram<'p, T> {
    /// Checks the flags and reads the files whose errors are printed with their source lines.
    pub(crate) load: &'p dyn Fn() -> Result<T, LoadFailure>,
    /// Serves until a signal stops the program.
    pub(crate) serve: ServeFn<'p, T>,
}

/// Serves with a loaded configuration, and writes the start message to the stream.
type ServeFn<'p, T> =
    &'p dyn Fn(T, &'p mut dyn Write) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'p>>;

/// Runs a program that listens, until it stops.
///
/// # Errors
/// Fails if a message cannot be written.
pub(crate) fn run_server_program<'p, T>(
    program: &ServerProgram<'p, T>,
    log: Log,
    out: &'p mut dyn Write,
    err: &mut dyn Write,
    colour: bool,
) -> io::Result<Exit> {
    log_panics(log);
    if let Err(error) = return_freed_memory::start() {
        log.warn("memory is returned to the system late", &[("why", &error)]);
    }
    let exit = load_and_serve(program, log, out, err, colour);
    log.flush(LOG_FLUSH_TIME_MAX);
    exit
}

/// Loads the configuration, and serves until a signal.
fn load_and_serve<'p, T>(
    program: &ServerProgram<'p, T>,
    log: Log,
    out: &'p mut dyn Write,
    err: &mut dyn Write,
    colour: bool,
) -> io::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            writeln!(err, "error: cannot start the async runtime: {error}")?;
            return Ok(Exit::Unreadable);
        }
    };
    let loaded = {
        let _guard = runtime.enter();
        (program.load)()
    };
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(failure) => {
            log.flush(LOG_FLUSH_TIME_MAX);
            return failure.print_errors(err, colour);
        }
    };
    match runtime.block_on((program.serve)(loaded, out)) {
        Ok(()) => Ok(Exit::Clean),
        Err(error) => {
            log.flush(LOG_FLUSH_TIME_MAX);
            writeln!(err, "error: {error:#}")?;
            Ok(Exit::Unreadable)
        }
    }
}

/// Sends the messages of panics to the log. Otherwise a thread that panics would write to standard error
/// itself, and wait for ever if nobody reads it.
fn log_panics(log: Log) {
    std::panic::set_hook(Box::new(move |panic| {
        log.error("a thread panicked", &[("why", &panic)]);
    }));
}
