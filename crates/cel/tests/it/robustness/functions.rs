//! Compares library functions with the standard library of Rust.

use std::sync::LazyLock;

use cel::{COST_LIMIT, Environment, List, ListSource, Type, Value};
use proptest::prelude::*;

use super::Answer;

/// Texts `a`, `b` and `c`, numbers `n` and `m`, and lists of numbers `l` and `k`.
#[derive(Debug, Default, Clone)]
struct Inputs {
    texts: [String; 3],
    numbers: [i64; 2],
    lists: [Numbers; 2],
}

/// A list of the host.
#[derive(Debug, Default, Clone)]
struct Numbers(Vec<i64>);

impl ListSource for Numbers {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Value<'_>> {
        self.0.get(index).copied().map(Value::Int)
    }
}

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let numbers = || Type::list_type_of(Type::Int);
    Environment::for_stored_expressions(vec![
        ("a", Type::String),
        ("b", Type::String),
        ("c", Type::String),
        ("n", Type::Int),
        ("m", Type::Int),
        ("l", numbers()),
        ("k", numbers()),
    ])
});

impl Inputs {
    fn texts(a: &str, b: &str, c: &str) -> Self {
        Self { texts: [a, b, c].map(str::to_owned), ..Self::default() }
    }

    fn numbers(n: i64, m: i64) -> Self {
        Self { numbers: [n, m], ..Self::default() }
    }

    fn answer(&self, source: &str) -> Answer {
        let program = match ENVIRONMENT.compile(source) {
            Ok(program) => program,
            Err(error) => return Answer::Refused(error.to_string()),
        };
        let [a, b, c] = &self.texts;
        let [n, m] = self.numbers;
        let [l, k] = &self.lists;
        let variables = [
            Value::borrowed_string(a),
            Value::borrowed_string(b),
            Value::borrowed_string(c),
            Value::Int(n),
            Value::Int(m),
            Value::List(List::Source(l)),
            Value::List(List::Source(k)),
        ];
        Answer::of(&program.evaluate(&variables, COST_LIMIT).result)
    }

    /// Compares the value of an expression, `None` standing for any error.
    fn expect<'v>(
        &self,
        source: &str,
        expected: impl Into<Option<Value<'v>>>,
    ) -> Result<(), TestCaseError> {
        let found = self.answer(source);
        match expected.into() {
            Some(value) => prop_assert_eq!(found, Answer::of(&Ok(value)), "{}: {:?}", source, self),
            None => prop_assert!(matches!(found, Answer::Error(_)), "{source}: {found:?}"),
        }
        Ok(())
    }
}

fn text(text: &str) -> Value<'_> {
    Value::borrowed_string(text)
}

fn texts(items: Vec<&str>) -> Value<'_> {
    Value::owned_list_value(items.into_iter().map(Value::borrowed_string).collect())
}

fn numbers(items: impl IntoIterator<Item = i64>) -> Value<'static> {
    Value::owned_list_value(items.into_iter().map(Value::Int).collect())
}

/// Texts of few different characters, which often contain each other.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[abé日 ]{0,12}", 1 => any::<String>()]
}

fn any_list() -> impl Strategy<Value = Vec<i64>> {
    proptest::collection::vec(prop_oneof![-3..4_i64, any::<i64>()], 0..12)
}

/// Converts an offset in bytes to an offset in characters.
fn chars_before(text: &str, at: Option<usize>) -> Value<'static> {
    let at = at.and_then(|at| text.get(..at)).map_or(-1, |before| before.chars().count() as i64);
    Value::Int(at)
}

proptest! {
    #[test]
    fn string_functions(a in any_text(), b in any_text(), c in any_text()) {
        let inputs = Inputs::texts(&a, &b, &c);
        inputs.expect("a.contains(b)", Value::Bool(a.contains(&b)))?;
        inputs.expect("a.startsWith(b)", Value::Bool(a.starts_with(&b)))?;
        inputs.expect("a.endsWith(b)", Value::Bool(a.ends_with(&b)))?;
        inputs.expect("a < b", Value::Bool(a < b))?;
        inputs.expect("a == b", Value::Bool(a == b))?;
        inputs.expect("a + b", text(&format!("{a}{b}")))?;
        inputs.expect("a.size()", Value::Int(a.chars().count() as i64))?;
        inputs.expect("bytes(a).size()", Value::Int(a.len() as i64))?;
        inputs.expect("string(bytes(a))", text(&a))?;
        inputs.expect("a.trim()", text(a.trim()))?;
        inputs.expect("a.lowerAscii()", text(&a.to_ascii_lowercase()))?;
        inputs.expect("a.upperAscii()", text(&a.to_ascii_uppercase()))?;
        inputs.expect("a.replace(b, c)", text(&a.replace(&b, &c)))?;
        inputs.expect("a.replace(b, c, 1)", text(&a.replacen(&b, &c, 1)))?;
        inputs.expect("a.indexOf(b)", chars_before(&a, a.find(&b)))?;
        inputs.expect("a.lastIndexOf(b)", chars_before(&a, a.rfind(&b)))?;
        inputs.expect("a.split(b).join(b)", text(&a))?;
        inputs.expect("'%s-%s'.format([a, b])", text(&format!("{a}-{b}")))?;
        if !b.is_empty() {
            inputs.expect("a.split(b)", texts(a.split(&*b).collect()))?;
            inputs.expect("a.split(b, 2)", texts(a.splitn(2, &*b).collect()))?;
        }
    }

    #[test]
    fn character_functions(a in any_text(), n in -1..14_i64, m in -1..14_i64) {
        let inputs = Inputs { texts: [a.clone(), String::new(), String::new()], ..Inputs::numbers(n, m) };
        let chars: Vec<char> = a.chars().collect();
        let at = usize::try_from(n).ok();
        // The character at the position after the last one is empty.
        let char_at = at.filter(|at| *at <= chars.len());
        let char_at = char_at.map(|at| chars.get(at).map(char::to_string).unwrap_or_default());
        inputs.expect("a.charAt(n)", char_at.as_deref().map(text))?;
        let range = at.zip(usize::try_from(m).ok());
        let part = range.and_then(|(from, to)| chars.get(from..to)).map(String::from_iter);
        inputs.expect("a.substring(n, m)", part.as_deref().map(text))?;
        let rest = at.and_then(|at| chars.get(at..)).map(String::from_iter);
        inputs.expect("a.substring(n)", rest.as_deref().map(text))?;
    }

    #[test]
    fn number_functions(
        n in prop_oneof![-9..9_i64, any::<i64>()],
        m in prop_oneof![-9..9_i64, any::<i64>()],
    ) {
        let inputs = Inputs::numbers(n, m);
        inputs.expect("n + m", n.checked_add(m).map(Value::Int))?;
        inputs.expect("n - m", n.checked_sub(m).map(Value::Int))?;
        inputs.expect("n * m", n.checked_mul(m).map(Value::Int))?;
        inputs.expect("n / m", n.checked_div(m).map(Value::Int))?;
        inputs.expect("n % m", n.checked_rem(m).map(Value::Int))?;
        inputs.expect("-n", n.checked_neg().map(Value::Int))?;
        inputs.expect("n < m", Value::Bool(n < m))?;
        inputs.expect("uint(n)", u64::try_from(n).ok().map(Value::Uint))?;
        inputs.expect("int(string(n))", Value::Int(n))?;
        inputs.expect("string(n)", text(&n.to_string()))?;
        inputs.expect("double(n)", Value::Double(n as f64))?;
        inputs.expect("'%d'.format([n])", text(&n.to_string()))?;
        let n_items = (n % 9 >= 0).then_some(n % 9);
        inputs.expect("lists.range(n % 9)", n_items.map(|n_items| numbers(0..n_items)))?;
    }

    #[test]
    fn time_functions(n in prop_oneof![-62_135_596_800..253_402_300_800_i64, any::<i64>()]) {
        let in_range = (-62_135_596_800..253_402_300_800).contains(&n);
        let inputs = Inputs::numbers(n, 0);
        inputs.expect("int(timestamp(n))", in_range.then_some(Value::Int(n)))?;
        let same = in_range.then_some(Value::Bool(true));
        inputs.expect("timestamp(string(timestamp(n))) == timestamp(n)", same)?;
        // A duration counts nanoseconds in 64 bits.
        let nanos = n.checked_mul(1_000_000_000).map(|_| Value::Int(n));
        inputs.expect("duration(string(n) + 's').getSeconds()", nanos)?;
    }

    #[test]
    fn list_functions(l in any_list(), k in any_list(), n in -3..4_i64, m in -2..14_i64) {
        let inputs = Inputs {
            lists: [Numbers(l.clone()), Numbers(k.clone())],
            ..Inputs::numbers(n, m)
        };
        let mut sorted = l.clone();
        sorted.sort_unstable();
        let mut distinct: Vec<i64> = Vec::new();
        for item in &l {
            if !distinct.contains(item) {
                distinct.push(*item);
            }
        }
        let position = |at: Option<usize>| Value::Int(at.map_or(-1, |at| at as i64));
        let part = usize::try_from(m).ok().and_then(|m| l.get(..m));
        let sum = l.iter().try_fold(0_i64, |sum, item| sum.checked_add(*item));
        inputs.expect("l.sort()", numbers(sorted))?;
        inputs.expect("l.distinct()", numbers(distinct))?;
        inputs.expect("l.reverse()", numbers(l.iter().rev().copied()))?;
        inputs.expect("l + k", numbers(l.iter().chain(&k).copied()))?;
        inputs.expect("[l, k].flatten()", numbers(l.iter().chain(&k).copied()))?;
        inputs.expect("l.slice(0, m)", part.map(|part| numbers(part.to_vec())))?;
        inputs.expect("l.sum()", sum.map(Value::Int))?;
        inputs.expect("l.min()", l.iter().min().copied().map(Value::Int))?;
        inputs.expect("l.max()", l.iter().max().copied().map(Value::Int))?;
        inputs.expect("l.isSorted()", Value::Bool(l.is_sorted()))?;
        inputs.expect("n in l", Value::Bool(l.contains(&n)))?;
        inputs.expect("l.includes(n)", Value::Bool(l.contains(&n)))?;
        inputs.expect("l.indexOf(n)", position(l.iter().position(|item| *item == n)))?;
        inputs.expect("l.lastIndexOf(n)", position(l.iter().rposition(|item| *item == n)))?;
        inputs.expect("l == k", Value::Bool(l == k))?;
        let contains = k.iter().all(|item| l.contains(item));
        inputs.expect("sets.contains(l, k)", Value::Bool(contains))?;
        let intersects = k.iter().any(|item| l.contains(item));
        inputs.expect("sets.intersects(l, k)", Value::Bool(intersects))?;
        inputs.expect("l.map(x, x < n)", Value::owned_list_value(l.iter().map(|x| Value::Bool(*x < n)).collect()))?;
        inputs.expect("l.filter(x, x < n)", numbers(l.iter().copied().filter(|x| *x < n)))?;
    }
}
