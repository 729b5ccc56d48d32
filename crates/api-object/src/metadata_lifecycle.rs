//! The metadata that the server sets on create and update.

use std::collections::HashSet;

use serde_json::Value;

use crate::object_tree::{Tree, integer_member, metadata, metadata_mut, string_member};
use crate::status::Status;

/// The characters of generated suffixes: no vowels, so that no words appear, and no look-alikes.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// The length of a generated suffix.
pub const SUFFIX_CHARS: usize = 5;
/// Upper bound on the part of the prefix that a generated name keeps.
const PREFIX_BYTES_MAX: usize = 58;

/// A name with this prefix and a random suffix.
#[must_use]
pub fn generate_name(prefix: &str, random: [u8; SUFFIX_CHARS]) -> String {
    let mut cut = prefix.len().min(PREFIX_BYTES_MAX);
    while !prefix.is_char_boundary(cut) {
        cut -= 1;
    }
    #[expect(
        clippy::indexing_slicing,
        reason = "INVARIANT: the index is a remainder by the length"
    )]
    let suffix = random.map(|byte| SUFFIX_ALPHABET[usize::from(byte) % SUFFIX_ALPHABET.len()]);
    let suffix = suffix.map(char::from);
    prefix[..cut].chars().chain(suffix).collect()
}

/// A version 4 UUID from random bytes.
#[must_use]
pub fn format_uuid4(random: [u8; 16]) -> String {
    format_uuid4_ascii(random).iter().copied().map(char::from).collect()
}

/// A version 4 UUID from random bytes, as ASCII characters and without an allocation.
#[must_use]
pub fn format_uuid4_ascii(mut random: [u8; 16]) -> [u8; 36] {
    random[6] = (random[6] & 0x0f) | 0x40;
    random[8] = (random[8] & 0x3f) | 0x80;
    let mut text = [b'-'; 36];
    let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' + value - 10 };
    let mut at = 0;
    for (idx, byte) in random.into_iter().enumerate() {
        if matches!(idx, 4 | 6 | 8 | 10) {
            at += 1;
        }
        if let Some([high, low]) = text.get_mut(at..at + 2) {
            *high = digit(byte >> 4);
            *low = digit(byte & 0xf);
        }
        at += 2;
    }
    text
}

/// Sets the namespace of the object to that of the request, which is empty for cluster-scoped
/// resources.
///
/// # Errors
/// 400 if the object names another namespace.
pub fn check_and_set_namespace(tree: &mut Tree, namespace: &str) -> Result<(), Status> {
    let own = metadata_mut(tree);
    match string_member(own, "namespace") {
        "" if namespace.is_empty() => {}
        "" => {
            own.insert("namespace".to_owned(), namespace.into());
        }
        _ if namespace.is_empty() => {
            own.shift_remove("namespace");
        }
        same if same == namespace => {}
        _ => {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the \
                 request",
            ));
        }
    }
    Ok(())
}

/// Sets uid, creation timestamp and the other members that only the server sets. The generation of a kind that counts
/// none is that of the client, as in Kubernetes.
pub fn set_creation_metadata(tree: &mut Tree, uid: String, now: &str, has_generation: bool) {
    let own = metadata_mut(tree);
    for member in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        own.shift_remove(member);
    }
    own.insert("uid".to_owned(), uid.into());
    own.insert("creationTimestamp".to_owned(), now.into());
    if has_generation {
        own.insert("generation".to_owned(), 1.into());
    } else if integer_member(own, "generation") == 0 {
        own.shift_remove("generation");
    }
}

/// Reports whether an object that is to be created names a revision of the store. Kubernetes refuses to store such an
/// object, and ignores the text `0` and texts that are no number.
#[must_use]
pub fn is_resource_version_set(resource_version: &str) -> bool {
    let is_number = resource_version.bytes().all(|byte| byte.is_ascii_digit());
    is_number && resource_version.parse().is_ok_and(|number: u64| number != 0)
}

/// Copies from the old object the members that updates cannot change. A deletionTimestamp that the old
/// object does not have is kept, so that the validation of the update refuses it.
pub fn copy_immutable_metadata(new: &mut Tree, old: &Tree) {
    let former = metadata(old);
    let own = metadata_mut(new);
    let mut carry = |member: &str, is_forced: bool| {
        let is_set = own.get(member).is_some();
        match former.get(member) {
            Some(value) if is_forced || !is_set => {
                own.insert(member.to_owned(), value.clone());
            }
            None if is_forced => {
                own.shift_remove(member);
            }
            _ => {}
        }
    };
    carry("uid", false);
    carry("deletionGracePeriodSeconds", false);
    carry("deletionTimestamp", former.get("deletionTimestamp").is_some());
    for member in ["generation", "creationTimestamp"] {
        carry(member, true);
    }
}

/// Removes duplicate owner references and returns their uids.
pub fn remove_duplicate_owners(tree: &mut Tree) -> Vec<String> {
    let own = metadata_mut(tree);
    let Some(owners) = own.get_mut("ownerReferences").and_then(Value::as_array_mut) else {
        return Vec::new();
    };
    let mut seen = HashSet::new();
    let mut repeated = Vec::new();
    owners.retain(|owner| {
        let is_new = seen.insert(owner.to_string());
        if !is_new {
            let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default();
            repeated.push(uid.to_owned());
        }
        is_new
    });
    repeated
}

/// The warning about duplicate owner references.
#[must_use]
pub fn duplicate_owners_warning(uids: &[String]) -> String {
    format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in \
         1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate \
         UID(s) observed: {}",
        uids.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tree(metadata: Value) -> Tree {
        let mut tree = Tree::new();
        tree.insert("metadata".to_owned(), metadata);
        tree
    }

    #[test]
    fn generated_names_keep_the_beginning() {
        let name = generate_name("gen-", [0, 1, 26, 27, 255]);
        assert_eq!(name, "gen-bc9bq");
        let long = generate_name(&"é".repeat(40), [0; 5]);
        assert_eq!(long.len(), 58 + 5);
        assert!(long.ends_with("bbbbb"));
    }

    #[test]
    fn uuids_say_their_version() {
        assert_eq!(format_uuid4([0; 16]), "00000000-0000-4000-8000-000000000000");
        assert_eq!(format_uuid4([255; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    #[test]
    fn a_new_object_gets_what_only_the_server_gives() {
        let mut own =
            tree(json!({"name": "a", "uid": "mine", "generation": 7, "deletionTimestamp": "x"}));
        assert!(check_and_set_namespace(&mut own, "default").is_ok());
        set_creation_metadata(&mut own, "u".to_owned(), "now", true);
        let want = json!({"name": "a", "uid": "u", "namespace": "default",
            "creationTimestamp": "now", "generation": 1});
        assert_eq!(own["metadata"], want);
        assert_eq!(check_and_set_namespace(&mut own, "other").unwrap_err().code, 400);
        for (sent, kept) in [(7, json!(7)), (0, Value::Null)] {
            let mut own = tree(json!({"generation": sent}));
            set_creation_metadata(&mut own, String::new(), "now", false);
            assert_eq!(own["metadata"].get("generation").cloned().unwrap_or_default(), kept);
        }
    }

    #[test]
    fn few_texts_name_a_revision() {
        for (text, want) in [
            ("5", true),
            ("012", true),
            ("", false),
            ("0", false),
            ("00", false),
            ("x", false),
            ("+5", false),
            ("99999999999999999999", false),
        ] {
            assert_eq!(is_resource_version_set(text), want, "{text}");
        }
    }

    #[test]
    fn an_update_keeps_what_the_server_gave() {
        let old = tree(json!({"uid": "u", "generation": 2, "creationTimestamp": "c"}));
        let mut new =
            tree(json!({"generation": 9, "creationTimestamp": "d", "labels": {"a": "b"}}));
        copy_immutable_metadata(&mut new, &old);
        let want =
            json!({"labels": {"a": "b"}, "uid": "u", "generation": 2, "creationTimestamp": "c"});
        assert_eq!(new["metadata"], want);
        // An update cannot change a deletionTimestamp, and only the server sets one.
        let marked = tree(json!({"deletionTimestamp": "d", "deletionGracePeriodSeconds": 0}));
        let mut new = tree(json!({"deletionTimestamp": "e"}));
        copy_immutable_metadata(&mut new, &marked);
        assert_eq!(new, marked);
        let mut new = marked.clone();
        copy_immutable_metadata(&mut new, &tree(json!({})));
        assert_eq!(new, marked);
    }

    #[test]
    fn repeated_owners_are_taken_out() {
        let mut own = tree(json!({"ownerReferences": [{"uid": "a"}, {"uid": "b"}, {"uid": "a"}]}));
        assert_eq!(remove_duplicate_owners(&mut own), ["a"]);
        assert_eq!(own["metadata"]["ownerReferences"], json!([{"uid": "a"}, {"uid": "b"}]));
    }
}
