//! Options of the etcd store and addresses of members.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use store::Prefix;

use crate::grpc::{CONNECT_TIMEOUT, Channel};
use crate::tls::{Connector, TlsFiles, TlsFilesError};

/// Options for opening a store on etcd.
#[derive(Debug, Clone)]
pub struct Options {
    /// The members, as `http://host:port` or `https://host:port`. Requests use them in turn.
    pub endpoints: Vec<String>,
    /// CA bundle that verifies the members; required for `https`.
    pub ca_file: Option<PathBuf>,
    /// The client certificate and its key.
    pub client_certificate: Option<ClientCertificateFiles>,
    /// Prefix of all keys of this store. Callers pass whole keys; the prefix only says which keys of the
    /// cluster belong to the store.
    pub prefix: Prefix,
    /// Compaction interval and age of history; `None` disables compaction by this store.
    pub compaction_interval: Option<Duration>,
    /// Timeout of a request, including retries. Reads of one key have at most four seconds, so that callers
    /// learn soon that they failed.
    pub request_timeout: Duration,
}

impl Options {
    /// Default options: compaction every five minutes, request timeout of ten seconds.
    #[must_use]
    pub fn new(endpoints: Vec<String>, prefix: Prefix) -> Self {
        Self {
            endpoints,
            ca_file: None,
            client_certificate: None,
            prefix,
            compaction_interval: Some(Duration::from_secs(5 * 60)),
            request_timeout: Duration::from_secs(10),
        }
    }
}

/// The files of a client certificate and its key, both PEM.
#[derive(Debug, Clone)]
pub struct ClientCertificateFiles {
    /// The file of the certificate.
    pub cert_file: PathBuf,
    /// The file of the private key.
    pub key_file: PathBuf,
}

/// The reason why options are invalid. An unreachable member is not an error, because the store connects lazily.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No endpoint is configured.
    #[error("no etcd endpoint is given")]
    NoEndpoint,
    /// An endpoint is not a valid address.
    #[error(
        "etcd endpoint `{endpoint}` is not of the form `http://host:port` or `https://host:port`"
    )]
    Endpoint {
        /// The endpoint as it is configured.
        endpoint: String,
    },
    /// An `https` endpoint has no CA bundle.
    #[error("etcd endpoint `{endpoint}` needs a file of certificates to trust")]
    NoCa {
        /// The endpoint as it is configured.
        endpoint: String,
    },
    /// The certificates or the key are invalid.
    #[error("the certificates for etcd endpoint `{endpoint}` cannot be used")]
    Tls {
        /// The endpoint as it is configured.
        endpoint: String,
        /// The error in the files.
        source: TlsFilesError,
    },
}

/// The address of a member and the connector for it.
pub(crate) struct MemberAddress {
    uri: Uri,
    connector: Connector,
}

impl MemberAddress {
    pub(crate) fn uri(&self) -> String {
        self.uri.to_string()
    }

    /// A channel that connects lazily and reconnects.
    pub(crate) fn open_channel(&self) -> Channel {
        Channel::new(self.uri.clone(), self.connector.clone())
    }
}

/// Parses the address of each member.
pub(crate) fn parse_member_addresses(options: &Options) -> Result<Vec<MemberAddress>, OpenError> {
    if options.endpoints.is_empty() {
        return Err(OpenError::NoEndpoint);
    }
    let files = options.ca_file.as_ref().map(|ca_file| {
        Arc::new(TlsFiles::new(ca_file.clone(), options.client_certificate.clone()))
    });
    options.endpoints.iter().map(|text| parse_member_address(text, files.as_ref())).collect()
}

fn parse_member_address(
    text: &str,
    files: Option<&Arc<TlsFiles>>,
) -> Result<MemberAddress, OpenError> {
    let malformed = || OpenError::Endpoint { endpoint: text.to_owned() };
    let uri: Uri = text.parse().map_err(|_| malformed())?;
    let is_bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
    if uri.host().is_none_or(str::is_empty) || !is_bare {
        return Err(malformed());
    }
    let is_secure = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        Some(_) | None => return Err(malformed()),
    };
    let tls = match (is_secure, files) {
        (false, _) => None,
        (true, None) => return Err(OpenError::NoCa { endpoint: text.to_owned() }),
        (true, Some(files)) => {
            let unusable = |source| OpenError::Tls { endpoint: text.to_owned(), source };
            files.load_tls_config().map_err(unusable)?;
            Some(Arc::clone(files))
        }
    };
    Ok(MemberAddress { uri, connector: Connector::new(CONNECT_TIMEOUT, tls) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(endpoints: &[&str]) -> Options {
        let endpoints = endpoints.iter().map(|text| (*text).to_owned()).collect();
        Options::new(endpoints, Prefix::new("/registry/").unwrap())
    }

    fn message(options: &Options) -> String {
        parse_member_addresses(options).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn addresses_are_checked() {
        assert_eq!(
            parse_member_addresses(&options(&["http://a:2379", "http://b:2379/"])).unwrap().len(),
            2
        );
        assert_eq!(message(&options(&[])), "no etcd endpoint is given");
        for text in ["", "a", "a:2379", "ftp://a:1", "http://a:1/x", "http://a:1/?x", "unix:///a"] {
            let want = format!(
                "etcd endpoint `{text}` is not of the form `http://host:port` or `https://host:port`"
            );
            assert_eq!(message(&options(&["http://a:1", text])), want);
        }
    }

    #[test]
    fn an_https_endpoint_requires_a_ca_bundle() {
        let want = "etcd endpoint `https://a:1` needs a file of certificates to trust";
        assert_eq!(message(&options(&["https://a:1"])), want);
    }

    #[test]
    fn missing_and_malformed_files_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        let secure = Options { ca_file: Some(file.clone()), ..options(&["https://a:1"]) };
        let why = |options: &Options| match parse_member_addresses(options).map(drop) {
            Err(OpenError::Tls { source, .. }) => source.to_string(),
            other => panic!("{other:?}"),
        };
        let want = "the certificates for etcd endpoint `https://a:1` cannot be used";
        assert_eq!(message(&secure), want);
        assert_eq!(why(&secure), format!("cannot read {}", file.display()));
        std::fs::write(&file, "nothing").unwrap();
        assert_eq!(message(&secure), want);
        let want = format!("{} holds no certificate in PEM form", file.display());
        assert_eq!(why(&secure), want);
    }
}
