//! The same expressions through both engines.

use std::sync::Arc;

use cel::{COST_LIMIT, Environment, Type, Value};

use crate::expressions::{Random, boolean};

const N_EXPRESSIONS: u64 = 6_000;

#[test]
fn random_expressions_have_the_same_outcome() {
    let environment = Environment::for_stored_expressions(vec![
        ("b", Type::Bool),
        ("n", Type::Int),
        ("m", Type::Int),
        ("s", Type::String),
        ("t", Type::String),
        ("l", Type::list_type_of(Type::String)),
    ]);
    let list = ["dev".to_owned(), "a".to_owned(), "kube-system".to_owned()];
    let mut theirs = peer::Context::default();
    theirs.add_variable_from_value("b", true);
    theirs.add_variable_from_value("n", 3_i64);
    theirs.add_variable_from_value("m", -9_223_372_036_854_775_807_i64);
    theirs.add_variable_from_value("s", "ab");
    theirs.add_variable_from_value("t", "kube-system");
    let peer_list = list.iter().map(|text| peer::Value::String(Arc::new(text.clone())));
    theirs.add_variable_from_value("l", peer::Value::List(Arc::new(peer_list.collect())));
    let ours = [
        Value::Bool(true),
        Value::Int(3),
        Value::Int(-9_223_372_036_854_775_807),
        Value::borrowed_string("ab"),
        Value::borrowed_string("kube-system"),
        Value::List(cel::List::Strings(&list)),
    ];

    let (mut values, mut errors) = (0, 0);
    for seed in 0..N_EXPRESSIONS {
        let source = boolean(&mut Random::new(seed), 4, &mut Vec::new());
        // A constant part that fails is refused here when it is compiled, there when it is run.
        let got = match environment.compile(&source) {
            Ok(program) => match program.evaluate(&ours, COST_LIMIT).result {
                Ok(Value::Bool(outcome)) => Some(outcome),
                Ok(other) => panic!("{source}: {other:?}"),
                Err(_) => None,
            },
            Err(cel::CompileError::Program(_)) => None,
            Err(error) => panic!("{source}: {error}"),
        };
        let program = peer::Program::compile(&source).unwrap();
        let want = match program.execute(&theirs) {
            Ok(peer::Value::Bool(outcome)) => Some(outcome),
            Ok(other) => panic!("{source}: {other:?}"),
            Err(_) => None,
        };
        assert_eq!(got, want, "{source}");
        match got {
            Some(_) => values += 1,
            None => errors += 1,
        }
    }
    // The generator must reach both kinds of outcome often, or the comparison is worth little.
    assert!(values > N_EXPRESSIONS / 4 && errors > N_EXPRESSIONS / 100, "{values} {errors}");
}
