//! Certificates of ours that are about to expire while the server runs.

use std::time::{Duration, SystemTime};

use super::{Pki, PkiError, PkiOptions, prepare};

/// Renews what is about to expire, again and again for as long as the future is polled. `report` hears
/// of every renewal, and of every fault that is not the same as the one before.
///
/// Files that are missing are not made: the server runs with what it read, and a new key in the place
/// of one that somebody took away would be news to nobody until the next start.
pub async fn keep_renewing(
    mut options: PkiOptions,
    interval: Duration,
    clock: impl Fn() -> SystemTime,
    report: impl Fn(Result<&Pki, &PkiError>),
) {
    let mut last_fault = String::new();
    loop {
        tokio::time::sleep(interval).await;
        options.now = clock();
        let own = options.clone();
        // One that panics or is cancelled at shutdown is no news of the files.
        let Ok(outcome) = tokio::task::spawn_blocking(move || renew(&own)).await else {
            continue;
        };
        match outcome {
            Ok(pki) => {
                last_fault.clear();
                if !pki.written.is_empty() {
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

fn renew(options: &PkiOptions) -> Result<Pki, PkiError> {
    let supplied = &options.supplied;
    let pairs =
        [("apiserver", supplied.serving.is_none()), ("admin", supplied.client_ca.is_none())];
    let mut wanted: Vec<String> = pairs
        .iter()
        .filter(|(_, is_ours)| *is_ours)
        .flat_map(|(name, _)| [format!("{name}.crt"), format!("{name}.key")])
        .collect();
    if !wanted.is_empty() {
        wanted.push("ca.crt".to_owned());
    }
    if supplied.service_account_key.is_none() {
        wanted.extend(["sa.key".to_owned(), "sa.pub".to_owned()]);
    }
    for name in wanted {
        let path = options.directory.join(name);
        if !path.exists() {
            return Err(super::missing(&path, "it was there when the server started"));
        }
    }
    prepare(options)
}
