//! Kinds of `certificates.k8s.io`.

use super::{Field, Schema, Shape, TEXTS};

pub(crate) static CERTIFICATE_SIGNING_REQUEST: Schema = Schema::new(
    "io.k8s.api.certificates.v1.CertificateSigningRequest",
    "A request for a certificate, which somebody approves and a signer signs.",
    &[
        Field::new("spec", Shape::Object(&SPEC), "What is requested, and who requests it.")
            .required(),
        Field::new(
            "status",
            Shape::Object(&STATUS),
            "Whether it is approved, and the certificate.",
        ),
    ],
);

static SPEC: Schema = Schema::new(
    "io.k8s.api.certificates.v1.CertificateSigningRequestSpec",
    "What is requested, and who requests it.",
    &[
        Field::new("expirationSeconds", Shape::Int32, "How long the certificate should be valid."),
        Field::new("extra", Shape::Map(&TEXTS), "Of the user who requests; the server sets it."),
        Field::new("groups", TEXTS, "Of the user who requests; the server sets it."),
        Field::new("request", Shape::Bytes, "The request as PEM, in base64.").required(),
        Field::new("signerName", Shape::Text, "Who should sign, such as example.com/signer.")
            .required(),
        Field::new("uid", Shape::Text, "Of the user who requests; the server sets it."),
        Field::new("usages", TEXTS, "What the key of the certificate may be used for."),
        Field::new("username", Shape::Text, "Of the user who requests; the server sets it."),
    ],
);

static STATUS: Schema = Schema::new(
    "io.k8s.api.certificates.v1.CertificateSigningRequestStatus",
    "Whether a request is approved, and the certificate.",
    &[
        Field::new(
            "certificate",
            Shape::Bytes,
            "The certificate as PEM, in base64; fixed once set.",
        ),
        Field::new(
            "conditions",
            Shape::List(&Shape::Object(&CONDITION)),
            "Whether the request is approved or denied, or failed.",
        )
        .keyed("type"),
    ],
);

static CONDITION: Schema = Schema::new(
    "io.k8s.api.certificates.v1.CertificateSigningRequestCondition",
    "One thing that is the case with a request.",
    &[
        Field::new("lastTransitionTime", Shape::Time, "When the status last changed."),
        Field::new("lastUpdateTime", Shape::Time, "When the condition was last written."),
        Field::new("message", Shape::Text, "Why, for people."),
        Field::new("reason", Shape::Text, "Why, for programs."),
        Field::new("status", Shape::Text, "True; other types may be False or Unknown.").required(),
        Field::new("type", Shape::Text, "Approved, Denied, Failed, or another.").required(),
    ],
);
