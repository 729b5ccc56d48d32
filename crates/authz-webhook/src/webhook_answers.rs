//! Provides the answers of one webhook: from the cache, from a call in flight, or from a new call.

use std::sync::Arc;

use authz::Attributes;
use concurrency_limit::{ConcurrencyLimit, Permit};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cache::{AnswerCache, CacheLookupResult, CacheStoreResult};
use crate::cache_key::CacheKey;
use crate::call_error::CallError;
use crate::decode_response::ReviewStatus;
use crate::encode_review::encode_review;
use crate::health::{LastCallResultRecorder, WebhookHealth};
use crate::in_flight_calls::{CallWaiter, InFlightCall, InFlightCalls};
use crate::observer::{CacheEvent, WebhookObserver};
use crate::settings::{CacheSettings, WebhookSettings};
use crate::transport::Transport;
use crate::webhook_call::{CallResult, WebhookCaller};
use crate::webhook_limits::WebhookLimits;

/// Answers to requests of this length in bytes, or longer, are not cached. Kubernetes has the same limit.
const CACHEABLE_BYTES_MAX: usize = 10_000;

/// The cache, the calls in flight and the limits of one webhook. A call may outlive the webhook.
pub(crate) struct WebhookAnswers {
    webhook_caller: WebhookCaller,
    answer_cache: AnswerCache,
    authorized_cache_settings: CacheSettings,
    unauthorized_cache_settings: CacheSettings,
    in_flight_calls: InFlightCalls,
    in_flight_call_limit: Arc<ConcurrencyLimit>,
    last_call_result_recorder: LastCallResultRecorder,
    webhook_observer: Arc<dyn WebhookObserver>,
}

/// The source of the answer to one check.
pub(crate) enum AnswerSource<'a> {
    /// The cache, because another check has stored the answer meanwhile.
    Cached(ReviewStatus),
    /// A call that begins now.
    NewCall(CallWaiter<'a>),
    /// The call of another check for the same request.
    SharedCall(CallWaiter<'a>),
    /// No source: the webhook may not be called now.
    Rejected(CallError),
}

impl WebhookAnswers {
    pub(crate) fn new(
        settings: &WebhookSettings,
        transport: Arc<dyn Transport>,
        limits: WebhookLimits,
        observer: Arc<dyn WebhookObserver>,
    ) -> Self {
        let webhook_caller = WebhookCaller {
            transport,
            webhook_observer: Arc::clone(&observer),
            version: settings.subject_access_review_version,
            timeout: settings.timeout.get(),
            retry_options: limits.retry_options,
        };
        Self {
            webhook_caller,
            answer_cache: AnswerCache::new(limits.cache_entries_max, limits.cache_bytes_max),
            authorized_cache_settings: settings.authorized_cache_settings,
            unauthorized_cache_settings: settings.unauthorized_cache_settings,
            in_flight_calls: InFlightCalls::default(),
            in_flight_call_limit: Arc::new(ConcurrencyLimit::new(limits.in_flight_calls_max)),
            last_call_result_recorder: LastCallResultRecorder::default(),
            webhook_observer: observer,
        }
    }

    /// The hash of a request, which the other functions take.
    #[inline]
    pub(crate) fn hash(&self, attributes: &Attributes<'_>) -> u64 {
        self.answer_cache.hash(attributes)
    }

    /// The cached answer, if it has not expired.
    #[inline]
    pub(crate) fn find_cached_answer(
        &self,
        attributes: &Attributes<'_>,
        hash: u64,
        now: Instant,
    ) -> Option<ReviewStatus> {
        match self.answer_cache.get(attributes, hash, now) {
            CacheLookupResult::Hit(status) => {
                self.webhook_observer.on_cache_event(CacheEvent::Hit);
                return Some(status);
            }
            CacheLookupResult::Miss => {}
            CacheLookupResult::Expired => self.webhook_observer.on_cache_event(CacheEvent::Expired),
        }
        self.webhook_observer.on_cache_event(CacheEvent::Miss);
        None
    }

    /// Sends one review, which is neither cached nor counted.
    pub(crate) async fn probe(&self, attributes: &Attributes<'_>) -> Result<(), CallError> {
        self.webhook_caller.probe(encode_review(attributes, self.webhook_caller.version)).await
    }

    pub(crate) fn health(&self) -> WebhookHealth {
        let last = self.last_call_result_recorder.last_call_results();
        let size = self.answer_cache.size();
        WebhookHealth {
            n_in_flight_calls: self.in_flight_call_limit.n_permits_in_use(),
            last_successful_call_at: last.last_successful_call_at,
            last_failed_call: last.last_failed_call,
            n_cached_answers: size.n_cache_entries,
            cache_bytes: size.cache_memory_bytes,
        }
    }

    /// Joins the call in flight for the same request, or begins one on behalf of `caller`.
    ///
    /// INVARIANT: a call caches its answer before it is removed from the table. So while the table is locked, a
    /// request whose call has ended finds the cached answer.
    pub(crate) fn join_or_begin_call<'a>(
        self: &'a Arc<Self>,
        caller: &str,
        attributes: &Attributes<'_>,
        hash: u64,
        now: Instant,
    ) -> AnswerSource<'a> {
        let key = Arc::new(CacheKey::new(attributes, hash));
        let is_cacheable = is_cacheable(attributes);
        let mut table = self.in_flight_calls.lock();
        if let Some(waiter) = self.in_flight_calls.join_in_flight_call(
            &table,
            &key,
            is_cacheable && self.caches_every_answer(),
        ) {
            return AnswerSource::SharedCall(waiter);
        }
        if let CacheLookupResult::Hit(status) = self.answer_cache.get(attributes, hash, now) {
            return AnswerSource::Cached(status);
        }
        let Ok(runtime) = Handle::try_current() else {
            return AnswerSource::Rejected(CallError::Lost);
        };
        let permit = match self.in_flight_call_limit.acquire_permit(authz::user_limit_key(caller)) {
            Ok(permit) => permit,
            Err(busy) => return AnswerSource::Rejected(CallError::Busy(busy)),
        };
        let (result_sender, receiver) = watch::channel(None);
        let waiter =
            self.in_flight_calls.add_in_flight_call(&mut table, Arc::clone(&key), receiver);
        // The table has to be unlocked here: a runtime that is shutting down drops the task at once, and
        // the cleanup of the call locks the table.
        drop(table);
        let (provider, call) = (Arc::clone(self), Arc::clone(waiter.in_flight_call()));
        let cleanup = CallCleanup {
            webhook_answers: provider,
            _permit: permit,
            key,
            in_flight_call: call,
            result_sender,
        };
        let body = encode_review(attributes, self.webhook_caller.version);
        let task = runtime.spawn(async move {
            cleanup.in_flight_call.mark_request_sent();
            let end = cleanup.webhook_answers.webhook_caller.call_with_retries(body).await;
            cleanup.publish_result(end, is_cacheable);
        });
        waiter.set_abort_handle(task.abort_handle());
        AnswerSource::NewCall(waiter)
    }

    /// Reports whether both kinds of answers are cached: those that allow and all others.
    fn caches_every_answer(&self) -> bool {
        self.authorized_cache_settings.effective_ttl().is_some()
            && self.unauthorized_cache_settings.effective_ttl().is_some()
    }

    /// Caches an answer for the lifetime in the settings.
    fn cache_answer(&self, key: &Arc<CacheKey>, status: &ReviewStatus, is_cacheable: bool) {
        let caching = if status.is_allowed {
            self.authorized_cache_settings
        } else {
            self.unauthorized_cache_settings
        };
        let now = Instant::now();
        let Some(expires_at) =
            caching.effective_ttl().and_then(|lifetime| now.checked_add(lifetime))
        else {
            return;
        };
        let storing = if is_cacheable {
            self.answer_cache.insert(Arc::clone(key), status.clone(), expires_at)
        } else {
            CacheStoreResult::TooLarge
        };
        match storing {
            CacheStoreResult::Stored { n_evicted } => {
                self.webhook_observer.on_cache_event(CacheEvent::Stored);
                for _ in 0..n_evicted {
                    self.webhook_observer.on_cache_event(CacheEvent::Evicted);
                }
            }
            CacheStoreResult::TooLarge => {
                self.webhook_observer.on_cache_event(CacheEvent::TooLarge)
            }
        }
    }
}

/// Reports whether the answer to a request may be cached, by the length of its parts. As in Kubernetes, the user does
/// not count.
fn is_cacheable(attributes: &Attributes<'_>) -> bool {
    let n_resource_bytes = attributes.resource().map_or(0, |resource| {
        resource.namespace.as_str().len()
            + resource.api_group.len()
            + resource.api_version.len()
            + resource.resource.len()
            + resource.subresource.len()
            + resource.name.len()
    });
    n_resource_bytes + attributes.verb.as_str().len() + attributes.path().len()
        < CACHEABLE_BYTES_MAX
}

/// Ends a call: with a result, after a panic, or when its last waiter has left. Dropping it removes the call from the
/// table.
struct CallCleanup {
    webhook_answers: Arc<WebhookAnswers>,
    _permit: Permit,
    key: Arc<CacheKey>,
    in_flight_call: Arc<InFlightCall>,
    result_sender: watch::Sender<Option<Arc<CallResult>>>,
}

impl CallCleanup {
    /// Caches and sends the result. The order matters: see the invariant of [`WebhookAnswers::join_or_begin_call`].
    fn publish_result(self, end: CallResult, is_cacheable: bool) {
        let provider = &self.webhook_answers;
        match &end.review_result {
            Ok(status) => {
                provider.cache_answer(&self.key, status, is_cacheable);
                provider.last_call_result_recorder.record_successful_call();
            }
            Err(error) => {
                let why = error.to_string();
                provider.webhook_observer.on_call_failure(&why);
                provider.last_call_result_recorder.record_failed_call(&why);
            }
        }
        let result_sender = self.result_sender.clone();
        drop(self);
        // Sending fails only if no waiter is left, and then no check needs the result.
        let _ = result_sender.send(Some(Arc::new(end)));
    }
}

impl Drop for CallCleanup {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.webhook_answers
                .last_call_result_recorder
                .record_failed_call(&CallError::Lost.to_string());
        }
        self.webhook_answers.in_flight_calls.remove_in_flight_call(&self.key, &self.in_flight_call);
    }
}
