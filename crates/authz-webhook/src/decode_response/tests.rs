use super::*;

/// Decodes a response: the status as text, or the message of the error.
fn decoded(status: u16, body: &[u8]) -> Result<String, Box<str>> {
    let body = bytes::Bytes::copy_from_slice(body);
    let reply = HttpResponse { status, body, ..HttpResponse::default() };
    match decode_response(&reply, ReviewVersion::V1) {
        Ok(status) => {
            let ReviewStatus { is_allowed, is_denied, reason, reason_memory_bytes: n_bytes } =
                status;
            assert_eq!(n_bytes, reason.to_string().len());
            Ok(format!("{is_allowed} {is_denied} {reason}"))
        }
        Err(error) => {
            assert!(!error.is_retriable() || status != 200);
            Err(error.to_string().into())
        }
    }
}

/// Documents that are accepted, and the nearest ones that are not.
#[test]
fn documents() {
    for (body, want) in [
        (r#"{}"#, "false false "),
        ("null", "false false "),
        (" \n{\"status\":{\"allowed\":true}}\n", "true false "),
        (r#"{"status":null,"metadata":null,"spec":null}"#, "false false "),
        (r#"{"status":{"allowed":true,"allowed":false}}"#, "false false "),
        (r#"{"status":{"allowed":true,"allowed":null}}"#, "true false "),
        // Repeated objects add to each other, as in Kubernetes.
        (r#"{"status":{"allowed":true},"status":{"denied":true}}"#, "true true "),
        (r#"{"status":{"allowed":true},"status":null}"#, "true false "),
        (r#"{"Status":{"allowed":true},"STATUS":{"allowed":true}}"#, "false false "),
        (r#"{"KIND":"SubjectAccessReview","status":{"reason":"r"}}"#, "false false r"),
        (r#"{"apiVersion":"authorization.k8s.io/","status":{"denied":true}}"#, "false true "),
        (r#"{"apiVersion":"/","status":{"denied":true}}"#, "false true "),
        (r#"{"status":{"evaluationError":"e","x":{"allowed":true}}}"#, "false false "),
    ] {
        assert_eq!(decoded(200, body.as_bytes()), Ok(want.to_owned()), "{body}");
    }
    // Bytes that are not UTF-8 are replaced.
    let lossy = decoded(200, b"{\"status\":{\"reason\":\"\xff\"}}");
    assert_eq!(lossy, Ok("false false \u{fffd}".to_owned()));
}

#[test]
fn documents_that_are_no_reviews() {
    let scheme = "in scheme \"k8s.io/client-go/kubernetes/scheme/register.go:84\"";
    for (body, want) in [
        (
            r#"{"kind":"pod"}"#,
            format!("no kind \"pod\" is registered for version \"authorization.k8s.io/v1\" {scheme}"),
        ),
        (
            r#"{"Kind":"Pod","apiVersion":"v1"}"#,
            "converting (v1.Pod) to (v1.SubjectAccessReview): unknown conversion".to_owned(),
        ),
        (
            r#"{"apiVersion":"v1"}"#,
            format!("no kind \"SubjectAccessReview\" is registered for version \"v1\" {scheme}"),
        ),
        (r#"{"apiVersion":"a/b/c"}"#, "unexpected GroupVersion string: a/b/c".to_owned()),
        (
            r#"{"kind":1}"#,
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go \
             struct field .kind of type string"
                .to_owned(),
        ),
        (
            r#"{"status":{"reason":["r"]}}"#,
            "json: cannot unmarshal array into Go struct field \
             SubjectAccessReviewStatus.status.reason of type string"
                .to_owned(),
        ),
        (
            r#"{"status":{"denied":{}}}"#,
            "json: cannot unmarshal object into Go struct field \
             SubjectAccessReviewStatus.status.denied of type bool"
                .to_owned(),
        ),
        (
            r#"{"status":"Success"}"#,
            "json: cannot unmarshal string into Go struct field SubjectAccessReview.status of type \
             v1.SubjectAccessReviewStatus"
                .to_owned(),
        ),
        (
            r#"{"spec":7}"#,
            "json: cannot unmarshal number into Go struct field SubjectAccessReview.spec of type \
             v1.SubjectAccessReviewSpec"
                .to_owned(),
        ),
        (
            r#"{"metadata":true}"#,
            "json: cannot unmarshal bool into Go struct field SubjectAccessReview.metadata of type \
             v1.ObjectMeta"
                .to_owned(),
        ),
    ] {
        assert_eq!(decoded(200, body.as_bytes()), Err(want.into()), "{body}");
    }
}

#[test]
fn only_some_codes_are_successes() {
    for status in [200, 201, 202, 203, 204, 205, 206] {
        let body = br#"{"status":{"allowed":true}}"#;
        assert_eq!(decoded(status, body), Ok("true false ".to_owned()), "{status}");
        let want = format!(
            "0-length response with status code: {status} and content type: application/json"
        );
        assert_eq!(decoded(status, b""), Err(want.into()));
    }
    for status in [0, 100, 199, 207, 226, 300, 304, 307, 400, 500, 599, u16::MAX] {
        assert!(decoded(status, br#"{"status":{"allowed":true}}"#).is_err(), "{status}");
    }
}
