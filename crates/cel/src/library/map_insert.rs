//! The function `cel.@mapInsert`, which adds entries to a map. Macros with two variables expand to
//! it.
//!
//! The evaluator inserts into the accumulator of a comprehension in place. This module implements
//! all other calls.

use super::go_print::print_as_go;
use crate::function::{EvalError, EvalResult, FunctionRegistry, Overload};
use crate::static_type::Type;
use crate::value::{Map, OwnedMap, Value};

/// Declares `cel.@mapInsert`, which macros expand to.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let key = || Type::type_param("K");
    let value = || Type::type_param("V");
    let map = || Type::map_type_of(key(), value());
    functions.add_overloads(
        "cel.@mapInsert",
        vec![
            Overload::new_global_overload(
                "@mapInsert_map_key_value",
                vec![map(), key(), value()],
                map(),
                map_insert,
            ),
            Overload::new_global_overload(
                "@mapInsert_map_map",
                vec![map(), map()],
                map(),
                map_insert,
            ),
        ],
    );
}

fn map_insert<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Map(map), key, value] => {
            let mut map = copy_to_owned_map(map);
            insert_new_key(&mut map, key.clone(), value.clone())?;
            Ok(Value::Map(Map::from_owned_map(map)))
        }
        [Value::Map(map), Value::Map(entries)] => {
            let mut map = copy_to_owned_map(map);
            for (key, value) in entries.iter() {
                insert_new_key(&mut map, key, value)?;
            }
            Ok(Value::Map(Map::from_owned_map(map)))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn copy_to_owned_map<'a>(map: &Map<'a>) -> OwnedMap<'a> {
    if let Map::Owned(map) = map {
        return (**map).clone();
    }
    let mut copy = OwnedMap::new();
    for (key, value) in map.iter() {
        copy.insert(key, value);
    }
    copy
}

/// Adds an entry. It is an error if the map has the key already.
pub(crate) fn insert_new_key<'a>(
    map: &mut OwnedMap<'a>,
    key: Value<'a>,
    value: Value<'a>,
) -> Result<(), EvalError> {
    if map.get(&key).is_some() {
        return Err(EvalError::new(format!(
            "insert failed: key {} already exists",
            print_as_go(&key)
        )));
    }
    map.set(key, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(i64, i64)]) -> Value<'static> {
        let mut map = OwnedMap::new();
        for (key, value) in entries {
            assert!(map.insert(Value::Int(*key), Value::Int(*value)));
        }
        Value::Map(Map::from_owned_map(map))
    }

    #[test]
    fn inserts_an_entry_or_a_whole_map() {
        let one = map_insert(&[map(&[(1, 10)]), Value::Int(2), Value::Int(20)]).unwrap();
        assert!(one.equals(&map(&[(1, 10), (2, 20)])));
        let all = map_insert(&[map(&[]), map(&[(1, 10), (2, 20)])]).unwrap();
        assert!(all.equals(&map(&[(1, 10), (2, 20)])));
    }

    #[test]
    fn equal_keys_of_other_numeric_types_are_not_replaced() {
        for key in [Value::Int(1), Value::Uint(1), Value::Double(1.0)] {
            let outcome = map_insert(&[map(&[(1, 10)]), key, Value::Int(20)]);
            let want = EvalError::new("insert failed: key 1 already exists");
            assert_eq!(outcome.unwrap_err(), want);
        }
    }
}
