//! What an attack has at hand: the server, the webhooks, and the record of decisions that it checks itself.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use http::Method;
use serde_json::Value;

use crate::client::{Client, Session};
use crate::hook_service::HookService;
use crate::users::ADMIN;

/// The surroundings of one attack.
pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) hooks: Arc<HookService>,
    /// The directory of the server, with the files that its flags name.
    pub(crate) directory: PathBuf,
    /// The number of the run, so that names do not repeat.
    pub(crate) run: usize,
    /// Decisions other than those of the innocents that were not as they must be.
    differences: Mutex<Vec<String>>,
}

/// One step of an attack. It returns when it is done, or soon after the time.
pub(crate) type Step =
    fn(Arc<Scene>, Instant) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;

impl Scene {
    pub(crate) fn new(
        client: Client,
        hooks: Arc<HookService>,
        directory: PathBuf,
        run: usize,
    ) -> Self {
        Self { client, hooks, directory, run, differences: Mutex::new(Vec::new()) }
    }

    /// Records that a decision was not as it must be.
    pub(crate) fn differ(&self, text: String) {
        self.differences.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// Returns the recorded decisions and forgets them.
    pub(crate) fn take_differences(&self) -> Vec<String> {
        std::mem::take(&mut *self.differences.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A connection of the superuser.
    ///
    /// # Errors
    /// The server does not accept it.
    pub(crate) async fn admin(&self) -> anyhow::Result<Session> {
        self.client.session(Some(ADMIN)).await
    }

    /// Creates many objects as the superuser over a few connections.
    ///
    /// # Errors
    /// The server refuses an object.
    pub(crate) async fn create_all(
        &self,
        path: &str,
        n_objects: usize,
        object: fn(usize) -> Value,
    ) -> anyhow::Result<()> {
        const N_CONNECTIONS: usize = 32;
        let mut tasks = tokio::task::JoinSet::new();
        for first in 0..N_CONNECTIONS {
            let (client, path) = (self.client.clone(), path.to_owned());
            tasks.spawn(async move {
                let mut admin = client.session(Some(ADMIN)).await?;
                for number in (first..n_objects).step_by(N_CONNECTIONS) {
                    admin.create(&path, &object(number)).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.context("a task ended early")??;
        }
        Ok(())
    }

    /// Sends the same requests in a loop over several connections of one user until a time. Answers do not matter,
    /// and lost connections are opened again.
    pub(crate) async fn flood(
        &self,
        token: Option<&str>,
        n_connections: usize,
        requests: Vec<RawRequest>,
        until: Instant,
    ) {
        let requests = Arc::new(requests);
        let mut tasks = tokio::task::JoinSet::new();
        for first in 0..n_connections {
            let (client, requests) = (self.client.clone(), Arc::clone(&requests));
            let token = token.map(str::to_owned);
            tasks.spawn(async move {
                while Instant::now() < until {
                    let Ok(mut session) = client.session(token.as_deref()).await else {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    };
                    let order = requests.iter().cycle().skip(first % requests.len().max(1));
                    for RawRequest { method, path, content_type, body } in order {
                        let sending =
                            session.send(method.clone(), path, content_type, body.clone());
                        match tokio::time::timeout_at(until.into(), sending).await {
                            Ok(Ok(_)) => {}
                            Ok(Err(_)) => break,
                            Err(_) => return,
                        }
                    }
                }
            });
        }
        while tasks.join_next().await.is_some() {}
    }
}

/// A request with a prepared body.
#[derive(Clone)]
pub(crate) struct RawRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
}

impl RawRequest {
    /// A request without a body.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        let body = Bytes::new();
        Self { method: Method::GET, path: path.into(), content_type: "application/json", body }
    }

    /// A request with a JSON body.
    pub(crate) fn json(method: Method, path: impl Into<String>, body: &Value) -> Self {
        let body = body.to_string().into();
        Self { method, path: path.into(), content_type: "application/json", body }
    }
}
