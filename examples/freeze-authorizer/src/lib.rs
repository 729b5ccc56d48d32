//! A third-party authorizer that denies every write while the cluster is frozen.
//!
//! The authorizer depends on the crate `authz` and on no other crate of Portcullis: it implements [`Authorizer`].
//! `main.rs` adds it to the program, and `authorization.yaml` puts it into the chain under a name that its reasons
//! begin with. The first authorizer that denies decides, so a plugin at the front overrules the others.
//!
//! Owns: the switch and its meaning.
//! Must not know: the other authorizers, its position in the chain.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use authz::{
    Attributes, Authorizer, Decision, DecisionFuture, DeniedSubjects, Namespace, Rules, Subjects,
    TraceEvent, TraceRecorder, User,
};

/// The time between two looks at the file.
pub const INTERVAL: Duration = Duration::from_millis(100);

/// Denies writes while it is on. Otherwise the next authorizer decides.
#[derive(Debug, Default)]
pub struct Freeze {
    is_on: AtomicBool,
}

impl Freeze {
    /// Freezes or unfreezes the cluster. The change affects later requests.
    pub fn set(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Freezes the cluster while the file exists. A thread looks for it every [`INTERVAL`], because an authorizer must
    /// not block.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn follow_file(self: &Arc<Self>, file: PathBuf) -> io::Result<()> {
        self.set(file.exists());
        let freeze = Arc::clone(self);
        let follow = move || loop {
            std::thread::sleep(INTERVAL);
            freeze.set(file.exists());
        };
        std::thread::Builder::new().name("freeze".to_owned()).spawn(follow).map(|_| ())
    }

    fn refuses(&self, attributes: &Attributes<'_>) -> bool {
        self.is_on.load(Ordering::Relaxed) && !attributes.is_read_only()
    }
}

impl Authorizer for Freeze {
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        mut recorder: TraceRecorder<'a>,
    ) -> DecisionFuture<'a> {
        Box::pin(async move {
            let refuses = self.refuses(attributes);
            recorder.record_trace_event(|| {
                TraceEvent::new("freeze").with_trace_event_value("refuses", refuses)
            });
            if refuses { Decision::deny("the cluster is frozen") } else { Decision::no_opinion("") }
        })
    }

    /// The authorizer allows nothing, so the list is empty.
    fn rules_for(&self, _user: &User, _namespace: Namespace<'_>) -> Rules {
        Rules::default()
    }

    /// The authorizer allows nobody, and denies all subjects or none.
    fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        let denied = match self.refuses(attributes) {
            true => DeniedSubjects::Everybody,
            false => DeniedSubjects::Nobody,
        };
        Subjects { denied_subjects: denied, ..Subjects::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use authz::{Target, Verb, Verdict};
    use authz_chain::{AuthorizerName, Chain, ChainMember};

    use super::*;

    /// Decides a request. The chain never waits here, so one poll is enough.
    fn ask(chain: &Chain, groups: &[&str], verb: &str) -> (Verdict, String) {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let user = User { name: "ana".to_owned(), groups, ..User::default() };
        let attributes =
            Attributes { user: Some(&user), verb: Verb::new(verb), target: Target::Path("/x") };
        let future =
            std::pin::pin!(chain.authorize(&attributes, TraceRecorder::disabled_recorder()));
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => (outcome.decision.verdict, outcome.decision.reason.to_string()),
            Poll::Pending => panic!("waits"),
        }
    }

    fn who_can(chain: &Chain, verb: &str) -> Vec<String> {
        let attributes =
            Attributes { user: None, verb: Verb::new(verb), target: Target::Path("/x") };
        chain.who_can(&attributes).groups.into_iter().collect()
    }

    #[test]
    fn a_frozen_cluster_is_read_only_but_for_superusers() {
        let freeze = Arc::new(Freeze::default());
        let name = AuthorizerName::new("freeze").unwrap();
        let members = vec![ChainMember::Plugin(name, freeze.clone()), ChainMember::AlwaysAllow];
        let chain = Chain::new(members).unwrap();
        let allowed = (Verdict::Allow, String::new());
        assert_eq!(ask(&chain, &[], "put"), allowed);
        freeze.set(true);
        let refused = (Verdict::Deny, "the cluster is frozen".to_owned());
        assert_eq!(ask(&chain, &[], "put"), refused);
        assert_eq!(ask(&chain, &[], "get"), allowed);
        assert_eq!(ask(&chain, &["system:masters"], "put"), allowed);
        assert_eq!(who_can(&chain, "put"), ["system:masters"]);
        freeze.set(false);
        assert_eq!(ask(&chain, &[], "put"), allowed);
        let everybody = ["system:authenticated", "system:masters", "system:unauthenticated"];
        assert_eq!(who_can(&chain, "put"), everybody);
    }
}
