//! Finds the process that listens on a port of this machine.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// The identifier of the process that listens on a TCP port; `None` if no process of this user does.
///
/// # Errors
/// The system has no `/proc`.
pub(crate) fn listening_pid(port: u16) -> anyhow::Result<Option<u32>> {
    let mut links = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        // A machine may have no IPv6.
        let table = fs::read_to_string(table).unwrap_or_default();
        let inodes = listening_inodes(&table, port);
        links.extend(inodes.into_iter().map(|inode| format!("socket:[{inode}]")));
    }
    for process in fs::read_dir("/proc").context("the system has no /proc")? {
        let path = process?.path();
        let pid = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        if let Some(pid) = pid.filter(|_| has_link(&path.join("fd"), &links)) {
            return Ok(Some(pid));
        }
    }
    Ok(None)
}

/// Whether a folder of descriptors has a link with one of these targets. Processes of other users are skipped.
fn has_link(folder: &Path, targets: &[String]) -> bool {
    let descriptors = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut links = descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    links.any(|link| targets.iter().any(|target| link.as_os_str() == target.as_str()))
}

/// The inodes of the sockets that listen on a port, from the text of `/proc/net/tcp`.
fn listening_inodes(table: &str, port: u16) -> Vec<&str> {
    let suffix = format!(":{port:04X}");
    let mut inodes = Vec::new();
    for line in table.lines().skip(1) {
        let mut fields = line.split_ascii_whitespace();
        let (local, state) = (fields.nth(1), fields.nth(1));
        if state == Some(LISTEN) && local.is_some_and(|local| local.ends_with(&suffix)) {
            inodes.extend(fields.nth(5));
        }
    }
    inodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_of_this_process_is_found() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listening_pid(port).unwrap(), Some(std::process::id()));
        drop(listener);
        assert_eq!(listening_pid(port).unwrap(), None);
    }

    #[test]
    fn only_sockets_that_listen_count() {
        let table = "  sl  local_address rem_address   st\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1\n\
             1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000 0 0 78 1\n";
        assert_eq!(listening_inodes(table, 8080), ["77"]);
        assert_eq!(listening_inodes(table, 8081), [""; 0]);
    }
}
