//! The shared part of the webhook programs of the stories: it serves one decision function over HTTPS.
//!
//! A webhook is a function from the `spec` of a review to a decision. [`run`] serves it: it takes `NAME
//! FOLDER` from the command line, creates a certificate, and writes the kubeconfig for servers to
//! `FOLDER/NAME.kubeconfig`. It prints each review on one line of standard output.
//!
//! Owns: the wire form of a review as far as a webhook needs it, TLS, the command line.
//! Must not know: Portcullis. These programs work with kube-apiserver too.

mod review;
mod service;

pub use review::{Decision, ResourceAttributes, ReviewSpec};
pub use service::run;
