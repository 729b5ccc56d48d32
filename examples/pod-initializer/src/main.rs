//! An initializer that adds a container to pods before other clients see them.
//!
//! It takes `--name INITIALIZER --container NAME=IMAGE` from the command line, finds the server by
//! `KUBECONFIG`, and prints its actions to standard output. It acts on pods that wait for the initializer of
//! this name, when it is the turn of that initializer.
//!
//! Owns: the protocol of an initializer, and the change of a pod.
//! Must not know: Portcullis, except its API.

mod controller;
mod step;

use std::error::Error;
use std::process::ExitCode;

use kube::Client;

use controller::Controller;
use step::{Container, Initializer};

const USAGE: &str = "usage: pod-initializer --name INITIALIZER --container NAME=IMAGE";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let initializer = parse(std::env::args().skip(1)).ok_or(USAGE)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Client::try_default().await?;
        Controller { client, initializer }.run().await;
        Ok(())
    })
}

/// Parses the command line; `None` if it is incomplete or has other arguments.
fn parse(mut args: impl Iterator<Item = String>) -> Option<Initializer> {
    let (mut name, mut container) = (None, None);
    while let Some(flag) = args.next() {
        let value = args.next()?;
        match flag.as_str() {
            "--name" => name = Some(value),
            "--container" => {
                let (name, image) = value.split_once('=')?;
                container = Some(Container { name: name.to_owned(), image: image.to_owned() });
            }
            _ => return None,
        }
    }
    Some(Initializer { name: name?, container: container? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<Initializer> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn both_flags_are_needed() {
        let container = Container { name: "proxy".to_owned(), image: "r/p:1".to_owned() };
        let want = Initializer { name: "a.b.c".to_owned(), container };
        assert_eq!(parsed("--name a.b.c --container proxy=r/p:1"), Some(want));
        for wrong in [
            "",
            "--name a.b.c",
            "--container proxy=r/p:1",
            "--name a.b.c --container proxy",
            "--name a.b.c --container proxy=r/p:1 --other x",
            "--name a.b.c --container",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
