//! The statuses of writes that the store refuses for lack of space.

use std::time::Duration;

use api_object::Status;

/// The status of a write that the store has no space for. A retry does not help, so the status asks for none.
pub(crate) fn out_of_space_status(tenant: Option<&str>) -> Status {
    Status::insufficient_storage(&match tenant {
        None => {
            "database space exceeded: writes that add are refused until space is freed".to_owned()
        }
        Some(tenant) => format!(
            "database space exceeded: {} has used up its share until objects of it are deleted",
            describe_tenant(tenant)
        ),
    })
}

/// The status of a write that the disk of the store refuses. The store tries the disk again every second, but
/// somebody has to free space first.
pub(crate) fn disk_full_status() -> Status {
    Status::insufficient_storage(
        "the disk of the server is full: writes are refused until it has free space",
    )
}

/// The status of a write by a namespace that has written too much.
pub(crate) fn write_throttled_status(tenant: &str, retry_after: Duration) -> Status {
    let why = format!("{} has written too much data in the last minutes", describe_tenant(tenant));
    let seconds = u32::try_from(retry_after.as_secs()).unwrap_or(u32::MAX).max(1);
    Status::too_many_requests(&why, seconds)
}

/// Names a tenant in a message. A tenant is a namespace, or the key prefix of a cluster-scoped resource.
fn describe_tenant(tenant: &str) -> String {
    match tenant.strip_suffix('/') {
        None => format!("namespace {}", go_compat::quote(tenant)),
        Some(path) => {
            format!("resource {}", go_compat::quote(path.rsplit('/').next().unwrap_or(path)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_name_the_namespace_or_the_resource() {
        let status = write_throttled_status("team-a", Duration::from_secs(10));
        assert_eq!((status.code, status.retry_after_seconds()), (429, Some(10)));
        let want =
            "Too many requests: namespace \"team-a\" has written too much data in the last minutes";
        assert_eq!(status.message, want);
        let status = out_of_space_status(Some("/registry/minions/"));
        assert_eq!((status.code, status.retry_after_seconds()), (507, None));
        assert!(status.message.contains("resource \"minions\" has used up its share"));
        assert_eq!(out_of_space_status(None).reason, "InsufficientStorage");
    }
}
