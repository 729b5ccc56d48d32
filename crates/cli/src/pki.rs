//! `portcullis pki`: makes one set of certificates and keys for several servers.

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use field_errors::dns1123_subdomain_faults;
use https_server::{PkiError, ServerNames, SharedPkiOptions};

use crate::exit::Exit;

/// The port of a server whose address has none.
const DEFAULT_PORT: u16 = 6443;

/// Create and renew the certificates and keys that several servers share
///
/// A single server needs none: it makes its own. Servers on one etcd need one set, because otherwise
/// each of them refuses the certificates and tokens of the others.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis pki init ./pki --server https://gate.example.com:6443
  portcullis pki init ./pki --server 192.0.2.10:6443 --name gate-1.example.com,192.0.2.11
  portcullis pki renew ./pki")]
pub(crate) struct Args {
    #[command(subcommand)]
    pki_command: PkiCommand,
}

#[derive(Debug, clap::Subcommand)]
enum PkiCommand {
    /// Create the set: authorities of clients and of front proxies, service account keys, a serving
    /// certificate and an administrator's kubeconfig
    Init(PkiInitArgs),
    /// Renew the certificates of a set that expire within 30 days. Keys and authorities stay
    Renew(PkiRenewArgs),
}

#[derive(Debug, clap::Args)]
struct PkiInitArgs {
    /// Directory for the files; created if missing. Existing files are never overwritten
    directory: PathBuf,

    /// Address by which clients reach the servers: [https://]HOST[:PORT]
    #[arg(long = "server", value_name = "ADDRESS", value_parser = parse_server_address)]
    server_address: ServerAddress,

    /// Further DNS names and IP addresses of the servers, for their certificate
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = parse_host)]
    name: Vec<Host>,
}

#[derive(Debug, clap::Args)]
struct PkiRenewArgs {
    /// Directory of the set
    directory: PathBuf,
}

/// A DNS name or an IP address.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Name(String),
    Address(IpAddr),
}

/// The address by which clients reach the servers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerAddress {
    host: Host,
    port: u16,
}

/// An argument is no address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum ServerAddressError {
    #[error("clients reach servers by https only")]
    Scheme,
    #[error("`{0}` is no port")]
    Port(String),
    #[error("`{0}` is neither an IP address nor a DNS name")]
    Host(String),
    #[error("no client can connect to `{0}`")]
    Unspecified(IpAddr),
}

fn parse_host(text: &str) -> Result<Host, ServerAddressError> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return match address.is_unspecified() {
            true => Err(ServerAddressError::Unspecified(address)),
            false => Ok(Host::Address(address)),
        };
    }
    let name = text.to_ascii_lowercase();
    match dns1123_subdomain_faults(&name).is_empty() {
        true => Ok(Host::Name(name)),
        false => Err(ServerAddressError::Host(text.to_owned())),
    }
}

/// Parses `[https://]HOST[:PORT]`. An IPv6 address is in brackets if a port follows.
fn parse_server_address(text: &str) -> Result<ServerAddress, ServerAddressError> {
    let rest = match text.split_once("://") {
        Some(("https", rest)) => rest,
        Some(_) => return Err(ServerAddressError::Scheme),
        None => text,
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None if rest.parse::<IpAddr>().is_ok() => (rest, None),
        None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => match port.parse::<u16>() {
            Ok(number) if number > 0 => number,
            Ok(_) | Err(_) => return Err(ServerAddressError::Port(port.to_owned())),
        },
    };
    Ok(ServerAddress { host: parse_host(host)?, port })
}

impl ServerAddress {
    fn url(&self) -> String {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => format!("https://[{address}]:{}", self.port),
            Host::Address(IpAddr::V4(address)) => format!("https://{address}:{}", self.port),
            Host::Name(name) => format!("https://{name}:{}", self.port),
        }
    }
}

/// Creates or renews a set.
///
/// # Errors
/// Fails if a message cannot be written.
pub(crate) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let done = match &args.pki_command {
        PkiCommand::Init(args) => init(args, out)?,
        PkiCommand::Renew(args) => renew_pki(&args.directory, out)?,
    };
    match done {
        Ok(()) => Ok(Exit::Clean),
        Err(error) => {
            writeln!(err, "error: {:#}", anyhow::Error::new(error))?;
            Ok(Exit::Unreadable)
        }
    }
}

fn init(args: &PkiInitArgs, out: &mut dyn Write) -> io::Result<Result<(), PkiError>> {
    let hosts = || std::iter::once(&args.server_address.host).chain(&args.name);
    let addresses = hosts().filter_map(|host| match host {
        Host::Address(address) => Some(*address),
        Host::Name(_) => None,
    });
    let names = hosts().filter_map(|host| match host {
        Host::Name(name) => Some(name.clone()),
        Host::Address(_) => None,
    });
    let options = SharedPkiOptions {
        directory: args.directory.clone(),
        server_url: args.server_address.url(),
        server_names: ServerNames::new(None, addresses).with_dns_names(names),
        current_time: SystemTime::now(),
    };
    let written = match https_server::create_shared_pki(&options) {
        Ok(written) => written,
        Err(error) => return Ok(Err(error)),
    };
    let directory = args.directory.display();
    writeln!(
        out,
        "{} files in {directory}, readable for their owner only. Keep ca.key and front-proxy-ca.key away from
the servers, and the admin files too. Start each server with these flags:

  --client-ca-file {directory}/ca.crt
  --tls-cert-file {directory}/apiserver.crt --tls-private-key-file {directory}/apiserver.key
  --service-account-signing-key-file {directory}/sa.key --service-account-key-file {directory}/sa.pub
  --requestheader-client-ca-file {directory}/front-proxy-ca.crt
  --requestheader-allowed-names front-proxy-client

admin kubeconfig: {directory}/admin.kubeconfig",
        written.len(),
    )?;
    Ok(Ok(()))
}

fn renew_pki(directory: &Path, out: &mut dyn Write) -> io::Result<Result<(), PkiError>> {
    let renewed = match https_server::renew_shared_pki(directory, SystemTime::now()) {
        Ok(renewed) => renewed,
        Err(error) => return Ok(Err(error)),
    };
    if renewed.is_empty() {
        writeln!(out, "no certificate expires within 30 days")?;
    }
    for path in renewed {
        writeln!(out, "renewed {}", path.display())?;
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_servers() {
        for (text, want) in [
            ("gate.example.com", Ok("https://gate.example.com:6443")),
            ("https://Gate.example.com:443/", Ok("https://gate.example.com:443")),
            ("192.0.2.1:8443", Ok("https://192.0.2.1:8443")),
            ("[2001:db8::1]:8443", Ok("https://[2001:db8::1]:8443")),
            ("2001:db8::1", Ok("https://[2001:db8::1]:6443")),
            ("http://gate", Err(ServerAddressError::Scheme)),
            ("gate:0", Err(ServerAddressError::Port("0".to_owned()))),
            ("gate:x", Err(ServerAddressError::Port("x".to_owned()))),
            ("not a name", Err(ServerAddressError::Host("not a name".to_owned()))),
            ("", Err(ServerAddressError::Host(String::new()))),
            ("0.0.0.0", Err(ServerAddressError::Unspecified("0.0.0.0".parse().unwrap()))),
        ] {
            let found = parse_server_address(text).map(|own| own.url());
            assert_eq!(found, want.map(str::to_owned), "{text}");
        }
    }
}
