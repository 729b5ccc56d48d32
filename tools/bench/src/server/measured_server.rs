//! One server with its data, and how it came up.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::server::case::request;
use crate::server::client::Client;
use crate::server::populate::{populate, populate_load, token_file};
use crate::server::process::Process;

/// How often readiness is asked for, and for how long.
const READY_EVERY: Duration = Duration::from_millis(2);
const READY_PATIENCE: Duration = Duration::from_secs(60);

/// A server that is measured.
pub(crate) struct Site {
    pub(crate) process: Process,
    pub(crate) client: Client,
    /// Bindings beside those of the default policy.
    pub(crate) n_bindings: usize,
    /// How many objects the load has written, and the number of the next.
    pub(crate) n_written: u64,
    life: Life,
    /// Removed with the site.
    _data: TempDir,
}

/// What was seen of a server from its start to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Life {
    pub(crate) n_bindings: usize,
    /// From its start until it says that it is ready, with an empty store and with all objects.
    pub(crate) ready_new: Duration,
    pub(crate) ready_kept: Duration,
    /// Resident bytes when it is ready for the first time, with an empty store.
    pub(crate) start_bytes: u64,
    /// When all objects were created.
    pub(crate) populated_bytes: u64,
    /// When it is ready again with all objects.
    pub(crate) restarted_bytes: u64,
    /// After the reads.
    pub(crate) read_bytes: u64,
    /// After the writes, and how many these were.
    pub(crate) written_bytes: u64,
    pub(crate) n_written: u64,
}

impl Site {
    /// Starts a server on an empty store, fills it, and starts it again.
    ///
    /// # Errors
    /// It does not start, or does not take what it should hold.
    pub(crate) async fn prepare(
        program: &Path,
        n_bindings: usize,
        n_connections: usize,
    ) -> anyhow::Result<Self> {
        let data = directory()?;
        let mut life = Life { n_bindings, ..Life::default() };
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

    /// Starts a server with some flags on an empty store that holds only what the load needs.
    ///
    /// # Errors
    /// It does not start, or does not take what it should hold.
    pub(crate) async fn start(program: &Path, flags: &[String]) -> anyhow::Result<Self> {
        let data = directory()?;
        let (process, client, _) = start(program, data.path(), flags).await?;
        populate_load(&client).await?;
        let life = Life::default();
        Ok(Self { process, client, n_bindings: 0, n_written: 0, life, _data: data })
    }

    /// Looks at the memory, after the reads or after the writes.
    pub(crate) fn note_memory(&mut self, has_written: bool) -> anyhow::Result<()> {
        let bytes = self.process.resident_bytes()?;
        match has_written {
            false => self.life.read_bytes = bytes,
            true => self.life.written_bytes = bytes,
        }
        Ok(())
    }

    /// Ends the server and tells of its life.
    pub(crate) fn stop(self) -> Life {
        self.process.stop();
        Life { n_written: self.n_written, ..self.life }
    }
}

/// A directory on the disk that programs are built on: what is meant for short-lived files may be
/// memory, where durability costs nothing.
fn directory() -> anyhow::Result<TempDir> {
    let program = std::env::current_exe()?;
    let folder = program.parent().context("the benchmark is in no folder")?;
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(folder)?)
}

/// Starts a server and waits until it says that it is ready.
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
