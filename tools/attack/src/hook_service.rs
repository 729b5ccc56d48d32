//! Webhooks of the attacker: a service over TLS that answers slowly, endlessly or with far too much, as the path of
//! the call says.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fake_http::{Authority, Leaf};
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::runner::lower_priority;

/// The size of an answer that is far too long.
const HUGE_BYTES: u64 = 1_000_000_000;
/// The number of patches, warnings and annotations in an answer that has far too many.
const MANY: usize = 1_000_000;
/// How long the authorization webhook takes for names that begin with `slow`.
const SLOW_AUTHORIZATION: Duration = Duration::from_secs(60);

/// A million patches, in base64. These texts are made once, because making them takes longer than sending them.
static PATCHES: LazyLock<String> = LazyLock::new(|| {
    let mut patch = String::from("[");
    for number in 0..MANY {
        let separator = if number == 0 { "" } else { "," };
        let _ = write!(
            patch,
            "{separator}{{\"op\":\"add\",\"path\":\"/data/k{number}\",\"value\":\"\"}}"
        );
    }
    patch.push(']');
    STANDARD.encode(patch)
});
/// The member of an answer with a million warnings.
static WARNINGS: LazyLock<String> =
    LazyLock::new(|| format!(",\"warnings\":[{}\"last\"]", "\"w\",".repeat(MANY)));
/// The member of an answer with a million audit annotations.
static ANNOTATIONS: LazyLock<String> = LazyLock::new(|| {
    let mut annotations = String::new();
    for number in 0..MANY {
        let _ = write!(annotations, "\"k{number}\":\"v\",");
    }
    format!(",\"auditAnnotations\":{{{annotations}\"last\":\"v\"}}")
});

/// A running service. It ends with the process.
pub(crate) struct HookService {
    address: SocketAddr,
    /// The CA of the service in PEM encoding.
    pub(crate) authority_pem: String,
}

impl HookService {
    /// Starts the service on a thread of its own.
    ///
    /// # Errors
    /// No certificate can be made, or no port is free.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let authority = Authority::new("attack")?;
        let issued = authority.issue(&Leaf::loopback())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificate = CertificateDer::from_pem_slice(issued.certificate_pem.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes())?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        std::thread::spawn(move || {
            lower_priority();
            runtime.block_on(listen(listener, acceptor));
        });
        Ok(Self { address, authority_pem: authority.pem() })
    }

    /// The URL of a path of the service.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// A configuration of one validating or mutating webhook that matches writes of config maps in namespaces with
    /// the label `owner`.
    pub(crate) fn configuration(
        &self,
        is_mutating: bool,
        name: &str,
        path: &str,
        owner: &str,
    ) -> Value {
        let kind = if is_mutating { "Mutating" } else { "Validating" };
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": format!("{kind}WebhookConfiguration"),
            "metadata": { "name": name },
            "webhooks": [{
                "name": format!("{name}.attack.example.com"),
                "clientConfig": {
                    "url": self.url(path), "caBundle": STANDARD.encode(&self.authority_pem),
                },
                "namespaceSelector": { "matchLabels": { "owner": owner } },
                "rules": [{
                    "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"],
                    "resources": ["configmaps"],
                }],
                "failurePolicy": "Ignore",
                "timeoutSeconds": 30,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        })
    }

    /// A kubeconfig for the service at a path.
    pub(crate) fn kubeconfig(&self, path: &str) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "hook",
            "clusters": [{ "name": "hook", "cluster": {
                "server": self.url(path),
                "certificate-authority-data": STANDARD.encode(&self.authority_pem),
            } }],
            "users": [{ "name": "server", "user": {} }],
            "contexts": [{ "name": "hook", "context": { "cluster": "hook", "user": "server" } }],
        })
        .to_string()
    }
}

async fn listen(listener: TcpListener, acceptor: TlsAcceptor) {
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service =
                service_fn(|request| async move { Ok::<_, Infallible>(answer(request).await) });
            // The server that is attacked may close its connections at any time.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Answers by the path: `/allow`, `/slow/SECONDS`, `/huge`, `/trickle`, `/patches`, `/warnings`, `/annotations`,
/// `/authorize`, and `/hang`, which never answers.
async fn answer(request: Request<Incoming>) -> Response<HookBody> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let uid = review.pointer("/request/uid").cloned().unwrap_or_default();
    let allow = |more: &str| {
        HookBody::whole(format!(
            "{{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\
             \"response\":{{\"uid\":{uid},\"allowed\":true{more}}}}}"
        ))
    };
    if let Some(seconds) = path.strip_prefix("/slow/").and_then(|text| text.parse().ok()) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
    Response::new(match path.as_str() {
        "/huge" => HookBody::Repeated { n_left: HUGE_BYTES },
        "/trickle" => HookBody::Trickle(Box::pin(tokio::time::sleep(Duration::ZERO))),
        "/patches" => allow(&format!(",\"patchType\":\"JSONPatch\",\"patch\":\"{}\"", *PATCHES)),
        "/warnings" => allow(&WARNINGS),
        "/annotations" => allow(&ANNOTATIONS),
        "/authorize" => HookBody::whole(authorize(&review).await.to_string()),
        "/hang" => {
            std::future::pending::<()>().await;
            HookBody::whole(String::new())
        }
        _ => allow(""),
    })
}

/// Denies reads of objects with the name `denied`, takes long for names that begin with `slow`, and has no opinion
/// on anything else.
async fn authorize(review: &Value) -> Value {
    let name = review.pointer("/spec/resourceAttributes/name").and_then(Value::as_str);
    if name.is_some_and(|name| name.starts_with("slow")) {
        tokio::time::sleep(SLOW_AUTHORIZATION).await;
    }
    let is_denied = name == Some("denied");
    json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "status": { "allowed": false, "denied": is_denied },
    })
}

/// The body of an answer.
enum HookBody {
    Whole(Option<Bytes>),
    /// Blanks, which a parser of JSON skips.
    Repeated {
        n_left: u64,
    },
    /// One blank a second, forever.
    Trickle(Pin<Box<tokio::time::Sleep>>),
}

impl HookBody {
    fn whole(text: String) -> Self {
        Self::Whole(Some(text.into()))
    }
}

impl Body for HookBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        static BLANKS: [u8; 64 << 10] = [b' '; 64 << 10];
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Repeated { n_left: 0 } => Poll::Ready(None),
            Self::Repeated { n_left } => {
                let n_bytes = (*n_left).min(BLANKS.len() as u64);
                *n_left -= n_bytes;
                let chunk = Bytes::from_static(&BLANKS);
                Poll::Ready(Some(Ok(Frame::data(chunk.slice(..n_bytes as usize)))))
            }
            Self::Trickle(sleep) => match sleep.as_mut().poll(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(()) => {
                    let next = tokio::time::Instant::now() + Duration::from_secs(1);
                    sleep.as_mut().reset(next);
                    Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b" ")))))
                }
            },
        }
    }
}
