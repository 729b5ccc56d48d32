//! The lines that the server prints when it is ready.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// The facts about a server that is ready.
pub(super) struct StartMessage<'a> {
    pub(super) server_address: SocketAddr,
    pub(super) store_name: &'a str,
    pub(super) authorizer_names: &'a str,
    /// The kubeconfig of the administrator, if the server generated one.
    pub(super) admin_kubeconfig: Option<&'a Path>,
    pub(super) startup_duration: Duration,
}

impl StartMessage<'_> {
    /// Writes the message and flushes the stream, so that a script can wait for the message.
    pub(super) fn write_start_message(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "serving https://{} from {}, authorization {}, ready in {} ms",
            self.server_address,
            self.store_name,
            self.authorizer_names,
            self.startup_duration.as_millis()
        )?;
        if let Some(path) = self.admin_kubeconfig {
            let path = path.display();
            writeln!(out, "admin kubeconfig: {path}\n\nTry:")?;
            writeln!(out, "  kubectl --kubeconfig {path} get namespaces")?;
            writeln!(out, "  kubectl --kubeconfig {path} auth can-i --list")?;
        }
        out.flush()
    }
}
