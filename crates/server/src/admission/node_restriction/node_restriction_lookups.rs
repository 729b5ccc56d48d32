//! The lookups that the rules of NodeRestriction need besides the request.

use api_object::{Status, Tree};
use authz::{Namespace, Resource as Target, Verb};
use store::{At, Key};

use super::NodeWrite;
use crate::authorize::authorize_other_target;
use crate::initializers::is_stored_uninitialized;
use crate::rest::{RequestContext, decode_stored_entry};

/// Looks up stored objects and decisions of the authorizers for the rules of NodeRestriction.
pub(super) trait NodeRestrictionLookups {
    /// Finds an object of the first version of a resource as it is stored now. An object that waits for
    /// initializers counts as absent, because no client may rely on it.
    fn find_stored_object(
        &self,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<Tree>, Status>> + Send;

    /// Whether the node that writes is allowed this verb on a name in the group of the written resource.
    fn is_node_allowed(
        &self,
        write: &NodeWrite<'_>,
        verb: &str,
        resource: &str,
        name: &str,
    ) -> impl Future<Output = Result<bool, Status>> + Send;
}

impl NodeRestrictionLookups for RequestContext<'_> {
    async fn find_stored_object(
        &self,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Tree>, Status> {
        let cluster = self.server.snapshot_cache.snapshot();
        let Some(resource) = cluster.resource_registry.resource(group, "v1", resource) else {
            return Ok(None);
        };
        let namespace = resource.is_namespaced().then_some(namespace);
        let key =
            api_resources::object_key(&self.server.store_key_prefix, resource, namespace, name);
        let Some(key) = key.and_then(|key| Key::new(&key).ok()) else { return Ok(None) };
        let got = self.time_store_request("get", self.server.store.get(&key, At::Newest)).await;
        let got = got.map_err(|error| self.store_read_error_status("get", &error))?;
        match got.entry.filter(|entry| !is_stored_uninitialized(&entry.value)) {
            Some(entry) => decode_stored_entry(resource, &entry).map(Some),
            None => Ok(None),
        }
    }

    async fn is_node_allowed(
        &self,
        write: &NodeWrite<'_>,
        verb: &str,
        resource: &str,
        name: &str,
    ) -> Result<bool, Status> {
        let target = Target {
            api_group: write.group,
            api_version: write.version,
            namespace: Namespace::from(Some(write.namespace)),
            resource,
            name,
            ..Target::default()
        };
        Ok(authorize_other_target(self, Verb::new(verb), &target).await?.is_ok())
    }
}
