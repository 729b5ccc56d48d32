//! A client that writes until the server dies, and remembers what it was promised.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use serde_json::{Value, json};

use super::{CONFIG_MAPS, revision};
use crate::client::{Broken, Client, Connection};

/// An object as the server acknowledged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) revision: u64,
    pub(super) value: String,
}

/// A write that has an answer.
#[derive(Debug)]
pub(super) enum Acknowledged {
    Create {
        name: String,
        revision: u64,
    },
    Update {
        name: String,
        revision: u64,
    },
    /// The answer to a deletion does not say at which revision.
    Delete {
        name: String,
    },
}

/// A write without an answer: it was carried out or it was not.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) name: String,
    /// What the object holds if it was; `None` if it is gone then.
    pub(super) after: Option<String>,
}

/// What a writer knows in the end.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) facts: BTreeMap<String, Fact>,
    pub(super) acknowledged: Vec<Acknowledged>,
    pub(super) doubt: Option<Doubt>,
}

/// A writer has objects that nobody else touches, so every refusal is a fault.
pub(super) struct Writer {
    prefix: String,
    n: usize,
    random: Random,
    n_acknowledged: Arc<AtomicUsize>,
    written: Written,
}

impl Writer {
    pub(super) fn new(
        id: usize,
        round: usize,
        facts: BTreeMap<String, Fact>,
        random: Random,
        n_acknowledged: Arc<AtomicUsize>,
    ) -> Self {
        let written = Written { facts, acknowledged: Vec::new(), doubt: None };
        Self { prefix: format!("w{id}-{round}"), n: 0, random, n_acknowledged, written }
    }

    /// Writes until the connection breaks.
    pub(super) async fn write(mut self, client: Client) -> Written {
        if let Ok(mut connection) = client.connect().await {
            while self.step(&mut connection).await.is_ok() {}
        }
        self.written
    }

    async fn step(&mut self, connection: &mut Connection) -> Result<(), Broken> {
        self.n += 1;
        let value = format!("{}-{}", self.prefix, self.n);
        let Some(name) = self.any_name() else {
            return self.create(connection, value).await;
        };
        match self.random.below(8) {
            0..4 => self.create(connection, value).await,
            4..6 => self.update(connection, name, value).await,
            6 => self.delete(connection, name).await,
            _ => self.read(connection, &name).await,
        }
    }

    async fn create(&mut self, connection: &mut Connection, name: String) -> Result<(), Broken> {
        let body = json!({"metadata": {"name": name}, "data": {"value": name}});
        self.written.doubt = Some(Doubt { name: name.clone(), after: Some(name.clone()) });
        let (code, answer) = connection.send(Method::POST, CONFIG_MAPS, &body).await?;
        assert_eq!(code, 201, "{answer}");
        let revision = revision(&answer);
        self.written.facts.insert(name.clone(), Fact { revision, value: name.clone() });
        self.acknowledge(Acknowledged::Create { name, revision });
        Ok(())
    }

    async fn update(
        &mut self,
        connection: &mut Connection,
        name: String,
        value: String,
    ) -> Result<(), Broken> {
        let before = self.written.facts[&name].revision.to_string();
        let metadata = json!({"name": name, "resourceVersion": before});
        let body = json!({"metadata": metadata, "data": {"value": value}});
        self.written.doubt = Some(Doubt { name: name.clone(), after: Some(value.clone()) });
        let path = format!("{CONFIG_MAPS}/{name}");
        let (code, answer) = connection.send(Method::PUT, &path, &body).await?;
        assert_eq!(code, 200, "{answer}");
        let revision = revision(&answer);
        self.written.facts.insert(name.clone(), Fact { revision, value });
        self.acknowledge(Acknowledged::Update { name, revision });
        Ok(())
    }

    async fn delete(&mut self, connection: &mut Connection, name: String) -> Result<(), Broken> {
        self.written.doubt = Some(Doubt { name: name.clone(), after: None });
        let path = format!("{CONFIG_MAPS}/{name}");
        let (code, answer) = connection.send(Method::DELETE, &path, &Value::Null).await?;
        assert_eq!(code, 200, "{answer}");
        self.written.facts.remove(&name);
        self.acknowledge(Acknowledged::Delete { name });
        Ok(())
    }

    /// What was acknowledged is what everyone reads from then on.
    async fn read(&mut self, connection: &mut Connection, name: &str) -> Result<(), Broken> {
        let path = format!("{CONFIG_MAPS}/{name}");
        let (code, answer) = connection.send(Method::GET, &path, &Value::Null).await?;
        assert_eq!(code, 200, "{answer}");
        assert_eq!(fact(&answer), self.written.facts[name], "a stale read of {name}");
        Ok(())
    }

    fn acknowledge(&mut self, write: Acknowledged) {
        self.written.doubt = None;
        self.written.acknowledged.push(write);
        self.n_acknowledged.fetch_add(1, Ordering::SeqCst);
    }

    fn any_name(&mut self) -> Option<String> {
        let n_names = u64::try_from(self.written.facts.len()).unwrap();
        let nth = usize::try_from(self.random.below(n_names)).unwrap();
        self.written.facts.keys().nth(nth).cloned()
    }
}

/// What an object says of itself.
pub(super) fn fact(object: &Value) -> Fact {
    let value = object["data"]["value"].as_str().unwrap_or_default().to_owned();
    Fact { revision: revision(object), value }
}

/// Numbers without a pattern that matters here (splitmix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another sequence.
    pub(super) fn split(&mut self) -> Self {
        Self(self.next())
    }

    /// A number below this one; 0 if there is none.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
