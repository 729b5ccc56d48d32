//! One member of the cluster: its connection, and one attempt of a request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use crate::call_error::{CallError, CallFailure, FaultSource};
use crate::grpc::Channel;
use crate::options::MemberAddress;

/// Maximum time of a read of one key, so that callers learn within five seconds that the read failed.
const GET_TIME_MAX: Duration = Duration::from_secs(4);
/// Maximum time of one attempt of such a read, except the last. The answer is small and takes
/// milliseconds, so a slow answer is probably lost.
const GET_ATTEMPT_MAX: Duration = Duration::from_secs(1);

/// A method of etcd's gRPC API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EtcdMethod {
    path: &'static str,
    /// Whether the request is idempotent. A write is not: the second attempt would treat the result of the
    /// first as a conflict.
    pub(crate) is_idempotent: bool,
    /// Maximum time, including retries.
    pub(crate) total_time_max: Duration,
    /// Maximum time of each attempt but the last; `None` divides the time evenly between the members.
    pub(crate) attempt_time_max: Option<Duration>,
}

const fn method(path: &'static str, is_repeatable: bool) -> EtcdMethod {
    EtcdMethod {
        path,
        is_idempotent: is_repeatable,
        total_time_max: Duration::MAX,
        attempt_time_max: None,
    }
}

pub(crate) const RANGE: EtcdMethod = method("/etcdserverpb.KV/Range", true);
/// A range of one key.
pub(crate) const GET: EtcdMethod =
    EtcdMethod { total_time_max: GET_TIME_MAX, attempt_time_max: Some(GET_ATTEMPT_MAX), ..RANGE };
pub(crate) const TXN: EtcdMethod = method("/etcdserverpb.KV/Txn", false);
pub(crate) const COMPACT: EtcdMethod = method("/etcdserverpb.KV/Compact", true);
pub(crate) const LEASE_GRANT: EtcdMethod = method("/etcdserverpb.Lease/LeaseGrant", true);

/// A member of the cluster.
pub(crate) struct Member {
    member_address: MemberAddress,
    pub(crate) uri: String,
    connection: Mutex<MemberConnection>,
    /// Whether its last request failed. A member that is down gets a request only after all others failed, so that
    /// it does not delay requests.
    is_down: AtomicBool,
}

/// A lazy connection to a member.
#[derive(Clone)]
pub(crate) struct MemberConnection {
    pub(crate) channel: Arc<Channel>,
    /// Number of earlier connections.
    generation: u64,
}

impl Member {
    pub(crate) fn new(address: MemberAddress) -> Self {
        let connection =
            MemberConnection { channel: Arc::new(address.open_channel()), generation: 0 };
        Self {
            uri: address.uri(),
            member_address: address,
            connection: Mutex::new(connection),
            is_down: AtomicBool::new(false),
        }
    }

    pub(crate) fn mark_failed(&self) {
        self.is_down.store(true, Ordering::Relaxed);
    }

    pub(crate) fn mark_recovered(&self) {
        self.is_down.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    pub(crate) fn current_connection(&self) -> MemberConnection {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces a connection on which a request was not answered. A broken network path sends no error, and
    /// keep-alive would notice it only seconds later.
    pub(crate) fn abandon_connection(&self, connection: &MemberConnection) {
        self.mark_failed();
        let mut current = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // Only the first of several waiters replaces the connection.
        if current.generation == connection.generation {
            *current = MemberConnection {
                channel: Arc::new(self.member_address.open_channel()),
                generation: connection.generation + 1,
            };
        }
    }
}

/// Sends one request to one member, with a timeout.
pub(crate) async fn attempt_call(
    time: Duration,
    member: &Member,
    method: EtcdMethod,
    request: &[u8],
) -> Result<Bytes, CallFailure> {
    let connection = member.current_connection();
    match timeout(time, connection.channel.call(method.path, request)).await {
        Ok(answer) => answer.map_err(|error| CallFailure::from_grpc_error(&member.uri, &error)),
        Err(_) => {
            member.abandon_connection(&connection);
            Err(CallFailure { error: CallError::Timeout, fault_source: FaultSource::Member })
        }
    }
}
