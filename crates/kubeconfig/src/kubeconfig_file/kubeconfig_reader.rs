//! The decoded form of a kubeconfig.
//!
//! As in Kubernetes, an absent text is the same as an empty text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use document::{
    DecodeProblem, FieldValue, LineIndex, Node, NodePath, ObjectReader, SourcePosition, Span,
    Value, WithPosition,
};

use super::exec_settings::ExecSettings;

/// Extra attributes of a user: lists of texts, sorted by key.
pub(crate) type UserExtra = Vec<(String, Vec<String>)>;

/// A kubeconfig. Names are unique in each list.
#[derive(Debug, Clone, PartialEq)]
pub struct Kubeconfig {
    /// Position of the document.
    pub position: SourcePosition,
    /// The name of the context that a client uses.
    pub current_context: WithPosition<String>,
    /// The entries of `contexts`: pairs of a cluster and a user.
    pub contexts: Vec<Context>,
    /// The entries of `clusters`.
    pub clusters: Vec<Cluster>,
    /// The entries of `users`, by name.
    pub users: Vec<User>,
}

/// A pair of a cluster and a user.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// The name of the context.
    pub name: String,
    /// The name of the cluster.
    pub cluster: WithPosition<String>,
    /// The name of the user.
    pub user: WithPosition<String>,
    /// The namespace that a client uses if none is given; empty for `default`.
    pub namespace: WithPosition<String>,
}

/// A named cluster: the server and how to verify it.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// The name of the cluster.
    pub name: String,
    /// The path of the object, such as `clusters[0].cluster`.
    pub field: String,
    /// Position of the object.
    pub position: SourcePosition,
    /// The URL of the server.
    pub server_url: WithPosition<String>,
    /// The name that the certificate of the server must have; empty for the host of the URL.
    pub tls_server_name: WithPosition<String>,
    /// Whether the client skips the verification of the server's certificate.
    pub insecure_skip_tls_verify: WithPosition<bool>,
    /// The file with the trusted CA certificates.
    pub certificate_authority: WithPosition<String>,
    /// The trusted CA certificates, in PEM.
    pub certificate_authority_data: WithPosition<Vec<u8>>,
    /// The URL of the proxy; empty for the proxy of the environment.
    pub proxy_url: WithPosition<String>,
    /// Whether the client avoids compressed responses.
    pub disable_compression: bool,
}

/// A named user: the credentials of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    /// The name of the user in this file.
    pub name: String,
    /// The path of the object, such as `users[0].user`.
    pub field: String,
    /// Position of the object.
    pub position: SourcePosition,
    /// File with the client certificate.
    pub client_certificate: WithPosition<String>,
    /// The client certificate, in PEM.
    pub client_certificate_data: WithPosition<Vec<u8>>,
    /// File with the key of the client certificate.
    pub client_key: WithPosition<String>,
    /// The key of the client certificate.
    pub client_key_data: WithPosition<Vec<u8>>,
    /// The bearer token of requests.
    pub token: WithPosition<String>,
    /// File with the bearer token.
    pub token_file: WithPosition<String>,
    /// The user name to impersonate.
    pub impersonate_user: WithPosition<String>,
    /// The uid to impersonate.
    pub impersonate_uid: WithPosition<String>,
    /// The groups to impersonate.
    pub impersonate_groups: WithPosition<Vec<String>>,
    /// The extra attributes to impersonate, by key.
    pub impersonate_extra: WithPosition<UserExtra>,
    /// The user name of basic authentication.
    pub username: WithPosition<String>,
    /// The password of basic authentication.
    pub password: WithPosition<String>,
    /// The value of `exec`: a program that provides credentials.
    pub exec_settings: Option<ExecSettings>,
    /// The position of `auth-provider`, a plugin that provides credentials.
    pub auth_provider_position: Option<SourcePosition>,
}

impl Kubeconfig {
    /// Creates a kubeconfig without content.
    pub(super) fn empty_kubeconfig(position: SourcePosition) -> Self {
        let current_context = WithPosition { value: String::new(), position };
        let (contexts, clusters, users) = Default::default();
        Self { position, current_context, contexts, clusters, users }
    }
}

/// Reads a tree whose types were checked. It still finds invalid base64, values of `as-user-extra`
/// that are not lists of texts, and duplicate names.
pub(super) fn read(root: &Node, lines: &LineIndex<'_>) -> Result<Kubeconfig, DecodeProblem> {
    let kubeconfig = KubeconfigReader { line_index: lines };
    let reader = ObjectReader::new(root, root.span);
    let contexts = kubeconfig.read_named_items(
        &reader,
        "contexts",
        "context",
        KubeconfigReader::read_context,
    )?;
    let clusters = kubeconfig.read_named_items(
        &reader,
        "clusters",
        "cluster",
        KubeconfigReader::read_cluster,
    )?;
    let users =
        kubeconfig.read_named_items(&reader, "users", "user", KubeconfigReader::read_user)?;
    check_no_duplicates(&contexts, "NamedContext", "Context")?;
    check_no_duplicates(&clusters, "NamedCluster", "Cluster")?;
    check_no_duplicates(&users, "NamedAuthInfo", "AuthInfo")?;
    Ok(Kubeconfig {
        position: lines.position_of_span(root.span),
        current_context: kubeconfig.read_text_field(&reader, "current-context"),
        contexts: item_values(contexts),
        clusters: item_values(clusters),
        users: item_values(users),
    })
}

/// One named item of a list, with its span.
struct NamedItem<T> {
    name: String,
    field: String,
    span: Span,
    value: T,
}

fn item_values<T>(items: Vec<NamedItem<T>>) -> Vec<T> {
    items.into_iter().map(|item| item.value).collect()
}

/// Checks that names are unique. Kubernetes' message shows the whole list with its secrets; this one
/// does not.
fn check_no_duplicates<T>(
    items: &[NamedItem<T>],
    wire: &str,
    name: &str,
) -> Result<(), DecodeProblem> {
    let mut seen = std::collections::HashSet::new();
    match items.iter().find(|item| !seen.insert(item.name.as_str())) {
        None => Ok(()),
        Some(item) => Err(DecodeProblem {
            path: format!("{}.name", item.field),
            message: format!(
                "error converting *[]{wire} into *map[string]*api.{name}: duplicate name \"{}\" in \
                 list",
                item.name
            ),
            span: item.span,
            hint: None,
        }),
    }
}

/// The Go type and the path of the object that owns a field, for messages.
pub(super) struct FieldOwner<'a> {
    pub(super) type_name: &'a str,
    pub(super) field: &'a str,
}

pub(super) struct KubeconfigReader<'l> {
    pub(super) line_index: &'l LineIndex<'l>,
}

impl KubeconfigReader<'_> {
    /// Reads the items of a list that have a name and, under `key`, the named object.
    fn read_named_items<T>(
        &self,
        reader: &ObjectReader<'_>,
        list: &str,
        key: &str,
        read: fn(&Self, String, String, &ObjectReader<'_>) -> Result<T, DecodeProblem>,
    ) -> Result<Vec<NamedItem<T>>, DecodeProblem> {
        let (_, nodes) = reader.read_list(list);
        let items = nodes.iter().enumerate().map(|(idx, node)| {
            let item = ObjectReader::new(node, node.span);
            let name = item.read_text("name");
            let at = NodePath::ROOT;
            let (at, empty) = (at.child_path(list), ObjectReader::empty_object_reader(node.span));
            let field = at.index(idx).path_with_indices();
            let inner = item.read_object(key).unwrap_or(empty);
            let value = read(self, name.value.clone(), format!("{field}.{key}"), &inner)?;
            let span = name.span.unwrap_or(node.span);
            Ok(NamedItem { name: name.value, field, span, value })
        });
        items.collect()
    }

    fn read_context(
        &self,
        name: String,
        _: String,
        reader: &ObjectReader<'_>,
    ) -> Result<Context, DecodeProblem> {
        Ok(Context {
            name,
            cluster: self.read_text_field(reader, "cluster"),
            user: self.read_text_field(reader, "user"),
            namespace: self.read_text_field(reader, "namespace"),
        })
    }

    fn read_cluster(
        &self,
        name: String,
        field: String,
        reader: &ObjectReader<'_>,
    ) -> Result<Cluster, DecodeProblem> {
        let owner = FieldOwner { type_name: "Cluster", field: &field };
        let data = self.read_base64(reader, "certificate-authority-data", &owner)?;
        Ok(Cluster {
            name,
            position: self.line_index.position_of_span(reader.span),
            server_url: self.read_text_field(reader, "server"),
            tls_server_name: self.read_text_field(reader, "tls-server-name"),
            insecure_skip_tls_verify: self.with_position(reader, self.read_skip_tls_verify(reader)),
            certificate_authority: self.read_text_field(reader, "certificate-authority"),
            certificate_authority_data: data,
            proxy_url: self.read_text_field(reader, "proxy-url"),
            disable_compression: reader.read_bool("disable-compression").unwrap_or_default(),
            field,
        })
    }

    fn read_user(
        &self,
        name: String,
        field: String,
        reader: &ObjectReader<'_>,
    ) -> Result<User, DecodeProblem> {
        let owner = FieldOwner { type_name: "AuthInfo", field: &field };
        let field_position = |name: &str| {
            let entry = reader.entry(name).filter(|entry| entry.value.value != Value::Null);
            entry.map(|entry| self.line_index.position_of_span(entry.key_span))
        };
        let certificate = self.read_base64(reader, "client-certificate-data", &owner)?;
        let key = self.read_base64(reader, "client-key-data", &owner)?;
        let extra = self.read_user_extra(reader, &owner)?;
        Ok(User {
            name,
            position: self.line_index.position_of_span(reader.span),
            client_certificate: self.read_text_field(reader, "client-certificate"),
            client_certificate_data: certificate,
            client_key: self.read_text_field(reader, "client-key"),
            client_key_data: key,
            token: self.read_text_field(reader, "token"),
            token_file: self.read_text_field(reader, "tokenFile"),
            impersonate_user: self.read_text_field(reader, "as"),
            impersonate_uid: self.read_text_field(reader, "as-uid"),
            impersonate_groups: self
                .with_position(reader, reader.read_field("as-groups", read_text_list)),
            impersonate_extra: extra,
            username: self.read_text_field(reader, "username"),
            password: self.read_text_field(reader, "password"),
            exec_settings: self.read_exec(reader, &owner)?,
            auth_provider_position: field_position("auth-provider"),
            field,
        })
    }

    pub(super) fn with_position<T>(
        &self,
        reader: &ObjectReader<'_>,
        scalar: FieldValue<T>,
    ) -> WithPosition<T> {
        let position = self.line_index.position_of_span(scalar.span.unwrap_or(reader.span));
        WithPosition { value: scalar.value, position }
    }

    pub(super) fn read_text_field(
        &self,
        reader: &ObjectReader<'_>,
        name: &str,
    ) -> WithPosition<String> {
        self.with_position(reader, reader.read_text(name))
    }

    fn read_skip_tls_verify(&self, reader: &ObjectReader<'_>) -> FieldValue<bool> {
        reader.read_field("insecure-skip-tls-verify", |value| match value {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        })
    }

    /// Reads bytes in base64 and ignores line breaks in the text.
    fn read_base64(
        &self,
        reader: &ObjectReader<'_>,
        name: &str,
        owner: &FieldOwner<'_>,
    ) -> Result<WithPosition<Vec<u8>>, DecodeProblem> {
        let FieldValue { value, span, .. } = reader.read_text(name);
        let span = span.unwrap_or(reader.span);
        let compact: String = value.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        match STANDARD.decode(&compact) {
            Ok(value) => {
                Ok(WithPosition { value, position: self.line_index.position_of_span(span) })
            }
            Err(error) => {
                let at = match error {
                    base64::DecodeError::InvalidByte(at, _)
                    | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                    base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => {
                        compact.len()
                    }
                };
                let path = format!("{}.{name}", owner.field);
                let message = format!("illegal base64 data at input byte {at}");
                Err(DecodeProblem { path, message, span, hint: None })
            }
        }
    }

    /// Reads `as-user-extra`: lists of texts by key.
    fn read_user_extra(
        &self,
        reader: &ObjectReader<'_>,
        owner: &FieldOwner<'_>,
    ) -> Result<WithPosition<UserExtra>, DecodeProblem> {
        let name = "as-user-extra";
        let Some(entry) = reader.entry(name) else {
            return Ok(WithPosition {
                value: Vec::new(),
                position: self.line_index.position_of_span(reader.span),
            });
        };
        let wrong = |node: &Node, go_type: &str| DecodeProblem {
            path: format!("{}.{name}", owner.field),
            message: format!(
                "json: cannot unmarshal {} into Go struct field {}.users.user.{name} of type \
                 {go_type}",
                node.value.kind(),
                owner.type_name
            ),
            span: node.span,
            hint: None,
        };
        let entries = match &entry.value.value {
            Value::Object(entries) => entries.as_slice(),
            Value::Null => &[],
            _ => return Err(wrong(&entry.value, "map[string][]string")),
        };
        let mut extra: UserExtra = Vec::with_capacity(entries.len());
        for entry in entries {
            let values = read_text_list(&entry.value.value)
                .or_else(|| (entry.value.value == Value::Null).then(Vec::new))
                .ok_or_else(|| wrong(&entry.value, "[]string"))?;
            extra.push((entry.key.clone(), values));
        }
        extra.sort_by(|(one, _), (other, _)| one.cmp(other));
        extra.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                std::mem::swap(later, kept);
            }
            is_same
        });
        Ok(WithPosition {
            value: extra,
            position: self.line_index.position_of_span(entry.value.span),
        })
    }
}

/// Reads a list of texts, in which null is an empty text. Returns `None` for any other value.
pub(super) fn read_text_list(value: &Value) -> Option<Vec<String>> {
    let Value::List(items) = value else { return None };
    let text = |node: &Node| match &node.value {
        Value::Text(text) => Some(text.as_str().to_owned()),
        Value::Null => Some(String::new()),
        _ => None,
    };
    items.iter().map(text).collect()
}
