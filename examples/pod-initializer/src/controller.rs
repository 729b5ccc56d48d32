//! The protocol of an initializer: it watches every pod, changes pods that wait for it, and reports
//! failures.

use std::io::Write;
use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::{Value, json};

use crate::step::{Initializer, Step};

/// The pause before a request to a server that failed is repeated.
const PAUSE: Duration = Duration::from_millis(500);
/// How often the controller retries one pod in a row after conflicts.
const TRIES_MAX: usize = 16;

/// An initializer and the client of its server.
pub(crate) struct Controller {
    pub(crate) client: Client,
    pub(crate) initializer: Initializer,
}

/// The result of a request that stores a pod.
enum Stored {
    Done,
    /// Another client changed the pod in between.
    Conflict,
    /// The pod does not exist any more.
    Gone,
    /// The server refuses the changed pod.
    Rejected(String),
}

impl Controller {
    /// Runs until the program is stopped, and retries if the server fails or is unavailable.
    pub(crate) async fn run(&self) {
        self.say("waiting for pods");
        loop {
            if let Err(error) = self.follow().await {
                self.say(&format!("the server fails: {}", words(&error)));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Acts on the existing pods, and then on new and changed pods, until the server ends the watch.
    async fn follow(&self) -> Result<(), kube::Error> {
        // Without this parameter the server hides the pods that wait.
        let all = "/api/v1/pods?includeUninitialized=true";
        let list: Value = self.client.request(get(all)?).await?;
        let mut trouble = Ok(());
        for pod in list["items"].as_array().into_iter().flatten() {
            // A failure of one pod must not delay the others.
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

    /// Initializes one pod if it is the turn of this initializer.
    ///
    /// 1. One update changes the pod and removes the entry, so nobody sees one without the other.
    /// 2. If another client changed the pod, the controller reads it and tries again.
    /// 3. If the pod cannot be initialized, the controller sets the result, and the server fails the create.
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

    /// Replaces the stored pod. The `resourceVersion` in the pod makes the update fail if the stored pod has
    /// changed.
    async fn store(&self, path: &str, pod: &Value) -> Result<Stored, kube::Error> {
        let mut pod = pod.clone();
        // Items of a list have no kind and no version.
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
            // All other client errors are a fault of the pod. A server that fails or is overloaded may
            // accept the same pod later.
            Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                Ok(Stored::Rejected(status.message))
            }
            Err(error) => Err(error),
        }
    }

    /// Prints a line at once, because scripts count lines.
    fn say(&self, what: &str) {
        // The controller continues if nobody reads its output.
        let _ = writeln!(std::io::stdout().lock(), "{}: {what}", self.initializer.name);
    }
}

fn get(path: &str) -> Result<Request<Vec<u8>>, kube::Error> {
    Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)
}

/// The message of an error, without the details for programs.
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

/// A copy of the pod with a failed result, which the server returns to its creator.
fn failed(pod: &Value, why: &str) -> Value {
    let mut pod = pod.clone();
    pod["metadata"]["initializers"]["result"] =
        json!({"status": "Failure", "code": 403, "reason": "Forbidden", "message": why});
    pod
}
