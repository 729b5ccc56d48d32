//! Random trees for property tests.

use proptest::prelude::*;
use serde_json::Value;

/// An object with members of every kind, a few levels deep.
pub(crate) fn tree() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".{0,12}",
        "[ -~\n]{0,24}",
        "(true|yes|null|~|1|0x1F|1e3|2001-01-01|a: b|a #b|- a|\\? a|<<|=|\\.5|1_0|:|-|a:)"
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::hash_map(text.clone(), inner, 0..6)
                .prop_map(|members| members.into_iter().collect()),
        ]
    });
    proptest::collection::hash_map(".{0,8}", value, 0..6)
        .prop_map(|members| members.into_iter().collect())
}
