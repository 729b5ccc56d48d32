//! Any bytes load or are refused with positions inside of them. A loaded configuration can be written and
//! loaded again.

#![no_main]

use config::authorization_config::{
    LoadOptions, LoadedAuthorizationConfiguration, ServerRole, assume_regular_file,
    authorization_configuration_to_json, load_authorization_configuration,
};
use document::{Source, SourcePosition};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|bytes: &[u8]| {
    let loaded = load_bytes(bytes);
    check_places(bytes, &loaded);
    match &loaded.configuration {
        Ok(configuration) => {
            let first = authorization_configuration_to_json(configuration);
            let again = load_bytes(as_file(&first).as_bytes());
            assert!(again.warnings.is_empty(), "{:?}", again.warnings);
            match again.configuration {
                Ok(configuration) => {
                    assert_eq!(authorization_configuration_to_json(&configuration), first)
                }
                Err(error) => panic!("{first}\n{error}"),
            }
        }
        Err(error) => {
            assert!(!error.diagnostics().is_empty());
            let again = load_bytes(bytes).configuration;
            assert_eq!(again.err().map(|error| error.to_string()), Some(error.to_string()));
        }
    }
});

/// Loads without looking at the file system.
fn load_bytes(bytes: &[u8]) -> LoadedAuthorizationConfiguration {
    let options = LoadOptions {
        role: ServerRole::Delegated,
        stat_file: &assume_regular_file,
        ..LoadOptions::default()
    };
    load_authorization_configuration(&Source { name: "file", file_bytes: bytes }, &options)
}

fn check_places(bytes: &[u8], loaded: &LoadedAuthorizationConfiguration) {
    let text = Source { name: "file", file_bytes: bytes }.text();
    let check = |position: &SourcePosition| {
        assert!(position.line >= 1 && position.column >= 1, "{position:?}");
        assert!(text.get(position.start..position.end_offset).is_some(), "{position:?}");
    };
    for diagnostic in loaded.configuration.as_ref().err().into_iter().flat_map(|e| e.diagnostics())
    {
        check(&diagnostic.position);
        diagnostic.expression_issues.iter().for_each(|note| check(&note.position));
        // Whatever is shown to people has to be made without a panic too.
        let _ = (diagnostic.fault.to_string(), diagnostic.fault.field(), &diagnostic.hint);
    }
    loaded.warnings.iter().for_each(|warning| check(&warning.position));
}

/// A configuration as a file of its own.
fn as_file(configuration_to_json: &Value) -> String {
    let mut file = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
    });
    file["authorizers"] = configuration_to_json["authorizers"].clone();
    file.to_string()
}
