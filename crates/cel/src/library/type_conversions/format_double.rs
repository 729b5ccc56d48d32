//! Writes doubles with the fewest digits that identify the number, like Go.

/// Writes a double. It has an exponent if it has more than six digits before the decimal point, or
/// more than three zeros after it.
pub(crate) fn format_double(number: f64) -> String {
    const EXPONENTS_WRITTEN_OUT: std::ops::Range<i32> = -4..6;
    if !number.is_finite() {
        return format_non_finite(number).to_owned();
    }
    let shortest = ShortestDecimal::from_double(number);
    if EXPONENTS_WRITTEN_OUT.contains(&shortest.exponent) {
        shortest.format_without_exponent()
    } else {
        shortest.format_scientific()
    }
}

/// Writes a double without an exponent.
pub(in crate::library) fn format_double_without_exponent(number: f64) -> String {
    if number.is_finite() {
        ShortestDecimal::from_double(number).format_without_exponent()
    } else {
        format_non_finite(number).to_owned()
    }
}

fn format_non_finite(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    }
}

/// The shortest decimal that is nearer to the number than to any other double.
struct ShortestDecimal {
    is_negative: bool,
    /// The digits without leading or trailing zeros; `0` for zero.
    digits: String,
    /// The power of ten of the first digit.
    exponent: i32,
}

impl ShortestDecimal {
    fn from_double(number: f64) -> Self {
        let (mut digits, exponent) = split_scientific(&format!("{:e}", number.abs()));
        // If two such decimals are equally near, Rust's standard library takes the upper one and Go
        // the even one.
        if let Some(last) = digits.pop() {
            let even = char::from_u32(u32::from(last) & !1).unwrap_or(last);
            digits.push(if even != last && is_rounding_tie(number, &digits, even) {
                even
            } else {
                last
            });
        }
        Self { is_negative: number.is_sign_negative(), digits, exponent }
    }

    fn format_without_exponent(&self) -> String {
        let mut text = String::from(if self.is_negative { "-" } else { "" });
        match usize::try_from(self.exponent) {
            Ok(exponent) => {
                let point = self.digits.len().min(exponent + 1);
                let (whole, fraction) = self.digits.split_at(point);
                text.push_str(whole);
                text.extend(std::iter::repeat_n('0', exponent + 1 - point));
                if !fraction.is_empty() {
                    text.push('.');
                    text.push_str(fraction);
                }
            }
            Err(_) => {
                let zeros = self.exponent.unsigned_abs() - 1;
                text.push_str("0.");
                text.extend((0..zeros).map(|_| '0'));
                text.push_str(&self.digits);
            }
        }
        text
    }

    fn format_scientific(&self) -> String {
        let sign = if self.is_negative { "-" } else { "" };
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if self.exponent < 0 { '-' } else { '+' };
        let exponent = self.exponent.unsigned_abs();
        format!("{sign}{first}{point}{rest}e{exponent_sign}{exponent:02}")
    }
}

/// The digits and the exponent of a text such as `1.25e-7`.
fn split_scientific(scientific: &str) -> (String, i32) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    (mantissa.replace('.', ""), exponent.parse().unwrap_or(0))
}

/// Reports whether the number lies exactly between `digits` followed by `even`, and the next decimal of that
/// length.
fn is_rounding_tie(number: f64, digits: &str, even: char) -> bool {
    /// A number of digits that no double exceeds.
    const DIGITS_MAX: usize = 800;
    let expected = format!("{digits}{even}5");
    let agrees = |precision: usize| {
        let (exact, _) = split_scientific(&format!("{:.precision$e}", number.abs()));
        exact.strip_prefix(&expected).is_some_and(|rest| rest.bytes().all(|digit| digit == b'0'))
    };
    // The first, cheap comparison decides for nearly all numbers.
    agrees(expected.len()) && agrees(DIGITS_MAX)
}
