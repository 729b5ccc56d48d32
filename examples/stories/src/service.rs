//! Serves one decision function over HTTPS.

use std::convert::Infallible;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::review::{self, Decision, ReviewSpec};

/// The longest review that is read.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Serves the decision function on a free port until the program is stopped.
///
/// # Errors
/// The command line is not `NAME FOLDER`, or the folder cannot be written to.
pub fn run(decide: fn(&ReviewSpec) -> Decision) -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(name), Some(folder)) = (args.next(), args.next()) else {
        return Err("usage: NAME FOLDER".into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(&name, &PathBuf::from(folder), decide))
}

async fn serve(
    name: &str,
    folder: &Path,
    decide: fn(&ReviewSpec) -> Decision,
) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    // A server that finds the webhook by a Service verifies the name of that.
    let names = ["127.0.0.1".to_owned(), format!("{name}.authz.svc")];
    let made = rcgen::generate_simple_self_signed(names)?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    write_kubeconfig(name, folder, &made.cert.pem(), listener.local_addr()?.port())?;
    loop {
        let (stream, _) = listener.accept().await?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request| answer(request, decide));
            // A client may disconnect at any time.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Writes the kubeconfig of this service. A rename makes the file appear complete or not at all.
fn write_kubeconfig(
    name: &str,
    folder: &Path,
    certificate: &str,
    port: u16,
) -> std::io::Result<()> {
    let authority = folder.join(format!("{name}.crt"));
    std::fs::write(&authority, certificate)?;
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: webhook\n\
         clusters:\n- name: webhook\n  cluster:\n    \
         server: https://127.0.0.1:{port}/authorize\n    \
         certificate-authority: {name}.crt\n\
         contexts:\n- name: webhook\n  context: {{cluster: webhook, user: server}}\n\
         users:\n- name: server\n  user: {{}}\n"
    );
    let new = folder.join(format!("{name}.kubeconfig.new"));
    std::fs::write(&new, text)?;
    std::fs::rename(&new, folder.join(format!("{name}.kubeconfig")))
}

async fn answer(
    request: Request<Incoming>,
    decide: fn(&ReviewSpec) -> Decision,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await;
    let review = body.ok().and_then(|body| review::read(&body.to_bytes()).ok());
    let Some((api_version, spec)) = review else {
        let mut refused = Response::new(Full::new(Bytes::from_static(b"want a review\n")));
        *refused.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(refused);
    };
    let answer = decide(&spec);
    let line = review::line(&api_version, &spec, &answer);
    // The line is written at once, because scripts count lines.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
    let body = review::write(&api_version, &answer).to_string();
    Ok(Response::new(Full::new(body.into())))
}
