//! The configuration in force, and the classification of requests by it.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::flow_controller::LevelRuntime;
use crate::flow_schema::{FlowDistinguisher, FlowSchema};
use crate::flow_statistics::{FlowStatistics, FlowUsage};
use crate::request_digest::RequestDigest;

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The flow schemas in force, with the levels that they refer to. It never changes; a change makes a new one.
#[derive(Debug)]
pub(crate) struct FlowSchemas {
    /// Sorted by precedence, then by name.
    schemas: Vec<Arc<ActiveSchema>>,
}

/// A flow schema in force.
#[derive(Debug)]
pub(crate) struct ActiveSchema {
    pub(crate) schema: Arc<FlowSchema>,
    pub(crate) level: Arc<LevelRuntime>,
    level_uid: Arc<str>,
    is_level_exempt: bool,
    /// Stays the same while the schema keeps its name and its level.
    pub(crate) statistics: Arc<FlowStatistics>,
}

/// The schema, the level and the flow of a request.
#[derive(Debug, Clone)]
pub struct Classification {
    pub(crate) schema: Arc<ActiveSchema>,
    /// Identifies the flow within the level.
    pub(crate) flow_hash: u64,
    pub(crate) is_watch: bool,
}

impl Classification {
    /// The schema that matches the request.
    pub fn schema(&self) -> &FlowSchema {
        &self.schema.schema
    }

    /// The name of the priority level.
    pub fn level_name(&self) -> &str {
        self.schema.level.name()
    }

    /// The uid of the priority level.
    pub fn level_uid(&self) -> &str {
        &self.schema.level_uid
    }

    /// Whether requests of the level are never limited.
    pub fn is_exempt(&self) -> bool {
        self.schema.is_level_exempt
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
                let level = levels.iter().find(|level| level.name() == schema.priority_level)?;
                let known = old
                    .schemas
                    .iter()
                    .find(|own| own.schema.name == schema.name && own.level.name() == level.name());
                let (level_uid, is_level_exempt) = level.uid_and_exemption();
                Some(Arc::new(ActiveSchema {
                    schema,
                    level: Arc::clone(level),
                    level_uid,
                    is_level_exempt,
                    statistics: known.map(|own| Arc::clone(&own.statistics)).unwrap_or_default(),
                }))
            })
            .collect();
        schemas.sort_by(|a, b| {
            let (a, b) = (&a.schema, &b.schema);
            (a.matching_precedence, &a.name).cmp(&(b.matching_precedence, &b.name))
        });
        Self { schemas }
    }

    /// No schemas at all.
    pub(crate) fn without_schemas() -> Self {
        Self { schemas: Vec::new() }
    }

    /// The statistics of the requests of each schema.
    pub(crate) fn flow_usages(&self) -> Vec<FlowUsage> {
        let usage = |own: &Arc<ActiveSchema>| {
            own.statistics.to_flow_usage(&own.schema.name, own.level.name())
        };
        self.schemas.iter().map(usage).collect()
    }

    /// Finds the first schema that matches the request, its level, and the flow of the request.
    ///
    /// A flow is one of these:
    /// 1. With `ByNamespace`, the namespace of the request.
    /// 2. With `ByUser`, the user; the service accounts of a namespace are one user, since a user who may create one
    ///    may create many.
    /// 3. Otherwise, all requests of the schema.
    pub(crate) fn classify(
        &self,
        request: &RequestDigest<'_>,
        hasher: &RandomState,
    ) -> Option<Classification> {
        let schema = self.schemas.iter().find(|own| own.schema.matches(request))?;
        let distinguisher = match schema.schema.distinguisher {
            None => "",
            Some(FlowDistinguisher::ByNamespace) => request.namespace(),
            Some(FlowDistinguisher::ByUser) => strip_service_account_name(request.user),
        };
        Some(Classification {
            schema: Arc::clone(schema),
            flow_hash: hasher.hash_one((&schema.schema.name, distinguisher)),
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
