//! The decoded form of a kubeconfig.
//!
//! As in Kubernetes an absent text is an empty one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use document::decode::{At, Problem};
use document::{Lines, Located, Node, Place, Scalar, Span, Value, View};

/// What else is known about a user: lists of texts by key, sorted by it.
pub(crate) type Extra = Vec<(String, Vec<String>)>;

/// A kubeconfig. Names are unique in each list.
#[derive(Debug, Clone, PartialEq)]
pub struct Kubeconfig {
    /// Where the document begins.
    pub place: Place,
    /// The name of the context that counts.
    pub current_context: Located<String>,
    /// Pairs of a cluster and a user.
    pub contexts: Vec<Context>,
    /// Services.
    pub clusters: Vec<Cluster>,
    /// Whom to be there.
    pub users: Vec<User>,
}

/// A pair of a cluster and a user.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// Its name.
    pub name: String,
    /// The name of the cluster.
    pub cluster: Located<String>,
    /// The name of the user.
    pub user: Located<String>,
}

/// A service.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// The field that it is, such as `clusters[0].cluster`.
    pub field: String,
    /// Where it stands.
    pub place: Place,
    /// Its URL.
    pub server: Located<String>,
    /// The name in its certificate.
    pub tls_server_name: Located<String>,
    /// Whether its certificate is not looked at.
    pub insecure_skip_tls_verify: Located<bool>,
    /// File with the trusted authorities.
    pub certificate_authority: Located<String>,
    /// The trusted authorities.
    pub certificate_authority_data: Located<Vec<u8>>,
    /// The proxy on the way.
    pub proxy_url: Located<String>,
    /// Whether answers must not be compressed.
    pub disable_compression: bool,
}

/// Whom to be at a service.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    /// Its name in this file.
    pub name: String,
    /// The field that it is, such as `users[0].user`.
    pub field: String,
    /// Where it stands.
    pub place: Place,
    /// File with the client certificate.
    pub client_certificate: Located<String>,
    /// The client certificate.
    pub client_certificate_data: Located<Vec<u8>>,
    /// File with the key of the client certificate.
    pub client_key: Located<String>,
    /// The key of the client certificate.
    pub client_key_data: Located<Vec<u8>>,
    /// The bearer token.
    pub token: Located<String>,
    /// File with the bearer token.
    pub token_file: Located<String>,
    /// Whom to impersonate.
    pub act_as: Located<String>,
    /// The uid to impersonate.
    pub act_as_uid: Located<String>,
    /// The groups to impersonate.
    pub act_as_groups: Located<Vec<String>>,
    /// What else to impersonate, by key.
    pub act_as_user_extra: Located<Extra>,
    /// The user name of basic authentication.
    pub username: Located<String>,
    /// The password of basic authentication.
    pub password: Located<String>,
    /// A program that makes credentials, if there is one.
    pub exec: Option<Place>,
    /// A plugin that makes credentials, if there is one.
    pub auth_provider: Option<Place>,
}

impl Kubeconfig {
    /// A file that says nothing.
    pub(super) fn empty(place: Place) -> Self {
        let current_context = Located { value: String::new(), place };
        let (contexts, clusters, users) = Default::default();
        Self { place, current_context, contexts, clusters, users }
    }
}

/// Reads a tree whose types were checked. What is left to find are texts that are no base64, maps
/// of other things than lists of texts, and names that stand twice.
pub(super) fn read(root: &Node, lines: &Lines<'_>) -> Result<Kubeconfig, Problem> {
    let reader = Reader { lines };
    let view = View::new(root, root.span);
    let contexts = reader.named(&view, "contexts", "context", Reader::context)?;
    let clusters = reader.named(&view, "clusters", "cluster", Reader::cluster)?;
    let users = reader.named(&view, "users", "user", Reader::user)?;
    no_duplicates(&contexts, "NamedContext", "Context")?;
    no_duplicates(&clusters, "NamedCluster", "Cluster")?;
    no_duplicates(&users, "NamedAuthInfo", "AuthInfo")?;
    Ok(Kubeconfig {
        place: lines.place(root.span),
        current_context: reader.text(&view, "current-context"),
        contexts: values(contexts),
        clusters: values(clusters),
        users: values(users),
    })
}

/// One item of a list, with its name and where it stands.
struct Item<T> {
    name: String,
    field: String,
    span: Span,
    value: T,
}

fn values<T>(items: Vec<Item<T>>) -> Vec<T> {
    items.into_iter().map(|item| item.value).collect()
}

/// Kubernetes' message shows the whole list, secrets included; this one does not.
fn no_duplicates<T>(items: &[Item<T>], wire: &str, name: &str) -> Result<(), Problem> {
    let mut seen = std::collections::HashSet::new();
    match items.iter().find(|item| !seen.insert(item.name.as_str())) {
        None => Ok(()),
        Some(item) => Err(Problem {
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

/// Where in the file a value is, for its fault: the wire type of its owner, and the path.
struct Owner<'a> {
    type_name: &'a str,
    field: &'a str,
}

struct Reader<'l> {
    lines: &'l Lines<'l>,
}

impl Reader<'_> {
    /// The items of a list that have a name and, behind another key, what bears it.
    fn named<T>(
        &self,
        view: &View<'_>,
        list: &str,
        key: &str,
        read: fn(&Self, String, String, &View<'_>) -> Result<T, Problem>,
    ) -> Result<Vec<Item<T>>, Problem> {
        let (_, nodes) = view.list(list);
        let items = nodes.iter().enumerate().map(|(idx, node)| {
            let item = View::new(node, node.span);
            let name = item.text("name");
            let at = At::ROOT;
            let (at, empty) = (at.child(list), View::empty(node.span));
            let field = at.index(idx).indexed();
            let inner = item.object(key).unwrap_or(empty);
            let value = read(self, name.value.clone(), format!("{field}.{key}"), &inner)?;
            let span = name.span.unwrap_or(node.span);
            Ok(Item { name: name.value, field, span, value })
        });
        items.collect()
    }

    fn context(&self, name: String, _: String, view: &View<'_>) -> Result<Context, Problem> {
        Ok(Context { name, cluster: self.text(view, "cluster"), user: self.text(view, "user") })
    }

    fn cluster(&self, name: String, field: String, view: &View<'_>) -> Result<Cluster, Problem> {
        let owner = Owner { type_name: "Cluster", field: &field };
        let data = self.data(view, "certificate-authority-data", &owner)?;
        Ok(Cluster {
            name,
            place: self.lines.place(view.span),
            server: self.text(view, "server"),
            tls_server_name: self.text(view, "tls-server-name"),
            insecure_skip_tls_verify: self.located(view, self.flag(view)),
            certificate_authority: self.text(view, "certificate-authority"),
            certificate_authority_data: data,
            proxy_url: self.text(view, "proxy-url"),
            disable_compression: view.flag("disable-compression").unwrap_or_default(),
            field,
        })
    }

    fn user(&self, name: String, field: String, view: &View<'_>) -> Result<User, Problem> {
        let owner = Owner { type_name: "AuthInfo", field: &field };
        let present = |name: &str| {
            let entry = view.get(name).filter(|entry| entry.value.value != Value::Null);
            entry.map(|entry| self.lines.place(entry.key_span))
        };
        let certificate = self.data(view, "client-certificate-data", &owner)?;
        let key = self.data(view, "client-key-data", &owner)?;
        let extra = self.extra(view, &owner)?;
        Ok(User {
            name,
            place: self.lines.place(view.span),
            client_certificate: self.text(view, "client-certificate"),
            client_certificate_data: certificate,
            client_key: self.text(view, "client-key"),
            client_key_data: key,
            token: self.text(view, "token"),
            token_file: self.text(view, "tokenFile"),
            act_as: self.text(view, "as"),
            act_as_uid: self.text(view, "as-uid"),
            act_as_groups: self.located(view, view.scalar("as-groups", texts)),
            act_as_user_extra: extra,
            username: self.text(view, "username"),
            password: self.text(view, "password"),
            exec: present("exec"),
            auth_provider: present("auth-provider"),
            field,
        })
    }

    fn located<T>(&self, view: &View<'_>, scalar: Scalar<T>) -> Located<T> {
        let place = self.lines.place(scalar.span.unwrap_or(view.span));
        Located { value: scalar.value, place }
    }

    fn text(&self, view: &View<'_>, name: &str) -> Located<String> {
        self.located(view, view.text(name))
    }

    fn flag(&self, view: &View<'_>) -> Scalar<bool> {
        view.scalar("insecure-skip-tls-verify", |value| match value {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        })
    }

    /// Bytes in base64, in which line breaks do not count.
    fn data(
        &self,
        view: &View<'_>,
        name: &str,
        owner: &Owner<'_>,
    ) -> Result<Located<Vec<u8>>, Problem> {
        let Scalar { value, span, .. } = view.text(name);
        let span = span.unwrap_or(view.span);
        let compact: String = value.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        match STANDARD.decode(&compact) {
            Ok(value) => Ok(Located { value, place: self.lines.place(span) }),
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
                Err(Problem { path, message, span, hint: None })
            }
        }
    }

    /// Lists of texts by key.
    fn extra(&self, view: &View<'_>, owner: &Owner<'_>) -> Result<Located<Extra>, Problem> {
        let name = "as-user-extra";
        let Some(entry) = view.get(name) else {
            return Ok(Located { value: Vec::new(), place: self.lines.place(view.span) });
        };
        let wrong = |node: &Node, go_type: &str| Problem {
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
        let mut extra: Extra = Vec::with_capacity(entries.len());
        for entry in entries {
            let values = texts(&entry.value.value)
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
        Ok(Located { value: extra, place: self.lines.place(entry.value.span) })
    }
}

/// A list of texts, in which null is an empty one; `None` if it is something else.
fn texts(value: &Value) -> Option<Vec<String>> {
    let Value::List(items) = value else { return None };
    let text = |node: &Node| match &node.value {
        Value::Text(text) => Some(text.as_str().to_owned()),
        Value::Null => Some(String::new()),
        _ => None,
    };
    items.iter().map(text).collect()
}
