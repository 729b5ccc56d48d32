//! Freeing addresses that no service has.

use std::sync::Arc;
use std::time::Duration;

use store::Store;

use crate::server_state::ServerState;

/// How often reservations are compared with services.
const PERIOD: Duration = Duration::from_secs(180);

/// Repairs the reservations of addresses for as long as the server runs. The first pass is part of the
/// start, so this begins with a pause.
pub(crate) async fn repair_addresses<S: Store>(server: Arc<ServerState<S>>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        repair(&server).await;
    }
}

/// One pass, and what the log says of it.
pub(crate) async fn repair<S: Store>(server: &ServerState<S>) {
    match server.repair_addresses().await {
        Ok(repaired) if repaired.n_freed + repaired.n_reserved > 0 => {
            let facts: [crate::log::Fact<'_>; 2] =
                [("freed", &repaired.n_freed), ("reserved", &repaired.n_reserved)];
            server.log.warn("reservations of addresses did not fit the services", &facts);
        }
        Ok(_) => {}
        Err(error) => {
            server.log.warn("addresses of services can not be compared", &[("why", &error)]);
        }
    }
}
