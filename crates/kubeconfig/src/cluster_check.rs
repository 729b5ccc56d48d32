//! Validates the cluster of a kubeconfig.

use crate::kubeconfig_file::Cluster;
use document::WithPosition;
use https_client::ProxyUrl;

use crate::load_error::ConfigProblem;
use crate::referenced_files::ReferencedFiles;

/// Returns the problems of a cluster, in Kubernetes' order and words.
pub(crate) fn find_cluster_problems(
    cluster: &Cluster,
    files: &mut ReferencedFiles<'_>,
) -> Vec<ConfigProblem> {
    let mut problems = Vec::new();
    let mut problem = |field: &str, position, message| {
        problems.push(ConfigProblem::new(&cluster.field, field, position, message));
    };
    let name = &cluster.name;
    if cluster.server_url.value.is_empty() {
        let message = match name.as_str() {
            "" => "default cluster has no server defined".to_owned(),
            name => format!("no server found for cluster {}", go_compat::quote(name)),
        };
        problem("server", cluster.server_url.position, message);
    }
    let proxy = &cluster.proxy_url;
    if !proxy.value.is_empty()
        && let Err(error) = ProxyUrl::parse(&proxy.value)
    {
        let message = format!(
            "invalid 'proxy-url' {} for cluster {}: {error}",
            go_compat::quote(&url_without_userinfo(&proxy.value)),
            go_compat::quote(name)
        );
        problem("proxy-url", proxy.position, message);
    }
    let WithPosition { value: file, position } = &cluster.certificate_authority;
    if !file.is_empty() && !cluster.certificate_authority_data.value.is_empty() {
        let message = format!(
            "certificate-authority-data and certificate-authority are both specified for {name}. \
             certificate-authority-data will override."
        );
        problem("certificate-authority", *position, message);
    }
    if !file.is_empty() {
        let path = files.resolve_path(file);
        if let Err(error) = files.read(&path) {
            let message = format!(
                "unable to read certificate-authority {} for {name} due to {error}",
                path.display()
            );
            problem("certificate-authority", *position, message);
        }
    }
    problems
}

/// Removes the user name and the password from a URL.
pub(crate) fn url_without_userinfo(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at_checked(start).unwrap_or((url, ""));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}{host}{rest}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_without_userinfo_removes_credentials() {
        for (url, want) in [
            ("ftp://user:secret@h/p", "ftp://h/p"),
            ("ftp://user:sec@ret@h?a@b", "ftp://h?a@b"),
            ("user:secret@h:1", "h:1"),
            ("ftp://h/a@b", "ftp://h/a@b"),
            ("", ""),
        ] {
            assert_eq!(url_without_userinfo(url), want);
        }
    }
}
