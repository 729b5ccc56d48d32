//! Renewal of generated certificates while the server runs.

use std::time::{Duration, SystemTime};

use super::{PkiError, PkiFiles, PkiOptions, prepare_pki_files};

/// Renews certificates that expire soon, at each interval while the future is polled. `report`
/// receives every renewal, and every error that differs from the previous one.
///
/// Missing files are not generated: the server runs with the files that it has read, and no one would notice
/// a key that replaced a removed one until the next start.
pub async fn renew_certificates_periodically(
    mut options: PkiOptions,
    interval: Duration,
    clock: impl Fn() -> SystemTime,
    report: impl Fn(Result<&PkiFiles, &PkiError>),
) {
    let mut last_fault = String::new();
    loop {
        tokio::time::sleep(interval).await;
        options.current_time = clock();
        let own = options.clone();
        // A renewal that panics or is cancelled at shutdown says nothing about the files.
        let Ok(outcome) =
            tokio::task::spawn_blocking(move || renew_expiring_certificates(&own)).await
        else {
            continue;
        };
        match outcome {
            Ok(pki) => {
                last_fault.clear();
                if !pki.written_files.is_empty() {
                    report(Ok(&pki));
                }
            }
            Err(error) => {
                let fault = error.to_string();
                if fault != last_fault {
                    report(Err(&error));
                }
                last_fault = fault;
            }
        }
    }
}

fn renew_expiring_certificates(options: &PkiOptions) -> Result<PkiFiles, PkiError> {
    let operator_files = &options.operator_pki_files;
    let pairs = [
        ("apiserver", operator_files.serving_certificate.is_none()),
        ("admin", operator_files.client_ca_file.is_none()),
    ];
    let mut wanted: Vec<String> = pairs
        .iter()
        .filter(|(_, is_ours)| *is_ours)
        .flat_map(|(name, _)| [format!("{name}.crt"), format!("{name}.key")])
        .collect();
    if !wanted.is_empty() {
        wanted.push("ca.crt".to_owned());
    }
    if operator_files.service_account_key_file.is_none() {
        wanted.extend(["sa.key".to_owned(), "sa.pub".to_owned()]);
    }
    for name in wanted {
        let path = options.directory.join(name);
        if !path.exists() {
            return Err(super::missing_file_error(&path, "it was there when the server started"));
        }
    }
    prepare_pki_files(options)
}
