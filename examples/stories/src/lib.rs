//! What the webhook programs of the stories share: serving one decision over HTTPS.
//!
//! A webhook is a function from a question to an answer. [`run`] makes a service of it: it takes
//! `NAME FOLDER` from the command line, makes itself a certificate, and leaves the kubeconfig that
//! a server needs to call it as `FOLDER/NAME.kubeconfig`. Each question is told in a line on
//! standard output.
//!
//! Owns: the wire form of a review as far as a webhook needs it, TLS, the command line.
//! Must not know: Portcullis. These programs work with kube-apiserver just as well.

mod review;
mod service;

pub use review::{Answer, Question, ResourceQuestion};
pub use service::run;
