//! Random expressions that pass the checker, so that tests reach the evaluator.
//!
//! The fuzz targets include this file as well.

/// Generates expressions from bytes. proptest and libFuzzer can both mutate and shrink bytes.
pub(crate) struct Choices<'b> {
    bytes: std::slice::Iter<'b, u8>,
}

/// The greatest nesting depth of generated expressions. Each level multiplies the possible cost.
const DEPTH_MAX: usize = 5;

/// If an expression is longer than this, only leaves are added.
const BYTES_MAX: usize = 2_000;

impl<'b> Choices<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes: bytes.iter() }
    }

    /// An expression of the type with this letter; see [`forms`].
    pub(crate) fn expression(&mut self, letter: char) -> String {
        let mut text = String::new();
        self.write(letter, DEPTH_MAX, &mut Vec::new(), &mut text);
        text
    }

    /// An expression of the type with this letter that may perform authorization checks.
    pub(crate) fn expression_with_checks(&mut self, letter: char) -> String {
        CHECKS.iter().fold(self.expression(letter), |text, (leaf, check)| text.replace(leaf, check))
    }

    /// An expression about a variable of another type, such as the body of a macro.
    pub(crate) fn expression_about(&mut self, letter: char, variable: (char, &str)) -> String {
        let mut text = String::new();
        let mut locals = vec![(variable.0, variable.1.to_owned())];
        self.write(letter, DEPTH_MAX - 2, &mut locals, &mut text);
        text
    }

    /// A number below `n`; 0, the simplest choice, if no bytes are left.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % n.max(1)
    }

    fn pick<'t, T>(&mut self, options: &'t [T]) -> Option<&'t T> {
        options.get(self.below(options.len()))
    }

    fn write(
        &mut self,
        letter: char,
        depth: usize,
        locals: &mut Vec<(char, String)>,
        text: &mut String,
    ) {
        let known: Vec<&str> =
            locals.iter().filter(|(of, _)| *of == letter).map(|(_, name)| name.as_str()).collect();
        if !known.is_empty() && self.below(2) == 1 {
            text.push_str(self.pick(&known).copied().unwrap_or_default());
            return;
        }
        let (leaves, branches) = forms(letter);
        if depth == 0 || text.len() > BYTES_MAX || self.below(4) == 0 {
            text.push_str(self.pick(leaves).copied().unwrap_or_default());
            return;
        }
        let n_outer = locals.len();
        let mut form = self.pick(branches).copied().unwrap_or_default().chars();
        while let Some(c) = form.next() {
            match (c, form.clone().next()) {
                ('$', Some(inner)) => {
                    form.next();
                    self.write(inner, depth - 1, locals, text);
                }
                ('@', Some(of)) => {
                    form.next();
                    let name = format!("v{}", locals.len());
                    text.push_str(&name);
                    locals.push((of, name));
                }
                _ => text.push(c),
            }
        }
        locals.truncate(n_outer);
    }
}

/// The leaves and the branches of a type. `$x` stands for an expression of the type `x`, and `@x`
/// for a new variable of that type, which the rest of the form may use.
///
/// | letter | type | letter | type |
/// |---|---|---|---|
/// | `b` | bool | `S` | list(string) |
/// | `i` | int | `I` | list(int) |
/// | `d` | double | `L` | list(list(int)) |
/// | `s` | string | `M` | map(string, int) |
/// | `t` | timestamp | `o` | optional(string) |
/// | `u` | duration | `q` | quantity |
/// | `y` | bytes | `x` | dyn |
fn forms(letter: char) -> (&'static [&'static str], &'static [&'static str]) {
    match letter {
        'b' => (BOOL_LEAVES, BOOLS),
        'i' => {
            (&["0", "1", "2", "-1", "7", "9223372036854775807", "-9223372036854775808", "40"], INTS)
        }
        'd' => (
            &["0.0", "1.5", "-2.25", "1e300", "double('NaN')", "double('-Infinity')"],
            &[
                "($d + $d)",
                "($d * $d)",
                "($d / $d)",
                "(-$d)",
                "double($i)",
                "$q.asApproximateFloat()",
            ],
        ),
        's' => (
            &[
                "''",
                "'a'",
                "'dev'",
                "'é日'",
                "request.user",
                "request.resourceAttributes.verb",
                "'%d'",
            ],
            STRINGS,
        ),
        't' => (
            &[
                "timestamp('2024-02-29T12:30:45.5Z')",
                "timestamp(0)",
                "timestamp('9999-12-31T23:59:59Z')",
            ],
            &["($t + $u)", "($t - $u)", "timestamp($s)", "timestamp($i)", "timestamp(string($t))"],
        ),
        'u' => (
            &["duration('1h')", "duration('-1.5s')", "duration('2540400h')"],
            &["($t - $t)", "($u + $u)", "($u - $u)", "duration($s)"],
        ),
        'y' => (&["b''", "b'\\xff'", "b'abc'"], &["bytes($s)", "($y + $y)", "($b ? $y : $y)"]),
        'S' => (&["request.groups", "[]", "['a', 'b']", "request.extra['a']"], STRING_LISTS),
        'I' => (&["[]", "[3, 1, 2]", "lists.range(5)", "[-1]"], INT_LISTS),
        'L' => (
            &["[]", "[[1], [2, 3]]"],
            &["[$I, $I]", "$I.map(@i, $I)", "($L + $L)", "$L.filter(@I, $b)", "$L.reverse()"],
        ),
        'M' => (
            &["{}", "{'a': 1, 'b': 2}"],
            &[
                "{$s: $i}",
                "{'a': $i, ?$s: optional.ofNonZeroValue($i)}",
                "$S.transformMapEntry(@i, @s, {$s: $i})",
                "$M.transformMap(@s, @i, $i)",
                "$M.transformMap(@s, @i, $b, $i)",
            ],
        ),
        'o' => (
            &[
                "optional.none()",
                "optional.of('a')",
                "request.groups[?0]",
                "request.?resourceAttributes.name",
            ],
            &[
                "optional.of($s)",
                "optional.ofNonZeroValue($s)",
                "$S[?$i]",
                "$S.first()",
                "$S.last()",
                "$o.or($o)",
                "$o.optMap(@s, $s)",
                "$o.optFlatMap(@s, $o)",
            ],
        ),
        'q' => (
            &["quantity('1')", "quantity('1500m')", "quantity('20Mi')"],
            &["$q.add($q)", "$q.sub($i)", "quantity($s)", "quantity(string($i))"],
        ),
        _ => (
            &["dyn(1)", "dyn('a')", "dyn([1])", "dyn(request)", "dyn(null)", "dyn(2.5)", "dyn(7u)"],
            &[
                "dyn($i)",
                "dyn($s)",
                "dyn($d)",
                "dyn($S)",
                "dyn($M)",
                "dyn($o)",
                "dyn($t)",
                "dyn($u)",
                "dyn($q)",
                "dyn(type($x))",
                "dyn($L)",
                "($x + $x)",
                "$x[$i]",
                "$x[$s]",
                "$x.user",
                "[$x, $x][$i]",
                "$x.map(@x, $x)",
            ],
        ),
    }
}

/// Leaves, and authorization checks in their place. There are only a few checks, so that
/// expressions repeat them.
const CHECKS: &[(&str, &str)] = &[
    ("request.user == 'a'", "authorizer.path('/a').check('get').allowed()"),
    ("'dev' in request.groups", "authorizer.requestResource.check('list').allowed()"),
    ("1 / 0 == 1", "authorizer.requestResource.name('b').check('get').errored()"),
    (
        "request.resourceAttributes.verb",
        "authorizer.serviceAccount('c', 'd').path('/a').check('get').error()",
    ),
    ("dyn(null)", "dyn(authorizer.requestResource.check('list'))"),
    ("dyn(2.5)", "dyn(authorizer)"),
];

const BOOL_LEAVES: &[&str] = &[
    "true",
    "false",
    "request.user == 'a'",
    "'dev' in request.groups",
    "has(request.resourceAttributes)",
    "request.resourceAttributes.verb == 'get'",
    "1 / 0 == 1",
    "request.groups[9] == ''",
];

const BOOLS: &[&str] = &[
    "($b && $b)",
    "($b || $b)",
    "(!$b)",
    "($b ? $b : $b)",
    "($b == $b)",
    "($s == $s)",
    "($s < $s)",
    "($i <= $i)",
    "($d > $i)",
    "($d != $d)",
    "($t >= $t)",
    "($u < $u)",
    "($y == $y)",
    "($L == $L)",
    "($M != $M)",
    "($o == $o)",
    "($x == $x)",
    "($x < $x)",
    "($s in $S)",
    "($i in [$i, $i, $i])",
    "($s in $M)",
    "($x in $L)",
    "$s.contains($s)",
    "$s.startsWith($s)",
    "$s.endsWith($s)",
    "$s.matches('^[a-d]+.')",
    "$s.matches($s)",
    "$S.exists(@s, $b)",
    "$S.all(@s, $b)",
    "$I.exists_one(@i, $b)",
    "$M.all(@s, $b)",
    "$M.exists(@s, @i, $b)",
    "$S.all(@i, @s, $b)",
    "$I.isSorted()",
    "$S.includes($s)",
    "sets.contains($I, $I)",
    "sets.equivalent($S, $S)",
    "sets.intersects($L, $L)",
    "$o.hasValue()",
    "has(request.extra.a)",
    "has({'a': $i}.a)",
    "isQuantity($s)",
    "$q.isLessThan($q)",
    "isIP($s)",
    "cidr('10.0.0.0/8').containsIP($s)",
    "isURL($s)",
    "isSemver($s, $b)",
    "format.dns1123Label().validate($s).hasValue()",
    "(type($x) == type($x))",
    "bool($s)",
];

const INTS: &[&str] = &[
    "($i + $i)",
    "($i - $i)",
    "($i * $i)",
    "($i / $i)",
    "($i % $i)",
    "(-$i)",
    "size($s)",
    "$S.size()",
    "$M.size()",
    "$y.size()",
    "$I[$i]",
    "$M[$s]",
    "int($d)",
    "int($s)",
    "int(string($i))",
    "$I.sum()",
    "$I.min()",
    "$I.max()",
    "$S.indexOf($s)",
    "$s.indexOf($s)",
    "$s.lastIndexOf($s, $i)",
    "$t.getDayOfYear()",
    "$t.getHours('Europe/Berlin')",
    "$u.getMinutes()",
    "$q.sign()",
    "$q.compareTo($q)",
    "semver('1.2.3').compareTo(semver('1.2.' + string($i)))",
    "($b ? $i : $i)",
    "optional.of($i).optMap(@i, $i).orValue(7)",
];

const STRINGS: &[&str] = &[
    "($s + $s)",
    "$S[$i]",
    "($b ? $s : $s)",
    "$s.lowerAscii()",
    "$s.upperAscii()",
    "$s.trim()",
    "$s.charAt($i)",
    "$s.substring($i)",
    "$s.substring($i, $i)",
    "$s.replace($s, $s)",
    "$s.replace($s, $s, $i)",
    "$S.join($s)",
    "strings.quote($s)",
    "$s.find('[a-z]+')",
    "string($i)",
    "string($d)",
    "string($t)",
    "string($u)",
    "string($y)",
    "'%s|%s'.format([$s, $L])",
    "'%d %x %b'.format([$i, $i, $i])",
    "'%.3f %e'.format([$d, $d])",
    "$s.format([$x])",
    "$o.orValue($s)",
    "$o.value()",
    "url('https://h/' + $s).getEscapedPath()",
    "string(ip($s))",
];

const STRING_LISTS: &[&str] = &[
    "[$s, $s]",
    "[$s, ?$o]",
    "($S + $S)",
    "$S.map(@s, $s)",
    "$S.map(@s, $b, $s)",
    "$S.filter(@s, $b)",
    "$S.transformList(@i, @s, $s)",
    "$I.map(@i, $s)",
    "$M.map(@s, $s)",
    "$s.split($s)",
    "$s.split($s, $i)",
    "$s.findAll('.')",
    "$s.findAll($s, $i)",
    "$S.sort()",
    "$S.sortBy(@s, $i)",
    "$S.distinct()",
    "$S.reverse()",
    "$S.slice($i, $i)",
    "optional.unwrap([$o, $o])",
];

const INT_LISTS: &[&str] = &[
    "[$i, $i]",
    "($I + $I)",
    "$I.map(@i, $i)",
    "$S.map(@s, $i)",
    "$I.filter(@i, $b)",
    "$I.sort()",
    "$I.sortBy(@i, -$i)",
    "$I.distinct()",
    "$I.reverse()",
    "$I.slice(0, $i)",
    "$L[$i]",
    "lists.range($i)",
    "($b ? $I : $I)",
];
