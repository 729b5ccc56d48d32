//! A client that writes until the server dies, and remembers what it was promised.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use serde_json::{Value, json};

use super::{CONFIG_MAPS, revision};
use crate::client::{Broken, Client, Connection};
use crate::random::Random;

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
    /// The value of the object if the write succeeded; `None` if the write deleted it.
    pub(super) after: Option<String>,
}

/// The results of one writer.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) facts: BTreeMap<String, Fact>,
    pub(super) acknowledged: Vec<Acknowledged>,
    pub(super) doubts: Vec<Doubt>,
    /// The ids of the writes that have an answer, and its code.
    pub(super) answered: Vec<(String, u16)>,
}

/// How a writer treats answers that say that the server cannot write, or not now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// There is no reason for any.
    Unexpected,
    /// They are like none: the write was carried out or it was not, and the writer ends.
    Expected,
}

/// A writer has its own objects, so every refusal is an error.
pub(super) struct Writer {
    prefix: String,
    n: usize,
    random: Random,
    n_acknowledged: Arc<AtomicUsize>,
    trouble: Trouble,
    /// Added to each object, to have more bytes written.
    padding: String,
    written: Written,
    doubt: Option<Doubt>,
}

/// A writer with more objects than this deletes in place of creating.
const N_OBJECTS_MAX: usize = 20;

impl Writer {
    pub(super) fn new(
        id: usize,
        round: usize,
        facts: BTreeMap<String, Fact>,
        random: Random,
        n_acknowledged: Arc<AtomicUsize>,
        trouble: Trouble,
        padding: String,
    ) -> Self {
        let written = Written { facts, ..Written::default() };
        let (prefix, doubt) = (format!("w{id}-{round}"), None);
        Self { prefix, n: 0, random, n_acknowledged, trouble, padding, written, doubt }
    }

    /// Writes until the connection breaks.
    pub(super) async fn write(mut self, client: Client) -> Written {
        if let Ok(mut connection) = client.connect().await {
            while self.step(&mut connection).await.is_ok() {}
        }
        self.written.doubts.extend(self.doubt);
        self.written
    }

    async fn step(&mut self, connection: &mut Connection) -> Result<(), Broken> {
        self.n += 1;
        let value = format!("{}-{}", self.prefix, self.n);
        let Some(name) = self.any_name() else {
            return self.create(connection, value).await;
        };
        let is_full = self.written.facts.len() > N_OBJECTS_MAX;
        match self.random.below(8) {
            0..4 if is_full => self.delete(connection, name).await,
            0..4 => self.create(connection, value).await,
            4..6 => self.update(connection, name, value).await,
            6 => self.delete(connection, name).await,
            _ => self.read(connection, &name).await,
        }
    }

    async fn create(&mut self, connection: &mut Connection, name: String) -> Result<(), Broken> {
        let data = json!({"value": name, "padding": self.padding});
        let body = json!({"metadata": {"name": name}, "data": data});
        self.doubt = Some(Doubt { name: name.clone(), after: Some(name.clone()) });
        let id = request_id("ADDED", &name, &name);
        let answer = self.send(connection, id, Method::POST, CONFIG_MAPS, &body, 201).await?;
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
        self.doubt = Some(Doubt { name: name.clone(), after: Some(value.clone()) });
        let path = format!("{CONFIG_MAPS}/{name}");
        let id = request_id("MODIFIED", &name, &value);
        let answer = self.send(connection, id, Method::PUT, &path, &body, 200).await?;
        let revision = revision(&answer);
        self.written.facts.insert(name.clone(), Fact { revision, value });
        self.acknowledge(Acknowledged::Update { name, revision });
        Ok(())
    }

    async fn delete(&mut self, connection: &mut Connection, name: String) -> Result<(), Broken> {
        self.doubt = Some(Doubt { name: name.clone(), after: None });
        let path = format!("{CONFIG_MAPS}/{name}");
        let id = request_id("DELETED", &name, "");
        self.send(connection, id, Method::DELETE, &path, &Value::Null, 200).await?;
        self.written.facts.remove(&name);
        self.acknowledge(Acknowledged::Delete { name });
        Ok(())
    }

    /// Sends a write, and gives its answer if the server carried it out.
    async fn send(
        &mut self,
        connection: &mut Connection,
        id: String,
        method: Method,
        path: &str,
        body: &Value,
        want: u16,
    ) -> Result<Value, Broken> {
        let (code, answer) = connection.send_as(&id, method, path, body).await?;
        self.written.answered.push((id, code));
        if code >= 500 && self.trouble == Trouble::Expected {
            return Err(Broken);
        }
        assert_eq!(code, want, "{answer}");
        Ok(answer)
    }

    /// Checks that a read returns the acknowledged value.
    async fn read(&mut self, connection: &mut Connection, name: &str) -> Result<(), Broken> {
        let path = format!("{CONFIG_MAPS}/{name}");
        let (code, answer) = connection.send(Method::GET, &path, &Value::Null).await?;
        if code >= 500 && self.trouble == Trouble::Expected {
            return Err(Broken);
        }
        assert_eq!(code, 200, "{answer}");
        assert_eq!(fact(&answer), self.written.facts[name], "a stale read of {name}");
        Ok(())
    }

    fn acknowledge(&mut self, write: Acknowledged) {
        self.doubt = None;
        self.written.acknowledged.push(write);
        self.n_acknowledged.fetch_add(1, Ordering::SeqCst);
    }

    fn any_name(&mut self) -> Option<String> {
        let n_names = u64::try_from(self.written.facts.len()).unwrap();
        let nth = usize::try_from(self.random.below(n_names)).unwrap();
        self.written.facts.keys().nth(nth).cloned()
    }
}

/// The id of the request that causes an event of this type, with this name and value.
pub(super) fn request_id(kind: &str, name: &str, value: &str) -> String {
    match kind {
        "ADDED" => format!("create-{name}"),
        "MODIFIED" => format!("update-{value}"),
        _ => format!("delete-{name}"),
    }
}

/// Reads the value of an object.
pub(super) fn fact(object: &Value) -> Fact {
    let value = object["data"]["value"].as_str().unwrap_or_default().to_owned();
    Fact { revision: revision(object), value }
}
