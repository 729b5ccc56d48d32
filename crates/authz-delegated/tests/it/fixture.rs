//! A core server behind TLS, the files that lead to it, and questions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use authz::{Attributes, Decision, Recorder, Resource, Target, User};
use authz_delegated::{CoreServer, Delegated, Observe, Options, ServiceAccount};
use fake_http::{Answer, Authority, Leaf, Peer, Script, ServerTls};
use tokio::sync::mpsc;

/// A core server. Its folder has `core.kubeconfig`, `ca.crt` and `token`.
pub(crate) struct Core {
    pub(crate) peer: Peer,
    folder: tempfile::TempDir,
}

impl Core {
    pub(crate) fn start(script: impl Into<Script>) -> Self {
        let authority = Authority::new("cluster").unwrap();
        let certificate = authority.issue(&Leaf::loopback()).unwrap();
        let peer = Peer::start_tls(script, &ServerTls::new(certificate)).unwrap();
        let core = Self { peer, folder: tempfile::tempdir().unwrap() };
        core.write("ca.crt", &authority.pem());
        core.write("token", "first\n");
        core.write_kubeconfig("");
        core
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// The kubeconfig, with a path at the end of its URL.
    pub(crate) fn write_kubeconfig(&self, path: &str) {
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters:\n- name: c\n  cluster:\n    server: https://{}{path}\n    \
             certificate-authority: ca.crt\n\
             users:\n- name: u\n  user: {{tokenFile: token}}\n\
             contexts:\n- name: c\n  context: {{cluster: c, user: u}}\n",
            self.peer.address()
        );
        self.write("core.kubeconfig", &kubeconfig);
    }

    /// The defaults, but tried again without a wait.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new(CoreServer::Kubeconfig(self.path("core.kubeconfig")));
        options.guards.retry.wait = Duration::from_millis(1);
        options
    }

    pub(crate) fn delegated(&self) -> Delegated {
        Delegated::new(&self.options()).unwrap()
    }

    /// What a pod of this cluster is told.
    pub(crate) fn service_account(&self) -> ServiceAccount {
        let address = self.peer.address();
        let environment = |name: &str| match name {
            "KUBERNETES_SERVICE_HOST" => Some(address.ip().to_string()),
            "KUBERNETES_SERVICE_PORT" => Some(address.port().to_string()),
            _ => None,
        };
        ServiceAccount::new(&environment, self.folder.path())
    }
}

/// What a core server says; created objects have the status 201.
pub(crate) fn says(status: &str) -> Answer {
    let body = format!(
        r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{status}}}"#
    );
    Answer::json(body).status(201)
}

pub(crate) fn allows() -> Answer {
    says(r#"{"allowed":true,"reason":"RBAC: allowed"}"#)
}

/// What is decided about a user who lists flunders.
pub(crate) async fn ask(delegated: &Delegated, user: &str) -> Decision {
    ask_in_group(delegated, user, "readers").await
}

pub(crate) async fn ask_in_group(delegated: &Delegated, user: &str, group: &str) -> Decision {
    let user = User { name: user.to_owned(), groups: vec![group.to_owned()], ..User::default() };
    delegated.authorize(&lists_flunders(&user), Recorder::off()).await.decision
}

pub(crate) fn lists_flunders(user: &User) -> Attributes<'_> {
    let flunders = Resource {
        path: "/apis/wardle.example.com/v1/namespaces/team-a/flunders",
        api_group: "wardle.example.com",
        api_version: "v1",
        namespace: "team-a",
        resource: "flunders",
        ..Resource::default()
    };
    Attributes { user: Some(user), verb: "list", target: Target::Resource(flunders) }
}

/// Passes on the codes of requests.
struct Codes(mpsc::UnboundedSender<String>);

impl Observe for Codes {
    fn requested(&self, code: &str, _took: Duration) {
        // A test may have ended that does not look at all of them.
        drop(self.0.send(code.to_owned()));
    }
}

/// An observer, and where the codes of requests come out.
pub(crate) fn codes() -> (Arc<dyn Observe>, mpsc::UnboundedReceiver<String>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Arc::new(Codes(sender)), receiver)
}

/// The codes so far.
pub(crate) fn drain(codes: &mut mpsc::UnboundedReceiver<String>) -> Vec<String> {
    std::iter::from_fn(|| codes.try_recv().ok()).collect()
}
