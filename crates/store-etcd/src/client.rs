//! Sends requests to the members of the cluster, with fail-over and deadlines.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use store::{ReadError, Revision, Unavailable};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::call_error::{CallError, CallFailure, FaultSource};
use crate::etcd_messages::{RangeRequest, WatchCreateRequest, WatchRequest, WatchResponse};
use crate::grpc::ResponseStream;
use crate::member::{EtcdMethod, Member, MemberConnection, RANGE, attempt_call};
use crate::options::MemberAddress;
use crate::protobuf::{DecodeMessage, EncodeMessage};

/// Maximum concurrent requests; further ones wait. etcd serves about ten thousand a second, so this is a few
/// dozen milliseconds of work.
pub(crate) const IN_FLIGHT_MAX: u32 = 512;
/// Maximum time to open a watch.
const WATCH_OPEN_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of probes of failed members.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The gRPC path of watches.
const WATCH_METHOD_PATH: &str = "/etcdserverpb.Watch/Watch";

/// A client of all members of the cluster.
pub(crate) struct Client {
    /// `None` after the store was closed.
    members: RwLock<Option<Arc<[Member]>>>,
    next_member_index: AtomicUsize,
    request_permits: Semaphore,
    request_timeout: Duration,
    /// The newest revision in any answer.
    newest_revision: AtomicU64,
}

/// An open etcd watch and the member that serves it.
pub(crate) struct WatchStream {
    response_stream: ResponseStream,
    members: Arc<[Member]>,
    member_index: usize,
    connection: MemberConnection,
}

impl WatchStream {
    /// The next message. Dropping the future loses no message.
    pub(crate) async fn next(&mut self) -> Result<WatchResponse, Unavailable> {
        let reason = match self.response_stream.next_message().await {
            Ok(Some(message)) => match WatchResponse::decode(message) {
                Ok(message) => return Ok(message),
                Err(error) => error.to_string(),
            },
            Ok(None) => "it has ended a watch".to_owned(),
            Err(error) => error.message().to_owned(),
        };
        self.mark_member_failed();
        Err(self.unavailable_error(&reason))
    }

    /// Marks the member failed, so that the next watch goes to another one.
    pub(crate) fn mark_member_failed(&self) {
        if let Some(member) = self.members.get(self.member_index) {
            member.mark_failed();
        }
    }

    /// Abandons the connection of a silent member, because the connection itself may be broken.
    pub(crate) fn abandon_connection(&self) {
        if let Some(member) = self.members.get(self.member_index) {
            member.abandon_connection(&self.connection);
        }
    }

    pub(crate) fn unavailable_error(&self, reason: &str) -> Unavailable {
        let uri = self.members.get(self.member_index).map_or("", |member| &*member.uri);
        Unavailable { reason: format!("etcd member {uri}: {reason}").into() }
    }
}

impl Client {
    /// Makes a client that connects lazily: it needs a runtime but no cluster.
    pub(crate) fn new(addresses: Vec<MemberAddress>, request_timeout: Duration) -> Self {
        Self {
            members: RwLock::new(Some(addresses.into_iter().map(Member::new).collect())),
            next_member_index: AtomicUsize::new(0),
            request_permits: Semaphore::new(IN_FLIGHT_MAX as usize),
            request_timeout,
            newest_revision: AtomicU64::new(0),
        }
    }

    /// Refuses new requests, and closes connections when no request uses them.
    pub(crate) fn stop_accepting_requests(&self) {
        self.members.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Waits for the running requests.
    pub(crate) async fn wait_for_requests(&self) {
        // An error means that another caller has waited already.
        if let Ok(all) = self.request_permits.acquire_many(IN_FLIGHT_MAX).await {
            self.request_permits.close();
            drop(all);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.members.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Records that the cluster has reached a revision.
    pub(crate) fn record_revision(&self, revision: Revision) {
        self.newest_revision.fetch_max(revision.as_u64(), Ordering::Relaxed);
    }

    /// The newest revision in any answer.
    pub(crate) fn newest_revision(&self) -> Revision {
        Revision::new(self.newest_revision.load(Ordering::Relaxed))
    }

    fn members(&self) -> Result<Arc<[Member]>, Unavailable> {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        members.clone().ok_or_else(Unavailable::store_closed)
    }

    /// Sends a request to one member after the other until one answers:
    /// 1. Members take turns; failed members come last.
    /// 2. An error that every member would return ends the call.
    /// 3. A repeatable request is retried; each attempt gets a part of the remaining time. A cluster of one
    ///    member gets a second attempt for small reads, because its connection may be broken.
    /// 4. A request that is not repeatable goes to another member only if it was never sent to this one.
    pub(crate) async fn call<Q, A>(&self, method: EtcdMethod, request: &Q) -> Result<A, CallError>
    where
        Q: EncodeMessage,
        A: DecodeMessage,
    {
        self.call_with_timeout(self.request_timeout.min(method.total_time_max), method, request)
            .await
    }

    /// The same as [`Self::call`], with its own timeout.
    pub(crate) async fn call_with_timeout<Q, A>(
        &self,
        time: Duration,
        method: EtcdMethod,
        request: &Q,
    ) -> Result<A, CallError>
    where
        Q: EncodeMessage,
        A: DecodeMessage,
    {
        let answer = self.call_encoded(time, method, &request.encode()).await?;
        A::decode(answer).map_err(|error| {
            let reason = format!("etcd sends an answer that cannot be read: {error}").into();
            CallError::Unavailable(Unavailable { reason })
        })
    }

    /// Sends an encoded request and returns the encoded answer.
    async fn call_encoded(
        &self,
        time: Duration,
        method: EtcdMethod,
        request: &[u8],
    ) -> Result<Bytes, CallError> {
        let deadline = Instant::now() + time;
        let permit = timeout_at(deadline, self.request_permits.acquire()).await;
        let _permit =
            permit.map_err(|_| CallError::Timeout)?.map_err(|_| Unavailable::store_closed())?;
        let members = self.members()?;
        let mut failure = CallError::Timeout;
        let mut order = self.member_order(&members);
        if method.attempt_time_max.is_some() && order.len() == 1 {
            order.extend(order.front().copied());
        }
        while let Some(at) = order.pop_front() {
            let Some(member) = members.get(at) else { continue };
            let left = deadline.saturating_duration_since(Instant::now());
            let n_left = u32::try_from(order.len() + 1).unwrap_or(u32::MAX);
            let share = match method {
                EtcdMethod { is_idempotent: false, .. } => left,
                EtcdMethod { attempt_time_max: Some(attempt_time_max), .. } if n_left > 1 => {
                    left.min(attempt_time_max)
                }
                EtcdMethod { .. } => left / n_left,
            };
            let fault = match attempt_call(share, member, method, request).await {
                Ok(answer) => return Ok(answer),
                Err(CallFailure { error, fault_source: fault }) => {
                    failure = error;
                    fault
                }
            };
            match fault {
                FaultSource::Request => return Err(failure),
                FaultSource::Member => member.mark_failed(),
                FaultSource::Connection => {
                    member.mark_failed();
                    continue;
                }
            }
            if !method.is_idempotent {
                return Err(failure);
            }
        }
        Err(failure)
    }

    /// Applies the request timeout to other work.
    pub(crate) async fn with_request_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, Unavailable>>,
    ) -> Result<T, ReadError> {
        match timeout_at(Instant::now() + self.request_timeout, work).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(ReadError::Timeout),
        }
    }

    /// The order in which to try the members.
    fn member_order(&self, members: &[Member]) -> VecDeque<usize> {
        let first = self.next_member_index.fetch_add(1, Ordering::Relaxed);
        let mut order: Vec<usize> =
            (0..members.len()).map(|n| first.wrapping_add(n) % members.len()).collect();
        order.sort_by_key(|at| members.get(*at).is_some_and(Member::is_down));
        order.into()
    }

    /// Probes failed members until the store is closed, so that no real request has to wait for a member that
    /// is still down.
    pub(crate) async fn probe_failed_members(&self) {
        let key = Bytes::from_static(b"\0");
        let range = RangeRequest { key, count_only: true, ..RangeRequest::default() }.encode();
        while let Ok(members) = self.members() {
            for member in members.iter().filter(|member| member.is_down()) {
                if attempt_call(PROBE_TIMEOUT, member, RANGE, &range).await.is_ok() {
                    member.mark_recovered();
                }
            }
            drop(members);
            sleep(PROBE_INTERVAL).await;
        }
    }

    /// Opens a watch at one member. The watch ends if that member loses its leader.
    pub(crate) async fn open_watch(
        &self,
        create: WatchCreateRequest,
    ) -> Result<WatchStream, Unavailable> {
        let members = self.members()?;
        let at = self.member_order(&members).pop_front().unwrap_or_default();
        let member = members.get(at).ok_or_else(Unavailable::store_closed)?;
        let request = WatchRequest { create: Some(create) }.encode();
        let headers = HeaderMap::from_iter([(
            HeaderName::from_static("hasleader"),
            HeaderValue::from_static("true"),
        )]);
        let connection = member.current_connection();
        let open = connection.channel.open_stream(WATCH_METHOD_PATH, headers, &request);
        let opened = timeout(self.request_timeout.min(WATCH_OPEN_TIMEOUT), open).await;
        let reason = match opened {
            Ok(Ok(response_stream)) => {
                return Ok(WatchStream {
                    response_stream,
                    members: members.clone(),
                    member_index: at,
                    connection,
                });
            }
            Ok(Err(error)) => {
                member.mark_failed();
                error.message().to_owned()
            }
            Err(_) => {
                member.abandon_connection(&connection);
                "it does not answer".to_owned()
            }
        };
        Err(Unavailable { reason: format!("etcd member {}: {reason}", member.uri).into() })
    }
}
