//! A message must not repeat the text of its source, or a printed chain says everything twice.

use std::error::Error;

use authz_reload::{FlagTranslationError, PublishError, StartError};
use authz_webhook::{CallError, TransportError, TransportErrorKind};

use crate::stage::{Stage, built_in, with_webhook};

/// Checks every link of a chain of errors.
#[track_caller]
fn check(error: &dyn Error) {
    let mut current = error;
    while let Some(source) = current.source() {
        let (message, cause) = (current.to_string(), source.to_string());
        assert!(!message.contains(&cause), "`{message}` repeats its source `{cause}`");
        current = source;
    }
}

/// The error of a start with these files.
fn start_error(files: &[(&str, &str)]) -> StartError {
    let stage = Stage::new().with_policy("policies");
    for (name, content) in files {
        stage.write(name, content);
    }
    stage.start("config").unwrap_err()
}

#[test]
fn no_message_repeats_its_source() {
    let bad_kubeconfig = Stage::new();
    bad_kubeconfig.write("kubeconfig", "clusters: 1\n");
    let broken = with_webhook("w", &bad_kubeconfig.path("kubeconfig"));
    for error in [
        start_error(&[]),
        start_error(&[("config", "apiVersion: x\n")]),
        start_error(&[("config", &built_in(&["ABAC"]))]),
        start_error(&[("config", &built_in(&["ABAC"])), ("policies", "{\n")]),
        start_error(&[("config", &broken)]),
    ] {
        check(&error);
        if let StartError::Build(error) = &error {
            check(error);
            check(&error.cause);
        }
    }
    let name = authz_chain::AuthorizerName::new("A").unwrap_err();
    check(&name);
    check(&FlagTranslationError::Name(name));
    check(&FlagTranslationError::Names(authz_chain::ConfigurationError::Empty));
    check(&PublishError(Box::new(authz_chain::ConfigurationError::Empty)));
    check(&CallError::from(TransportError::new(TransportErrorKind::Reset, "reset")));
    check(&CallError::Lost);
    for (method, target) in [("B D", "/"), ("GET", "%"), ("GET", "/ x"), ("GET", "/api/v1/watch")] {
        check(&authz::RequestInfo::new(method, target).unwrap_err());
    }
    check(&authz::parse_label_selector("a in").unwrap_err());
    check(&authz::parse_field_selector("a").unwrap_err());
}
