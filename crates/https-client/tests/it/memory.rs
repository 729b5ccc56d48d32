//! The memory that a peer can make the client use.

use fake_http::{Answer, Body, Peer};
use https_client::FaultKind;

use crate::fixture::{client, http, post};

/// The memory that one response takes beyond the body limit: the buffers of the connection, and the growth of the
/// body buffer, which doubles.
const OVERHEAD_BYTES: u64 = 24 << 20;

/// The client never buffers a response of a hundred megabytes, whether its length is announced or not.
#[test]
fn a_huge_answer_takes_no_more_than_the_limit() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for body in [Body::Filler(100 << 20), Body::Endless] {
        let peer = Peer::start(Answer::json("").body(body)).unwrap();
        let client = client(http(peer.address()));
        let measured = allocation_counter::measure(|| {
            let fault = runtime.block_on(post(&client)).unwrap_err();
            assert_eq!(fault.kind, FaultKind::TooLarge);
        });
        assert!(measured.bytes_max < OVERHEAD_BYTES, "{}", measured.bytes_max);
    }
}
