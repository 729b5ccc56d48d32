//! The audit log of one life of the server, and what it promises in the mode `blocking-strict`.
//!
//! An event of stage RequestReceived is with the system before anything is done, and one of stage
//! ResponseComplete before the answer is sent; neither is lost with the process. So whatever was done has
//! the first, whatever was answered has both, and a server that was stopped in order has both for every
//! request, answered or not. Only a server that is stopping answers 503 before it knows who asks, and
//! records nothing. (kube-apiserver writes the second one after the answer.) A crash of the
//! machine is another matter: the log is not synced.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::ledger::Told;

/// The events of one request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Events {
    n_received: usize,
    /// The codes of the answers, in the end or after a panic.
    completed: Vec<u64>,
}

/// The events by the ids of requests.
#[derive(Debug, Default)]
pub(super) struct AuditLog {
    requests: BTreeMap<String, Events>,
    /// Lines that are not whole.
    n_torn: usize,
    is_last_torn: bool,
}

/// How the life ended, and so what can be expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// The server was killed.
    Killed,
    /// It was stopped in order.
    Stopped,
    /// The disk was full, and what was done cannot be taken back because its end cannot be recorded.
    FullDisk,
}

impl AuditLog {
    /// Reads a log and removes it, so that each life has its own.
    pub(super) fn take(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_default();
        std::fs::remove_file(path).ok();
        Self::read(&bytes)
    }

    fn read(bytes: &[u8]) -> Self {
        let mut log = Self::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let event = serde_json::from_slice::<Value>(line).ok();
            log.is_last_torn = line.last() != Some(&b'\n');
            let Some(event) = event.filter(|_| !log.is_last_torn) else {
                log.n_torn += 1;
                continue;
            };
            let id = event["auditID"].as_str().expect("an id").to_owned();
            let events = log.requests.entry(id).or_default();
            match event["stage"].as_str().expect("a stage") {
                "RequestReceived" => events.n_received += 1,
                "ResponseStarted" => {}
                _ => events.completed.push(event["responseStatus"]["code"].as_u64().unwrap_or(0)),
            }
        }
        log
    }

    /// Whether the request was recorded before anything was done.
    pub(super) fn has_received(&self, id: &str) -> bool {
        self.requests.get(id).is_some_and(|events| events.n_received > 0)
    }

    /// The ids of the creations in it.
    pub(super) fn received_creates(&self) -> impl Iterator<Item = String> {
        let creates = self.requests.iter().filter(|(id, _)| id.starts_with("create-"));
        creates.filter(|(_, events)| events.n_received > 0).map(|(id, _)| id.clone())
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Compares the log with what was done and with what clients were answered.
    ///
    /// # Panics
    /// Something was done unseen.
    pub(super) fn check(&self, done: &[Told], answered: &[(String, u16)], expected: Expected) {
        let is_ours = |told: &&Told| !told.name.starts_with("marker-");
        let unseen = done.iter().filter(is_ours).filter(|told| !self.has_received(&told.request));
        let unseen: Vec<&Told> = unseen.collect();
        assert!(unseen.is_empty(), "done unseen: {unseen:?}");
        for (id, events) in &self.requests {
            let is_once = events.n_received <= 1 && events.completed.len() <= 1;
            assert!(is_once, "recorded more than once: {id} {events:?}");
        }
        if expected == Expected::FullDisk {
            return;
        }
        assert!(self.n_torn <= usize::from(self.is_last_torn), "a line within is not whole");
        for (id, code) in answered {
            let completed = self.requests.get(id).map(|events| &events.completed[..]);
            if completed.is_none() && *code == 503 {
                continue;
            }
            assert_eq!(completed, Some(&[u64::from(*code)][..]), "answered, not recorded: {id}");
        }
        if expected == Expected::Stopped {
            let open = self.requests.iter().filter(|(_, events)| events.completed.is_empty());
            let open: Vec<&String> = open.map(|(id, _)| id).collect();
            assert!(open.is_empty() && self.n_torn == 0, "without an end in the log: {open:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const RECEIVED: &str = "{\"auditID\":\"create-a\",\"stage\":\"RequestReceived\"}\n";
    const COMPLETE: &str = "{\"auditID\":\"create-a\",\"stage\":\"ResponseComplete\",\"responseStatus\":{\"code\":201}}\n";

    #[test]
    fn what_is_missing_is_noticed() {
        use Expected::{FullDisk, Killed, Stopped};
        let told = |request: &str| Told {
            kind: "ADDED".to_owned(),
            name: "a".to_owned(),
            revision: 1,
            request: request.to_owned(),
        };
        let (done, answered) = (&[told("create-a")][..], &[("create-a".to_owned(), 201)][..]);
        for (what, lines, done, answered, expected, want) in [
            ("all", &[RECEIVED, COMPLETE][..], done, answered, Stopped, true),
            ("no end, no answer", &[RECEIVED], done, &[][..], Killed, true),
            ("a torn end, no answer", &[RECEIVED, "{\"aud"], done, &[], Killed, true),
            ("no end, but an answer", &[RECEIVED], done, answered, Killed, false),
            ("no end, stopped", &[RECEIVED], done, &[], Stopped, false),
            ("nothing", &[], done, &[], Killed, false),
            ("nothing, full", &[], done, &[], FullDisk, false),
            ("no end, full", &[RECEIVED, "{\"aud\n"], done, answered, FullDisk, true),
            ("a torn line within", &[RECEIVED, "{\"aud\n", COMPLETE], done, &[], Killed, false),
            ("nothing, refused", &[], &[], &[("create-a".into(), 503)], Stopped, true),
            ("nothing, failed", &[], &[], &[("create-a".into(), 500)], Stopped, false),
            ("twice", &[RECEIVED, COMPLETE, COMPLETE], done, answered, Killed, false),
            (
                "another code",
                &[RECEIVED, COMPLETE],
                done,
                &[("create-a".into(), 500)],
                Killed,
                false,
            ),
        ] {
            let log = AuditLog::read(lines.concat().as_bytes());
            let check = || log.check(done, answered, expected);
            assert_eq!(catch_unwind(AssertUnwindSafe(check)).is_ok(), want, "{what}");
        }
    }
}
