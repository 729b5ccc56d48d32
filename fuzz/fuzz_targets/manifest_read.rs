//! Any bytes are read as manifests or are refused with positions inside of them. Roles and bindings can be
//! written and read again.

#![no_main]

use config::FileKind;
use document::{Source, SourcePosition};
use libfuzzer_sys::fuzz_target;
use manifests::rbac;
use manifests::{AuthorizerObject, Manifests, find_duplicate_objects, lint_role_references, read};

fuzz_target!(|bytes: &[u8]| {
    let source = Source { name: "file", file_bytes: bytes };
    FileKind::detect_file_kind(&source);
    let manifests = read(&source);
    check_places(&source, &manifests);
    for fault in find_duplicate_objects(&manifests.authorizer_objects).errors {
        assert!(!fault.fault.to_string().is_empty());
    }
    // Without the default roles, which take longer to read than all else together.
    let warnings = lint_role_references(&manifests.authorizer_objects, false);
    assert!(warnings.len() <= manifests.authorizer_objects.len());

    let objects: Vec<&rbac::RbacObject> = rbac_objects(&manifests).collect();
    let text: String = objects.iter().map(|object| line(object)).collect();
    if !text.is_empty() {
        let again = read(&Source { name: "again", file_bytes: text.as_bytes() });
        assert!(again.errors.is_empty(), "{text}\n{:?}", again.errors);
        assert!(rbac_objects(&again).eq(objects), "{text}");
    }
});

fn rbac_objects(manifests: &Manifests) -> impl Iterator<Item = &rbac::RbacObject> {
    manifests.authorizer_objects.iter().filter_map(|found| match &found.authorizer_object {
        AuthorizerObject::Rbac(object) => Some(object),
        AuthorizerObject::Node(_) => None,
    })
}

fn line(object: &rbac::RbacObject) -> String {
    let value = rbac::encode_rbac_object(object).expect("an object can be encoded");
    format!("{value}\n")
}

fn check_places(source: &Source<'_>, manifests: &Manifests) {
    let text = source.text();
    let check = |position: &SourcePosition| {
        assert!(position.line >= 1 && position.column >= 1, "{position:?}");
        assert!(text.get(position.start..position.end_offset).is_some(), "{position:?}");
    };
    manifests.authorizer_objects.iter().for_each(|found| check(&found.position));
    manifests.warnings.iter().for_each(|warning| check(&warning.position));
    for error in &manifests.errors {
        check(&error.position);
        // Whatever is shown to people has to be made without a panic too.
        let _ = (error.fault.to_string(), error.fault.field(), &error.hint);
    }
}
