//! A webhook that runs: a peer behind TLS, and the files that lead to it.

use std::path::PathBuf;

use authz::{Attributes, Target, TraceRecorder, User, Verb, Verdict};
use authz_reload::Generation;
use fake_http::{Answer, Authority, Leaf, Peer, Script, ServerTls};

use crate::stage::Stage;

/// A peer, and its authority in `NAME.ca`, its kubeconfig in `NAME.kubeconfig`, the token that it is
/// sent in `NAME.token`.
pub(crate) struct RunningHook {
    pub(crate) peer: Peer,
    /// The certificate of the peer, for another peer of the same webhook.
    pub(crate) tls: ServerTls,
    name: String,
}

pub(crate) fn answer(is_allowed: bool) -> Answer {
    Answer::json(format!(
        r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview",
            "status":{{"allowed":{is_allowed}}}}}"#
    ))
}

impl RunningHook {
    /// A webhook that allows everything.
    pub(crate) fn start(stage: &Stage, name: &str) -> Self {
        Self::start_with(stage, name, vec![answer(true)])
    }

    pub(crate) fn start_with(stage: &Stage, name: &str, script: impl Into<Script>) -> Self {
        Self::start_tls(stage, name, script, |tls| tls)
    }

    /// A webhook that allows everything to clients with a certificate of this authority.
    pub(crate) fn start_requiring_clients(stage: &Stage, name: &str, clients: &Authority) -> Self {
        let pem = clients.pem();
        Self::start_tls(stage, name, vec![answer(true)], |tls| tls.require_clients_of(&pem))
    }

    fn start_tls(
        stage: &Stage,
        name: &str,
        script: impl Into<Script>,
        change: impl FnOnce(ServerTls) -> ServerTls,
    ) -> Self {
        let authority = Authority::new(name).unwrap();
        let leaf = Leaf::server(&["127.0.0.1", "some-service.some-namespace.svc"]);
        let certificate = authority.issue(&leaf).unwrap();
        let tls = change(ServerTls::new(certificate));
        let peer = Peer::start_tls(script, &tls).unwrap();
        stage.write(&format!("{name}.ca"), &authority.pem());
        stage.write(&format!("{name}.token"), "hush-one");
        let hook = Self { peer, tls, name: name.to_owned() };
        hook.write_kubeconfig(stage);
        hook
    }

    pub(crate) fn write_kubeconfig(&self, stage: &Stage) {
        stage.write(&format!("{}.kubeconfig", self.name), &self.kubeconfig());
    }

    /// Makes the kubeconfig use a client certificate of this authority instead of the token.
    pub(crate) fn write_client_certificate(&self, stage: &Stage, authority: &Authority) {
        let name = &self.name;
        let issued = authority.issue(&Leaf::client("server")).unwrap();
        stage.write(&format!("{name}.crt"), &issued.certificate_pem);
        stage.write(&format!("{name}.key"), &issued.key_pem);
        let credentials = format!("{{client-certificate: {name}.crt, client-key: {name}.key}}");
        let kubeconfig =
            self.kubeconfig().replace(&format!("{{tokenFile: {name}.token}}"), &credentials);
        stage.write(&format!("{name}.kubeconfig"), &kubeconfig);
    }

    pub(crate) fn kubeconfig(&self) -> String {
        let (name, address) = (&self.name, self.peer.address());
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters:\n- name: c\n  cluster:\n    server: https://{address}/authorize\n    \
             certificate-authority: {name}.ca\n\
             users:\n- name: u\n  user: {{tokenFile: {name}.token}}\n\
             contexts:\n- name: c\n  context: {{cluster: c, user: u}}\n"
        )
    }

    pub(crate) fn path(&self, stage: &Stage) -> PathBuf {
        stage.path(&format!("{}.kubeconfig", self.name))
    }
}

/// What the first webhook of a generation says about somebody who reads something.
pub(crate) async fn ask(generation: &Generation, user: &str) -> Verdict {
    let groups = vec!["readers".to_owned()];
    let user = User { name: user.to_owned(), groups, ..User::default() };
    let attributes =
        Attributes { user: Some(&user), verb: Verb::GET, target: Target::Path("/version") };
    let webhook = generation.webhooks().next().unwrap();
    webhook.authorize(&attributes, TraceRecorder::disabled_recorder()).await.decision.verdict
}
