//! The names of a target in requests, handshakes and messages.

use http::Uri;
use http::uri::{Authority, PathAndQuery};
use rustls_pki_types::ServerName;

use crate::client::BuildError;
use crate::service_resolver::HostPort;
use crate::target::{Destination, Scheme, Target};

/// The names of a target in requests, handshakes and messages.
pub(crate) struct Endpoint {
    pub(crate) scheme: Scheme,
    /// The host and port to connect to; for a Service, its DNS name.
    pub(crate) host_port: HostPort,
    /// The name to verify in the certificate; `None` for plain HTTP.
    pub(crate) server_name: Option<ServerName<'static>>,
    authority: Authority,
    path: String,
}

impl Endpoint {
    pub(crate) fn new(target: &Target) -> Result<Self, BuildError> {
        let (scheme, host, port) = match &target.destination {
            Destination::Url { scheme, host, port } => (*scheme, host.clone(), *port),
            Destination::Service(service) => {
                if service.name.is_empty()
                    || service.namespace.is_empty()
                    || service.port == Some(0)
                {
                    return Err(BuildError::Service);
                }
                (Scheme::Https, service.service_dns_name(), service.port)
            }
        };
        let path = join_path_to_root(&target.path);
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let authority = match port {
            Some(port) => format!("{bracketed}:{port}"),
            None => bracketed,
        };
        let server_name = match scheme {
            Scheme::Http => None,
            Scheme::Https => {
                let name = target.server_name.as_deref().unwrap_or(&host);
                let parsed = ServerName::try_from(name.to_owned());
                Some(parsed.map_err(|_| BuildError::ServerName(name.to_owned()))?)
            }
        };
        let authority = authority.parse::<Authority>().map_err(|_| BuildError::Url)?;
        if host.is_empty() || authority.as_str().contains('@') || path.contains(['?', '#']) {
            return Err(BuildError::Url);
        }
        path.parse::<PathAndQuery>().map_err(|_| BuildError::Url)?;
        let host_port = HostPort { host, port: port.unwrap_or(scheme.default_port()) };
        Ok(Self { scheme, host_port, server_name, authority, path })
    }

    /// The authority `host` or `host:port`, as the target has it.
    pub(crate) fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// The URL of a request; `None` if the query is not valid in a URL.
    pub(crate) fn request_uri(&self, query: &str) -> Option<Uri> {
        let path_and_query = match query {
            "" => self.path.clone(),
            query => format!("{}?{query}", self.path),
        };
        self.build_uri(path_and_query)
    }

    /// The URL of another path of the server, below the path of the target: a server behind a gateway has its API below a
    /// path of the gateway. `None` if the path is not valid in a URL.
    pub(crate) fn path_uri(&self, path_and_query: &str) -> Option<Uri> {
        self.build_uri(format!("{}{path_and_query}", self.path.trim_end_matches('/')))
    }

    fn build_uri(&self, path_and_query: String) -> Option<Uri> {
        let builder = Uri::builder().scheme(self.scheme.as_str());
        builder.authority(self.authority.clone()).path_and_query(path_and_query).build().ok()
    }
}

/// Joins a path to the root of a URL as clients of Kubernetes do: repeated slashes, a slash at the end, `.` and `..` leave no
/// trace. `https://host:port//path` is a URL that many projects write, and its server knows `/path` only.
fn join_path_to_root(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::ServiceName;

    fn url(host: &str, port: Option<u16>, path: &str) -> Result<String, BuildError> {
        let place = Destination::Url { scheme: Scheme::Https, host: host.to_owned(), port };
        let endpoint = Endpoint::new(&Target::new(place, path))?;
        Ok(endpoint.request_uri("timeout=3s").unwrap().to_string())
    }

    #[test]
    fn url_of_an_endpoint() {
        assert_eq!(url("h", None, "").unwrap(), "https://h/?timeout=3s");
        assert_eq!(url("::1", Some(8443), "/a/b").unwrap(), "https://[::1]:8443/a/b?timeout=3s");
        for (host, path) in [("", "/"), ("a b", "/"), ("a/b", "/"), ("u@h", "/"), ("h", "/a?b")] {
            assert!(url(host, None, path).is_err(), "{host} {path}");
        }
    }

    #[test]
    fn paths_below_a_gateway() {
        for (base, want) in
            [("", "https://h/api/v1?limit=1"), ("/k8s/c1/", "https://h/k8s/c1/api/v1?limit=1")]
        {
            let scheme = Scheme::Https;
            let host = Destination::Url { scheme, host: "h".to_owned(), port: None };
            let endpoint = Endpoint::new(&Target::new(host, base)).unwrap();
            assert_eq!(endpoint.path_uri("/api/v1?limit=1").unwrap().to_string(), want);
        }
    }

    /// Test suites of controller-runtime configure webhooks with `//` before the path.
    #[test]
    fn paths_are_joined_to_the_root() {
        for (path, want) in [
            ("", "/"),
            ("/", "/"),
            ("//", "/"),
            ("//validate", "/validate"),
            ("/a//b/", "/a/b"),
            ("/a/./b/../c", "/a/c"),
            ("/../..", "/"),
            ("a", "/a"),
            ("/a%2F/b", "/a%2F/b"),
        ] {
            let want = format!("https://h{want}?timeout=3s");
            assert_eq!(url("h", None, path).unwrap(), want, "{path}");
        }
    }

    /// The names of a Service in URL and handshake.
    #[test]
    fn service_names_in_url_and_handshake() {
        let service =
            ServiceName { namespace: "andromeda".to_owned(), name: "ross".to_owned(), port: None };
        for (port, authority) in
            [(Some(1002), "ross.andromeda.svc:1002"), (None, "ross.andromeda.svc")]
        {
            let service = ServiceName { port, ..service.clone() };
            let endpoint = Endpoint::new(&Target::new(Destination::Service(service), "")).unwrap();
            let uri = endpoint.request_uri("").unwrap();
            assert_eq!(uri.to_string(), format!("https://{authority}/"));
            assert_eq!(endpoint.authority(), authority);
            assert_eq!(endpoint.server_name.unwrap().to_str(), "ross.andromeda.svc");
        }
    }

    /// A Service without a name, namespace or port is refused.
    #[test]
    fn services_without_name_namespace_or_port_are_refused() {
        for (namespace, name, port) in [("", "ross", 443), ("andromeda", "", 443), ("a", "b", 0)] {
            let (namespace, name, port) = (namespace.to_owned(), name.to_owned(), Some(port));
            let target =
                Target::new(Destination::Service(ServiceName { namespace, name, port }), "");
            let error = Endpoint::new(&target).err().unwrap().to_string();
            assert_eq!(error, "cannot resolve an empty service name or namespace or port");
        }
    }
}
