//! The pause of tests that poll until the server has reached a state.

use std::time::Duration;

/// Pauses between two polls. The server's background loops run in real time and give no signal.
pub(crate) async fn pause() {
    // The test waits for a real process: the server under test.
    tokio::time::sleep(Duration::from_millis(20)).await;
}
