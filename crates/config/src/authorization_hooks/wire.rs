//! The decoded form of the file, before its rules are looked at.

use document::{Node, Scalar, Span, Value, View};

/// The file. Absent texts are empty.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    /// The place of the hooks, or of the document where there are none.
    pub(super) hooks_span: Span,
    pub(super) hooks: Vec<Hook>,
}

#[derive(Debug)]
pub(super) struct Hook {
    pub(super) span: Span,
    /// The key, if the hooks are a map.
    pub(super) key: Option<String>,
    pub(super) name: Scalar<String>,
    pub(super) client_config: ClientConfig,
}

#[derive(Debug, Default)]
pub(super) struct ClientConfig {
    pub(super) span: Span,
    pub(super) server_ca_file: Scalar<String>,
    pub(super) client_cert_file: Scalar<String>,
    pub(super) client_certificate_file: Scalar<String>,
    pub(super) client_key_file: Scalar<String>,
    pub(super) service: Option<Service>,
    pub(super) url: Scalar<String>,
}

#[derive(Debug)]
pub(super) struct Service {
    pub(super) span: Span,
    pub(super) name: Scalar<String>,
    pub(super) namespace: Scalar<String>,
}

impl Configuration {
    pub(super) fn read(root: &Node) -> Self {
        let view = View::new(root, root.span);
        let Some(entry) = view.get("externalAuthorizationHooks") else {
            return Self { hooks_span: view.span, hooks: Vec::new() };
        };
        let hooks = match &entry.value.value {
            Value::List(items) => items
                .iter()
                .map(|item| Hook::read(&View::new(item, item.span), None, Scalar::default()))
                .collect(),
            Value::Object(entries) => {
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_by_key(|entry| entry.key.as_str());
                let hook = |entry: &&document::Entry| {
                    let view = View::new(&entry.value, entry.key_span);
                    let name = Scalar {
                        value: entry.key.clone(),
                        span: Some(entry.key_span),
                        is_tagged: false,
                    };
                    Hook::read(&view, Some(entry.key.clone()), name)
                };
                entries.iter().map(hook).collect()
            }
            _ => Vec::new(),
        };
        Self { hooks_span: entry.key_span, hooks }
    }
}

impl Hook {
    /// `name` is what it is called unless it says so itself.
    fn read(view: &View<'_>, key: Option<String>, name: Scalar<String>) -> Self {
        let own_name = view.text("name");
        let name = if own_name.value.is_empty() && key.is_some() { name } else { own_name };
        let nothing = || ClientConfig { span: view.span, ..ClientConfig::default() };
        let client_config = view.object("clientConfig").map_or_else(nothing, ClientConfig::read);
        Self { span: view.span, key, name, client_config }
    }
}

impl ClientConfig {
    fn read(view: View<'_>) -> Self {
        let service = view.object("service").map(|view| Service {
            span: view.span,
            name: view.text("name"),
            namespace: view.text("namespace"),
        });
        Self {
            span: view.span,
            server_ca_file: view.text("serverCaFile"),
            client_cert_file: view.text("clientCertFile"),
            client_certificate_file: view.text("clientCertificateFile"),
            client_key_file: view.text("clientKeyFile"),
            service,
            url: view.text("url"),
        }
    }
}
