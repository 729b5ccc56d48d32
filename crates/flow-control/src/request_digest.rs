//! The part of a request that classification reads.

/// The user and the target of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestDigest<'a> {
    /// The name of the user.
    pub user: &'a str,
    /// The groups of the user.
    pub groups: &'a [String],
    /// The verb in lower case, such as `get` or `create`.
    pub verb: &'a str,
    /// The resource or the path that the request is for.
    pub request_target: RequestTarget<'a>,
}

/// The resource or the path that a request is for.
#[derive(Debug, Clone, Copy)]
pub enum RequestTarget<'a> {
    /// A request for a resource.
    Resource {
        /// The API group, empty for the core group.
        group: &'a str,
        /// The plural name of the resource.
        resource: &'a str,
        /// The subresource, empty if there is none.
        subresource: &'a str,
        /// The namespace, empty for a request to the whole cluster.
        namespace: &'a str,
    },
    /// A request for a path that is no resource, such as `/healthz`.
    Path(&'a str),
}

impl<'a> RequestDigest<'a> {
    /// The namespace of the target, empty if it has none.
    pub(crate) fn namespace(&self) -> &'a str {
        match self.request_target {
            RequestTarget::Resource { namespace, .. } => namespace,
            RequestTarget::Path(_) => "",
        }
    }
}
