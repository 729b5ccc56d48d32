//! Applies one transaction: checks it, and writes it to the state and the frame.

use std::sync::Arc;

use bytes::Bytes;
use store::{
    AdditionalWrite, ExpectedKeyState, Key, Revision, Transaction, Unavailable, WriteError,
};

use super::{WriteBatch, Writer};
use crate::command_queue::WriteCommand;
use crate::log_file::FrameBuffer;
use crate::record::{encode_additional_delete, encode_additional_put, encode_delete, encode_put};
use crate::space_budget::PendingPut;
use crate::version::Version;

impl Writer {
    pub(super) fn write(
        &mut self,
        write: &WriteCommand,
        batch: &mut WriteBatch,
        frame: &mut FrameBuffer,
    ) -> Result<Revision, WriteError> {
        if let Some(failure) = &self.read_only_cause {
            return Err(failure.to_write_error());
        }
        let WriteCommand { transaction, expires_at_ms } = write;
        self.check_expectations(transaction)?;
        self.check_space(transaction)?;
        let revision = self.store_state.revision.next();
        if revision == self.store_state.revision {
            return Err(Unavailable { reason: "it has no revisions left".into() }.into());
        }
        let key = transaction.key();
        batch.written_keys.push(key.clone());
        match transaction.new_content() {
            Some(content) => {
                let value = copy_value_out_of_buffer(&content.value);
                let version = self.put(revision, key, value, *expires_at_ms);
                encode_put(frame.records_mut(), &version);
            }
            None => {
                encode_delete(frame.records_mut(), revision, key);
                self.delete(revision, key);
            }
        }
        for AdditionalWrite { key, value } in transaction.additional_writes() {
            batch.written_keys.push(key.clone());
            match value {
                Some(value) => {
                    let version = self.put(revision, key, copy_value_out_of_buffer(value), None);
                    encode_additional_put(frame.records_mut(), key, &version.value);
                }
                None => {
                    encode_additional_delete(frame.records_mut(), key);
                    self.delete(revision, key);
                }
            }
        }
        Ok(revision)
    }

    /// Checks the expectation of the write, then its conditions in order.
    fn check_expectations(&self, transaction: &Transaction) -> Result<(), WriteError> {
        let current = self.store_state.version_tree.get(transaction.key());
        let is_nothing = current.is_none() && transaction.new_content().is_none();
        if is_nothing || !matches_expectation(current, transaction.expected_state()) {
            return Err(WriteError::Conflict { current: current.map(|version| version.entry()) });
        }
        for condition in transaction.conditions() {
            let current = self.store_state.version_tree.get(&condition.key);
            if !matches_expectation(current, condition.expected_state) {
                let current = current.map(|version| version.entry());
                return Err(WriteError::ConditionFailed { key: condition.key.clone(), current });
            }
        }
        Ok(())
    }

    /// Checks whether there is space for all writes. A delete always passes, because it frees space, and so do
    /// its small additional writes.
    fn check_space(&mut self, transaction: &Transaction) -> Result<(), WriteError> {
        let Some(content) = transaction.new_content() else { return Ok(()) };
        let own = (transaction.key(), content.value.len());
        let beside = transaction.additional_writes().iter();
        let beside = beside.filter_map(|write| Some((&write.key, write.value.as_ref()?.len())));
        for (key, value_len) in std::iter::once(own).chain(beside) {
            let old_value_len =
                self.store_state.version_tree.get(key).map(|version| version.value.len());
            let is_removal = transaction.is_step_of_object_deletion();
            let put = PendingPut {
                key,
                value_len,
                old_value_len,
                is_step_of_object_deletion: is_removal,
            };
            self.space_budget.check_space_for_put(put, &self.usage_accounting)?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        revision: Revision,
        key: &Key,
        value: Bytes,
        expires_at_ms: Option<u64>,
    ) -> Arc<Version> {
        let (version, prev) = self.store_state.put(revision, key.clone(), value, expires_at_ms);
        self.expiry_deadlines.extend(expires_at_ms.map(|deadline| (deadline, key.clone())));
        // Remove the old deadline, unless the new version has the same.
        self.remove_expiry_deadline(prev.filter(|prev| prev.expires_at_ms != expires_at_ms));
        version
    }

    fn delete(&mut self, revision: Revision, key: &Key) {
        let prev = self.store_state.delete(revision, key);
        self.remove_expiry_deadline(prev);
    }

    /// Removes the deadline of a replaced or deleted version.
    fn remove_expiry_deadline(&mut self, prev: Option<Arc<Version>>) {
        if let Some(prev) = prev
            && let Some(deadline) = prev.expires_at_ms
        {
            self.expiry_deadlines.remove(&(deadline, prev.key.clone()));
        }
    }
}

/// Copies the value: it may be a slice of a large buffer, which it would keep in memory.
fn copy_value_out_of_buffer(value: &Bytes) -> Bytes {
    Bytes::copy_from_slice(value)
}

fn matches_expectation(current: Option<&Arc<Version>>, expect: ExpectedKeyState) -> bool {
    match (current, expect) {
        (None, ExpectedKeyState::Absent) => true,
        (Some(version), ExpectedKeyState::At(revision)) => version.mod_rev == revision,
        (None, ExpectedKeyState::At(_)) | (Some(_), ExpectedKeyState::Absent) => false,
    }
}
