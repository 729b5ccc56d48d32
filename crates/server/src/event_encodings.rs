//! The encoded form of the newest watch events, which all watches share.
//!
//! An event goes to every watch of its resource, and most watches want the same form. It is encoded for the first one,
//! and the others send the same bytes. Whether a watch may see an event is decided before, for each watch.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use api_resources::Resource;
use bytes::Bytes;
use codec::{EventType, Transform};

/// How many events are kept. An event is wanted for a moment only: until all watches have sent it.
const EVENTS_MAX: usize = 256;

/// Events of larger objects are encoded for each watch.
const OBJECT_BYTES_MAX: usize = 32 << 10;

/// The newest events in their encoded form, each in the slot that its revision selects.
pub(crate) struct EventEncodings {
    slots: Box<[Mutex<Option<EncodedEvent>>]>,
}

struct EncodedEvent {
    form: EventForm,
    bytes: Bytes,
}

/// Everything that the encoded form of an event depends on.
#[derive(Clone)]
pub(crate) struct EventForm {
    /// The stored object. It is compared by its address, which no other object has while this one is kept.
    pub(crate) value: Bytes,
    pub(crate) revision: u64,
    pub(crate) event_type: EventType,
    pub(crate) resource: Arc<Resource>,
    /// How the object is transformed. Rows of tables contain the age of the object and are not kept.
    pub(crate) transform: Option<Transform>,
}

impl EventForm {
    fn is_kept(&self) -> bool {
        self.value.len() <= OBJECT_BYTES_MAX && !matches!(self.transform, Some(Transform::Table(_)))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.revision == other.revision
            && self.event_type == other.event_type
            && self.transform == other.transform
            && self.value.as_ptr() == other.value.as_ptr()
            && self.value.len() == other.value.len()
            && Arc::ptr_eq(&self.resource, &other.resource)
    }

    /// Events of one revision in different forms mostly have different slots.
    fn slot(&self) -> usize {
        let number = usize::try_from(self.revision).unwrap_or_default();
        number.wrapping_mul(2).wrapping_add(usize::from(self.transform.is_some())) % EVENTS_MAX
    }
}

impl Default for EventEncodings {
    fn default() -> Self {
        Self { slots: (0..EVENTS_MAX).map(|_| Mutex::default()).collect() }
    }
}

impl EventEncodings {
    /// The encoded form of an event, which `encode` makes if it is not kept.
    pub(crate) fn get_or_encode(
        &self,
        form: EventForm,
        encode: impl FnOnce(&EventForm) -> Vec<u8>,
    ) -> Bytes {
        let slot = self.slots.get(form.slot()).filter(|_| form.is_kept());
        let Some(slot) = slot else { return encode(&form).into() };
        // Watches that want the same event wait for the first one, which takes less time than encoding it again.
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = slot.as_ref().filter(|known| known.form.is_same(&form)) {
            return known.bytes.clone();
        }
        let bytes = Bytes::from(encode(&form));
        *slot = Some(EncodedEvent { form, bytes: bytes.clone() });
        bytes
    }
}

impl fmt::Debug for EventEncodings {
    /// Shows no events, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventEncodings").finish_non_exhaustive()
    }
}
