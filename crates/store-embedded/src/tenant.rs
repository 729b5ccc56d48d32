//! Assigns each key to a tenant, for fair limits.

use std::fmt;
use std::sync::Arc;

type TenantFn = dyn for<'k> Fn(&'k str) -> &'k str + Send + Sync;

/// Names the tenant of a key, as a part of the key. The program that uses the store knows what its keys
/// mean; by default each directory of keys is a tenant.
#[derive(Clone)]
pub struct TenantResolver(Arc<TenantFn>);

impl TenantResolver {
    /// Uses this function to name tenants.
    pub fn new(tenant: impl for<'k> Fn(&'k str) -> &'k str + Send + Sync + 'static) -> Self {
        Self(Arc::new(tenant))
    }

    pub(crate) fn tenant_of_key<'k>(&self, key: &'k str) -> &'k str {
        (self.0)(key)
    }
}

impl Default for TenantResolver {
    fn default() -> Self {
        Self::new(|key| key.rfind('/').and_then(|at| key.get(..=at)).unwrap_or(key))
    }
}

impl fmt::Debug for TenantResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TenantOf(..)")
    }
}
