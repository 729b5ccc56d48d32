//! Schemas of the kinds of `coordination.k8s.io`.

use super::{Field, FieldType, Schema};

pub(crate) static LEASE: Schema = Schema::new(
    "io.k8s.api.coordination.v1.Lease",
    "Says who leads, or who is alive, and for how long.",
    &[Field::new("spec", FieldType::Object(&LEASE_SPEC), "The lease.")],
);

static LEASE_SPEC: Schema = Schema::new(
    "io.k8s.api.coordination.v1.LeaseSpec",
    "Who holds a lease, since when and for how long.",
    &[
        Field::new("acquireTime", FieldType::MicroTime, "When the holder got it."),
        Field::new("holderIdentity", FieldType::Text, "Who holds it."),
        Field::new("leaseDurationSeconds", FieldType::Int32, "How long after renewal it is held."),
        Field::new("leaseTransitions", FieldType::Int32, "How often the holder changed."),
        Field::new("preferredHolder", FieldType::Text, "Who should get it next."),
        Field::new("renewTime", FieldType::MicroTime, "When the holder last renewed it."),
        Field::new("strategy", FieldType::Text, "How the next holder is chosen."),
    ],
);
