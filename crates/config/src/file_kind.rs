//! Detects the kind of a file from its content.

use document::{DOCUMENT_BYTES_MAX, Source};
use manifests::{MANIFEST_BYTES_MAX, abac};

use crate::authorization_config::{GROUP, KIND};
use crate::authorization_hooks;

/// The kind of objects that configure admission hooks, not authorization hooks.
const ADMISSION_HOOK_KIND: &str = "ExternalAdmissionHookConfiguration";

const KUBECONFIG_KIND: &str = "Config";
const KUBECONFIG_API_VERSION: &str = "v1";

/// A kind of file that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A file of kind `AuthorizationConfiguration`.
    AuthorizationConfiguration,
    /// A file of kind `ExternalAuthorizationHookConfiguration`.
    HookConfiguration,
    /// A kubeconfig: clusters, users and contexts.
    Kubeconfig,
    /// A manifest of roles, bindings and other objects.
    Manifest,
    /// A file of ABAC policies, one on each line.
    AbacPolicy,
}

impl FileKind {
    /// The largest file of the kind that is read, in bytes.
    pub const fn file_bytes_max(self) -> usize {
        match self {
            Self::AuthorizationConfiguration | Self::HookConfiguration | Self::Kubeconfig => {
                DOCUMENT_BYTES_MAX
            }
            Self::Manifest => MANIFEST_BYTES_MAX,
            Self::AbacPolicy => abac::POLICY_FILE_BYTES_MAX,
        }
    }

    /// Detects the kind of a file; `None` if its content matches no kind.
    ///
    /// The beginning of a file is enough, and it need not be well-formed: the loader of the
    /// detected kind then reports the syntax error.
    ///
    /// 1. A file of ABAC policies begins with a brace, and one of its first lines is a policy.
    /// 2. The API group of the first `apiVersion`, or the first `kind`, identifies a configuration
    ///    or a policy; both together identify a kubeconfig. Any other pair is that of an object.
    /// 3. A file without both is a configuration if it has `authorizers`, and a kubeconfig if it
    ///    has `clusters`.
    pub fn detect_file_kind(source: &Source<'_>) -> Option<Self> {
        let text = source.text();
        if abac::looks_like_abac_policy_file(&text) {
            return Some(Self::AbacPolicy);
        }
        let (api_version, kind) =
            (text_after_key(&text, "apiVersion"), text_after_key(&text, "kind"));
        let group = api_version.map(|version| version.split('/').next().unwrap_or_default());
        if group == Some(abac::GROUP) {
            return Some(Self::AbacPolicy);
        }
        let is_configuration = group == Some(GROUP)
            || kind.is_some_and(|kind| field_errors::nearest_word(kind, [KIND]).is_some());
        if is_configuration {
            return Some(Self::AuthorizationConfiguration);
        }
        // The two names are similar, and only the authorization kind has its own file format.
        let alike = [authorization_hooks::KIND, ADMISSION_HOOK_KIND];
        let is_hooks = group == Some(authorization_hooks::GROUP)
            || kind.and_then(|kind| field_errors::nearest_word(kind, alike))
                == Some(authorization_hooks::KIND);
        if is_hooks {
            return Some(Self::HookConfiguration);
        }
        if kind == Some(KUBECONFIG_KIND)
            && api_version.is_none_or(|it| it == KUBECONFIG_API_VERSION)
        {
            return Some(Self::Kubeconfig);
        }
        if api_version.or(kind).is_some() {
            return Some(Self::Manifest);
        }
        let by_field = [
            ("authorizers", Self::AuthorizationConfiguration),
            ("externalAuthorizationHooks", Self::HookConfiguration),
            ("clusters", Self::Kubeconfig),
        ];
        by_field.into_iter().find_map(|(name, kind)| text_after_key(&text, name).map(|_| kind))
    }
}

/// Finds the text after the first key of this name, in YAML or JSON and at any depth.
fn text_after_key<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.match_indices(name).find_map(|(at, _)| {
        let (before, rest) = (text.get(..at)?, text.get(at + name.len()..)?);
        let line = before.rsplit(['\n', '\r']).next().unwrap_or_default();
        let is_comment = line.trim_start().starts_with('#');
        let is_whole =
            line.is_empty() || line.ends_with([' ', '\t', '{', ',', '"', '\'', '\u{feff}']);
        if is_comment || !is_whole {
            return None;
        }
        let rest = rest.trim_start_matches(['"', '\'']).trim_start();
        let rest = rest.strip_prefix(':')?.trim_start_matches([' ', '\t', '"', '\'']);
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '}' | '#');
        rest.split(ends).next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_detected_from_the_content() {
        use FileKind::{
            AbacPolicy, AuthorizationConfiguration, HookConfiguration, Kubeconfig, Manifest,
        };
        let v1beta1 = "abac.authorization.kubernetes.io/v1beta1";
        for (text, want) in [
            ("", None),
            ("# apiVersion: v1\n# kind: List\n", None),
            ("{}", None),
            ("a: b\n", None),
            ("\u{1b}\0\0", None),
            ("apiVersion: apiserver.config.k8s.io/v1\n", Some(AuthorizationConfiguration)),
            ("apiVersion: v1\nkind: AuthorizationConfiguraton\n", Some(AuthorizationConfiguration)),
            ("{\"kind\": \"AuthorizationConfiguration\"}", Some(AuthorizationConfiguration)),
            ("\u{feff}authorizers:\n- type: RBAC\n", Some(AuthorizationConfiguration)),
            (
                "apiVersion: kubeapiserverauthorization.config.k8s.io/v9\nkind: X\n",
                Some(HookConfiguration),
            ),
            ("kind: ExternalHook\n", Some(Manifest)),
            ("kind: ExternalAuthorizationHookConfiguratio\n", Some(HookConfiguration)),
            ("externalAuthorizationHooks: []\n", Some(HookConfiguration)),
            (
                "apiVersion: admissionregistration.k8s.io/v1alpha1\nkind: \
                 ExternalAdmissionHookConfiguration\n",
                Some(Manifest),
            ),
            ("kind: ExternalAdmisionHookConfiguration\n", Some(Manifest)),
            ("apiVersion: v1\nkind: Config\n", Some(Kubeconfig)),
            ("kind: Config\nclusters: []\n", Some(Kubeconfig)),
            ("clusters:\n- cluster: {server: https://h}\n", Some(Kubeconfig)),
            ("apiVersion: example.com/v1\nkind: Config\n", Some(Manifest)),
            ("{\n  \"apiVersion\" : \"v1\",\n  \"items\": [", Some(Manifest)),
            (
                "{\"kind\":\"RoleList\",\"apiVersion\":\"rbac.authorization.k8s.io/v1\"}",
                Some(Manifest),
            ),
            ("# a comment\n---\napiVersion: v1\nkind: ConfigMap\n", Some(Manifest)),
            ("{apiVersion: v1, kind: Pod}", Some(Manifest)),
            ("kind: Role\n", Some(Manifest)),
            (
                "apiVersion: v1\ndata:\n  c: |\n    apiVersion: apiserver.config.k8s.io/v1\n",
                Some(Manifest),
            ),
            ("my-apiVersion: v1\nkinds: 3\n", None),
            ("{\"user\":\"alice\"}\n", Some(AbacPolicy)),
            ("# comment\n\n{bad\n{\"readonly\":true}\n", Some(AbacPolicy)),
            ("{\"kind\":\"Policy\",\"spec\":{\"user\":\"bob\"}}", Some(AbacPolicy)),
            (&format!("{{\"apiVersion\":\"{v1beta1}\",\"kind\":\"Policy\"}}\n"), Some(AbacPolicy)),
            (&format!("{{\"apiVersion\":\"{v1beta1}\",\"kind\":\"Policy\"\n"), Some(AbacPolicy)),
            (
                "{\n\"kind\": \"RoleBinding\", \"subjects\": [\n{\"kind\":\"User\",\"name\":\"a\"}\n]}",
                Some(Manifest),
            ),
        ] {
            let found =
                FileKind::detect_file_kind(&Source { name: "-", file_bytes: text.as_bytes() });
            assert_eq!(found, want, "{text}");
        }
    }

    #[test]
    fn kinds_have_limits() {
        for kind in [FileKind::Manifest, FileKind::AbacPolicy] {
            assert!(kind.file_bytes_max() > FileKind::AuthorizationConfiguration.file_bytes_max());
        }
    }
}
