//! One member: the connection to it, and one attempt at a request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::uri::PathAndQuery;
use prost::Message;
use tokio::time::timeout;
use tonic::Request;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use crate::call_error::{CallError, CallFailure, FaultSource};
use crate::options::Address;

/// Largest request, in bytes: the largest value and room for the rest.
const SEND_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Largest answer, in bytes. Lists are asked for in rounds that stay far below it.
const RECEIVE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Reads of one key have no more time than this, however much a request has. Who decides by what it reads
/// must know within five seconds that it does not know.
const GET_TIME_MAX: Duration = Duration::from_secs(4);
/// And after so much of it they are asked again elsewhere, or over another connection: the answer is small
/// and takes milliseconds, so more likely than late it is lost. The last attempt has all that is left.
const GET_ATTEMPT_MAX: Duration = Duration::from_secs(1);

/// A call of the API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EtcdMethod {
    path: &'static str,
    /// Whether asking twice is as good as asking once. A write is not: the second attempt would find
    /// what the first has written and take it for somebody else's.
    pub(crate) is_repeatable: bool,
    /// The most time for it, retries included.
    pub(crate) time_max: Duration,
    /// The time for each attempt but the last; absent means that the members share all time evenly.
    pub(crate) attempt_max: Option<Duration>,
}

const fn method(path: &'static str, is_repeatable: bool) -> EtcdMethod {
    EtcdMethod { path, is_repeatable, time_max: Duration::MAX, attempt_max: None }
}

pub(crate) const RANGE: EtcdMethod = method("/etcdserverpb.KV/Range", true);
/// A range of one key.
pub(crate) const GET: EtcdMethod =
    EtcdMethod { time_max: GET_TIME_MAX, attempt_max: Some(GET_ATTEMPT_MAX), ..RANGE };
pub(crate) const TXN: EtcdMethod = method("/etcdserverpb.KV/Txn", false);
pub(crate) const COMPACT: EtcdMethod = method("/etcdserverpb.KV/Compact", true);
pub(crate) const LEASE_GRANT: EtcdMethod = method("/etcdserverpb.Lease/LeaseGrant", true);

/// One of the cluster.
pub(crate) struct Member {
    address: Address,
    pub(crate) uri: String,
    connection: Mutex<MemberConnection>,
    /// Whether its last answer was a failure of its own. Then it gets requests only if all others have
    /// failed too, so that one that hangs does not take every third request with it.
    is_down: AtomicBool,
}

/// The connection to a member, which is made when it is needed.
#[derive(Clone)]
pub(crate) struct MemberConnection {
    channel: Channel,
    /// How many there were before it.
    generation: u64,
}

impl MemberConnection {
    pub(crate) fn grpc(&self) -> Grpc<Channel> {
        Grpc::new(self.channel.clone())
            .max_encoding_message_size(SEND_BYTES_MAX)
            .max_decoding_message_size(RECEIVE_BYTES_MAX)
    }
}

impl Member {
    pub(crate) fn new(address: Address) -> Self {
        let connection = MemberConnection { channel: address.channel(), generation: 0 };
        Self {
            uri: address.uri(),
            address,
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

    pub(crate) fn connection(&self) -> MemberConnection {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has later requests use a connection that is not this one, on which something was not answered.
    /// A network that loses a connection does not say so, and its end would be noticed seconds later.
    pub(crate) fn give_up(&self, connection: &MemberConnection) {
        self.mark_failed();
        let mut current = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // Of all those who wait for one connection the first one is enough.
        if current.generation == connection.generation {
            *current = MemberConnection {
                channel: self.address.channel(),
                generation: connection.generation + 1,
            };
        }
    }
}

/// Asks one member, which has so much time.
pub(crate) async fn attempt_call<Q, A>(
    time: Duration,
    member: &Member,
    method: EtcdMethod,
    request: Q,
) -> Result<A, CallFailure>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let connection = member.connection();
    let ask = async {
        let mut grpc = connection.grpc();
        let unreachable = |why: &str| CallFailure::unreachable(&member.uri, why);
        grpc.ready().await.map_err(|error| unreachable(&error.to_string()))?;
        let path = PathAndQuery::from_static(method.path);
        let answer = grpc.unary(Request::new(request), path, ProstCodec::default()).await;
        let failed = |status| CallFailure::from_status(&member.uri, &status);
        answer.map(tonic::Response::into_inner).map_err(failed)
    };
    timeout(time, ask).await.unwrap_or_else(|_| {
        member.give_up(&connection);
        Err(CallFailure { error: CallError::Timeout, fault: FaultSource::Member })
    })
}
