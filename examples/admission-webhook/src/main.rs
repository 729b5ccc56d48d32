//! An admission webhook: `/mutate` adds a label to pods, `/validate` checks the registry of their images.
//!
//! It takes `CERTIFICATE KEY ADDRESS REGISTRY` from the command line: two PEM files, the address to listen
//! on and the permitted registry. It prints its address and its answers to standard output. Portcullis and
//! kube-apiserver can both call it.
//!
//! Owns: the decisions, the wire form of a review as far as they need it, TLS.
//! Must not know: Portcullis, and who registers it.

mod decide;
mod review;
mod service;

use std::error::Error;
use std::path::PathBuf;

use service::Service;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(certificate), Some(key), Some(address), Some(registry), None) =
        (args.next(), args.next(), args.next(), args.next(), args.next())
    else {
        return Err("usage: admission-webhook CERTIFICATE KEY ADDRESS REGISTRY".into());
    };
    let service = Service {
        certificate: PathBuf::from(certificate),
        key: PathBuf::from(key),
        address: address.parse()?,
        registry,
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(service.run())
}
