//! A folder with certificates, in which tests load kubeconfigs.

use std::path::{Path, PathBuf};

use fake_http::{Authority, Issued, Leaf};
use kubeconfig::{LoadError, LoadedConnections, ServerConnection, load_connections, read_file};

/// A folder with the CA certificate `ca.pem`, the client certificate `client.pem` and its key `client.key`, a
/// token, and a file that is none of these.
pub(crate) struct TestFolder {
    folder: tempfile::TempDir,
    pub(crate) client: Issued,
}

impl TestFolder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("authority").unwrap();
        let client = authority.issue(&Leaf::client("client")).unwrap();
        let it = Self { folder, client };
        it.write("ca.pem", &authority.pem());
        it.write("client.pem", &it.client.certificate_pem);
        it.write("client.key", &it.client.key_pem);
        it.write("token", "from-file\n");
        it.write("junk", "neither a certificate nor a key");
        it
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn load(&self, content: &str) -> Result<LoadedConnections, LoadError> {
        load_connections(&self.write("config", content), &read_file)
    }

    /// The connection of a kubeconfig.
    pub(crate) fn connection(&self, content: &str) -> ServerConnection {
        match self.load(content) {
            Ok(LoadedConnections::Kubeconfig(connection)) => *connection,
            other => panic!("expected a connection, got {other:?}\n{content}"),
        }
    }

    /// The error message of a file that is refused, without the folder, and the position of the first fault.
    pub(crate) fn refusal(&self, content: &str) -> String {
        let error = self.load(content).unwrap_err();
        let folder = format!("{}/", self.folder.path().display());
        let test_folder = match error.diagnostics().first() {
            Some(first) => format!("{}:{} ", first.position.line, first.position.column),
            None => String::new(),
        };
        format!("{test_folder}{}", error.to_string().replace(&folder, ""))
    }

    /// The names of the files that a connection depends on.
    pub(crate) fn names(&self, files: &[PathBuf]) -> Vec<String> {
        let name = |path: &PathBuf| {
            let path = path.strip_prefix(self.folder.path()).unwrap_or(path);
            path.display().to_string()
        };
        files.iter().map(name).collect()
    }
}

/// A kubeconfig of one cluster and one user, both without a name.
pub(crate) fn config(cluster: &str, user: &str) -> String {
    format!("clusters:\n- cluster: {{{cluster}}}\nusers:\n- user: {{{user}}}\n")
}

/// Encodes bytes for a `-data` field of a kubeconfig.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |idx: usize| u32::from(chunk.get(idx).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = usize::try_from(bits >> (18 - 6 * digit) & 63).unwrap();
            text.push(if digit <= chunk.len() { char::from(DIGITS[value]) } else { '=' });
        }
    }
    text
}

/// Reports whether two paths name the same file.
pub(crate) fn is_at(path: &Path, folder: &TestFolder, name: &str) -> bool {
    path == folder.path(name)
}
