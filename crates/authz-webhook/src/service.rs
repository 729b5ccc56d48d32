//! The service behind a webhook: what it said, what it is being asked, and whether to ask it.

use std::sync::Arc;

use authz::Attributes;
use concurrency_limit::{ConcurrencyLimit, Permit};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cache::{Cache, Lookup, Storing};
use crate::call::{CallEnd, Caller};
use crate::decode::ReviewStatus;
use crate::encode::encode;
use crate::error::CallError;
use crate::flight::{Flight, Flights, Waiter};
use crate::guards::Guards;
use crate::health::{Health, Latest};
use crate::key::Key;
use crate::observe::{CacheEvent, Observe};
use crate::settings::{Caching, WebhookSettings};
use crate::transport::Transport;

/// Answers to questions that are as long as this in bytes, or longer, are not kept.
const CACHEABLE_BYTES_MAX: usize = 10_000;

/// Everything that calls share. They may outlive the webhook that began them.
pub(crate) struct Service {
    caller: Caller,
    cache: Cache,
    authorized_caching: Caching,
    unauthorized_caching: Caching,
    flights: Flights,
    limit: Arc<ConcurrencyLimit>,
    latest: Latest,
    observe: Arc<dyn Observe>,
}

/// How a check gets its answer.
pub(crate) enum Course<'a> {
    /// It became known in the meantime.
    Known(ReviewStatus),
    /// By a call that begins now.
    Began(Waiter<'a>),
    /// By the call of another check.
    Joined(Waiter<'a>),
    /// Not at all.
    Refused(CallError),
}

impl Service {
    pub(crate) fn new(
        settings: &WebhookSettings,
        transport: Arc<dyn Transport>,
        guards: Guards,
        observe: Arc<dyn Observe>,
    ) -> Self {
        let caller = Caller {
            transport,
            observe: Arc::clone(&observe),
            version: settings.subject_access_review_version,
            timeout: settings.timeout.get(),
            retry: guards.retry,
        };
        Self {
            caller,
            cache: Cache::new(guards.cache_entries_max, guards.cache_bytes_max),
            authorized_caching: settings.authorized_caching,
            unauthorized_caching: settings.unauthorized_caching,
            flights: Flights::default(),
            limit: Arc::new(ConcurrencyLimit::new(guards.in_flight_max)),
            latest: Latest::default(),
            observe,
        }
    }

    /// The hash of a question, for the other functions.
    #[inline]
    pub(crate) fn hash(&self, attributes: &Attributes<'_>) -> u64 {
        self.cache.hash(attributes)
    }

    /// The answer, if it is known and still good.
    #[inline]
    pub(crate) fn known(
        &self,
        attributes: &Attributes<'_>,
        hash: u64,
        now: Instant,
    ) -> Option<ReviewStatus> {
        match self.cache.get(attributes, hash, now) {
            Lookup::Hit(status) => {
                self.observe.cache(CacheEvent::Hit);
                return Some(status);
            }
            Lookup::Miss => {}
            Lookup::Expired => self.observe.cache(CacheEvent::Expired),
        }
        self.observe.cache(CacheEvent::Miss);
        None
    }

    pub(crate) fn health(&self) -> Health {
        let ends = self.latest.ends();
        let size = self.cache.size();
        Health {
            in_flight: self.limit.n_in_flight(),
            last_success: ends.success,
            last_failure: ends.failure,
            cache_entries: size.n_entries,
            cache_bytes: size.n_bytes,
        }
    }

    /// Joins the call for a question, or begins it on behalf of `caller`.
    ///
    /// INVARIANT: a call stores its answer before it is struck off the table. So with the table
    /// locked, a question is under way, or its answer is known, or nobody has asked it.
    pub(crate) fn join<'a>(
        self: &'a Arc<Self>,
        caller: &str,
        attributes: &Attributes<'_>,
        hash: u64,
        now: Instant,
    ) -> Course<'a> {
        let key = Arc::new(Key::new(attributes, hash));
        let is_cacheable = is_cacheable(attributes);
        let mut table = self.flights.lock();
        if let Some(waiter) = self.flights.join(&table, &key, is_cacheable && self.keeps_all()) {
            return Course::Joined(waiter);
        }
        if let Lookup::Hit(status) = self.cache.get(attributes, hash, now) {
            return Course::Known(status);
        }
        let Ok(runtime) = Handle::try_current() else { return Course::Refused(CallError::Lost) };
        let permit = match self.limit.acquire(authz::limit_name(caller)) {
            Ok(permit) => permit,
            Err(busy) => return Course::Refused(CallError::Busy(busy)),
        };
        let (tell, ended) = watch::channel(None);
        let waiter = self.flights.enter(&mut table, Arc::clone(&key), ended);
        // The table is free again: a runtime that is going down drops the task at once, and its
        // landing wants to strike it off.
        drop(table);
        let (service, flight) = (Arc::clone(self), Arc::clone(waiter.flight()));
        let landing = Landing { service, _permit: permit, key, flight, tell };
        let body = encode(attributes, self.caller.version);
        let task = runtime.spawn(async move {
            landing.flight.send();
            let end = landing.service.caller.call(body).await;
            landing.land(end, is_cacheable);
        });
        waiter.carry(task.abort_handle());
        Course::Began(waiter)
    }

    /// Whether every answer is kept, whatever it says.
    fn keeps_all(&self) -> bool {
        self.authorized_caching.lifetime().is_some()
            && self.unauthorized_caching.lifetime().is_some()
    }

    /// Keeps an answer for as long as the settings say.
    fn keep(&self, key: &Arc<Key>, status: &ReviewStatus, is_cacheable: bool) {
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
            Storing::TooLarge
        };
        match storing {
            Storing::Stored { n_evicted } => {
                self.observe.cache(CacheEvent::Stored);
                for _ in 0..n_evicted {
                    self.observe.cache(CacheEvent::Evicted);
                }
            }
            Storing::TooLarge => self.observe.cache(CacheEvent::TooLarge),
        }
    }
}

/// Reports whether the answer to a question may be kept. The lengths that count are those of
/// Kubernetes, which leaves out the user.
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

/// What is done when a call is over, however it ends: with an answer, by a panic, or because nobody
/// waits any more.
struct Landing {
    service: Arc<Service>,
    _permit: Permit,
    key: Arc<Key>,
    flight: Arc<Flight>,
    tell: watch::Sender<Option<Arc<CallEnd>>>,
}

impl Landing {
    /// The call ended. The order matters: see the invariant of [`Service::join`].
    fn land(self, end: CallEnd, is_cacheable: bool) {
        let service = &self.service;
        match &end.outcome {
            Ok(status) => {
                service.keep(&self.key, status, is_cacheable);
                service.latest.succeeded();
            }
            Err(error) => {
                let why = error.to_string();
                service.observe.failed(&why);
                service.latest.failed(why);
            }
        }
        let tell = self.tell.clone();
        drop(self);
        // Nobody may be waiting any more.
        let _ = tell.send(Some(Arc::new(end)));
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.service.latest.failed(CallError::Lost.to_string());
        }
        self.service.flights.strike(&self.key, &self.flight);
    }
}
