//! Kinds of `coordination.k8s.io`.

use super::{Field, Schema, Shape};

pub(crate) static LEASE: Schema = Schema::new(
    "io.k8s.api.coordination.v1.Lease",
    "Says who leads, or who is alive, and for how long.",
    &[Field::new("spec", Shape::Object(&LEASE_SPEC), "The lease.")],
);

static LEASE_SPEC: Schema = Schema::new(
    "io.k8s.api.coordination.v1.LeaseSpec",
    "Who holds a lease, since when and for how long.",
    &[
        Field::new("acquireTime", Shape::MicroTime, "When the holder got it."),
        Field::new("holderIdentity", Shape::Text, "Who holds it."),
        Field::new("leaseDurationSeconds", Shape::Int32, "How long after renewal it is held."),
        Field::new("leaseTransitions", Shape::Int32, "How often the holder changed."),
        Field::new("preferredHolder", Shape::Text, "Who should get it next."),
        Field::new("renewTime", Shape::MicroTime, "When the holder last renewed it."),
        Field::new("strategy", Shape::Text, "How the next holder is chosen."),
    ],
);
