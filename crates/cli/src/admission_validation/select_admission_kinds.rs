//! Selects the objects of a manifest that configure admission.

use admission::ConfigurationKind;
use manifests::KindHandling;

/// Keeps objects of the four kinds and rejects objects with a misspelled kind or version, because
/// skipping them would lose a hook silently.
pub(crate) fn decide_admission_kind_handling(api_version: &str, kind: &str) -> KindHandling {
    if ConfigurationKind::from_type_meta(api_version, kind).is_some() {
        return KindHandling::KeepUnstructured;
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_own_group = group == ConfigurationKind::GROUP;
    if let Some(known) = ConfigurationKind::ALL.into_iter().find(|own| own.name() == kind) {
        // Other groups may have kinds with the same names.
        let is_meant = match group {
            "" => version.starts_with('v') || is_misspelling_of(version, ConfigurationKind::GROUP),
            group => is_own_group || is_misspelling_of(group, ConfigurationKind::GROUP),
        };
        let hint = format!("use `{}/{}`", ConfigurationKind::GROUP, known.version());
        return if is_meant {
            KindHandling::Refuse { field: "apiVersion", hint }
        } else {
            KindHandling::Standard
        };
    }
    let nearest =
        field_errors::nearest_word(kind, ConfigurationKind::ALL.map(ConfigurationKind::name));
    match nearest {
        Some(nearest) if is_own_group => {
            KindHandling::Refuse { field: "kind", hint: format!("did you mean `{nearest}`?") }
        }
        Some(_) | None => KindHandling::Standard,
    }
}

fn is_misspelling_of(text: &str, known: &str) -> bool {
    field_errors::nearest_word(text, [known]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_kinds_and_versions_are_refused() {
        let own = "admissionregistration.k8s.io";
        let of =
            |api_version: &str, kind: &str| match decide_admission_kind_handling(api_version, kind)
            {
                KindHandling::Standard => "no".to_owned(),
                KindHandling::KeepUnstructured => "whole".to_owned(),
                KindHandling::Refuse { field, hint } => format!("{field}: {hint}"),
            };
        let v1 = format!("{own}/v1");
        for (api_version, kind, want) in [
            (v1.as_str(), "MutatingWebhookConfiguration", "whole"),
            (&format!("{own}/v1alpha1"), "InitializerConfiguration", "whole"),
            (
                &format!("{own}/v1beta1"),
                "ValidatingWebhookConfiguration",
                "apiVersion: use `admissionregistration.k8s.io/v1`",
            ),
            (
                &v1,
                "InitializerConfiguration",
                "apiVersion: use `admissionregistration.k8s.io/v1alpha1`",
            ),
            (
                "v1",
                "MutatingWebhookConfiguration",
                "apiVersion: use `admissionregistration.k8s.io/v1`",
            ),
            (
                "admissionregistrations.k8s.io/v1",
                "MutatingWebhookConfiguration",
                "apiVersion: use `admissionregistration.k8s.io/v1`",
            ),
            (
                &v1,
                "MutatingWebhookConfigurations",
                "kind: did you mean `MutatingWebhookConfiguration`?",
            ),
            (&v1, "ValidatingAdmissionPolicy", "no"),
            (&v1, "ValidatingAdmissionPolicyBinding", "no"),
            ("example.com/v1", "MutatingWebhookConfiguration", "no"),
            ("v1", "Pod", "no"),
        ] {
            assert_eq!(of(api_version, kind), want, "{api_version} {kind}");
        }
    }
}
