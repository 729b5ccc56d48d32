//! A closed loop: each connection sends its next request after the answer to the last one.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::task::LocalSet;

use crate::server::case::Case;
use crate::server::client::{Answer, Client, Connection};
use crate::server::measured_server::MeasuredServer;
use crate::server::process::processor_time;

/// The amount of load of one measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) n_connections: usize,
    /// The time before measuring begins.
    pub(crate) warm_up: Duration,
    /// The time during which answers are measured.
    pub(crate) window: Duration,
}

/// The result of one measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoadResult {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    /// The CPU time of the server for each request.
    pub(crate) server_time: Duration,
}

/// The counter for requests that can be sent only once.
pub(crate) type NextNumber = Rc<Cell<u64>>;

/// The requests of a measurement: those that take turns, or those that are sent once each.
#[derive(Clone)]
pub(crate) struct Requests {
    /// The requests that take turns; empty if each can be sent only once.
    pub(crate) repeated: Arc<Vec<Vec<u8>>>,
    /// Makes the request with a number, if none can be repeated.
    pub(crate) numbered: fn(u64) -> Vec<u8>,
    /// Whether an answer is the expected one.
    pub(crate) is_right: fn(Answer<'_>) -> bool,
}

/// Sends one kind of request for some time.
///
/// # Errors
/// A connection breaks, or an answer is wrong.
pub(crate) async fn run(
    measured_server: &mut MeasuredServer,
    case: Case,
    effort: Effort,
) -> anyhow::Result<LoadResult> {
    let repeated = (0..case.n_requests().unwrap_or(0)).map(|number| case.request(number)).collect();
    let requests = Requests {
        repeated: Arc::new(repeated),
        numbered: |number| Case::Create.request(number),
        is_right: case.answer_check(),
    };
    let next: NextNumber = Rc::new(Cell::new(measured_server.n_written));
    let (client, pid) = (&measured_server.client, measured_server.process.pid());
    let result = send(client, pid, &requests, &next, effort).await;
    measured_server.n_written = next.get();
    result
}

/// Sends requests to the process with this identifier for some time.
///
/// # Errors
/// A connection breaks, or an answer is wrong.
pub(crate) async fn send(
    client: &Client,
    pid: u32,
    requests: &Requests,
    next: &NextNumber,
    effort: Effort,
) -> anyhow::Result<LoadResult> {
    let mut connections = Vec::new();
    for _ in 0..effort.n_connections {
        connections.push(client.connect().await?);
    }
    let begin = Instant::now() + effort.warm_up;
    let end = begin + effort.window;
    let tasks = LocalSet::new();
    let handles: Vec<_> = (connections.into_iter().enumerate())
        .map(|(idx, connection)| {
            let load = ConnectionLoad { idx, requests: requests.clone(), next: Rc::clone(next) };
            tasks.spawn_local(load.send_requests(connection, begin, end))
        })
        .collect();
    let counted = async {
        tokio::time::sleep_until(begin.into()).await;
        let before = processor_time(pid)?;
        tokio::time::sleep_until(end.into()).await;
        anyhow::Ok(processor_time(pid)?.saturating_sub(before))
    };
    let server_time = tasks.run_until(counted).await?;
    let mut latencies = Vec::new();
    let joined = async {
        for handle in handles {
            latencies.extend(handle.await.context("a task of the benchmark ended early")??);
        }
        anyhow::Ok(())
    };
    tasks.run_until(joined).await?;
    LoadResult::new(latencies, effort.window, server_time)
}

/// The part of the load that one connection sends.
struct ConnectionLoad {
    idx: usize,
    requests: Requests,
    next: NextNumber,
}

impl ConnectionLoad {
    /// Sends requests until the end, and returns the nanoseconds of each answer that came within the window.
    async fn send_requests(
        self,
        mut connection: Connection,
        begin: Instant,
        end: Instant,
    ) -> anyhow::Result<Vec<u64>> {
        let mut latencies = Vec::new();
        let repeated = &self.requests.repeated;
        // Connections start at different requests, so that they do not send the same one at the same time.
        let mut at = self.idx * 31;
        loop {
            let fresh;
            let request = match repeated.get(at % repeated.len().max(1)) {
                Some(request) => request,
                None => {
                    let number = self.next.get();
                    self.next.set(number + 1);
                    fresh = (self.requests.numbered)(number);
                    &fresh
                }
            };
            at += 1;
            let sent = Instant::now();
            let answer = connection.exchange(request).await?;
            let received = Instant::now();
            ensure!(
                (self.requests.is_right)(answer),
                "a wrong answer: {} {}",
                answer.code,
                String::from_utf8_lossy(answer.body)
            );
            if received >= end {
                return Ok(latencies);
            }
            if received >= begin {
                let nanos = received.duration_since(sent).as_nanos();
                latencies.push(u64::try_from(nanos).unwrap_or(u64::MAX));
            }
        }
    }
}

impl LoadResult {
    /// The better value of each number of two measurements.
    pub(crate) fn best(self, other: Self) -> Self {
        Self {
            per_second: self.per_second.max(other.per_second),
            p50: self.p50.min(other.p50),
            p99: self.p99.min(other.p99),
            server_time: self.server_time.min(other.server_time),
        }
    }

    fn new(
        mut latencies: Vec<u64>,
        window: Duration,
        server_time: Duration,
    ) -> anyhow::Result<Self> {
        latencies.sort_unstable();
        let n_answers = latencies.len();
        let quantile = |share: f64| {
            let idx = (n_answers as f64 * share) as usize;
            latencies.get(idx.min(n_answers.saturating_sub(1))).copied()
        };
        let (p50, p99) = (quantile(0.5), quantile(0.99));
        let (p50, p99) = p50.zip(p99).context("no answer came in time")?;
        Ok(Self {
            per_second: n_answers as f64 / window.as_secs_f64(),
            p50: Duration::from_nanos(p50),
            p99: Duration::from_nanos(p99),
            server_time: server_time.div_f64(n_answers as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_what_most_saw() {
        let latencies = (1..=100).rev().map(|n| n * 1_000).collect();
        let result =
            LoadResult::new(latencies, Duration::from_millis(500), Duration::from_micros(200));
        let want = LoadResult {
            per_second: 200.0,
            p50: Duration::from_micros(51),
            p99: Duration::from_micros(100),
            server_time: Duration::from_micros(2),
        };
        assert_eq!(result.unwrap(), want);
        assert!(LoadResult::new(Vec::new(), Duration::from_secs(1), Duration::ZERO).is_err());
    }
}
