//! Everything that was promised so far, and whether the server keeps it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::revision;
use super::writer::{Acknowledged, Doubt, Fact, Written, fact, request_id};

/// An event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) revision: u64,
    /// The id of the request that caused it.
    pub(super) request: String,
}

impl Told {
    pub(super) fn new(event: &Value) -> Self {
        let object = &event["object"];
        let (kind, name) = (text(&event["type"]), text(&object["metadata"]["name"]));
        assert!(["ADDED", "MODIFIED", "DELETED"].contains(&&*kind), "{event}");
        let request = request_id(&kind, &name, &fact(object).value);
        Self { kind, name, revision: revision(object), request }
    }
}

#[derive(Default)]
pub(super) struct Ledger {
    /// The known state of each object.
    facts: BTreeMap<String, Fact>,
    /// The objects at the revision `since`.
    before: BTreeMap<String, u64>,
    pub(super) since: u64,
    /// The highest revision in any answer or watch event.
    pub(super) revision: u64,
    acknowledged: Vec<Acknowledged>,
    doubts: Vec<Doubt>,
    /// The events of a watch before the server died.
    pub(super) told: Vec<Told>,
    /// The ids of requests that have an answer, and its code.
    pub(super) answered: Vec<(String, u16)>,
    pub(super) n_acknowledged: usize,
    /// Writes of clients that hung up, or of servers that died, which were carried out nevertheless.
    pub(super) n_carried_out: usize,
}

impl Ledger {
    /// The objects of a writer.
    pub(super) fn facts_of(&self, writer: usize) -> BTreeMap<String, Fact> {
        let prefix = format!("w{writer}-");
        let own = self.facts.iter().filter(|(name, _)| name.starts_with(&prefix));
        own.map(|(name, fact)| (name.clone(), fact.clone())).collect()
    }

    /// Takes over what a writer knows.
    pub(super) fn add(&mut self, written: Written) {
        for write in &written.acknowledged {
            match write {
                Acknowledged::Create { revision, .. } | Acknowledged::Update { revision, .. } => {
                    self.revision = self.revision.max(*revision);
                }
                Acknowledged::Delete { name } => {
                    self.facts.remove(name);
                }
            }
        }
        self.facts.extend(written.facts);
        self.n_acknowledged += written.acknowledged.len();
        self.acknowledged.extend(written.acknowledged);
        self.doubts.extend(written.doubts);
        self.answered.extend(written.answered);
    }

    /// Compares a list of all objects, and the history since the last such list, with what is known.
    /// Resolves the writes whose result was unknown.
    pub(super) fn settle(&mut self, list: &Value, replayed: Option<&[Told]>) {
        assert!(revision(list) >= self.revision, "the list is older than what is known");
        let mut found: BTreeMap<String, Fact> = BTreeMap::new();
        for item in list["items"].as_array().expect("items") {
            let name = text(&item["metadata"]["name"]);
            assert!(found.insert(name, fact(item)).is_none(), "listed twice: {item}");
        }
        let now: BTreeMap<String, u64> =
            found.iter().map(|(name, fact)| (name.clone(), fact.revision)).collect();
        if let Some(replayed) = replayed {
            self.check_history(replayed);
            assert_eq!(after(std::mem::take(&mut self.before), replayed), now);
        }
        self.before = now;
        found.retain(|name, _| !name.starts_with("marker-"));
        self.resolve(&found);
        let lost: Vec<_> = self.facts.keys().filter(|name| !found.contains_key(*name)).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        let stray: Vec<_> = found.keys().filter(|name| !self.facts.contains_key(*name)).collect();
        assert!(stray.is_empty(), "deleted and back, or never written: {stray:?}");
        assert_eq!(found, self.facts);
        self.acknowledged.clear();
        self.told.clear();
    }

    /// A write without an answer was carried out, or everything is as before.
    fn resolve(&mut self, found: &BTreeMap<String, Fact>) {
        for Doubt { name, after } in std::mem::take(&mut self.doubts) {
            let (known, now) = (self.facts.get(&name), found.get(&name));
            let is_carried_out = now.map(|fact| &fact.value) == after.as_ref();
            assert!(now == known || is_carried_out, "{name}: {known:?}, {after:?}, now {now:?}");
            self.n_carried_out += usize::from(is_carried_out && now != known);
            match now.cloned() {
                Some(now) => self.facts.insert(name, now),
                None => self.facts.remove(&name),
            };
        }
    }

    /// Checks that revisions increase, and that the history contains all earlier watch events and all
    /// acknowledged writes.
    fn check_history(&self, replayed: &[Told]) {
        assert!(replayed.is_sorted_by(|one, two| one.revision < two.revision), "{replayed:?}");
        assert!(replayed.first().is_none_or(|first| first.revision > self.since));
        let n_told = self.told.len();
        assert!(replayed.len() >= n_told, "a watch told more than there is");
        assert_eq!(replayed[..n_told], self.told, "a watch told something else");
        let has = |kind: &str, name: &str, at: u64| {
            let nth = replayed.binary_search_by_key(&at, |told| told.revision);
            nth.is_ok_and(|nth| replayed[nth].kind == kind && replayed[nth].name == name)
        };
        for write in &self.acknowledged {
            let is_there = match write {
                Acknowledged::Create { name, revision } => has("ADDED", name, *revision),
                Acknowledged::Update { name, revision } => has("MODIFIED", name, *revision),
                Acknowledged::Delete { name } => {
                    replayed.iter().any(|told| told.kind == "DELETED" && told.name == *name)
                }
            };
            assert!(is_there, "not in history: {write:?}");
        }
    }
}

/// The objects that exist after these events, with the revision of each.
fn after(mut objects: BTreeMap<String, u64>, events: &[Told]) -> BTreeMap<String, u64> {
    for event in events {
        let was = match &*event.kind {
            "DELETED" => objects.remove(&event.name),
            _ => objects.insert(event.name.clone(), event.revision),
        };
        assert_eq!(was.is_none(), event.kind == "ADDED", "{event:?} does not follow");
    }
    objects
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use serde_json::json;

    use super::*;

    /// `w0-a` was created at 5 and changed at 7, `w0-b` created at 6 and deleted, `w0-c` is in doubt.
    fn ledger() -> Ledger {
        let created = |name: &str, revision| Acknowledged::Create { name: name.into(), revision };
        let acknowledged = vec![
            created("w0-a", 5),
            created("w0-b", 6),
            Acknowledged::Update { name: "w0-a".into(), revision: 7 },
            Acknowledged::Delete { name: "w0-b".into() },
        ];
        let facts = [("w0-a".to_owned(), Fact { revision: 7, value: "new".into() })].into();
        let doubts = vec![Doubt { name: "w0-c".into(), after: Some("c".into()) }];
        let mut ledger = Ledger { since: 4, revision: 4, ..Ledger::default() };
        ledger.add(Written { facts, acknowledged, doubts, ..Written::default() });
        ledger.told = told(&[("ADDED", "w0-a", 5), ("ADDED", "w0-b", 6)]);
        ledger
    }

    fn told(events: &[(&str, &str, u64)]) -> Vec<Told> {
        let told = |&(kind, name, revision): &(&str, &str, u64)| Told {
            kind: kind.to_owned(),
            name: name.to_owned(),
            revision,
            request: String::new(),
        };
        events.iter().map(told).collect()
    }

    const HISTORY: [(&str, &str, u64); 4] = [
        ("ADDED", "w0-a", 5),
        ("ADDED", "w0-b", 6),
        ("MODIFIED", "w0-a", 7),
        ("DELETED", "w0-b", 8),
    ];

    fn is_kept(objects: &[(&str, u64, &str)], history: &[(&str, &str, u64)]) -> bool {
        let item = |&(name, revision, value): &(&str, u64, &str)| {
            json!({"metadata": {"name": name, "resourceVersion": revision.to_string()},
                "data": {"value": value}})
        };
        let items: Vec<Value> = objects.iter().map(item).collect();
        let list = json!({"metadata": {"resourceVersion": "9"}, "items": items});
        let mut ledger = ledger();
        catch_unwind(AssertUnwindSafe(|| ledger.settle(&list, Some(&told(history))))).is_ok()
    }

    #[test]
    fn promises_that_are_kept() {
        assert!(is_kept(&[("w0-a", 7, "new")], &HISTORY));
        let carried_out = [&HISTORY[..], &[("ADDED", "w0-c", 9)]].concat();
        assert!(is_kept(&[("w0-a", 7, "new"), ("w0-c", 9, "c")], &carried_out));
    }

    #[test]
    fn promises_that_are_broken() {
        let a = ("w0-a", 7, "new");
        for (what, objects, history) in [
            ("a lost object", &[][..], &HISTORY[..]),
            ("a lost change", &[("w0-a", 5, "old")], &HISTORY[..2]),
            ("another value", &[("w0-a", 7, "old")], &HISTORY),
            ("a deletion undone", &[a, ("w0-b", 6, "b")], &HISTORY[..3]),
            ("a stranger", &[a, ("w0-d", 9, "d")], &HISTORY),
            ("a doubt settled otherwise", &[a, ("w0-c", 9, "x")], &HISTORY),
            ("a gap", &[a], &[HISTORY[0], HISTORY[1], HISTORY[3]]),
            ("a repetition", &[a], &[HISTORY[0], HISTORY[0], HISTORY[1], HISTORY[2], HISTORY[3]]),
            ("what was told taken back", &[a], &[HISTORY[0], HISTORY[2], HISTORY[3]]),
        ] {
            assert!(!is_kept(objects, history), "{what} is not noticed");
        }
    }
}
