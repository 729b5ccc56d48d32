//! The certificates of the server: which files it uses, and how it renews and reloads them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use component_base::Log;
use https_server::{
    CertificateFiles, ClientCertificates, Listener, OperatorPkiFiles, PkiFiles, PkiOptions,
    ReloadingCertificate, ServerNames,
};

use super::serve_flags::{Args, ListenFlags};

/// Interval at which the server reads certificate and CA files again. It stops trusting a removed CA
/// within ten seconds.
pub(super) const RELOAD_INTERVAL: Duration = Duration::from_secs(5);
/// Interval at which the server checks whether a certificate that it generated expires soon.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The addresses by which clients reach the server.
pub(super) struct ReachableAddresses {
    /// The address that the server announces to clients.
    pub(super) advertised_address: IpAddr,
    /// The other addresses of the host, if the server listens on all of them.
    other_host_addresses: Vec<IpAddr>,
}

/// Finds the addresses by which clients reach the server. Without `--advertise-address`, a server that listens on
/// all addresses announces the one from which its host connects to others.
///
/// # Errors
/// The server listens on all addresses, and the host has none that other hosts can connect to.
pub(super) fn find_reachable_addresses(
    listen: &ListenFlags,
    host_addresses: impl FnOnce() -> Vec<IpAddr>,
) -> anyhow::Result<ReachableAddresses> {
    let bound = listen.bind_address;
    let advertised = listen.advertise_address.filter(|own| !own.is_unspecified());
    if !bound.is_unspecified() {
        let advertised = advertised.unwrap_or(bound);
        return Ok(ReachableAddresses {
            advertised_address: advertised,
            other_host_addresses: Vec::new(),
        });
    }
    // A socket that is bound to `::` takes connections to IPv4 addresses too.
    let mut others = host_addresses();
    others.retain(|own| bound.is_ipv6() || own.is_ipv4());
    let advertised = advertised.or(others.first().copied()).with_context(|| {
        format!(
            "no client could verify this server: it listens on {bound}, and the host has no address that others \
             can connect to; name the address of the server with --advertise-address"
        )
    })?;
    Ok(ReachableAddresses { advertised_address: advertised, other_host_addresses: others })
}

/// Converts the flags to the options of the generated certificates.
pub(super) fn build_pki_options(args: &Args, reachable: &ReachableAddresses) -> PkiOptions {
    let listen = &args.listen_flags;
    let service_ip =
        listen.service_cluster_ip_range.map(|range| IpAddr::V4(range.first_cluster_ip()));
    let addresses = [Some(listen.bind_address), Some(reachable.advertised_address), service_ip];
    let addresses =
        addresses.into_iter().flatten().chain(reachable.other_host_addresses.iter().copied());
    let names = ServerNames::new(https_server::host_name().as_deref(), addresses);
    let serving_certificate = match (&listen.tls_cert_file, &listen.tls_private_key_file) {
        (Some(certificate), Some(key)) => {
            Some(CertificateFiles { certificate_path: certificate.clone(), key: key.clone() })
        }
        _ => None,
    };
    let operator_files = OperatorPkiFiles {
        serving_certificate,
        client_ca_file: args.authentication_flags.client_ca_file.clone(),
        service_account_key_file: args
            .authentication_flags
            .service_account_signing_key_file
            .clone(),
    };
    let directory = args.store_flags.data_dir.clone();
    PkiOptions {
        directory,
        server_names: names,
        operator_pki_files: operator_files,
        current_time: SystemTime::now(),
    }
}

/// Binds the listener with the serving certificate, and starts a task that loads the certificate again
/// when its files change.
///
/// # Errors
/// The certificate or its key cannot be used, or the address cannot be bound.
pub(super) fn bind_listener(
    address: SocketAddr,
    pki: &PkiFiles,
    log: Log,
) -> anyhow::Result<Listener> {
    let certificate = Arc::new(ReloadingCertificate::load(pki.serving_certificate.clone())?);
    let tls = Arc::new(https_server::tls_server_config(
        Arc::clone(&certificate),
        ClientCertificates::Optional,
    )?);
    let listener = Listener::bind(address, tls)?;
    tokio::spawn(certificate.reload_periodically(RELOAD_INTERVAL, move |result| match result {
        Ok(()) => log.notice("serving certificate reloaded", &[]),
        Err(error) => log.error("cannot reload the serving certificate", &[("why", error)]),
    }));
    Ok(listener)
}

/// Renews generated certificates and the kubeconfig that contains them, and never ends. The listener
/// serves a renewed certificate after it reads the file again.
pub(super) async fn renew_certificates_forever(
    options: PkiOptions,
    advertised_address: SocketAddr,
    log: Log,
) {
    https_server::renew_certificates_periodically(
        options,
        RENEWAL_INTERVAL,
        SystemTime::now,
        |renewed| {
            let written = renewed
                .map(|pki| (pki, https_server::write_admin_kubeconfig(pki, advertised_address)));
            match written {
                Ok((pki, Ok(_))) => {
                    for path in &pki.written_files {
                        log.notice("certificate renewed", &[("file", &path.display())]);
                    }
                }
                Ok((_, Err(error))) => {
                    log.error("cannot renew the kubeconfig", &[("why", &error)]);
                }
                Err(error) => {
                    let message =
                        "cannot renew a certificate; clients will refuse it after it expires";
                    log.error(message, &[("why", error)]);
                }
            }
        },
    )
    .await;
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::{Cli, Command};

    /// The advertised address and the names in the certificate, for a host with these addresses.
    fn found(flags: &[&str], host: &[&str]) -> Option<(String, Vec<String>)> {
        let cli = Cli::try_parse_from([&["portcullis", "serve"], flags].concat()).unwrap();
        let Command::Serve(args) = cli.subcommand else { panic!("another command") };
        let host = host.iter().map(|own| own.parse().unwrap()).collect();
        let reachable = find_reachable_addresses(&args.listen_flags, || host).ok()?;
        let names = build_pki_options(&args, &reachable).server_names;
        let others = names.ip_addresses().iter().filter(|own| !own.is_loopback());
        Some((reachable.advertised_address.to_string(), others.map(ToString::to_string).collect()))
    }

    /// Clients could not verify the certificate of a server that listened on all addresses.
    #[test]
    fn a_server_on_all_addresses_has_a_certificate_for_them() {
        let all = "--bind-address=0.0.0.0";
        let hosts: &[&str] = &["10.1.2.3", "10.9.0.1", "2001:db8::7"];
        for (flags, host, advertised, names) in [
            (&[][..], hosts, "127.0.0.1", &[][..]),
            (&["--bind-address=10.9.0.1"], hosts, "10.9.0.1", &["10.9.0.1"]),
            (&[all], hosts, "10.1.2.3", &["10.1.2.3", "10.9.0.1"]),
            (&["--bind-address=::"], hosts, "10.1.2.3", hosts),
            (
                &[all, "--advertise-address=192.0.2.9"],
                hosts,
                "192.0.2.9",
                &["192.0.2.9", "10.1.2.3", "10.9.0.1"],
            ),
            (&[all, "--advertise-address=0.0.0.0"], hosts, "10.1.2.3", &["10.1.2.3", "10.9.0.1"]),
            (&[all, "--advertise-address=192.0.2.9"], &[], "192.0.2.9", &["192.0.2.9"]),
        ] {
            let want = (advertised.to_owned(), names.iter().map(|own| (*own).to_owned()).collect());
            assert_eq!(found(flags, host), Some(want), "{flags:?} {host:?}");
        }
        assert_eq!(found(&[all], &[]), None);
        assert_eq!(found(&[all], &["2001:db8::7"]), None, "it does not listen there");
    }
}
