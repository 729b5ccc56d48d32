//! The service behind a webhook: its cached answers, the calls in flight, and the limits on calls.

use std::sync::Arc;

use authz::Attributes;
use concurrency_limit::{ConcurrencyLimit, Permit};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cache::{Cache, CacheLookup, StoreResult};
use crate::cache_key::CacheKey;
use crate::call::{CallResult, WebhookCaller};
use crate::decode::ReviewStatus;
use crate::encode::encode_review;
use crate::error::CallError;
use crate::health::{RecentCalls, WebhookHealth};
use crate::in_flight_calls::{CallWaiter, InFlightCall, InFlightCalls};
use crate::limits::WebhookLimits;
use crate::observer::{CacheEvent, WebhookObserver};
use crate::settings::{Caching, WebhookSettings};
use crate::transport::Transport;

/// Answers to requests of this length in bytes, or longer, are not cached. Kubernetes has the same limit.
const CACHEABLE_BYTES_MAX: usize = 10_000;

/// The state that the calls of one webhook share. A call may outlive the webhook.
pub(crate) struct Service {
    caller: WebhookCaller,
    cache: Cache,
    authorized_caching: Caching,
    unauthorized_caching: Caching,
    in_flight_calls: InFlightCalls,
    limit: Arc<ConcurrencyLimit>,
    recent_calls: RecentCalls,
    observer: Arc<dyn WebhookObserver>,
}

/// The source of the answer to one check.
pub(crate) enum AnswerSource<'a> {
    /// The cache, which another check has filled meanwhile.
    Cached(ReviewStatus),
    /// A call that begins now.
    NewCall(CallWaiter<'a>),
    /// The call of another check for the same request.
    SharedCall(CallWaiter<'a>),
    /// None: the webhook may not be called now.
    Rejected(CallError),
}

impl Service {
    pub(crate) fn new(
        settings: &WebhookSettings,
        transport: Arc<dyn Transport>,
        limits: WebhookLimits,
        observer: Arc<dyn WebhookObserver>,
    ) -> Self {
        let caller = WebhookCaller {
            transport,
            observer: Arc::clone(&observer),
            version: settings.subject_access_review_version,
            timeout: settings.timeout.get(),
            retry: limits.retry,
        };
        Self {
            caller,
            cache: Cache::new(limits.cache_entries_max, limits.cache_bytes_max),
            authorized_caching: settings.authorized_caching,
            unauthorized_caching: settings.unauthorized_caching,
            in_flight_calls: InFlightCalls::default(),
            limit: Arc::new(ConcurrencyLimit::new(limits.in_flight_max)),
            recent_calls: RecentCalls::default(),
            observer,
        }
    }

    /// The hash of a request, which the other functions take.
    #[inline]
    pub(crate) fn hash(&self, attributes: &Attributes<'_>) -> u64 {
        self.cache.hash(attributes)
    }

    /// The cached answer, if it has not expired.
    #[inline]
    pub(crate) fn cached_answer(
        &self,
        attributes: &Attributes<'_>,
        hash: u64,
        now: Instant,
    ) -> Option<ReviewStatus> {
        match self.cache.get(attributes, hash, now) {
            CacheLookup::Hit(status) => {
                self.observer.cache(CacheEvent::Hit);
                return Some(status);
            }
            CacheLookup::Miss => {}
            CacheLookup::Expired => self.observer.cache(CacheEvent::Expired),
        }
        self.observer.cache(CacheEvent::Miss);
        None
    }

    pub(crate) fn health(&self) -> WebhookHealth {
        let last = self.recent_calls.last_results();
        let size = self.cache.size();
        WebhookHealth {
            in_flight: self.limit.n_in_flight(),
            last_success: last.success,
            last_failure: last.failure,
            cache_entries: size.n_entries,
            cache_bytes: size.n_bytes,
        }
    }

    /// Joins the call in flight for the same request, or begins one on behalf of `caller`.
    ///
    /// INVARIANT: a call caches its answer before it is removed from the table. So while the table is locked, a
    /// request has a call in flight, or a cached answer, or neither was ever there.
    pub(crate) fn join<'a>(
        self: &'a Arc<Self>,
        caller: &str,
        attributes: &Attributes<'_>,
        hash: u64,
        now: Instant,
    ) -> AnswerSource<'a> {
        let key = Arc::new(CacheKey::new(attributes, hash));
        let is_cacheable = is_cacheable(attributes);
        let mut table = self.in_flight_calls.lock();
        if let Some(waiter) =
            self.in_flight_calls.join(&table, &key, is_cacheable && self.caches_every_answer())
        {
            return AnswerSource::SharedCall(waiter);
        }
        if let CacheLookup::Hit(status) = self.cache.get(attributes, hash, now) {
            return AnswerSource::Cached(status);
        }
        let Ok(runtime) = Handle::try_current() else {
            return AnswerSource::Rejected(CallError::Lost);
        };
        let permit = match self.limit.acquire(authz::user_limit_key(caller)) {
            Ok(permit) => permit,
            Err(busy) => return AnswerSource::Rejected(CallError::Busy(busy)),
        };
        let (sender, receiver) = watch::channel(None);
        let waiter = self.in_flight_calls.add(&mut table, Arc::clone(&key), receiver);
        // The table has to be unlocked here: a runtime that is shutting down drops the task at once, and
        // the cleanup of the call locks the table.
        drop(table);
        let (service, call) = (Arc::clone(self), Arc::clone(waiter.call()));
        let cleanup = CallCleanup { service, _permit: permit, key, call, sender };
        let body = encode_review(attributes, self.caller.version);
        let task = runtime.spawn(async move {
            cleanup.call.mark_sent();
            let end = cleanup.service.caller.call(body).await;
            cleanup.finish(end, is_cacheable);
        });
        waiter.set_task(task.abort_handle());
        AnswerSource::NewCall(waiter)
    }

    /// Reports whether answers are cached whether they allow or not.
    fn caches_every_answer(&self) -> bool {
        self.authorized_caching.lifetime().is_some()
            && self.unauthorized_caching.lifetime().is_some()
    }

    /// Caches an answer for the lifetime in the settings.
    fn cache_answer(&self, key: &Arc<CacheKey>, status: &ReviewStatus, is_cacheable: bool) {
        let caching =
            if status.is_allowed { self.authorized_caching } else { self.unauthorized_caching };
        let now = Instant::now();
        let Some(expires) = caching.lifetime().and_then(|lifetime| now.checked_add(lifetime))
        else {
            return;
        };
        let storing = if is_cacheable {
            self.cache.store(Arc::clone(key), status.clone(), expires)
        } else {
            StoreResult::TooLarge
        };
        match storing {
            StoreResult::Stored { n_evicted } => {
                self.observer.cache(CacheEvent::Stored);
                for _ in 0..n_evicted {
                    self.observer.cache(CacheEvent::Evicted);
                }
            }
            StoreResult::TooLarge => self.observer.cache(CacheEvent::TooLarge),
        }
    }
}

/// Reports whether the answer to a request may be cached, by the length of its parts. As in Kubernetes, the user does
/// not count.
fn is_cacheable(attributes: &Attributes<'_>) -> bool {
    let n_resource_bytes = attributes.resource().map_or(0, |resource| {
        resource.namespace.len()
            + resource.api_group.len()
            + resource.api_version.len()
            + resource.resource.len()
            + resource.subresource.len()
            + resource.name.len()
    });
    n_resource_bytes + attributes.verb.len() + attributes.path().len() < CACHEABLE_BYTES_MAX
}

/// Ends a call: with a result, after a panic, or when its last waiter has left. Dropping it removes the call from the
/// table.
struct CallCleanup {
    service: Arc<Service>,
    _permit: Permit,
    key: Arc<CacheKey>,
    call: Arc<InFlightCall>,
    sender: watch::Sender<Option<Arc<CallResult>>>,
}

impl CallCleanup {
    /// Caches and sends the result. The order matters: see the invariant of [`Service::join`].
    fn finish(self, end: CallResult, is_cacheable: bool) {
        let service = &self.service;
        match &end.outcome {
            Ok(status) => {
                service.cache_answer(&self.key, status, is_cacheable);
                service.recent_calls.record_success();
            }
            Err(error) => {
                let why = error.to_string();
                service.observer.failed(&why);
                service.recent_calls.record_failure(&why);
            }
        }
        let sender = self.sender.clone();
        drop(self);
        // It fails if no waiter is left, which does not matter.
        let _ = sender.send(Some(Arc::new(end)));
    }
}

impl Drop for CallCleanup {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.service.recent_calls.record_failure(&CallError::Lost.to_string());
        }
        self.service.in_flight_calls.remove(&self.key, &self.call);
    }
}
