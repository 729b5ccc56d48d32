use std::collections::BTreeMap;

use authz::{FieldRequirement, LabelRequirement, Namespace, Selector, User, Verb};
use authz::{parse_field_selector, parse_label_selector};
use proptest::prelude::*;

use super::*;
use crate::encode_review::encode_review;
use crate::settings::ReviewVersion;

/// Attributes that own their texts. Each part has few values, so that equal attributes are frequent, and some
/// texts could run into each other.
#[derive(Debug, Clone)]
struct Owned {
    user: Option<User>,
    verb: &'static str,
    path: Option<&'static str>,
    parts: [&'static str; 7],
    fields: Option<Selector<FieldRequirement>>,
    labels: Option<Selector<LabelRequirement>>,
}

impl Owned {
    fn attributes(&self) -> Attributes<'_> {
        let [path, api_group, api_version, namespace, resource, subresource, name] = self.parts;
        let target = match self.path {
            Some(path) => Target::Path(path),
            None => Target::Resource(Resource {
                path,
                api_group,
                api_version,
                namespace: Namespace::new(namespace),
                resource,
                subresource,
                name,
                field_selector: self.fields.as_ref(),
                label_selector: self.labels.as_ref(),
            }),
        };
        Attributes { user: self.user.as_ref(), verb: Verb::new(self.verb), target }
    }
}

fn text() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "a", "aa", "b", "\u{1}", "a\u{1}a"])
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text().prop_map(str::to_owned), 0..3)
}

fn user() -> impl Strategy<Value = User> {
    let extra = prop::collection::btree_map(text().prop_map(str::to_owned), texts(), 0..3);
    (text(), text(), texts(), extra).prop_map(|(name, uid, groups, extra)| User {
        name: name.to_owned(),
        uid: uid.to_owned(),
        groups,
        extra,
    })
}

fn owned() -> impl Strategy<Value = Owned> {
    let parts = prop::array::uniform7(text());
    let fields = prop::sample::select(vec!["", "a=b", "a==b", "a!=b", "a=b,b=a", "a", "ab="]);
    let labels = prop::sample::select(vec![
        "",
        "a",
        "!a",
        "a=b",
        "a in (b)",
        "a in (b,c)",
        "a notin (b)",
        "a!=b",
        "a>1",
        "a=b,c<2",
        "a,b",
    ]);
    let fields =
        fields.prop_map(|text| Selector::from_selector_parse_result(parse_field_selector(text)));
    let labels =
        labels.prop_map(|text| Selector::from_selector_parse_result(parse_label_selector(text)));
    (prop::option::of(user()), text(), prop::option::of(text()), parts, fields, labels).prop_map(
        |(user, verb, path, parts, fields, labels)| Owned {
            user,
            verb,
            path,
            parts,
            fields,
            labels,
        },
    )
}

/// Two attributes that differ in few parts, or in none.
fn pair() -> impl Strategy<Value = (Owned, Owned)> {
    (owned(), owned(), 0..64_usize).prop_map(|(one, other, mask)| {
        let pick = |bit: usize| mask & (1 << bit) != 0;
        let near = Owned {
            user: if pick(0) { other.user } else { one.user.clone() },
            verb: if pick(1) { other.verb } else { one.verb },
            path: if pick(2) { other.path } else { one.path },
            parts: if pick(3) { other.parts } else { one.parts },
            fields: if pick(4) { other.fields } else { one.fields.clone() },
            labels: if pick(5) { other.labels } else { one.labels.clone() },
        };
        (one, near)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Keys are equal if and only if the encoded reviews are equal.
    /// L30: no input is missing in the key, and none runs into another.
    #[test]
    fn keys_are_equal_as_reviews_are((one, other) in pair()) {
        let state = foldhash::quality::RandomState::default();
        let (one, other) = (one.attributes(), other.attributes());
        let is_same = encode_review(&one, ReviewVersion::V1) == encode_review(&other, ReviewVersion::V1);
        let (one_hash, other_hash) = (hash(&one, &state), hash(&other, &state));
        let (one_key, other_key) = (CacheKey::new(&one, one_hash), CacheKey::new(&other, other_hash));
        prop_assert_eq!(one_key.canonical_form == other_key.canonical_form, is_same);
        prop_assert_eq!(one_key.matches_request(&other), is_same);
        prop_assert_eq!(other_key.matches_request(&one), is_same);
        prop_assert!(one_key.matches_request(&one));
        if is_same {
            prop_assert_eq!(one_hash, other_hash);
        }
    }
}

/// Texts of any length stay apart.
#[test]
fn lengths_are_told_apart() {
    let state = foldhash::quality::RandomState::default();
    for n in [0, 1, 126, 127, 128, 129, 16_383, 16_384, 100_000] {
        let long = "x".repeat(n);
        let asked = Attributes { user: None, verb: Verb::new(&long), target: Target::Path("x") };
        let key = CacheKey::new(&asked, hash(&asked, &state));
        assert!(key.matches_request(&asked), "{n}");
        assert_eq!(key.key_memory_bytes(), key.canonical_form.len());
        let longer = format!("{long}x");
        let other = Attributes { user: None, verb: Verb::new(&longer), target: Target::Path("") };
        assert!(!key.matches_request(&other), "{n}");
    }
}

#[test]
fn numbers_do_not_begin_with_each_other() {
    let numbers: Vec<Vec<u8>> = [0, 1, 127, 128, 255, 16_383, 16_384, usize::MAX]
        .into_iter()
        .map(|n| {
            let (digits, n_digits) = encode_varint(n);
            digits[..n_digits].to_vec()
        })
        .collect();
    for (at, one) in numbers.iter().enumerate() {
        for (other_at, other) in numbers.iter().enumerate() {
            assert_eq!(one.starts_with(other), at == other_at, "{one:?} {other:?}");
        }
    }
    assert_eq!(numbers.last().map(Vec::len), Some(DIGITS_MAX));
}

/// A review without a user equals the review of a user without attributes.
#[test]
fn nobody_is_an_empty_user() {
    let empty = User { extra: BTreeMap::new(), ..User::default() };
    let nobody = Attributes { user: None, verb: Verb::GET, target: Target::Path("/") };
    let asked = Attributes { user: Some(&empty), ..nobody };
    assert!(CacheKey::new(&nobody, 0).matches_request(&asked));
}
