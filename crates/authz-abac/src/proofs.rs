//! What policies say, each in one place of memory.

use std::hint::black_box;

use authz::{Attributes, Target, User};

use crate::askers::Asker;
use crate::index::PolicyIdx;
use crate::policy::{ANY, Policy, Spec, covers_path};

/// Records begin at multiples of this many bytes.
const UNIT: usize = 8;

const N_PARTS: usize = 6;

/// The number of the policy, its verbs, and the lengths of its parts. The parts follow.
const HEADER_BYTES: usize = size_of::<PolicyIdx>() + 1 + N_PARTS;

/// A line of the cache.
const LINE_BYTES: usize = 64;

/// What all policies say, a second time.
///
/// The parts of a policy are texts that lie apart from it and from each other, so to compare them
/// with a request is to wait for memory twice. A record has all of them in a row. It is read where
/// the index says, and of the policy itself nothing is read unless somebody is told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Proofs {
    bytes: Vec<u8>,
}

/// Where the record of a policy is, in units. That of an earlier policy is at a lesser place.
///
/// INVARIANT on Policies: there are a million records at most, of less than 200 units.
pub(crate) type Place = u32;

/// How a policy compares with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// This policy grants it.
    Grants(PolicyIdx),
    /// This policy has to be asked itself, for some part is too long for a record.
    Unknown(PolicyIdx),
    /// The policy does not grant it to whom the user asks as.
    Differs,
}

/// The verbs of a record.
const ALL: u8 = 0;
const READONLY: u8 = 1;
/// In place of verbs, if the length of some part is more than a byte can count.
const TOO_LONG: u8 = 2;

impl Proofs {
    /// Adds the record of the next policy.
    pub(crate) fn add(&mut self, policy: &Policy, idx: PolicyIdx) -> Place {
        let place = (self.bytes.len() / UNIT) as Place;
        let spec = policy.spec();
        let lengths = parts(spec).map(|part| u8::try_from(part.len()).ok());
        self.bytes.extend(idx.to_le_bytes());
        if lengths.iter().all(Option::is_some) {
            self.bytes.push(if spec.is_readonly { READONLY } else { ALL });
            self.bytes.extend(lengths.map(Option::unwrap_or_default));
            parts(spec).iter().for_each(|part| self.bytes.extend(part.as_bytes()));
        } else {
            self.bytes.push(TOO_LONG);
            self.bytes.extend([0; N_PARTS]);
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(UNIT), 0);
        place
    }

    /// All records, in no more memory than they need.
    pub(crate) fn finish(mut self) -> Self {
        self.bytes.shrink_to_fit();
        self
    }

    /// Compares the policy at this place with a request of the user, who asks as `asker`.
    pub(crate) fn check(
        &self,
        place: Place,
        user: &User,
        asker: Asker,
        attributes: &Attributes<'_>,
    ) -> Proof {
        let record = self.bytes.get(place as usize * UNIT..).unwrap_or_default();
        // Most records end in the next line, which is fetched before it is known that they do.
        black_box(record.get(LINE_BYTES).copied());
        let Some((header, texts)) = record.split_first_chunk::<HEADER_BYTES>() else {
            return Proof::Differs;
        };
        let [first, second, third, fourth, verbs, lengths @ ..] = *header;
        let idx = PolicyIdx::from_le_bytes([first, second, third, fourth]);
        if verbs == TOO_LONG {
            return Proof::Unknown(idx);
        }
        let grants = (verbs == ALL || attributes.is_read_only())
            && matches(lengths, texts, user, asker, &attributes.target);
        if grants { Proof::Grants(idx) } else { Proof::Differs }
    }
}

/// The parts of a policy in the order of a record.
fn parts(spec: &Spec) -> [&str; N_PARTS] {
    let Spec { user, group, is_readonly: _, api_group, resource, namespace, non_resource_path } =
        spec;
    [user, group, namespace, resource, api_group, non_resource_path]
}

/// Reports whether the parts of a record are for whom the user asks as and for what is asked for.
fn matches(
    lengths: [u8; N_PARTS],
    mut texts: &[u8],
    user: &User,
    asker: Asker,
    target: &Target<'_>,
) -> bool {
    let [name, group, namespace, resource, api_group, path] = lengths.map(|length| {
        let (part, rest) = texts.split_at_checked(length.into()).unwrap_or_default();
        texts = rest;
        part
    });
    let is_for = match asker {
        Asker::User => !name.is_empty() && name == user.name.as_bytes() && group.is_empty(),
        Asker::Group(idx) => {
            let own = user.groups.get(idx);
            name.is_empty() && !group.is_empty() && own.is_some_and(|own| own.as_bytes() == group)
        }
        Asker::Member => {
            let is_in_group = || user.groups.iter().any(|own| own.as_bytes() == group);
            !name.is_empty() && name == user.name.as_bytes() && !group.is_empty() && is_in_group()
        }
    };
    let covers = |part: &[u8], value: &str| part == ANY.as_bytes() || part == value.as_bytes();
    is_for
        && match target {
            Target::Resource(wanted) => {
                covers(namespace, wanted.namespace)
                    && covers(resource, wanted.resource)
                    && covers(api_group, wanted.api_group)
            }
            Target::Path(wanted) => {
                str::from_utf8(path).is_ok_and(|path| covers_path(path, wanted))
            }
        }
}

#[cfg(test)]
mod tests {
    use authz::Resource;
    use proptest::prelude::*;

    use super::*;

    fn part() -> impl Strategy<Value = String> {
        const TEXTS: [&str; 8] = ["", "*", "a", "b", "ab", "/a", "/a*", "größe"];
        let short = prop::sample::select(&TEXTS[..]).prop_map(str::to_owned);
        prop_oneof![9 => short, 1 => "x{254,257}"]
    }

    fn policy() -> impl Strategy<Value = Policy> {
        let parts = (part(), part(), part(), part(), part(), part());
        (parts, any::<bool>()).prop_map(|(parts, is_readonly)| {
            let (user, group, api_group, resource, namespace, non_resource_path) = parts;
            let spec = Spec {
                user,
                group,
                is_readonly,
                api_group,
                resource,
                namespace,
                non_resource_path,
            };
            Policy::v1beta1(1, spec)
        })
    }

    proptest! {
        /// Some asker proves what the policy itself says, and none proves anything else.
        #[test]
        fn records_say_what_policies_say(
            policies in prop::collection::vec(policy(), 1..6),
            name in part(),
            groups in prop::collection::vec(part(), 0..3),
            texts in (part(), part(), part()),
            is_path in any::<bool>(),
            verb in prop::sample::select(&["get", "create"][..]),
        ) {
            let mut proofs = Proofs::default();
            let places: Vec<Place> =
                policies.iter().zip(0..).map(|(policy, idx)| proofs.add(policy, idx)).collect();
            prop_assert!(places.is_sorted_by(|a, b| a < b));
            let proofs = proofs.finish();
            let user = User { name, groups, ..User::default() };
            let (namespace, resource, api_group) = (&*texts.0, &*texts.1, &*texts.2);
            let wanted = Resource { namespace, resource, api_group, ..Resource::default() };
            let target = if is_path { Target::Path(namespace) } else { Target::Resource(wanted) };
            let attributes = Attributes { user: Some(&user), verb, target };
            let askers = (0..user.groups.len()).map(Asker::Group);
            let askers: Vec<Asker> = askers.chain([Asker::User, Asker::Member]).collect();
            for ((policy, place), idx) in policies.iter().zip(places).zip(0..) {
                let check = |asker: &Asker| proofs.check(place, &user, *asker, &attributes);
                let proved: Vec<Proof> = askers.iter().map(check).collect();
                if parts(policy.spec()).iter().any(|part| part.len() > 255) {
                    prop_assert!(proved.iter().all(|proof| *proof == Proof::Unknown(idx)));
                    continue;
                }
                let is_proved = proved.contains(&Proof::Grants(idx));
                // A policy for nobody is not in the index, and nobody asks for it.
                let is_for_nobody = policy.spec().user.is_empty() && policy.spec().group.is_empty();
                prop_assert_eq!(is_proved, policy.matches(&user, &attributes), "{:?}", policy);
                prop_assert!(!is_for_nobody || !is_proved);
            }
        }
    }

    #[test]
    fn there_is_no_proof_where_no_record_is() {
        let attributes = Attributes { user: None, verb: "get", target: Target::Path("/") };
        let proof = Proofs::default().check(7, &User::default(), Asker::User, &attributes);
        assert_eq!(proof, Proof::Differs);
    }
}
