//! Reports faults of connections to the metrics and to the log.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use https_server::{ConnectionFault, ConnectionFaultReporter, ConnectionLimit};

use crate::connection_metrics::ConnectionMetrics;
use crate::log::{Log, LogLevel};

/// The least time between two warnings: an attack causes thousands of faults a second.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

/// Returns the function that reports the faults of connections. Operators are warned when connections are closed
/// or refused at a limit; the metrics have the numbers.
pub fn connection_fault_reporter(metrics: ConnectionMetrics, log: Log) -> ConnectionFaultReporter {
    let last_warning = Mutex::new(None::<Instant>);
    Arc::new(move |fault| {
        metrics.count_connection_fault(fault);
        let limit = match fault {
            ConnectionFault::Evicted { limit, .. } | ConnectionFault::Refused { limit, .. } => {
                Some(*limit)
            }
            ConnectionFault::Accept(_) => Some(ConnectionLimit::Descriptors),
            ConnectionFault::Handshake { .. }
            | ConnectionFault::Connection { .. }
            | ConnectionFault::TimedOut { .. }
            | ConnectionFault::StreamTimedOut { .. }
            | ConnectionFault::Panic => None,
        };
        if let Some(limit) = limit {
            let mut last = last_warning.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_none_or(|last| last.elapsed() >= WARNING_INTERVAL) {
                *last = Some(Instant::now());
                let fields = [("limit", &limit.name() as _), ("fault", fault as _)];
                log.warn("connections are closed or refused at a limit", &fields);
                return;
            }
        }
        log.write(LogLevel::Debug, "connection", &[("why", fault)]);
    })
}
