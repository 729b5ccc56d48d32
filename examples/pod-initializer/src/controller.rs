//! The protocol of an initializer: see every pod, change those that wait, tell why if that fails.

use std::io::Write;
use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::{Value, json};

use crate::step::{Initializer, Step};

/// How long to wait before a server that failed is asked again.
const PAUSE: Duration = Duration::from_millis(500);
/// How often one pod is tried in a row while others change it.
const TRIES_MAX: usize = 16;

/// An initializer at work.
pub(crate) struct Controller {
    pub(crate) client: Client,
    pub(crate) initializer: Initializer,
}

/// How a request went that stores a pod.
enum Stored {
    Done,
    /// Somebody else changed the pod in between.
    Conflict,
    /// There is no such pod any more.
    Gone,
    /// The server does not want the pod like this.
    Rejected(String),
}

impl Controller {
    /// Works until the program is stopped. A server that fails or is away is tried again.
    pub(crate) async fn run(&self) {
        self.say("waiting for pods");
        loop {
            if let Err(error) = self.follow().await {
                self.say(&format!("the server fails: {}", words(&error)));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Acts on the pods that exist, and then on those that come or change, until the server ends the
    /// watch.
    async fn follow(&self) -> Result<(), kube::Error> {
        // Without the parameter the server hides exactly the pods that matter here.
        let all = "/api/v1/pods?includeUninitialized=true";
        let list: Value = self.client.request(get(all)?).await?;
        let mut trouble = Ok(());
        for pod in list["items"].as_array().into_iter().flatten() {
            // Trouble with one pod is no reason to let the others wait.
            trouble = self.initialize(pod.clone()).await.and(trouble);
        }
        trouble?;
        let revision = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let watch = get(&format!("{all}&watch=true&resourceVersion={revision}"))?;
        let mut events = pin!(self.client.request_events::<Value>(watch).await?);
        while let Some(event) = events.try_next().await? {
            match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => self.initialize(pod).await?,
                WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            }
        }
        Ok(())
    }

    /// Does this initializer's part for one pod, if it is its turn.
    ///
    /// 1. The change of the pod and the removal of the entry are one update, so nobody sees one
    ///    without the other.
    /// 2. If another initializer was faster, the pod is read and looked at anew.
    /// 3. If there is no way, the result says why, and the server gives up the pod.
    async fn initialize(&self, mut pod: Value) -> Result<(), kube::Error> {
        let path = path(&pod);
        for _ in 0..TRIES_MAX {
            let (wanted, mut done) = match self.initializer.step(&pod) {
                Step::Wait => return Ok(()),
                Step::Change(changed) => {
                    let container = &self.initializer.container.name;
                    (changed, format!("added the container {container}"))
                }
                Step::Refuse(why) => (failed(&pod, &why), format!("refused: {why}")),
            };
            let mut stored = self.store(&path, &wanted).await?;
            if let Stored::Rejected(why) = stored {
                stored = self.store(&path, &failed(&pod, &why)).await?;
                done = format!("refused: {why}");
            }
            match stored {
                Stored::Done => {
                    self.say(&format!("{}: {done}", title(&pod)));
                    return Ok(());
                }
                Stored::Conflict => match self.client.request(get(&path)?).await {
                    Ok(newer) => pod = newer,
                    Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
                    Err(error) => return Err(error),
                },
                Stored::Gone => return Ok(()),
                Stored::Rejected(why) => {
                    self.say(&format!("{}: {why}", title(&pod)));
                    return Ok(());
                }
            }
        }
        self.say(&format!("{}: changes too often", title(&pod)));
        Ok(())
    }

    /// Stores a pod in the place of the one that was read: its `resourceVersion` sees to that.
    async fn store(&self, path: &str, pod: &Value) -> Result<Stored, kube::Error> {
        let mut pod = pod.clone();
        // Items of a list do not say what they are.
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        let request = Request::put(path)
            .header("content-type", "application/json")
            .body(pod.to_string().into_bytes())
            .map_err(kube::Error::HttpError)?;
        match self.client.request::<Value>(request).await {
            Ok(_) => Ok(Stored::Done),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Stored::Conflict),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Stored::Gone),
            // Whatever else is the fault of the pod. A server that fails or has too much to do may take
            // the same pod later.
            Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                Ok(Stored::Rejected(status.message))
            }
            Err(error) => Err(error),
        }
    }

    /// A line is written in one piece, since scripts count them.
    fn say(&self, what: &str) {
        // Who does not want to read it is served all the same.
        let _ = writeln!(std::io::stdout().lock(), "{}: {what}", self.initializer.name);
    }
}

fn get(path: &str) -> Result<Request<Vec<u8>>, kube::Error> {
    Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)
}

/// What went wrong, without what else the server tells a program.
fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

fn path(pod: &Value) -> String {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    format!("/api/v1/namespaces/{}/pods/{}", text("namespace"), text("name"))
}

fn title(pod: &Value) -> String {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// A pod with the result by which its creator learns that it will not be.
fn failed(pod: &Value, why: &str) -> Value {
    let mut pod = pod.clone();
    pod["metadata"]["initializers"]["result"] =
        json!({"status": "Failure", "code": 403, "reason": "Forbidden", "message": why});
    pod
}
