//! One server with its data, and the measurements of its start.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::server::case::request;
use crate::server::client::Client;
use crate::server::populate::{populate, populate_load, token_file};
use crate::server::process::Process;

/// The interval of the readiness checks, and their time limit.
const READY_EVERY: Duration = Duration::from_millis(2);
const READY_PATIENCE: Duration = Duration::from_secs(60);

/// A server that is measured.
pub(crate) struct MeasuredServer {
    pub(crate) process: Process,
    pub(crate) client: Client,
    /// The number of bindings in addition to the default policy.
    pub(crate) n_bindings: usize,
    /// The number of objects that the load has written, and the number of the next one.
    pub(crate) n_written: u64,
    life: ServerMeasurements,
    /// The data directory, which is removed with this value.
    _data: TempDir,
}

/// The measurements of a server from its start to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ServerMeasurements {
    pub(crate) n_bindings: usize,
    /// The time from the start until the server is ready, with an empty store and with all objects.
    pub(crate) ready_new: Duration,
    pub(crate) ready_kept: Duration,
    /// The resident bytes when the server is ready with an empty store.
    pub(crate) start_bytes: u64,
    /// The resident bytes after all objects were created.
    pub(crate) populated_bytes: u64,
    /// The resident bytes when the server is ready with all objects after a restart.
    pub(crate) restarted_bytes: u64,
    /// The resident bytes after the reads.
    pub(crate) read_bytes: u64,
    /// The resident bytes after the writes, and the number of writes.
    pub(crate) written_bytes: u64,
    pub(crate) n_written: u64,
}

impl MeasuredServer {
    /// Starts a server on an empty store, creates all objects, and starts it again.
    ///
    /// # Errors
    /// The server does not start, or refuses an object.
    pub(crate) async fn prepare(
        program: &Path,
        n_bindings: usize,
        n_connections: usize,
    ) -> anyhow::Result<Self> {
        let data = directory()?;
        let mut life = ServerMeasurements { n_bindings, ..ServerMeasurements::default() };
        let (process, client, ready) = start(program, data.path(), &[]).await?;
        life.ready_new = ready;
        life.start_bytes = process.resident_bytes()?;
        populate(&client, n_bindings as u64, n_connections).await?;
        life.populated_bytes = process.resident_bytes()?;
        process.stop();
        let (process, client, ready) = start(program, data.path(), &[]).await?;
        life.ready_kept = ready;
        life.restarted_bytes = process.resident_bytes()?;
        Ok(Self { process, client, n_bindings, n_written: 0, life, _data: data })
    }

    /// Starts a server with some flags on an empty store with only the objects that the load needs.
    ///
    /// # Errors
    /// The server does not start, or refuses an object.
    pub(crate) async fn start(program: &Path, flags: &[String]) -> anyhow::Result<Self> {
        let data = directory()?;
        let (process, client, _) = start(program, data.path(), flags).await?;
        populate_load(&client).await?;
        let life = ServerMeasurements::default();
        Ok(Self { process, client, n_bindings: 0, n_written: 0, life, _data: data })
    }

    /// Records the resident memory, after the reads or after the writes.
    pub(crate) fn record_memory(&mut self, has_written: bool) -> anyhow::Result<()> {
        let bytes = self.process.resident_bytes()?;
        match has_written {
            false => self.life.read_bytes = bytes,
            true => self.life.written_bytes = bytes,
        }
        Ok(())
    }

    /// Stops the server and returns its measurements.
    pub(crate) fn stop(self) -> ServerMeasurements {
        self.process.stop();
        ServerMeasurements { n_written: self.n_written, ..self.life }
    }
}

/// A directory on the disk that holds the builds. The directory for temporary files may be in memory, where
/// a sync costs nothing.
fn directory() -> anyhow::Result<TempDir> {
    let program = std::env::current_exe()?;
    let folder = program.parent().context("the benchmark is in no folder")?;
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(folder)?)
}

/// Starts a server and waits until it is ready.
async fn start(
    program: &Path,
    folder: &Path,
    flags: &[String],
) -> anyhow::Result<(Process, Client, Duration)> {
    let tokens = folder.join("tokens.csv");
    std::fs::write(&tokens, token_file())?;
    let data = folder.join("data");
    let start = Instant::now();
    let process = Process::start(program, &data, &tokens, flags)?;
    let client = Client::new(process.address, &data.join("ca.crt"))?;
    let request = request("GET", "/readyz", None);
    while start.elapsed() < READY_PATIENCE {
        if client.connect().await?.exchange(&request).await?.code == 200 {
            return Ok((process, client, start.elapsed()));
        }
        tokio::time::sleep(READY_EVERY).await;
    }
    bail!("the server is not ready after {} s", READY_PATIENCE.as_secs())
}
