//! Any bytes load as hooks or are refused with positions inside of them. Loaded hooks satisfy the rules of
//! the format.

#![no_main]

use std::collections::BTreeSet;

use config::authorization_hooks::{
    AuthorizationHookEndpoint, HOOKS_MAX, is_authorization_hook_configuration,
    load_authorization_hooks,
};
use document::{Source, SourcePosition};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let source = Source { name: "file", file_bytes: bytes };
    let text = source.text();
    let check = |position: &SourcePosition| {
        assert!(position.line >= 1 && position.column >= 1, "{position:?}");
        assert!(text.get(position.start..position.end_offset).is_some(), "{position:?}");
    };
    let loaded = load_authorization_hooks(&source);
    loaded.warnings.iter().for_each(|warning| check(&warning.position));
    match &loaded.authorization_hooks {
        Ok(hooks) => {
            assert!(is_authorization_hook_configuration(&source));
            assert!((1..=HOOKS_MAX).contains(&hooks.len()));
            let names: BTreeSet<_> = hooks.iter().map(|hook| hook.name.as_str()).collect();
            assert_eq!(names.len(), hooks.len());
            for hook in hooks {
                check(&hook.client_config_position);
                if let AuthorizationHookEndpoint::Url(url) = &hook.endpoint {
                    assert!(url.get(..8).is_some_and(|it| it.eq_ignore_ascii_case("https://")));
                    assert!(!url.contains(['?', '#', ' ']), "{url}");
                }
            }
        }
        Err(error) => {
            assert!(!error.diagnostics().is_empty());
            error.diagnostics().iter().for_each(|found| check(&found.position));
            assert!(!error.to_string().is_empty());
        }
    }
});
