//! Any text is a token file, a key, an audit policy or a definition, or is refused.

#![no_main]

use api_resources::{CustomResourceDefinition, Registry};
use authn::{FrontProxyHeaders, SigningKey, TokenFile, VerifyingKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = audit::Policy::parse(bytes);
    if let Ok(tree) = serde_json::from_slice::<api_object::Tree>(bytes) {
        let _ = CustomResourceDefinition::read(&tree);
        let (registry, _) = Registry::with_custom_resource_definitions(&[&tree]);
        let _ = registry.discovery().groups.hash.len();
        let _ = api_object::DeleteOptions::parse_delete_options(&tree);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = TokenFile::parse("file", text);
    let _ = VerifyingKey::all_from_pem(text);
    let _ = SigningKey::from_pem(text);
    let names = [text.to_owned()];
    let _ = FrontProxyHeaders::new(&names, &names, &names, &names);
});
