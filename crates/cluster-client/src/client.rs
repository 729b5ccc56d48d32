//! A client of one cluster.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use https_client::{
    Client, Limits, NoCertificateObserver, PathRequest, Reply, ReplyStream, Target,
};
use jiff::Timestamp;
use kubeconfig::{ClusterConnection, ExecClusterInfo, ExecSettings};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::api_error::ClusterError;
use crate::exec_credential::{ExecCredential, run_credential_program};

/// The time for one request. A page of a list of a busy cluster takes seconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest response, in bytes. A page of 500 roles usually has less than a megabyte, and a list requests a smaller page if
/// it has more than this; discovery of a cluster with thousands of custom resources has some megabytes.
const RESPONSE_BYTES_MAX: usize = 128 << 20;

/// The future of a call, boxed for the same reason as [`https_client::ClientFuture`].
pub type ClusterFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends requests to the API server of a cluster, with the credentials of a kubeconfig.
#[derive(Debug)]
pub struct ClusterClient {
    target: Target,
    credential_program: Option<(ExecSettings, ExecClusterInfo)>,
    authenticated_client: Mutex<Option<AuthenticatedClient>>,
}

/// A client with the credentials that it was made with.
#[derive(Debug, Clone)]
struct AuthenticatedClient {
    client: Arc<Client>,
    credential: Option<ExecCredential>,
}

impl ClusterClient {
    /// Makes a client without connecting. The credential program runs with the first request.
    #[must_use]
    pub fn new(connection: ClusterConnection) -> Self {
        let ClusterConnection {
            server_connection: connection,
            exec_settings: exec,
            exec_cluster_info: exec_cluster,
            namespace: _,
        } = connection;
        let credential_program = exec.map(|exec| (exec, exec_cluster));
        Self {
            target: connection.client_target,
            credential_program,
            authenticated_client: Mutex::new(None),
        }
    }

    /// Reads a path as JSON.
    ///
    /// # Errors
    ///
    /// There is no response, its status is an error, or it is no JSON.
    pub fn get_json<'a>(
        &'a self,
        path: &'a str,
        accept: &'static str,
    ) -> ClusterFuture<'a, Result<Value, ClusterError>> {
        Box::pin(async move {
            let request = PathRequest { accept_header: accept, ..PathRequest::get(path) };
            let reply = self.send_with_credential_retry(request).await?;
            parse_json(&reply, path)
        })
    }

    /// Posts a JSON object and returns the response.
    ///
    /// # Errors
    ///
    /// The same as [`get_json`](Self::get_json).
    pub fn post_json<'a>(
        &'a self,
        path: &'a str,
        body: Bytes,
    ) -> ClusterFuture<'a, Result<Value, ClusterError>> {
        Box::pin(async move {
            let reply = self.send_with_credential_retry(PathRequest::post(path, body)).await?;
            parse_json(&reply, path)
        })
    }

    /// Opens a response whose body is read while it arrives.
    ///
    /// # Errors
    ///
    /// There is no response, or its status is an error.
    pub fn open_stream<'a>(
        &'a self,
        path: &'a str,
    ) -> ClusterFuture<'a, Result<ReplyStream, ClusterError>> {
        Box::pin(async move {
            let session = self.client_with_valid_credentials(None).await?;
            let stream = session.client.open_stream(PathRequest::get(path), REQUEST_TIMEOUT).await;
            let stream = stream.map_err(ClusterError::NoResponse)?;
            let reply = Reply {
                status: stream.status,
                headers: Default::default(),
                body: Default::default(),
            };
            ClusterError::check_reply_status(&reply)?;
            Ok(stream)
        })
    }

    /// Sends a request. If the server does not accept the credentials of a program, the program runs once more.
    async fn send_with_credential_retry(
        &self,
        request: PathRequest<'_>,
    ) -> Result<Reply, ClusterError> {
        let session = self.client_with_valid_credentials(None).await?;
        let reply = send(&session, request.clone()).await?;
        match ClusterError::check_reply_status(&reply) {
            Err(ClusterError::Unauthorized { .. }) if session.credential.is_some() => {
                let renewed = self.client_with_valid_credentials(Some(&session)).await?;
                let reply = send(&renewed, request).await?;
                ClusterError::check_reply_status(&reply)?;
                Ok(reply)
            }
            checked => checked.map(|()| reply),
        }
    }

    /// Returns the session, and makes a new one if there is none, if its credentials have expired, or if it is `rejected`.
    async fn client_with_valid_credentials(
        &self,
        rejected: Option<&AuthenticatedClient>,
    ) -> Result<AuthenticatedClient, ClusterError> {
        let mut current = self.authenticated_client.lock().await;
        if let Some(session) = &*current {
            let is_rejected =
                rejected.is_some_and(|rejected| Arc::ptr_eq(&rejected.client, &session.client));
            let is_expired =
                session.credential.as_ref().is_some_and(|own| own.is_expired(Timestamp::now()));
            if !is_rejected && !is_expired {
                return Ok(session.clone());
            }
        }
        let session = self.make_authenticated_client().await?;
        *current = Some(session.clone());
        Ok(session)
    }

    async fn make_authenticated_client(&self) -> Result<AuthenticatedClient, ClusterError> {
        let mut target = self.target.clone();
        let credential = match &self.credential_program {
            None => None,
            Some((settings, cluster)) => {
                let (settings, cluster) = (settings.clone(), cluster.clone());
                let run = move || run_credential_program(&settings, &cluster);
                // A task that panicked would be a bug of this crate; it gets the error of a program without output.
                let credential = tokio::task::spawn_blocking(run).await;
                let credential = credential.map_err(|_| ClusterError::Unauthorized {
                    message: "the credential program did not run".to_owned(),
                })??;
                credential.apply_to_target(&mut target);
                Some(credential)
            }
        };
        let limits = Limits { response_body_bytes_max: RESPONSE_BYTES_MAX, ..Limits::default() };
        let client = Client::new(target, None, limits, Arc::new(NoCertificateObserver))?;
        Ok(AuthenticatedClient { client: Arc::new(client), credential })
    }
}

async fn send(
    session: &AuthenticatedClient,
    request: PathRequest<'_>,
) -> Result<Reply, ClusterError> {
    session.client.exchange(request, REQUEST_TIMEOUT).await.map_err(ClusterError::NoResponse)
}

fn parse_json(reply: &Reply, path: &str) -> Result<Value, ClusterError> {
    serde_json::from_slice(&reply.body).map_err(|_| {
        let path = path.split('?').next().unwrap_or(path).to_owned();
        ClusterError::NotKubernetes { path, expected: "JSON" }
    })
}
