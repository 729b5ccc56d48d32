//! The fast path and the general form of a test always have the same result and the same cost.

use super::SINGLE_TESTS_MAX;
use crate::eval::{Evaluator, LocalSlot};
use crate::ir::CompiledExpr;
use crate::plan::{Plan, plan_expression};
use crate::type_check::CheckedAst;
use crate::value::{List, Map, RecordSource, Value};
use crate::{COST_LIMIT, CompileBudget, Environment, ObjectType, Type};

/// A record with a text, an optional text, a list and an optional record.
#[derive(Debug)]
struct Thing {
    name: &'static str,
    label: Option<&'static str>,
    tags: Vec<String>,
    inner: Option<Box<Thing>>,
}

impl RecordSource for Thing {
    fn field_names(&self) -> &'static [&'static str] {
        &["name", "label", "tags", "inner"]
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        match index {
            0 => Some(Value::borrowed_string(self.name)),
            1 => self.label.map(Value::borrowed_string),
            2 => Some(Value::List(List::Strings(&self.tags))),
            3 => self.inner.as_deref().map(|inner| Value::Map(Map::Record(inner))),
            _ => None,
        }
    }
}

fn environment() -> Environment {
    let fields = |inner| {
        vec![
            ("name", Type::String),
            ("label", Type::String),
            ("tags", Type::list_type_of(Type::String)),
            ("inner", inner),
        ]
    };
    let inner = Type::Object(ObjectType::new("Inner", fields(Type::Dyn)));
    let thing = Type::Object(ObjectType::new("Thing", fields(inner)));
    Environment::for_stored_expressions(vec![("x", thing.clone()), ("y", thing)])
}

fn things() -> Vec<Thing> {
    let names = ["", "a", "abcdefghij", "abcdefghijk", "ünïcödé ünïcödé", "kube-system"];
    let tags: [&[&str]; 4] = [&[], &["a"], &["b", "abcdefghijk"], &["ünïcödé ünïcödé", "a", "z"]];
    let mut things = Vec::new();
    for (n, name) in names.into_iter().enumerate() {
        let tags: Vec<String> = tags[n % tags.len()].iter().map(|&tag| tag.to_owned()).collect();
        let inner = (n % 2 == 0).then(|| {
            let label = (n % 4 == 0).then_some(name);
            Box::new(Thing { name, label, tags: tags.clone(), inner: None })
        });
        let label = (n % 3 == 0).then_some("abc");
        things.push(Thing { name, label, tags, inner });
    }
    things
}

/// One expression for each form that has a fast path.
const FAST_PATH_EXPRESSIONS: &[&str] = &[
    "has(x.label)",
    "has(x.inner)",
    "has(x.inner.label)",
    "x.name == 'a'",
    "'kube-system' == x.name",
    "x.name != y.name",
    "x.inner.name == x.name",
    "x.label == ''",
    "x.name.startsWith('abcdefghijk')",
    "x.name.endsWith(y.name)",
    "x.name.contains('ïcö')",
    "x.name in y.tags",
    "'a' in x.inner.tags",
    "x.name in ['a', 'b']",
    "x.name in ['1', '2', '3', '4', '5', '6', '7', '8', 'a']",
    "x.tags.exists(t, t == 'a')",
    "x.tags.all(t, t.startsWith('a'))",
    "x.tags.exists(t, t in y.tags)",
    "x.tags.all(t, t != y.name)",
    "x.inner.tags.exists(t, t.contains(x.name))",
    "!(x.name == 'a')",
    "!has(x.inner) || x.inner.name == 'a'",
    "has(x.label) && x.label == 'abc' && !(x.name in y.tags)",
    "x.name == 'a' && (x.label == 'abc' || y.name == 'a')",
    "x.tags.all(t, t == 'a' || !t.startsWith('ab'))",
];

fn plan_of(checked: &CheckedAst, environment: &Environment) -> Plan {
    plan_expression(checked, checked.ast.root_node, environment, &mut CompileBudget::default())
        .unwrap()
}

#[test]
fn fast_path_and_general_form_agree() {
    let environment = environment();
    let things = things();
    let (mut n_answered, mut n_declined) = (0, 0);
    for source in FAST_PATH_EXPRESSIONS {
        let checked = environment.check(source).map_err(|issues| issues.to_string()).unwrap();
        let plan = plan_of(checked.checked_ast(), &environment);
        let CompiledExpr::FastPath(fast_path) = &plan.compiled_expr else {
            panic!("{source} has no quick form")
        };
        for x in &things {
            for y in &things {
                let variables = [Value::Map(Map::Record(x)), Value::Map(Map::Record(y))];
                let mut slots = vec![LocalSlot::EMPTY; plan.n_local_slots];
                let mut evaluator = Evaluator::new(&variables, &mut slots, COST_LIMIT);
                let general = evaluator.evaluate_bool(&fast_path.fallback_expr);
                let cost = evaluator.charged_cost();
                match fast_path
                    .try_evaluate_fast_path(|n| [x as &dyn RecordSource, y].get(n).copied(), &[])
                {
                    Some(answer) => {
                        assert_eq!(
                            (Ok(answer.0), answer.1),
                            (general, cost),
                            "{source} {x:?} {y:?}"
                        );
                        n_answered += 1;
                    }
                    None => {
                        // The fast path does not apply if an operand is an error. Only `||` and
                        // `&&` then have a value.
                        let absorbs = source.contains("||") || source.contains("&&");
                        assert!(general.is_err() || absorbs, "{source}: declined for nothing");
                        n_declined += 1;
                    }
                }
            }
        }
    }
    assert!(n_answered > 400 && n_declined > 40, "{n_answered} {n_declined}");
}

#[test]
fn other_expressions_have_no_fast_path() {
    let environment = environment();
    for source in [
        "x.?label.orValue('') == 'a'",
        "x.name + 'a' == 'b'",
        "dyn(x).name == 'a'",
        "x.tags[0] == 'a'",
        "x.tags.exists(t, y.tags.exists(u, t == u))",
        "size(x.name) == 1",
        "x.name == 'a' || size(x.name) == 1",
        "!x.tags.exists(t, t == 'a')",
        &["x.name == 'a'"; SINGLE_TESTS_MAX + 1].join(" || "),
    ] {
        let checked = environment.check(source).map_err(|issues| issues.to_string()).unwrap();
        let plan = plan_of(checked.checked_ast(), &environment);
        assert!(!matches!(plan.compiled_expr, CompiledExpr::FastPath(_)), "{source}");
    }
}
