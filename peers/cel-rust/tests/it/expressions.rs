//! Random expressions of the part of the language that both engines have, well typed by
//! construction.

/// A small generator of numbers with a fixed seed: the same expressions on every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

const TEXTS: &[&str] = &["''", "'a'", "'ab'", "'dev'", "'kube-system'", "s", "t", "'é'"];
const NUMBERS: &[&str] = &["0", "1", "2", "-3", "7", "n", "9223372036854775807", "m"];
const LISTS: &[&str] = &["['a', 'dev']", "l", "['kube-system']", "l + ['a']"];

/// An expression of type bool; `locals` are string variables in scope.
pub fn boolean(random: &mut Random, depth: usize, locals: &mut Vec<String>) -> String {
    if depth == 0 {
        return random.pick(&["true", "false", "b"]).to_owned();
    }
    let d = depth - 1;
    match random.below(12) {
        0 => format!("({} && {})", boolean(random, d, locals), boolean(random, d, locals)),
        1 => format!("({} || {})", boolean(random, d, locals), boolean(random, d, locals)),
        2 => format!("!({})", boolean(random, d, locals)),
        3 => {
            let condition = boolean(random, d, locals);
            let then = boolean(random, d, locals);
            format!("({condition} ? {then} : {})", boolean(random, d, locals))
        }
        4 => {
            let operator = random.pick(&["==", "!=", "<", "<=", ">", ">="]);
            format!("({} {operator} {})", number(random, d, locals), number(random, d, locals))
        }
        5 => {
            let operator = random.pick(&["==", "!=", "<", "<=", ">", ">="]);
            format!("({} {operator} {})", text(random, d, locals), text(random, d, locals))
        }
        6 => {
            let function = random.pick(&["startsWith", "endsWith", "contains"]);
            format!("{}.{function}({})", text(random, d, locals), text(random, d, locals))
        }
        7 => format!("({} in {})", text(random, d, locals), list(random, d, locals)),
        8 => {
            let pattern = random.pick(&["'a|b'", "'^d.*'", "'[0-9]+$'", "'^$'"]);
            format!("{}.matches({pattern})", text(random, d, locals))
        }
        9 => format!("({} == {})", list(random, d, locals), list(random, d, locals)),
        _ => {
            let range = list(random, d, locals);
            let macro_name = random.pick(&["all", "exists", "exists_one"]);
            let variable = format!("v{}", locals.len());
            locals.push(variable.clone());
            let predicate = boolean(random, d, locals);
            locals.pop();
            format!("{range}.{macro_name}({variable}, {predicate})")
        }
    }
}

fn text(random: &mut Random, depth: usize, locals: &mut Vec<String>) -> String {
    if depth == 0 || random.below(3) > 0 {
        return match locals.len() {
            n if n > 0 && random.below(2) == 0 => locals[random.below(n)].clone(),
            _ => random.pick(TEXTS).to_owned(),
        };
    }
    let d = depth - 1;
    match random.below(3) {
        0 => format!("({} + {})", text(random, d, locals), text(random, d, locals)),
        1 => format!("{}[{}]", list(random, d, locals), random.pick(&["0", "1", "5"])),
        _ => format!("string({})", number(random, d, locals)),
    }
}

fn number(random: &mut Random, depth: usize, locals: &mut Vec<String>) -> String {
    if depth == 0 || random.below(3) == 0 {
        return random.pick(NUMBERS).to_owned();
    }
    let d = depth - 1;
    match random.below(4) {
        0 => format!("size({})", text(random, d, locals)),
        1 => format!("{}.size()", list(random, d, locals)),
        _ => {
            let operator = random.pick(&["+", "-", "*", "/", "%"]);
            format!("({} {operator} {})", number(random, d, locals), number(random, d, locals))
        }
    }
}

fn list(random: &mut Random, depth: usize, locals: &mut Vec<String>) -> String {
    if depth == 0 || random.below(2) == 0 {
        return format!("({})", random.pick(LISTS));
    }
    let range = random.pick(LISTS);
    let variable = format!("v{}", locals.len());
    locals.push(variable.clone());
    let made = if random.below(2) == 0 {
        format!("({range}).map({variable}, {})", text(random, depth - 1, locals))
    } else {
        format!("({range}).filter({variable}, {})", boolean(random, depth - 1, locals))
    };
    locals.pop();
    made
}
