//! The certificates of the server: which files it uses, and how it renews and reloads them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use https_server::{
    CertificateFiles, Listener, OperatorFiles, PkiFiles, PkiOptions, ReloadingCertificate,
    ServerNames,
};
use server::Log;

use super::serve_flags::Args;

/// Interval at which the server reads certificate and CA files again. It stops trusting a removed CA
/// within ten seconds.
pub(super) const RELOAD_INTERVAL: Duration = Duration::from_secs(5);
/// Interval at which the server checks whether a certificate that it generated expires soon.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Converts the flags to the options of the generated certificates.
pub(super) fn build_pki_options(args: &Args) -> PkiOptions {
    let listen = &args.listen;
    let service_ip = listen.service_cluster_ip_range.map(|range| IpAddr::V4(range.first_ip()));
    let addresses = [Some(listen.bind_address), listen.advertise_address, service_ip];
    let names =
        ServerNames::new(https_server::host_name().as_deref(), addresses.into_iter().flatten());
    let serving_certificate = match (&listen.tls_cert_file, &listen.tls_private_key_file) {
        (Some(certificate), Some(key)) => {
            Some(CertificateFiles { certificate: certificate.clone(), key: key.clone() })
        }
        _ => None,
    };
    let operator_files = OperatorFiles {
        serving_certificate,
        client_ca: args.authentication.client_ca_file.clone(),
        service_account_key: args.authentication.service_account_signing_key_file.clone(),
    };
    let directory = args.store.data_dir.clone();
    PkiOptions { directory, names, operator_files, now: SystemTime::now() }
}

/// Binds the listener with the serving certificate, and starts a task that loads the certificate again
/// when its files change.
///
/// # Errors
/// The certificate or its key can not be used, or the address can not be bound.
pub(super) fn bind_listener(
    address: SocketAddr,
    pki: &PkiFiles,
    log: Log,
) -> anyhow::Result<Listener> {
    let certificate = Arc::new(ReloadingCertificate::load(pki.serving_certificate.clone())?);
    let tls = Arc::new(https_server::tls_server_config(Arc::clone(&certificate))?);
    let listener = Listener::bind(address, tls)?;
    tokio::spawn(certificate.keep_reloading(RELOAD_INTERVAL, move |result| match result {
        Ok(()) => log.notice("serving certificate reloaded", &[]),
        Err(error) => log.error("can not reload the serving certificate", &[("why", error)]),
    }));
    Ok(listener)
}

/// Renews generated certificates and the kubeconfig that contains them, and never ends. The listener
/// serves a renewed certificate after it reads the file again.
pub(super) async fn keep_renewing(options: PkiOptions, advertised_address: SocketAddr, log: Log) {
    https_server::renew_periodically(options, RENEWAL_INTERVAL, SystemTime::now, |renewed| {
        let written =
            renewed.map(|pki| (pki, https_server::write_kubeconfig(pki, advertised_address)));
        match written {
            Ok((pki, Ok(_))) => {
                for path in &pki.written_files {
                    log.notice("certificate renewed", &[("file", &path.display())]);
                }
            }
            Ok((_, Err(error))) => {
                log.error("can not renew the kubeconfig", &[("why", &error)]);
            }
            Err(error) => {
                let message =
                    "can not renew a certificate; clients will refuse it after it expires";
                log.error(message, &[("why", error)]);
            }
        }
    })
    .await;
}
