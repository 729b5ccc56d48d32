//! Metrics about open connections, and about those that were closed or refused at a limit.

use https_server::{ConnectionFault, ConnectionLimit};
use prometheus::{IntCounterVec, IntGauge, Opts, Registry};

/// The metrics about connections of clients. The label is the name of a [`ConnectionLimit`], so the set of series
/// is closed. A clone counts in the same series.
#[derive(Debug, Clone)]
pub struct ConnectionMetrics {
    open: IntGauge,
    evicted_connections: IntCounterVec,
    refused_connections: IntCounterVec,
}

impl ConnectionMetrics {
    /// Registers all metrics with the value zero.
    ///
    /// # Errors
    /// A metric name is malformed or already registered.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let open =
            IntGauge::new("portcullis_open_connections", "Number of open connections of clients.")?;
        registry.register(Box::new(open.clone()))?;
        let counters = |name: &str, help: &str| {
            let counters = IntCounterVec::new(Opts::new(name, help), &["limit"])?;
            for limit in ConnectionLimit::ALL {
                counters.with_label_values(&[limit.name()]);
            }
            registry.register(Box::new(counters.clone())).map(|()| counters)
        };
        Ok(Self {
            open,
            evicted_connections: counters(
                "portcullis_evicted_connections_total",
                "Number of connections that were closed to make room for others, by the limit that \
                 was reached.",
            )?,
            refused_connections: counters(
                "portcullis_refused_connections_total",
                "Number of connections that were refused because no other could be closed, by the \
                 limit that was reached.",
            )?,
        })
    }

    /// Sets the number of open connections.
    pub fn set_open_connections(&self, n_open: usize) {
        self.open.set(i64::try_from(n_open).unwrap_or(i64::MAX));
    }

    /// Counts a connection that was closed or refused at a limit. Other faults have no metric.
    pub fn count_connection_fault(&self, fault: &ConnectionFault) {
        match fault {
            ConnectionFault::Evicted { limit, .. } => {
                self.evicted_connections.with_label_values(&[limit.name()]).inc();
            }
            ConnectionFault::Refused { limit, .. } => {
                self.refused_connections.with_label_values(&[limit.name()]).inc();
            }
            ConnectionFault::Accept(_)
            | ConnectionFault::Handshake { .. }
            | ConnectionFault::Connection { .. }
            | ConnectionFault::TimedOut { .. }
            | ConnectionFault::StreamTimedOut { .. }
            | ConnectionFault::Panic => {}
        }
    }
}
