//! The decoded fields of the file, before validation.

use document::{FieldValue, Node, ObjectReader, Span, Value};

/// The decoded file. An absent text is empty.
#[derive(Debug, Default)]
pub(super) struct UnvalidatedAuthorizationHookConfig {
    /// Span of the hooks, or of the document if there are none.
    pub(super) authorization_hooks_span: Span,
    pub(super) authorization_hooks: Vec<UnvalidatedAuthorizationHook>,
}

#[derive(Debug)]
pub(super) struct UnvalidatedAuthorizationHook {
    pub(super) span: Span,
    /// The key, if the hooks are a map.
    pub(super) key: Option<String>,
    pub(super) name: FieldValue<String>,
    pub(super) client_config: ClientConfig,
}

#[derive(Debug, Default)]
pub(super) struct ClientConfig {
    pub(super) span: Span,
    pub(super) server_ca_file: FieldValue<String>,
    pub(super) client_cert_file: FieldValue<String>,
    pub(super) client_certificate_file: FieldValue<String>,
    pub(super) client_key_file: FieldValue<String>,
    pub(super) service: Option<Service>,
    pub(super) url: FieldValue<String>,
}

#[derive(Debug)]
pub(super) struct Service {
    pub(super) span: Span,
    pub(super) name: FieldValue<String>,
    pub(super) namespace: FieldValue<String>,
    pub(super) port: FieldValue<Option<i64>>,
}

impl UnvalidatedAuthorizationHookConfig {
    pub(super) fn read(root: &Node) -> Self {
        let reader = ObjectReader::new(root, root.span);
        let Some(entry) = reader.entry("externalAuthorizationHooks") else {
            return Self { authorization_hooks_span: reader.span, authorization_hooks: Vec::new() };
        };
        let hooks = match &entry.value.value {
            Value::List(items) => items
                .iter()
                .map(|item| {
                    UnvalidatedAuthorizationHook::read(
                        &ObjectReader::new(item, item.span),
                        None,
                        FieldValue::default(),
                    )
                })
                .collect(),
            Value::Object(entries) => {
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_by_key(|entry| entry.key.as_str());
                let hook = |entry: &&document::Entry| {
                    let reader = ObjectReader::new(&entry.value, entry.key_span);
                    let name = FieldValue {
                        value: entry.key.clone(),
                        span: Some(entry.key_span),
                        has_yaml_tag: false,
                    };
                    UnvalidatedAuthorizationHook::read(&reader, Some(entry.key.clone()), name)
                };
                entries.iter().map(hook).collect()
            }
            _ => Vec::new(),
        };
        Self { authorization_hooks_span: entry.key_span, authorization_hooks: hooks }
    }
}

impl UnvalidatedAuthorizationHook {
    /// Reads a hook. A hook without a `name` field gets `name`.
    fn read(reader: &ObjectReader<'_>, key: Option<String>, name: FieldValue<String>) -> Self {
        let own_name = reader.read_text("name");
        let name = if own_name.value.is_empty() && key.is_some() { name } else { own_name };
        let nothing = || ClientConfig { span: reader.span, ..ClientConfig::default() };
        let client_config =
            reader.read_object("clientConfig").map_or_else(nothing, ClientConfig::read);
        Self { span: reader.span, key, name, client_config }
    }
}

impl ClientConfig {
    fn read(reader: ObjectReader<'_>) -> Self {
        let service = reader.read_object("service").map(|reader| Service {
            span: reader.span,
            name: reader.read_text("name"),
            namespace: reader.read_text("namespace"),
            port: reader.read_field("port", |value| match value {
                Value::Number(number) => Some(Some(number.as_i64().unwrap_or(i64::MAX))),
                _ => None,
            }),
        });
        Self {
            span: reader.span,
            server_ca_file: reader.read_text("serverCaFile"),
            client_cert_file: reader.read_text("clientCertFile"),
            client_certificate_file: reader.read_text("clientCertificateFile"),
            client_key_file: reader.read_text("clientKeyFile"),
            service,
            url: reader.read_text("url"),
        }
    }
}
