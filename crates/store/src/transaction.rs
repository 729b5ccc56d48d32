//! Transactions: a write with conditions on other keys and additional writes.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::{Delete, ExpectedKeyState, Key, KeyGroupRevisionAction, Put, Revision};

/// A write of one key together with conditions on other keys and writes of other keys. Everything
/// happens in one revision, or nothing does.
///
/// An engine checks the key of the write first: a difference there is
/// [`WriteError::Conflict`](crate::WriteError::Conflict). Then it checks the conditions in their order:
/// the first one that fails is
/// [`WriteError::ConditionFailed`](crate::WriteError::ConditionFailed), which names its key. A watch
/// delivers the main write first and then the additional writes in order, all in one batch.
///
/// INVARIANT: no key is written twice, and an additional delete has a condition that its key exists.
/// Engines rely on both, and on the order of the conditions.
#[derive(Clone, PartialEq, Eq)]
pub struct Transaction {
    key: Key,
    expected_state: ExpectedKeyState,
    new_content: Option<WriteContent>,
    conditions: Vec<KeyCondition>,
    additional_writes: Vec<AdditionalWrite>,
    is_step_of_object_deletion: bool,
}

/// The content of the key that a transaction writes.
#[derive(Clone, PartialEq, Eq)]
pub struct WriteContent {
    /// The new bytes of the key.
    pub value: Bytes,
    /// Time to live, as in [`Put::ttl`].
    pub ttl: Option<Duration>,
}

/// An expected state of another key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCondition {
    /// The key that is checked.
    pub key: Key,
    /// The expected state of the key.
    pub expected_state: ExpectedKeyState,
}

/// A write of another key in the same transaction. The key does not expire.
#[derive(Clone, PartialEq, Eq)]
pub struct AdditionalWrite {
    /// The key that is written.
    pub key: Key,
    /// The new bytes; `None` deletes the key.
    pub value: Option<Bytes>,
}

impl Transaction {
    /// Declares the write a step of deleting the object, such as setting a deletion timestamp. A full store
    /// accepts it like a delete. Callers must bound the number of such writes per key.
    #[must_use]
    pub fn mark_as_step_of_object_deletion(mut self) -> Self {
        self.is_step_of_object_deletion = true;
        self
    }

    /// Adds a condition on another key.
    #[must_use]
    pub fn add_condition(mut self, key: Key, expect: ExpectedKeyState) -> Self {
        self.conditions.push(KeyCondition { key, expected_state: expect });
        self
    }

    /// Adds a write of another key, on the condition `expect` if it is given. If `key` is the main key,
    /// this only adds the condition.
    #[must_use]
    pub fn add_put(mut self, key: Key, value: Bytes, expect: Option<ExpectedKeyState>) -> Self {
        self.set_additional_write(&key, Some(value));
        match expect {
            Some(expect) => self.add_condition(key, expect),
            None => self,
        }
    }

    /// Adds a delete of another key, on the condition that revision `at` wrote it. If `key` is the main
    /// key, this only adds the condition.
    #[must_use]
    pub fn add_delete(mut self, key: Key, at: Revision) -> Self {
        self.set_additional_write(&key, None);
        self.add_condition(key, ExpectedKeyState::At(at))
    }

    /// Replaces an earlier additional write of the same key.
    fn set_additional_write(&mut self, key: &Key, value: Option<Bytes>) {
        self.additional_writes.retain(|write| write.key != *key);
        if *key != self.key {
            self.additional_writes.push(AdditionalWrite { key: key.clone(), value });
        }
    }

    /// The key of the write.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The expectation about the key of the write.
    #[must_use]
    pub fn expected_state(&self) -> ExpectedKeyState {
        self.expected_state
    }

    /// The content to write; `None` deletes the key.
    #[must_use]
    pub fn new_content(&self) -> Option<&WriteContent> {
        self.new_content.as_ref()
    }

    /// Reports whether the write deletes the object or is a step of deleting it.
    #[must_use]
    pub fn is_step_of_object_deletion(&self) -> bool {
        self.is_step_of_object_deletion || self.new_content.is_none()
    }

    /// Returns the conditions on other keys in order.
    #[must_use]
    pub fn conditions(&self) -> &[KeyCondition] {
        &self.conditions
    }

    /// Returns the writes of other keys.
    #[must_use]
    pub fn additional_writes(&self) -> &[AdditionalWrite] {
        &self.additional_writes
    }

    /// The length of the largest value that the transaction writes.
    #[must_use]
    pub fn largest_value_bytes(&self) -> usize {
        let own = self.new_content.as_ref().map_or(0, |content| content.value.len());
        let additional_writes =
            self.additional_writes.iter().filter_map(|write| Some(write.value.as_ref()?.len()));
        additional_writes.fold(own, usize::max)
    }

    /// The total length of all keys and values.
    #[must_use]
    pub fn total_bytes(&self) -> usize {
        let own = self.new_content.as_ref().map_or(0, |content| content.value.len());
        let conditions = self.conditions.iter().map(|condition| condition.key.len());
        let additional_writes = self.additional_writes.iter().map(|write| {
            let value_bytes = write.value.as_ref().map_or(0, Bytes::len);
            write.key.len() + value_bytes
        });
        self.key.len() + own + conditions.sum::<usize>() + additional_writes.sum::<usize>()
    }

    fn new(key: Key, expect: ExpectedKeyState, content: Option<WriteContent>) -> Self {
        let (conditions, additional_writes) = (Vec::new(), Vec::new());
        Self {
            key,
            expected_state: expect,
            new_content: content,
            conditions,
            additional_writes,
            is_step_of_object_deletion: false,
        }
    }

    fn with_key_group_revision(self, key_group_revision: Option<KeyGroupRevisionAction>) -> Self {
        match key_group_revision {
            Some(KeyGroupRevisionAction::Bump { key, expect }) => {
                self.add_put(key, Bytes::new(), expect)
            }
            Some(KeyGroupRevisionAction::Unchanged { key, expect }) => {
                self.add_condition(key, expect)
            }
            None => self,
        }
    }
}

impl From<Put> for Transaction {
    fn from(put: Put) -> Self {
        let Put {
            key,
            value,
            expected_state: expect,
            ttl,
            key_group_revision_action: key_group_revision,
        } = put;
        let content = Some(WriteContent { value, ttl });
        Self::new(key, expect, content).with_key_group_revision(key_group_revision)
    }
}

impl From<Delete> for Transaction {
    fn from(delete: Delete) -> Self {
        let Delete { key, expected_state: expect, key_group_revision_action: key_group_revision } =
            delete;
        Self::new(key, expect, None).with_key_group_revision(key_group_revision)
    }
}

/// Prints the length of values, not the values.
impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            expected_state: expect,
            new_content: content,
            conditions,
            additional_writes,
            is_step_of_object_deletion: is_removal,
        } = self;
        f.debug_struct("Transaction")
            .field("key", key)
            .field("expect", expect)
            .field("content", content)
            .field("conditions", conditions)
            .field("additional_writes", additional_writes)
            .field("is_removal", is_removal)
            .finish()
    }
}

impl fmt::Debug for WriteContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, ttl } = self;
        f.debug_struct("Content")
            .field("value", &format_args!("{} bytes", value.len()))
            .field("ttl", ttl)
            .finish()
    }
}

impl fmt::Debug for AdditionalWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value } = self;
        let bytes = value.as_ref().map(Bytes::len);
        f.debug_struct("AdditionalWrite").field("key", key).field("bytes", &bytes).finish()
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
        Put {
            key: key("/a"),
            value,
            expected_state: ExpectedKeyState::Absent,
            ttl: None,
            key_group_revision_action: None,
        }
        .into()
    }

    #[test]
    fn no_key_is_written_twice() {
        let one = Revision::new(1);
        let both = put()
            .add_put(key("/a"), Bytes::new(), Some(ExpectedKeyState::Absent))
            .add_delete(key("/b"), one)
            .add_put(key("/b"), Bytes::from_static(b"b"), None);
        let additional_writes =
            AdditionalWrite { key: key("/b"), value: Some(Bytes::from_static(b"b")) };
        assert_eq!(both.additional_writes(), [additional_writes]);
        let conditions = [("/a", ExpectedKeyState::Absent), ("/b", ExpectedKeyState::At(one))];
        let conditions = conditions
            .map(|(text, expect)| KeyCondition { key: key(text), expected_state: expect });
        assert_eq!(both.conditions(), conditions);
        assert_eq!((both.largest_value_bytes(), both.total_bytes()), (6, 6 + 2 + 2 + 2 + 2 + 1));
    }

    #[test]
    fn values_are_not_printed() {
        let text = format!("{:?}", put().add_put(key("/b"), "hidden".into(), None));
        assert!(!text.contains("secret") && !text.contains("hidden"), "{text}");
    }
}
