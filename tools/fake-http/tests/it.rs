//! Peers, as a client that uses plain sockets sees them.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fake_http::{Answer, Body, Conduct, Peer, Request, Script};

const LONG: Duration = Duration::from_secs(20);

fn ask(stream: &mut TcpStream, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let request =
        format!("POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes())
}

/// Sends a request on a new connection and reads until the peer closes it.
fn exchange(peer: &Peer) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(peer.address())?;
    stream.set_read_timeout(Some(LONG))?;
    let request =
        "POST /a?b HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn answers_come_in_order_and_the_last_repeats() {
    let answers = vec![
        Answer::json("one").status(201).header("Retry-After", "1"),
        Answer::json("a PAD b").pad(3).content_type(None),
    ];
    let peer = Peer::start(answers).unwrap();
    let first = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nRetry-After: 1\r\n\
                 Content-Length: 3\r\n\r\none";
    let second = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\na xxx b";
    assert_eq!(exchange(&peer).unwrap(), first);
    assert_eq!(exchange(&peer).unwrap(), second);
    assert_eq!(exchange(&peer).unwrap(), second);
    assert!(peer.wait_idle(LONG));
    assert_eq!((peer.n_accepted(), peer.n_open()), (3, 0));
}

#[test]
fn received_requests_are_recorded() {
    let peer = Peer::start(Answer::json("{}")).unwrap();
    let mut stream = TcpStream::connect(peer.address()).unwrap();
    ask(&mut stream, "first").unwrap();
    assert!(peer.wait_requests(1, LONG));
    ask(&mut stream, "second").unwrap();
    assert!(peer.wait_requests(2, LONG));
    let requests = peer.take_requests();
    let [first, second] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!((&*first.method, &*first.target), ("POST", "/a?b"));
    assert_eq!(first.header("HOST"), Some("h"));
    assert_eq!((&*first.body, &*second.body), (&b"first"[..], &b"second"[..]));
    assert_eq!((first.connection, second.connection, first.http_version), (1, 1, 1));
    assert!(peer.requests().is_empty());
    assert_eq!((peer.n_requests(), peer.n_open()), (2, 1));
    assert!(!peer.wait_requests(1, Duration::ZERO));
}

#[test]
fn a_rule_computes_answers() {
    let echo = Script::rule(|request: &Request| Answer::json(request.body.clone()));
    assert!(exchange(&Peer::start(echo).unwrap()).unwrap().ends_with("\r\n\r\n{}"));
}

#[test]
fn each_misbehaviour_is_visible_to_the_client() {
    let kind = |conduct| {
        let peer = Peer::start(Answer::misbehave(conduct)).unwrap();
        exchange(&peer).map_err(|error| error.kind())
    };
    assert_eq!(kind(Conduct::Close), Ok(String::new()));
    assert_eq!(kind(Conduct::Reset), Err(ErrorKind::ConnectionReset));
    assert_eq!(kind(Conduct::Refuse), Err(ErrorKind::ConnectionRefused));
    assert_eq!(kind(Conduct::Raw(Bytes::from_static(b"junk"))), Ok("junk".to_owned()));

    let text = |answer: Answer| exchange(&Peer::start(answer).unwrap()).unwrap();
    let truncated = text(Answer::json("{}").conduct(Conduct::Truncate));
    assert!(truncated.ends_with("Content-Length: 3\r\n\r\n{}"), "{truncated}");
    let liar = text(Answer::json("{}").conduct(Conduct::Claim(1)));
    assert!(liar.ends_with("Content-Length: 1\r\n\r\n{}"), "{liar}");
    let long = text(Answer::json("").body(Body::Filler(200_000)));
    assert!(long.ends_with(&"x".repeat(200_000)));
    let bodiless = text(Answer::json("{}").status(304));
    assert!(bodiless.ends_with("application/json\r\n\r\n"), "{bodiless}");
}

#[test]
fn delays_and_hangs() {
    let delay = Duration::from_millis(50);
    let peer = Peer::start(Answer::json("{}").delay(delay)).unwrap();
    let start = Instant::now();
    exchange(&peer).unwrap();
    assert!(start.elapsed() >= delay);

    for answer in [Answer::misbehave(Conduct::Hang), Answer::json("{}").delay(LONG)] {
        let peer = Peer::start(answer).unwrap();
        let mut stream = TcpStream::connect(peer.address()).unwrap();
        ask(&mut stream, "").unwrap();
        assert!(peer.wait_requests(1, LONG));
        assert_eq!(peer.n_open(), 1);
        drop(stream);
        assert!(peer.wait_idle(LONG));
    }
}

#[test]
fn the_port_can_be_closed_and_opened() {
    let peer = Peer::start(Answer::json("{}")).unwrap();
    let refused = || exchange(&peer).unwrap_err().kind() == ErrorKind::ConnectionRefused;
    exchange(&peer).unwrap();
    peer.stop_listening().unwrap();
    peer.stop_listening().unwrap();
    assert!(refused());
    peer.listen().unwrap();
    peer.listen().unwrap();
    exchange(&peer).unwrap();
    peer.replace(vec![Answer::json("{}"), Answer::misbehave(Conduct::Refuse)]).unwrap();
    exchange(&peer).unwrap();
    assert!(refused());
    let address = peer.address();
    drop(peer);
    assert!(TcpStream::connect(address).is_err());
}
