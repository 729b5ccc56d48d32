//! One authorized request for a resource that exists.

use std::time::Instant;

use api_object::{Status, Tree};
use api_resources::Resource;
use jiff::Timestamp;
use store::{Entry, Expect, Key, Prefix, ReadError, Revision, Store};

use crate::admit::AdmissionContext;
use crate::gate::Authorized;
use crate::rest::Query;
use crate::route::Route;
use crate::server_state::ServerState;
use crate::undecodable;

/// A request on its way.
pub(crate) struct Call<'a, S> {
    pub(crate) server: &'a ServerState<S>,
    pub(crate) authorized: &'a Authorized,
    pub(crate) resource: &'a Resource,
    /// The namespace that was authorized; `None` for resources of the cluster and for all namespaces.
    pub(crate) namespace: Option<&'a str>,
    /// The name that was authorized, from the path or from a selector for one name; may be empty.
    pub(crate) name: &'a str,
    /// The subresource that was authorized.
    pub(crate) subresource: Option<&'a str>,
    pub(crate) query: &'a Query,
    pub(crate) now: Timestamp,
    /// What the client should be told beside the answer.
    pub(crate) warnings: Vec<String>,
    /// How far it is with admission.
    pub(crate) admission: AdmissionContext,
    /// Whether the object is one of a collection that is deleted.
    pub(crate) is_collection: bool,
    /// Where the mark of the configuration was when the object was checked against the others of its
    /// kind; `None` if it was not.
    pub(crate) expected_mark: Option<Expect>,
}

/// An object as clients see it.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) tree: Tree,
    /// `None` where nothing was stored.
    pub(crate) revision: Option<Revision>,
}

impl Shown {
    /// The object with its resourceVersion.
    pub(crate) fn into_tree(mut self) -> Tree {
        if let Some(revision) = self.revision {
            let metadata = api_object::metadata_mut(&mut self.tree);
            metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
        }
        self.tree
    }
}

impl<'a, S: Store> Call<'a, S> {
    /// Begins to execute what was authorized.
    pub(crate) fn new(
        server: &'a ServerState<S>,
        route: &'a Route<'a>,
        query: &'a Query,
        now: Timestamp,
        admission: AdmissionContext,
    ) -> Self {
        Self {
            server,
            authorized: route.authorized,
            resource: &route.resource,
            namespace: route.namespace,
            name: route.authorized.target().map_or("", |target| &target.name),
            subresource: route.subresource,
            query,
            now,
            warnings: Vec::new(),
            admission,
            is_collection: false,
            expected_mark: None,
        }
    }

    /// The same call under another authorization for the same resource, such as the creation that an
    /// update turned into. It takes along how far admission is.
    pub(crate) fn under<'b>(&'b mut self, authorized: &'b Authorized) -> Call<'b, S> {
        let target = authorized.target();
        let namespace = target.map(|target| target.namespace.as_str());
        let deadline = self.admission.deadline;
        Call {
            server: self.server,
            authorized,
            resource: self.resource,
            namespace: namespace.filter(|_| self.resource.is_namespaced()),
            name: target.map_or("", |target| &target.name),
            subresource: self.subresource,
            query: self.query,
            now: self.now,
            warnings: std::mem::take(&mut self.warnings),
            admission: std::mem::replace(&mut self.admission, AdmissionContext::new(deadline)),
            is_collection: self.is_collection,
            expected_mark: self.expected_mark.take(),
        }
    }
}

impl<S: Store> Call<'_, S> {
    /// The key of an object of this resource.
    pub(crate) fn key(&self, name: &str) -> Result<Key, Status> {
        let text = api_resources::key(&self.server.prefix, self.resource, self.namespace, name);
        text.and_then(|text| Key::new(&text).ok()).ok_or_else(|| self.not_found(name))
    }

    /// What the keys of a list begin with.
    pub(crate) fn key_prefix(&self) -> Result<Prefix, Status> {
        let text = api_resources::prefix(&self.server.prefix, self.resource, self.namespace);
        text.and_then(|text| Prefix::new(&text).ok()).ok_or_else(Status::unknown_resource)
    }

    /// Waits for the store, and counts how long that took.
    pub(crate) async fn timed<T>(
        &self,
        operation: &'static str,
        request: impl Future<Output = T>,
    ) -> T {
        let started = Instant::now();
        let answer = request.await;
        let labels = [operation, &self.resource.plural];
        self.server
            .metrics
            .store_requests
            .with_label_values(&labels)
            .observe(started.elapsed().as_secs_f64());
        answer
    }

    pub(crate) fn not_found(&self, name: &str) -> Status {
        Status::not_found(&self.resource.group_resource(), name)
    }

    /// Reads what is stored, in the version that was asked for.
    pub(crate) fn parse(&self, entry: &Entry) -> Result<Tree, Status> {
        parse(self.resource, entry)
    }

    /// Reads the object that was authorized, and refuses one of another name or namespace.
    pub(crate) fn parse_authorized(&self, entry: &Entry) -> Result<Tree, Status> {
        let tree = self.parse(entry)?;
        let namespace = self.namespace.unwrap_or_default();
        match api_object::name(&tree) == self.name && api_object::namespace(&tree) == namespace {
            true => Ok(tree),
            false => Err(undecodable::undecodable_status("it is not the one that was asked for")),
        }
    }

    /// The answer to a read that failed.
    pub(crate) fn read_failed(&self, operation: &str, error: &ReadError) -> Status {
        match error {
            ReadError::Compacted { .. } => {
                Status::expired("The resourceVersion for the provided list is too old.")
            }
            ReadError::Future { requested, current } => {
                Status::too_large_resource_version(requested.number(), current.number())
            }
            ReadError::Unavailable(why) => {
                self.server.log.error("the store can not be read", &[("why", why)]);
                Status::server_timeout(&self.resource.group_resource(), operation)
            }
            ReadError::Timeout => Status::timeout(),
        }
    }
}

/// Reads what is stored, in the version of the resource: without conversion, versions differ in
/// their name only.
pub(crate) fn parse(resource: &Resource, entry: &Entry) -> Result<Tree, Status> {
    let mut tree: Tree = codec::from_stored(&entry.value)
        .map_err(|error| undecodable::undecodable_status(&error.to_string()))?;
    if resource.is_custom() {
        tree.insert("apiVersion".to_owned(), resource.group_version().to_string().into());
    }
    Ok(tree)
}
