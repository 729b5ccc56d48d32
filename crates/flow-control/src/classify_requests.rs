//! Classifies requests by the flow schemas in force.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::bootstrap_objects::CATCH_ALL;
use crate::flow_controller::LevelRuntime;
use crate::flow_schema::{FlowDistinguisher, FlowSchema};
use crate::flow_schema_statistics::{FlowSchemaStatistics, FlowSchemaUsage};
use crate::request_digest::RequestDigest;

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The flow schemas in force, with the levels that they refer to. The value is immutable: a change of the configuration
/// builds a new one.
#[derive(Debug)]
pub(crate) struct FlowSchemas {
    /// Sorted by precedence, then by name.
    active_schemas: Vec<Arc<ActiveSchema>>,
}

/// A flow schema in force, with the state of its priority level and its counters.
#[derive(Debug)]
pub(crate) struct ActiveSchema {
    pub(crate) flow_schema: Arc<FlowSchema>,
    pub(crate) level_runtime: Arc<LevelRuntime>,
    level_uid: Arc<str>,
    is_level_exempt: bool,
    /// Stays the same while the schema keeps its name and its level.
    pub(crate) flow_schema_statistics: Arc<FlowSchemaStatistics>,
}

/// The schema, the level and the flow of a request.
#[derive(Debug, Clone)]
pub struct Classification {
    pub(crate) active_schema: Arc<ActiveSchema>,
    /// Identifies the flow within the level.
    pub(crate) flow_hash: u64,
    pub(crate) is_watch: bool,
}

impl Classification {
    /// The schema that matches the request.
    pub fn flow_schema(&self) -> &FlowSchema {
        &self.active_schema.flow_schema
    }

    /// The name of the priority level.
    pub fn level_name(&self) -> &str {
        self.active_schema.level_runtime.name()
    }

    /// The uid of the priority level.
    pub fn level_uid(&self) -> &str {
        &self.active_schema.level_uid
    }

    /// Whether requests of the level are never limited.
    pub fn is_exempt(&self) -> bool {
        self.active_schema.is_level_exempt
    }
}

impl FlowSchemas {
    /// Sorts the schemas and finds their levels. A schema whose level does not exist is left out.
    pub(crate) fn new(
        schemas: Vec<Arc<FlowSchema>>,
        levels: &[Arc<LevelRuntime>],
        old: &Self,
    ) -> Self {
        let mut schemas: Vec<_> = schemas
            .into_iter()
            .filter_map(|schema| {
                let level =
                    levels.iter().find(|level| level.name() == schema.priority_level_name)?;
                let known = old.active_schemas.iter().find(|own| {
                    own.flow_schema.name == schema.name && own.level_runtime.name() == level.name()
                });
                let (level_uid, is_level_exempt) = level.level_uid_and_is_exempt();
                Some(Arc::new(ActiveSchema {
                    flow_schema: schema,
                    level_runtime: Arc::clone(level),
                    level_uid,
                    is_level_exempt,
                    flow_schema_statistics: known
                        .map(|own| Arc::clone(&own.flow_schema_statistics))
                        .unwrap_or_default(),
                }))
            })
            .collect();
        schemas.sort_by(|a, b| {
            let (a, b) = (&a.flow_schema, &b.flow_schema);
            (a.matching_precedence, &a.name).cmp(&(b.matching_precedence, &b.name))
        });
        Self { active_schemas: schemas }
    }

    /// Creates a value without schemas, which is in force before the first configuration.
    pub(crate) fn new_empty() -> Self {
        Self { active_schemas: Vec::new() }
    }

    /// The statistics of the requests of each schema.
    pub(crate) fn flow_schema_usages(&self) -> Vec<FlowSchemaUsage> {
        let usage = |own: &Arc<ActiveSchema>| {
            own.flow_schema_statistics
                .to_flow_schema_usage(&own.flow_schema.name, own.level_runtime.name())
        };
        self.active_schemas.iter().map(usage).collect()
    }

    /// Finds the first schema that matches the request, its level, and the flow of the request. A request that no
    /// schema matches belongs to `catch-all`: a front proxy may name a user who is in no group.
    ///
    /// A flow is one of these:
    /// 1. With `ByNamespace`, the namespace of the request.
    /// 2. With `ByUser`, the user; the service accounts of a namespace are one user, since a user who may create one
    ///    may create many.
    /// 3. Otherwise, all requests of the schema.
    pub(crate) fn classify_request(
        &self,
        request: &RequestDigest<'_>,
        hasher: &RandomState,
    ) -> Option<Classification> {
        let mut schemas = self.active_schemas.iter();
        let is_catch_all = |own: &&Arc<ActiveSchema>| own.flow_schema.name == CATCH_ALL;
        let schema = schemas
            .find(|own| own.flow_schema.matches_request(request))
            .or_else(|| self.active_schemas.iter().find(is_catch_all))?;
        let distinguisher = match schema.flow_schema.flow_distinguisher {
            None => "",
            Some(FlowDistinguisher::ByNamespace) => request.namespace(),
            Some(FlowDistinguisher::ByUser) => strip_service_account_name(request.user),
        };
        Some(Classification {
            active_schema: Arc::clone(schema),
            flow_hash: hasher.hash_one((&schema.flow_schema.name, distinguisher)),
            is_watch: request.verb == "watch",
        })
    }
}

/// The name of a user; for a service account, the part up to its namespace.
fn strip_service_account_name(user: &str) -> &str {
    let Some(account) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX) else {
        return user;
    };
    let name_length = account.split_once(':').map_or(0, |(_, name)| name.len());
    user.get(..user.len() - name_length).unwrap_or(user)
}
