//! The authorizers of an extension server: the core server decides.
//!
//! An extension server adds APIs to a cluster, and somebody has to say who may use them. The core
//! server knows all roles, bindings and webhooks of the cluster, so it is asked: for each request
//! that is not allowed or known already, a `SubjectAccessReview` is posted to it.
//!
//! ```text
//! request -- groups that are always allowed -- paths that are always allowed -- the core server
//!            system:masters                    /healthz /readyz /livez          10 s known, 200/s
//! ```
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # let answer = r#"{"status": {"allowed": true, "reason": "RBAC: allowed"}}"#;
//! # let core = fake_http::Peer::start(fake_http::Answer::json(answer).status(201))?;
//! # let path = folder.path().join("core.kubeconfig");
//! # std::fs::write(&path, format!("clusters:\n- name: ''\n  cluster: {{server: 'http://{}'}}\n",
//! #     core.address()))?;
//! use authz::{Attributes, Recorder, Resource, Target, User, Verdict};
//! use authz_delegated::{CoreServer, Delegated, Options};
//!
//! // At start. Without a kubeconfig the service account of the pod is used.
//! # let kubeconfig = Some(path);
//! let mut options = Options::new(CoreServer::from_flag(kubeconfig));
//! options.always_allow_paths.push("/openapi/*".to_owned());
//! let authorizer = Delegated::new(&options)?;
//!
//! // For each request.
//! let user = User { name: "ana".to_owned(), ..User::default() };
//! let flunders = Resource {
//!     api_group: "wardle.example.com",
//!     api_version: "v1",
//!     namespace: "team-a",
//!     resource: "flunders",
//!     ..Resource::default()
//! };
//! let attributes =
//!     Attributes { user: Some(&user), verb: "list", target: Target::Resource(flunders) };
//! let outcome = authorizer.authorize(&attributes, Recorder::off()).await;
//! assert_eq!(outcome.decision.verdict, Verdict::Allow);
//! assert_eq!(outcome.decided_by, Some("kubernetes.io/webhook"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Anything but [`authz::Verdict::Allow`] has to be refused. When the core server can not be asked
//! there is no opinion, and the error says why; only groups and paths that are always allowed go on.
//!
//! Owns: the order of these authorizers, groups and paths that are always allowed, where the core
//! server is found, how often it is asked.
//! Must not know: HTTP, other authorizers than these, flags, how metrics are exposed.

mod bucket;
mod build_error;
mod core_server;
mod delegated;
mod groups;
mod observe;
mod options;
mod paths;
mod service_account;
mod throttle;

pub use bucket::RateLimit;
pub use build_error::BuildError;
pub use delegated::{ALWAYS_ALLOW_GROUPS, ALWAYS_ALLOW_PATHS, Delegated, WEBHOOK};
pub use observe::{Observe, Unobserved};
pub use options::{CoreServer, Options};
pub use paths::PathError;
pub use service_account::{ServiceAccount, ServiceAccountError};
