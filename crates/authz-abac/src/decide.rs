//! Deciding: does some policy grant the request?

use authz::{Attributes, Decision, Reason, TraceRecorder};

use crate::explain;
use crate::policy::Policy;
use crate::snapshot::Snapshot;

/// The reason of a decision without an opinion. Kubernetes uses the same text.
pub const NO_POLICY_MATCHED: &str = "No policy matched.";

impl Snapshot {
    /// Decides a request. Never denies: a request that no policy grants is left to the next authorizer.
    ///
    /// A policy grants a request if all of this holds:
    ///
    /// 1. The policy has a user or a group. The user, if set, is the user of the request, and the
    ///    group, if set, is a group of that user.
    /// 2. The verb is `get`, `list` or `watch`, or the policy is not read-only.
    /// 3. For a resource request, the namespace, the resource and the API group of the policy each are
    ///    `*` or equal to those of the request. For any other request, the path of the policy is that of
    ///    the request, or ends in `*` and the path of the request begins with the rest.
    ///
    /// The first policy in file order that grants the request decides. Allowing allocates nothing unless
    /// the recorder is on.
    pub fn authorize(
        &self,
        attributes: &Attributes<'_>,
        mut recorder: TraceRecorder<'_>,
    ) -> Decision {
        if let Some(policy) = self.first_matching_policy(attributes) {
            recorder.record_trace_event(|| {
                explain::policy_trace_event(policy).with_trace_event_value("matches", true)
            });
            return Decision::allow(Reason::AbacPolicy { line: policy.line_number() });
        }
        if recorder.is_recording() {
            for near_miss in explain::find_near_misses(self, attributes) {
                recorder.record_trace_event(|| near_miss.to_trace_event());
            }
        }
        Decision::no_opinion(NO_POLICY_MATCHED)
    }

    /// The first policy that grants the request.
    ///
    /// The index compares hashes. If two different names have the same hash, the policy that it finds
    /// may not match, and then all policies are tried.
    fn first_matching_policy(&self, attributes: &Attributes<'_>) -> Option<&Policy> {
        let user = attributes.user?;
        let matches = |policy: &&Policy| policy.matches_request(user, attributes);
        let candidate_idx = self.index.first_candidate_policy(user, attributes)?;
        let candidate = self.policies().get(candidate_idx as usize).filter(matches);
        candidate.or_else(|| self.policies().iter().find(matches))
    }
}
