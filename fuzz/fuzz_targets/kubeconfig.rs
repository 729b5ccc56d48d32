//! Any bytes are a kubeconfig or a hook file, or are refused with positions inside of them.

#![no_main]

use std::io;
use std::path::Path;

use document::{Source, SourcePosition};
use kubeconfig::{LoadedConnections, parse_connections};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // A file named `a` is there and holds the same bytes; no other is.
    let read = |path: &Path| match path.file_name().and_then(|name| name.to_str()) {
        Some("a") => Ok(bytes.to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let source = Source { name: "file", file_bytes: bytes };
    let text = source.text();
    let check = |position: &SourcePosition| {
        assert!(position.line >= 1 && position.column >= 1, "{position:?}");
        assert!(text.get(position.start..position.end_offset).is_some(), "{position:?}");
    };
    let loaded = parse_connections(&source, Path::new("/x/config"), &read);
    match &loaded {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            error.diagnostics().iter().for_each(|found| check(&found.position));
        }
        Ok(LoadedConnections::Kubeconfig(connection)) => {
            assert_eq!(
                connection.source_files.first().map(|path| path.as_path()),
                Some(Path::new("/x/config"))
            );
            connection.warnings.iter().for_each(|warning| check(&warning.position));
        }
        Ok(LoadedConnections::Hooks(hooks)) => assert!(!hooks.is_empty()),
    }
    assert_eq!(parse_connections(&source, Path::new("/x/config"), &read), loaded);
});
