//! Requests to the cluster: which member gets them, how long they may take, what their failures mean.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use prost::Message;
use store::{ReadError, Revision, Unavailable};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_stream::StreamExt;
use tonic::metadata::MetadataValue;
use tonic::{Request, Streaming};
use tonic_prost::ProstCodec;

use crate::call_error::{CallError, CallFailure, FaultSource};
use crate::etcd_messages::{
    RangeRequest, RangeResponse, WatchCreateRequest, WatchRequest, WatchResponse,
};
use crate::member::{EtcdMethod, Member, MemberConnection, RANGE, attempt_call};
use crate::options::Address;

/// Requests on their way at once; more wait. etcd serves some ten thousand a second, so this is a few
/// dozen milliseconds of work for it.
pub(crate) const IN_FLIGHT_MAX: u32 = 512;
/// How long opening a watch may take. Another member, or another connection, is tried sooner.
const WATCH_OPEN_MAX: Duration = Duration::from_secs(2);
/// How often members that have failed are asked whether they are back.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// How long they may take to answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Where watches are asked for.
const WATCH: &str = "/etcdserverpb.Watch/Watch";

/// Connections to all members.
pub(crate) struct Client {
    /// Absent when the store is closed.
    members: RwLock<Option<Arc<[Member]>>>,
    next_member: AtomicUsize,
    in_flight: Semaphore,
    request_timeout: Duration,
    /// The newest revision that any answer has told.
    newest_revision: AtomicU64,
}

/// An open watch of the API and the member that serves it.
pub(crate) struct WatchStream {
    stream: Streaming<WatchResponse>,
    members: Arc<[Member]>,
    at: usize,
    connection: MemberConnection,
}

impl WatchStream {
    /// The next message. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<WatchResponse, Unavailable> {
        let reason = match self.stream.message().await {
            Ok(Some(message)) => return Ok(message),
            Ok(None) => "it has ended a watch".to_owned(),
            Err(status) => status.message().to_owned(),
        };
        self.mark_member_failed();
        Err(self.unavailable(&reason))
    }

    /// Has the next watch go to another member, if there is one.
    pub(crate) fn mark_member_failed(&self) {
        if let Some(member) = self.members.get(self.at) {
            member.mark_failed();
        }
    }

    /// The same because nothing is heard, so that this may be the fault of the connection.
    pub(crate) fn give_up(&self) {
        if let Some(member) = self.members.get(self.at) {
            member.give_up(&self.connection);
        }
    }

    pub(crate) fn unavailable(&self, reason: &str) -> Unavailable {
        let uri = self.members.get(self.at).map_or("", |member| &*member.uri);
        Unavailable { reason: format!("etcd member {uri}: {reason}").into() }
    }
}

impl Client {
    /// Connects lazily, so this needs a runtime but no cluster.
    pub(crate) fn new(addresses: Vec<Address>, request_timeout: Duration) -> Self {
        Self {
            members: RwLock::new(Some(addresses.into_iter().map(Member::new).collect())),
            next_member: AtomicUsize::new(0),
            in_flight: Semaphore::new(IN_FLIGHT_MAX as usize),
            request_timeout,
            newest_revision: AtomicU64::new(0),
        }
    }

    /// Refuses what comes from now on and lets go of the connections when nothing uses them.
    pub(crate) fn stop_accepting(&self) {
        self.members.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Waits for the requests that are on their way.
    pub(crate) async fn wait_for_requests(&self) {
        // An error means that somebody else has waited already.
        if let Ok(all) = self.in_flight.acquire_many(IN_FLIGHT_MAX).await {
            self.in_flight.close();
            drop(all);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.members.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Remembers that the cluster has reached a revision.
    pub(crate) fn note_revision(&self, revision: Revision) {
        self.newest_revision.fetch_max(revision.number(), Ordering::Relaxed);
    }

    /// The newest revision that any answer has told.
    pub(crate) fn newest_revision(&self) -> Revision {
        Revision::new(self.newest_revision.load(Ordering::Relaxed))
    }

    fn members(&self) -> Result<Arc<[Member]>, Unavailable> {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        members.clone().ok_or_else(closed)
    }

    /// Asks one member after the other until one answers:
    /// 1. Members take turns; those that are down come last.
    /// 2. An answer that another member would give as well is the answer.
    /// 3. What can be asked again is; each attempt gets its share of the time that is left. If there is
    ///    but one member and little to answer, it is asked twice, since its connection may be lost.
    /// 4. What can not be asked again is sent to another member only if it never left this one.
    pub(crate) async fn call<Q, A>(&self, method: EtcdMethod, request: &Q) -> Result<A, CallError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.call_within(self.request_timeout.min(method.time_max), method, request).await
    }

    /// As [`Self::call`] with a time of its own.
    pub(crate) async fn call_within<Q, A>(
        &self,
        time: Duration,
        method: EtcdMethod,
        request: &Q,
    ) -> Result<A, CallError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let deadline = Instant::now() + time;
        let room = timeout_at(deadline, self.in_flight.acquire()).await;
        let _room = room.map_err(|_| CallError::Timeout)?.map_err(|_| closed())?;
        let members = self.members()?;
        let mut failure = CallError::Timeout;
        let mut order = self.member_order(&members);
        if method.attempt_max.is_some() && order.len() == 1 {
            order.extend(order.front().copied());
        }
        while let Some(at) = order.pop_front() {
            let Some(member) = members.get(at) else { continue };
            let left = deadline.saturating_duration_since(Instant::now());
            let n_left = u32::try_from(order.len() + 1).unwrap_or(u32::MAX);
            let share = match method {
                EtcdMethod { is_repeatable: false, .. } => left,
                EtcdMethod { attempt_max: Some(attempt_max), .. } if n_left > 1 => {
                    left.min(attempt_max)
                }
                EtcdMethod { .. } => left / n_left,
            };
            let fault = match attempt_call(share, member, method, request.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(CallFailure { error, fault }) => {
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
            if !method.is_repeatable {
                return Err(failure);
            }
        }
        Err(failure)
    }

    /// Waits for something else than a call no longer than for a call.
    pub(crate) async fn with_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, Unavailable>>,
    ) -> Result<T, ReadError> {
        match timeout_at(Instant::now() + self.request_timeout, work).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(ReadError::Timeout),
        }
    }

    /// The members in the order in which to ask them.
    fn member_order(&self, members: &[Member]) -> VecDeque<usize> {
        let first = self.next_member.fetch_add(1, Ordering::Relaxed);
        let mut order: Vec<usize> =
            (0..members.len()).map(|n| first.wrapping_add(n) % members.len()).collect();
        order.sort_by_key(|at| members.get(*at).is_some_and(Member::is_down));
        order.into()
    }

    /// Asks members that have failed whether they are back, until the store is closed. With real
    /// requests somebody would have to wait for those that are not.
    pub(crate) async fn probe_failed_members(&self) {
        let key = Bytes::from_static(b"\0");
        let range = RangeRequest { key, count_only: true, ..RangeRequest::default() };
        while let Ok(members) = self.members() {
            for member in members.iter().filter(|member| member.is_down()) {
                let probe = attempt_call(PROBE_TIMEOUT, member, RANGE, range.clone());
                if let Ok(RangeResponse { .. }) = probe.await {
                    member.mark_recovered();
                }
            }
            drop(members);
            sleep(PROBE_EVERY).await;
        }
    }

    /// Opens a watch at one member. It ends by itself when that member has no leader.
    pub(crate) async fn watch(
        &self,
        create: WatchCreateRequest,
    ) -> Result<WatchStream, Unavailable> {
        let members = self.members()?;
        let at = self.member_order(&members).pop_front().unwrap_or_default();
        let member = members.get(at).ok_or_else(closed)?;
        // The stream of requests stays open: its end could be taken for the end of the watch.
        let requests = tokio_stream::once(WatchRequest { create: Some(create) })
            .chain(tokio_stream::pending());
        let mut request = Request::new(requests);
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        let connection = member.connection();
        let open = async {
            let mut grpc = connection.grpc();
            grpc.ready().await.map_err(|error| error.to_string())?;
            let path = PathAndQuery::from_static(WATCH);
            let answer = grpc.streaming(request, path, ProstCodec::default()).await;
            answer.map_err(|status| status.message().to_owned())
        };
        let opened = timeout(self.request_timeout.min(WATCH_OPEN_MAX), open).await;
        let reason = match opened {
            Ok(Ok(answer)) => {
                let stream = answer.into_inner();
                return Ok(WatchStream { stream, members: members.clone(), at, connection });
            }
            Ok(Err(reason)) => {
                member.mark_failed();
                reason
            }
            Err(_) => {
                member.give_up(&connection);
                "it does not answer".to_owned()
            }
        };
        Err(Unavailable { reason: format!("etcd member {}: {reason}", member.uri).into() })
    }
}

pub(crate) fn closed() -> Unavailable {
    Unavailable { reason: "it is closed".into() }
}
