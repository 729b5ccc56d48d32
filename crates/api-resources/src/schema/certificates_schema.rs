//! Schemas of the kinds of `certificates.k8s.io`.

use super::{Field, FieldType, Schema, TEXTS};

pub(crate) static CERTIFICATE_SIGNING_REQUEST: Schema = Schema::new(
    "io.k8s.api.certificates.v1.CertificateSigningRequest",
    "A request for a certificate, which somebody approves and a signer signs.",
    &[
        Field::new("spec", FieldType::Object(&SPEC), "What is requested, and who requests it.")
            .mark_required(),
        Field::new(
            "status",
            FieldType::Object(&STATUS),
            "Whether it is approved, and the certificate.",
        ),
    ],
);

static SPEC: Schema = Schema::new(
    "io.k8s.api.certificates.v1.CertificateSigningRequestSpec",
    "What is requested, and who requests it.",
    &[
        Field::new(
            "expirationSeconds",
            FieldType::Int32,
            "How long the certificate should be valid.",
        ),
        Field::new(
            "extra",
            FieldType::Map(&TEXTS),
            "Of the user who requests; the server sets it.",
        ),
        Field::new("groups", TEXTS, "Of the user who requests; the server sets it."),
        Field::new("request", FieldType::Bytes, "The request as PEM, in base64.").mark_required(),
        Field::new("signerName", FieldType::Text, "Who should sign, such as example.com/signer.")
            .mark_required(),
        Field::new("uid", FieldType::Text, "Of the user who requests; the server sets it."),
        Field::new("usages", TEXTS, "What the key of the certificate may be used for."),
        Field::new("username", FieldType::Text, "Of the user who requests; the server sets it."),
    ],
);

static STATUS: Schema = Schema::new(
    "io.k8s.api.certificates.v1.CertificateSigningRequestStatus",
    "Whether a request is approved, and the certificate.",
    &[
        Field::new(
            "certificate",
            FieldType::Bytes,
            "The certificate as PEM, in base64; fixed once set.",
        ),
        Field::new(
            "conditions",
            FieldType::List(&FieldType::Object(&CONDITION)),
            "Whether the request is approved or denied, or failed.",
        )
        .merge_list_by_key("type"),
    ],
);

static CONDITION: Schema = Schema::new(
    "io.k8s.api.certificates.v1.CertificateSigningRequestCondition",
    "One thing that is the case with a request.",
    &[
        Field::new("lastTransitionTime", FieldType::Time, "When the status last changed."),
        Field::new("lastUpdateTime", FieldType::Time, "When the condition was last written."),
        Field::new("message", FieldType::Text, "Why, for people."),
        Field::new("reason", FieldType::Text, "Why, for programs."),
        Field::new("status", FieldType::Text, "True; other types may be False or Unknown.")
            .mark_required(),
        Field::new("type", FieldType::Text, "Approved, Denied, Failed, or another.")
            .mark_required(),
    ],
);
