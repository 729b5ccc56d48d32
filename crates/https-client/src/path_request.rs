//! Requests to any path of a server, such as those of a Kubernetes API.

use bytes::Bytes;
use http::Method;

/// A request to one path of a server.
#[derive(Debug, Clone)]
pub struct PathRequest<'a> {
    /// The method of the request.
    pub method: RequestMethod,
    /// The percent-encoded path with its query, such as `/api/v1/pods?limit=500`.
    pub path_and_query: &'a str,
    /// The value of the `Accept` header; empty for JSON or anything else.
    pub accept_header: &'static str,
    /// The body, which is JSON; empty for none.
    pub body: Bytes,
}

/// The methods of [`PathRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMethod {
    /// Reads an object, a list or a description.
    Get,
    /// Creates an object or a review.
    Post,
}

impl<'a> PathRequest<'a> {
    /// A GET request for JSON.
    pub fn get(path_and_query: &'a str) -> Self {
        Self { method: RequestMethod::Get, path_and_query, accept_header: "", body: Bytes::new() }
    }

    /// A POST request with a JSON body.
    pub fn post(path_and_query: &'a str, body: Bytes) -> Self {
        Self { method: RequestMethod::Post, path_and_query, accept_header: "", body }
    }
}

impl From<RequestMethod> for Method {
    fn from(method: RequestMethod) -> Self {
        match method {
            RequestMethod::Get => Self::GET,
            RequestMethod::Post => Self::POST,
        }
    }
}
