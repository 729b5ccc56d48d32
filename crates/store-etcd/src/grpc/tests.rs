use std::collections::VecDeque;
use std::sync::Arc;

use http::HeaderName;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use tokio::net::TcpListener;

use super::*;

/// A response body of prepared frames.
#[derive(Clone, Default)]
struct Frames(VecDeque<Part>);

#[derive(Clone)]
enum Part {
    Data(&'static [u8]),
    Trailers(&'static [(&'static str, &'static str)]),
    /// The stream stays open.
    Wait,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.pop_front() {
            None => Poll::Ready(None),
            Some(Part::Data(bytes)) => {
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(bytes)))))
            }
            Some(Part::Trailers(fields)) => {
                Poll::Ready(Some(Ok(Frame::trailers(header_map(fields)))))
            }
            Some(Part::Wait) => Poll::Pending,
        }
    }
}

fn header_map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let field = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    fields.iter().map(field).collect()
}

/// An answer of the server: its status, headers and body.
type Answer = (u16, &'static [(&'static str, &'static str)], Vec<Part>);

const OK: Part = Part::Trailers(&[("grpc-status", "0")]);

fn channel(port: u16) -> Channel {
    let uri = format!("http://127.0.0.1:{port}/").parse().unwrap();
    Channel::new(uri, Connector::new(CONNECT_TIMEOUT, None))
}

/// Starts a server that answers all requests alike, and checks that they are requests of gRPC. Returns the channel
/// to it, and a receiver of the bodies of the requests.
async fn serve(answer: Answer) -> (Channel, tokio::sync::mpsc::UnboundedReceiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let channel = channel(listener.local_addr().unwrap().port());
    let (bodies, received) = tokio::sync::mpsc::unbounded_channel();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (answer, bodies) = (Arc::clone(&answer), bodies.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let (answer, bodies) = (Arc::clone(&answer), bodies.clone());
                async move {
                    assert_eq!(request.headers()["content-type"], "application/grpc");
                    assert_eq!(request.headers()["te"], "trailers");
                    assert_eq!(request.uri().path(), "/service/method");
                    tokio::spawn(read_body(request.into_body(), bodies));
                    let (status, headers, parts) = &*answer;
                    let mut response = Response::new(Frames(parts.clone().into()));
                    *response.status_mut() = StatusCode::from_u16(*status).unwrap();
                    *response.headers_mut() = header_map(headers);
                    Ok::<_, Infallible>(response)
                }
            });
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
        }
    });
    (channel, received)
}

/// Sends the body when it has ended.
async fn read_body(mut body: Incoming, bodies: tokio::sync::mpsc::UnboundedSender<Vec<u8>>) {
    let mut bytes = Vec::new();
    while let Some(Ok(frame)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await
    {
        bytes.extend(frame.into_data().unwrap());
    }
    let _ = bodies.send(bytes);
}

async fn call(answer: Answer) -> Result<Bytes, GrpcError> {
    serve(answer).await.0.call("/service/method", b"question").await
}

fn broken(text: &str) -> Result<Bytes, GrpcError> {
    Err(GrpcError::Broken(text.to_owned()))
}

#[tokio::test]
async fn a_message_is_sent_and_one_is_received() {
    let parts = vec![Part::Data(b"\0\0\0\0\x02hi"), OK];
    let (channel, mut bodies) = serve((200, &[], parts)).await;
    for _ in 0..2 {
        assert_eq!(channel.call("/service/method", b"question").await.unwrap(), "hi");
        assert_eq!(bodies.recv().await.unwrap(), b"\0\0\0\0\x08question");
    }
}

#[tokio::test]
async fn a_message_may_be_empty_or_arrive_in_pieces() {
    assert_eq!(call((200, &[], vec![Part::Data(b"\0\0\0\0\0"), OK])).await.unwrap(), "");
    let pieces = [&b"\0\0"[..], b"\0\0", b"\x05", b"hel", b"lo"].map(Part::Data);
    let parts = pieces.into_iter().chain([OK]).collect();
    assert_eq!(call((200, &[], parts)).await.unwrap(), "hello");
}

#[tokio::test]
async fn an_error_is_in_the_trailers_or_in_the_headers() {
    let not_found = GrpcError::Status(GrpcCode::NotFound, "no key é %".to_owned());
    let fields: &[_] = &[("grpc-status", "5"), ("grpc-message", "no key %C3%A9 %")];
    assert_eq!(call((200, fields, vec![])).await, Err(not_found.clone()));
    assert_eq!(call((200, &[], vec![Part::Trailers(fields)])).await, Err(not_found));
    let fields: &[_] = &[("grpc-status", "14"), ("grpc-message", "no leader")];
    let other = GrpcError::Status(GrpcCode::Other, "no leader".to_owned());
    assert_eq!(
        call((200, &[], vec![Part::Data(b"\0\0\0\0\0"), Part::Trailers(fields)])).await,
        Err(other)
    );
}

#[tokio::test]
async fn answers_that_are_not_of_grpc_are_refused() {
    let message = || Part::Data(b"\0\0\0\0\x02hi");
    for (answer, want) in [
        ((503, &[][..], vec![]), "HTTP status 503"),
        ((200, &[], vec![]), "the answer has no status"),
        ((200, &[], vec![message()]), "the answer has no status"),
        ((200, &[], vec![message(), Part::Trailers(&[("a", "b")])]), "the answer has no status"),
        ((200, &[], vec![OK]), "the answer has no message"),
        ((200, &[], vec![message(), message(), OK]), "the answer has two messages"),
        ((200, &[], vec![Part::Data(b"\0\0\0\0\x03hi"), OK]), "the answer is incomplete"),
        ((200, &[], vec![Part::Data(b"\x01\0\0\0\x02hi"), OK]), "the answer is compressed"),
    ] {
        assert_eq!(call(answer).await, broken(want));
    }
}

#[tokio::test]
async fn messages_have_a_largest_size() {
    let large = vec![Part::Data(b"\0\x04\0\0\x01"), Part::Wait];
    assert_eq!(call((200, &[], large)).await, Err(GrpcError::ResponseTooLarge));
    let (channel, _) = serve((200, &[], vec![Part::Data(b"\0\0\0\0\0"), OK])).await;
    let mut message = vec![0; SEND_BYTES_MAX];
    assert_eq!(channel.call("/service/method", &message).await.unwrap(), "");
    message.push(0);
    let error = channel.call("/service/method", &message).await.unwrap_err();
    assert_eq!(error, GrpcError::RequestTooLarge);
}

#[tokio::test]
async fn a_stream_is_open_until_it_is_dropped() {
    let parts = vec![Part::Data(b"\0\0\0\0\x01a\0\0\0\0\x01b\0\0"), Part::Wait];
    let (channel, mut bodies) = serve((200, &[], parts)).await;
    let mut stream =
        channel.open_stream("/service/method", HeaderMap::new(), b"question").await.unwrap();
    assert_eq!(stream.next_message().await.unwrap().unwrap(), "a");
    assert_eq!(stream.next_message().await.unwrap().unwrap(), "b");
    assert!(bodies.try_recv().is_err());
    drop(stream);
    assert_eq!(bodies.recv().await.unwrap(), b"\0\0\0\0\x08question");
}

#[tokio::test]
async fn a_stream_ends_with_its_status() {
    let parts = vec![Part::Data(b"\0\0\0\0\x01a"), OK];
    let (channel, _bodies) = serve((200, &[], parts)).await;
    let mut stream = channel.open_stream("/service/method", HeaderMap::new(), b"").await.unwrap();
    assert_eq!(stream.next_message().await.unwrap().unwrap(), "a");
    assert_eq!(stream.next_message().await, Ok(None));
}

#[tokio::test]
async fn nothing_is_sent_without_a_connection() {
    let free_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let channel = channel(free_port.port());
    for _ in 0..2 {
        let error = channel.call("/service/method", b"").await.unwrap_err();
        assert!(
            matches!(&error, GrpcError::NotConnected(text) if text.contains("refused")),
            "{error:?}"
        );
    }
    // The channel connects when a server listens there.
    let listener = TcpListener::bind(free_port).await.unwrap();
    let accept = tokio::spawn(async move { listener.accept().await.map(drop) });
    assert!(channel.call("/service/method", b"").await.is_err());
    accept.await.unwrap().unwrap();
}

proptest! {
    #[test]
    fn any_text_can_be_decoded(text: Vec<u8>) {
        let _ = percent_decode(&text);
    }

    #[test]
    fn an_escaped_text_is_decoded(text: String) {
        let escaped: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        prop_assert_eq!(percent_decode(escaped.as_bytes()), text);
    }
}
