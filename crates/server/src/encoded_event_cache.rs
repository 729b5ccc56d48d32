//! A cache of encoded watch events that all watches share.
//!
//! The server sends an event to every watch of its resource, and most watches use the same encoding. The first
//! watch encodes the event, and the others send the same bytes. Each watch decides before that whether its client
//! may see the event.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use api_resources::Resource;
use bytes::Bytes;
use codec::{ObjectTransform, WatchEventType};

/// The number of cached events. An event is needed only until all watches have sent it.
const EVENTS_MAX: usize = 256;

/// Events of larger objects are encoded for each watch.
const OBJECT_BYTES_MAX: usize = 32 << 10;

/// The newest events in their encoded form. The revision of an event selects its slot.
pub(crate) struct EncodedEventCache {
    event_cache_slots: Box<[Mutex<Option<EncodedEvent>>]>,
}

struct EncodedEvent {
    encoded_event_key: EncodedEventKey,
    encoded_event_bytes: Bytes,
}

/// The key of the cache: everything that the encoded form of an event depends on.
#[derive(Clone)]
pub(crate) struct EncodedEventKey {
    /// The stored object. It is compared by its address, which no other object has while this one is kept.
    pub(crate) value: Bytes,
    pub(crate) revision: u64,
    pub(crate) event_type: WatchEventType,
    pub(crate) resource: Arc<Resource>,
    /// How the object is transformed. Rows of tables contain the age of the object and are not kept.
    pub(crate) transform: Option<ObjectTransform>,
}

impl EncodedEventKey {
    fn is_event_cacheable(&self) -> bool {
        self.value.len() <= OBJECT_BYTES_MAX
            && !matches!(self.transform, Some(ObjectTransform::Table(_)))
    }

    fn is_same_encoded_event(&self, other: &Self) -> bool {
        self.revision == other.revision
            && self.event_type == other.event_type
            && self.transform == other.transform
            && self.value.as_ptr() == other.value.as_ptr()
            && self.value.len() == other.value.len()
            && Arc::ptr_eq(&self.resource, &other.resource)
    }

    /// Events of one revision in different forms mostly have different slots.
    fn event_cache_slot_index(&self) -> usize {
        let number = usize::try_from(self.revision).unwrap_or_default();
        number.wrapping_mul(2).wrapping_add(usize::from(self.transform.is_some())) % EVENTS_MAX
    }
}

impl Default for EncodedEventCache {
    fn default() -> Self {
        Self { event_cache_slots: (0..EVENTS_MAX).map(|_| Mutex::default()).collect() }
    }
}

impl EncodedEventCache {
    /// Returns the cached encoding of an event, or calls `encode` and caches the result.
    pub(crate) fn get_or_encode_event(
        &self,
        form: EncodedEventKey,
        encode: impl FnOnce(&EncodedEventKey) -> Vec<u8>,
    ) -> Bytes {
        let slot = self
            .event_cache_slots
            .get(form.event_cache_slot_index())
            .filter(|_| form.is_event_cacheable());
        let Some(slot) = slot else { return encode(&form).into() };
        // Watches that want the same event wait for the first one, which takes less time than encoding it again.
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) =
            slot.as_ref().filter(|known| known.encoded_event_key.is_same_encoded_event(&form))
        {
            return known.encoded_event_bytes.clone();
        }
        let bytes = Bytes::from(encode(&form));
        *slot = Some(EncodedEvent { encoded_event_key: form, encoded_event_bytes: bytes.clone() });
        bytes
    }
}

impl fmt::Debug for EncodedEventCache {
    /// The output omits the events, because they may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventEncodings").finish_non_exhaustive()
    }
}
