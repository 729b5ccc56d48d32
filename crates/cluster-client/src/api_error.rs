//! The reasons why a cluster does not answer a request.

use https_client::{BuildError, Fault, Reply};
use serde_json::Value;

use crate::exec_credential::CredentialError;

/// The longest message of a server that an error shows, in characters.
const MESSAGE_CHARS_MAX: usize = 500;

/// The reason why a cluster does not answer a request.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The kubeconfig describes no connection that can be made.
    #[error("the kubeconfig describes no usable connection")]
    Connection(#[from] BuildError),
    /// There is no response: the server cannot be reached or verified, or is too slow.
    #[error("{0}")]
    NoResponse(Fault),
    /// The program of the kubeconfig provides no credentials.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The server does not accept the credentials.
    #[error(
        "the server does not accept the credentials of the kubeconfig (401 {message}): log in again, or choose another user or context"
    )]
    Unauthorized {
        /// The message of the server.
        message: String,
    },
    /// The user may not do this.
    #[error("{message}")]
    Forbidden {
        /// The message of the server.
        message: String,
    },
    /// The server has no such resource.
    #[error("{message}")]
    NotFound {
        /// The message of the server.
        message: String,
    },
    /// The requested revision or the continuation of a list is too old.
    #[error("{message}")]
    Expired {
        /// The message of the server.
        message: String,
    },
    /// The server answers with another error.
    #[error("the server answers {status}: {message}")]
    Status {
        /// The HTTP status code.
        status: u16,
        /// The message of the server.
        message: String,
    },
    /// A list has too many objects.
    #[error("{path} has more than {objects_max} objects")]
    TooManyObjects {
        /// The path of the list.
        path: String,
        /// The most objects of a list.
        objects_max: usize,
    },
    /// The response is no JSON of the expected form, so the server is probably no Kubernetes API.
    #[error(
        "the response to {path} is not {expected}: does the kubeconfig name the API server of a cluster?"
    )]
    NotKubernetes {
        /// The path of the request.
        path: String,
        /// The form that Kubernetes would answer with.
        expected: &'static str,
    },
}

impl ClusterError {
    /// Returns the body of a successful response, or the error of any other.
    pub(crate) fn check_reply_status(reply: &Reply) -> Result<(), Self> {
        let status = reply.status;
        if (200..300).contains(&status) {
            return Ok(());
        }
        let message = status_message(reply);
        Err(match status {
            401 => Self::Unauthorized { message },
            403 => Self::Forbidden { message },
            404 => Self::NotFound { message },
            410 => Self::Expired { message },
            300..=399 => {
                let message = "a redirect, which is not followed".to_owned();
                Self::Status { status, message }
            }
            _ => Self::Status { status, message },
        })
    }
}

/// Returns the message of a Status, or the beginning of any other body.
fn status_message(reply: &Reply) -> String {
    let status: Option<Value> = serde_json::from_slice(&reply.body).ok();
    let message = status.as_ref().and_then(|status| status.get("message")).and_then(Value::as_str);
    let text = match message {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(&reply.body).trim().to_owned(),
    };
    text.chars().take(MESSAGE_CHARS_MAX).collect()
}
