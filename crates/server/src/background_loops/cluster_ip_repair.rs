//! Repairs the reservations of cluster IPs.

use std::sync::Arc;
use std::time::Duration;

use component_base::LogField;

use crate::server_state::ServerState;

const REPAIR_INTERVAL: Duration = Duration::from_secs(180);

/// Repairs reservations for as long as the server runs. The first repair is part of the start of the
/// server, so this loop begins with a pause.
pub(crate) async fn repair_cluster_ips_periodically(server: Arc<ServerState>) {
    loop {
        tokio::time::sleep(REPAIR_INTERVAL).await;
        repair_cluster_ips_and_log(&server).await;
    }
}

/// Repairs reservations once and logs the result.
pub(crate) async fn repair_cluster_ips_and_log(server: &ServerState) {
    match server.repair_cluster_ips().await {
        Ok(summary) if summary.n_freed_ip_reservations + summary.n_new_ip_reservations > 0 => {
            let fields: [LogField<'_>; 2] = [
                ("freed", &summary.n_freed_ip_reservations),
                ("reserved", &summary.n_new_ip_reservations),
            ];
            let message =
                "reservations of cluster IPs did not match the services and were repaired";
            server.log.warn(message, &fields);
        }
        Ok(_) => {}
        Err(error) => {
            server.log.warn("reservations of cluster IPs cannot be read", &[("why", &error)]);
        }
    }
}
