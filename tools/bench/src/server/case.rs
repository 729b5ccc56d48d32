//! The requests that are sent to the server, byte for byte.

use serde_json::{Value, json};

use crate::server::client::Answer;
use crate::server::populate::{
    LISTED_NAMESPACE, N_LISTED, READ_OBJECT, TOKEN, WRITTEN_NAMESPACE, config_map,
};

/// One kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Case {
    /// A SubjectAccessReview that a binding of the default policy allows.
    ReviewAllowed,
    /// A SubjectAccessReview that no binding allows, so that the server reads all bindings of the user.
    ReviewDenied,
    Get,
    List,
    /// A create, which the server acknowledges when it is on disk.
    Create,
}

impl Case {
    /// The cases that change nothing.
    pub(crate) const READS: &[Self] =
        &[Self::ReviewAllowed, Self::ReviewDenied, Self::Get, Self::List];
    /// The cases that make the store grow; they are measured last.
    pub(crate) const WRITES: &[Self] = &[Self::Create];

    /// Whether the request is an access review.
    pub(crate) fn is_review(self) -> bool {
        matches!(self, Self::ReviewAllowed | Self::ReviewDenied)
    }

    /// The name of the case in the table.
    pub(crate) fn name(self) -> String {
        match self {
            Self::ReviewAllowed => "SubjectAccessReview, allowed".to_owned(),
            Self::ReviewDenied => "SubjectAccessReview, denied".to_owned(),
            Self::Get => "GET a ConfigMap".to_owned(),
            Self::List => format!("LIST {N_LISTED} ConfigMaps"),
            Self::Create => "CREATE a ConfigMap".to_owned(),
        }
    }

    /// The names of several cases, joined.
    pub(crate) fn names(cases: &[Self]) -> String {
        cases.iter().map(|case| case.name()).collect::<Vec<_>>().join("; ")
    }

    /// The request with this number. Different numbers give different requests, unless the case has only
    /// one.
    pub(crate) fn request(self, number: u64) -> Vec<u8> {
        let core = "/api/v1/namespaces";
        match self {
            Self::ReviewAllowed => review("system:kube-scheduler", "pods", "list", number),
            Self::ReviewDenied => review("ana@example.com", "nodes", "delete", number),
            Self::Get => {
                request("GET", &format!("{core}/{LISTED_NAMESPACE}/configmaps/{READ_OBJECT}"), None)
            }
            Self::List => request("GET", &format!("{core}/{LISTED_NAMESPACE}/configmaps"), None),
            Self::Create => {
                let path = format!("{core}/{WRITTEN_NAMESPACE}/configmaps");
                request("POST", &path, Some(&config_map(&format!("written-{number:09}"))))
            }
        }
    }

    /// The number of different requests; `None` if each request can be sent only once.
    pub(crate) fn n_requests(self) -> Option<u64> {
        match self {
            Self::ReviewAllowed | Self::ReviewDenied => Some(1_000),
            Self::Get | Self::List => Some(1),
            Self::Create => None,
        }
    }

    /// The check that an answer is the expected one.
    pub(crate) fn answer_check(self) -> fn(Answer<'_>) -> bool {
        match self {
            Self::ReviewAllowed => {
                |answer| answer.code == 201 && answer.contains(b"\"allowed\":true")
            }
            Self::ReviewDenied => {
                |answer| answer.code == 201 && answer.contains(b"\"allowed\":false")
            }
            Self::Get => |answer| answer.code == 200 && answer.ends_with(b"}"),
            Self::List => |answer| answer.code == 200 && answer.ends_with(b"]}"),
            Self::Create => |answer| answer.code == 201,
        }
    }
}

/// A SubjectAccessReview about a user in six groups. Additional bindings name five of them.
fn review(user: &str, resource: &str, verb: &str, number: u64) -> Vec<u8> {
    review_as(TOKEN, user, resource, verb, number)
}

/// The same review, sent with another token.
pub(crate) fn review_as(
    token: &str,
    user: &str,
    resource: &str,
    verb: &str,
    number: u64,
) -> Vec<u8> {
    let groups: Vec<String> = ["system:authenticated".to_owned()]
        .into_iter()
        .chain((0..5).map(crate::server::populate::group))
        .collect();
    let attributes = json!({
        "verb": verb, "version": "v1", "resource": resource, "name": format!("object-{number:03}"),
    });
    let body = json!({
        "kind": "SubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": { "user": user, "groups": groups, "resourceAttributes": attributes },
    });
    request_as(token, "POST", REVIEWS, Some(&body))
}

/// The path to which reviews are posted.
pub(crate) const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// A request with the headers of Kubernetes' clients, without a request for compression.
pub(crate) fn request(method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
    request_as(TOKEN, method, path, body)
}

/// The same for a user with another token.
pub(crate) fn request_as(token: &str, method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
    let mut text = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\n\
         Accept: application/json\r\nAuthorization: Bearer {token}\r\n"
    );
    match body {
        None => text.push_str("\r\n"),
        Some(body) => {
            let body = body.to_string();
            text.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ));
        }
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_how_long_it_is() {
        let text = String::from_utf8(Case::Create.request(7)).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
        assert!(body.contains("written-000000007"), "{body}");
        assert!(Case::Get.request(0).ends_with(b"\r\n\r\n"));
    }

    #[test]
    fn a_wrong_answer_is_seen() {
        let answer = |code, body: &'static [u8]| Answer { code, body };
        let is_right = |case: Case, code, body| (case.answer_check())(answer(code, body));
        assert!(is_right(Case::ReviewAllowed, 201, b"{\"allowed\":true}"));
        assert!(!is_right(Case::ReviewAllowed, 201, b"{\"allowed\":false}"));
        assert!(!is_right(Case::ReviewDenied, 201, b"{\"allowed\":true}"));
        assert!(!is_right(Case::Create, 409, b"{}"));
        assert!(!is_right(Case::List, 200, b"{\"items\":["));
    }
}
