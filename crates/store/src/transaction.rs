//! A write, what it depends on, and what is written beside it.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::{Delete, Expect, Key, Mark, Put, Revision};

/// A write of one key together with conditions on other keys and writes of other keys. Everything
/// happens in one revision, or nothing does.
///
/// An engine checks the key of the write first: a difference there is
/// [`WriteError::Conflict`](crate::WriteError::Conflict). Then it checks the conditions in their order:
/// the first that does not hold is
/// [`WriteError::ConditionFailed`](crate::WriteError::ConditionFailed), which names its key. A watch
/// tells the write first and the writes beside it in their order, all in one batch.
///
/// INVARIANT: no key is written twice, and a key that is deleted beside the write has a condition that
/// it exists. Engines rely on both.
#[derive(Clone, PartialEq, Eq)]
pub struct Transaction {
    key: Key,
    expect: Expect,
    content: Option<Content>,
    conditions: Vec<Condition>,
    beside: Vec<WriteBeside>,
    is_removal: bool,
}

/// The content of the key that a transaction writes.
#[derive(Clone, PartialEq, Eq)]
pub struct Content {
    /// The new bytes.
    pub value: Bytes,
    /// How long they live, as in [`Put::ttl`].
    pub ttl: Option<Duration>,
}

/// An expectation about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The key.
    pub key: Key,
    /// The expectation.
    pub expect: Expect,
}

/// A key that is written beside the key of a transaction. It does not expire.
#[derive(Clone, PartialEq, Eq)]
pub struct WriteBeside {
    /// The key.
    pub key: Key,
    /// The new bytes; absent if the key is deleted.
    pub value: Option<Bytes>,
}

impl Transaction {
    /// Says that the write belongs to the removal of what the key holds, as a mark that it is about to go.
    /// A store that is full accepts it like a delete. A key must have a bounded number of such writes.
    #[must_use]
    pub fn for_removal(mut self) -> Self {
        self.is_removal = true;
        self
    }

    /// Adds a condition.
    #[must_use]
    pub fn require(mut self, key: Key, expect: Expect) -> Self {
        self.conditions.push(Condition { key, expect });
        self
    }

    /// Writes another key, with a condition on it if there is an expectation. For the key of the
    /// transaction itself only the condition is added.
    #[must_use]
    pub fn put_beside(mut self, key: Key, value: Bytes, expect: Option<Expect>) -> Self {
        self.write_beside(&key, Some(value));
        match expect {
            Some(expect) => self.require(key, expect),
            None => self,
        }
    }

    /// Deletes another key, on the condition that this revision wrote it. For the key of the
    /// transaction itself only the condition is added.
    #[must_use]
    pub fn delete_beside(mut self, key: Key, at: Revision) -> Self {
        self.write_beside(&key, None);
        self.require(key, Expect::At(at))
    }

    /// The last write of a key counts.
    fn write_beside(&mut self, key: &Key, value: Option<Bytes>) {
        self.beside.retain(|write| write.key != *key);
        if *key != self.key {
            self.beside.push(WriteBeside { key: key.clone(), value });
        }
    }

    /// The key of the write.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The expectation about the key of the write.
    #[must_use]
    pub fn expect(&self) -> Expect {
        self.expect
    }

    /// The content to be written; absent if the key is deleted.
    #[must_use]
    pub fn content(&self) -> Option<&Content> {
        self.content.as_ref()
    }

    /// Whether the write belongs to the removal of what the key holds.
    #[must_use]
    pub fn is_removal(&self) -> bool {
        self.is_removal || self.content.is_none()
    }

    /// The expectations about other keys.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// The writes beside it.
    #[must_use]
    pub fn beside(&self) -> &[WriteBeside] {
        &self.beside
    }

    /// The length of the largest value.
    #[must_use]
    pub fn value_bytes_max(&self) -> usize {
        let own = self.content.as_ref().map_or(0, |content| content.value.len());
        let beside = self.beside.iter().filter_map(|write| Some(write.value.as_ref()?.len()));
        beside.fold(own, usize::max)
    }

    /// The length of all keys and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let own = self.content.as_ref().map_or(0, |content| content.value.len());
        let conditions = self.conditions.iter().map(|condition| condition.key.len());
        let beside = self.beside.iter().map(|write| {
            let value_bytes = write.value.as_ref().map_or(0, Bytes::len);
            write.key.len() + value_bytes
        });
        self.key.len() + own + conditions.sum::<usize>() + beside.sum::<usize>()
    }

    fn new(key: Key, expect: Expect, content: Option<Content>) -> Self {
        let (conditions, beside) = (Vec::new(), Vec::new());
        Self { key, expect, content, conditions, beside, is_removal: false }
    }

    fn marked(self, mark: Option<Mark>) -> Self {
        match mark {
            Some(Mark::Move { key, expect }) => self.put_beside(key, Bytes::new(), expect),
            Some(Mark::Keep { key, expect }) => self.require(key, expect),
            None => self,
        }
    }
}

impl From<Put> for Transaction {
    fn from(put: Put) -> Self {
        let Put { key, value, expect, ttl, mark } = put;
        let content = Some(Content { value, ttl });
        Self::new(key, expect, content).marked(mark)
    }
}

impl From<Delete> for Transaction {
    fn from(delete: Delete) -> Self {
        let Delete { key, expect, mark } = delete;
        Self::new(key, expect, None).marked(mark)
    }
}

/// Tells the length of values, not the values.
impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, expect, content, conditions, beside, is_removal } = self;
        f.debug_struct("Transaction")
            .field("key", key)
            .field("expect", expect)
            .field("content", content)
            .field("conditions", conditions)
            .field("beside", beside)
            .field("is_removal", is_removal)
            .finish()
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, ttl } = self;
        f.debug_struct("Content")
            .field("value", &format_args!("{} bytes", value.len()))
            .field("ttl", ttl)
            .finish()
    }
}

impl fmt::Debug for WriteBeside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value } = self;
        let bytes = value.as_ref().map(Bytes::len);
        f.debug_struct("WriteBeside").field("key", key).field("bytes", &bytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    fn put() -> Transaction {
        let value = Bytes::from_static(b"secret");
        Put { key: key("/a"), value, expect: Expect::Absent, ttl: None, mark: None }.into()
    }

    #[test]
    fn no_key_is_written_twice() {
        let one = Revision::new(1);
        let both = put()
            .put_beside(key("/a"), Bytes::new(), Some(Expect::Absent))
            .delete_beside(key("/b"), one)
            .put_beside(key("/b"), Bytes::from_static(b"b"), None);
        let beside = WriteBeside { key: key("/b"), value: Some(Bytes::from_static(b"b")) };
        assert_eq!(both.beside(), [beside]);
        let conditions = [("/a", Expect::Absent), ("/b", Expect::At(one))];
        let conditions = conditions.map(|(text, expect)| Condition { key: key(text), expect });
        assert_eq!(both.conditions(), conditions);
        assert_eq!((both.value_bytes_max(), both.bytes()), (6, 6 + 2 + 2 + 2 + 2 + 1));
    }

    #[test]
    fn values_are_not_printed() {
        let text = format!("{:?}", put().put_beside(key("/b"), "hidden".into(), None));
        assert!(!text.contains("secret") && !text.contains("hidden"), "{text}");
    }
}
