//! Quantities of resources in Kubernetes' notation: `500m`, `1.5Gi`, `2e3`.

use std::cmp::Ordering;

use super::decimal::Decimal;

/// The reason why a text is not a quantity, or why a sum fails, with Kubernetes' message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text does not have the form of a quantity.
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Malformed,
    /// The numeric part of the text has no digits.
    #[error("unable to parse numeric part of quantity")]
    NoDigits,
    /// The suffix is not one of Kubernetes' suffixes.
    #[error("unable to parse quantity's suffix")]
    UnknownSuffix,
    /// The sum or difference has too many digits. Kubernetes has no such limit.
    #[error("sum of quantities has too many digits")]
    SumTooLong,
}

/// A number with at most this many digits fits into 64 bits.
const INT_DIGITS_MAX: usize = 18;
/// The maximum number of decimal places of a quantity. Further digits are rounded up.
const DECIMAL_PLACES_MAX: u8 = 9;

/// A quantity of a resource. It is exact.
///
/// It has a short or a long representation. Expressions can tell them apart, because `isInteger()`
/// is false for every long form. Texts and sums get the same representation as in Kubernetes.
#[derive(Debug, Clone)]
pub struct Quantity {
    quantity_amount: QuantityAmount,
    /// Whether the value is the result of arithmetic. Kubernetes' `==` does not accept such a value
    /// as its right operand.
    is_arithmetic_result: bool,
}

#[derive(Debug, Clone)]
enum QuantityAmount {
    /// The amount `value` × 10^`scale`.
    Int { value: i64, scale: i32 },
    /// Amounts that do not fit into `Int`, and fractions of binary units.
    Decimal(Decimal),
}

impl Quantity {
    /// Parses a quantity.
    ///
    /// # Errors
    /// Returns an error for a text that Kubernetes does not accept. Kubernetes accepts more texts
    /// than the regular expression of its message: a sign or a suffix alone is zero.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let parts = QuantityParts::parse(text)?;
        let suffix =
            QuantitySuffix::parse(parts.quantity_suffix).ok_or(QuantityError::UnknownSuffix)?;
        let amount = match parse_int_amount(&parts, suffix) {
            Some(amount) => amount,
            None => QuantityAmount::Decimal(parse_decimal_amount(&parts, suffix)?),
        };
        Ok(Self { quantity_amount: amount, is_arithmetic_result: false })
    }

    /// Returns a quantity of a whole amount.
    pub fn from_int(value: i64) -> Self {
        Self {
            quantity_amount: QuantityAmount::Int { value, scale: 0 },
            is_arithmetic_result: false,
        }
    }

    /// Reports whether [`Quantity::add`] or [`Quantity::subtract`] made the value.
    pub fn is_arithmetic_result(&self) -> bool {
        self.is_arithmetic_result
    }

    /// The sign: -1, 0 or 1.
    pub fn signum(&self) -> i64 {
        match &self.quantity_amount {
            QuantityAmount::Int { value, .. } => value.signum(),
            QuantityAmount::Decimal(number) => number.signum(),
        }
    }

    /// Compares the values of two quantities. Neither quantity changes its representation. In
    /// Kubernetes, comparing a short form with a long one turns it into a long form, which is not
    /// an integer.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self.quantity_amount.as_int_and_scale(), other.quantity_amount.as_int_and_scale()) {
            (Some((a, m)), Some((b, n))) if m == n => a.cmp(&b),
            _ => self.quantity_amount.to_decimal().cmp(&other.quantity_amount.to_decimal()),
        }
    }

    /// The sum.
    ///
    /// # Errors
    /// The sum has more than 1000 digits.
    pub fn add(&self, other: &Self) -> Result<Self, QuantityError> {
        let short =
            self.quantity_amount.as_int_and_scale().zip(other.quantity_amount.as_int_and_scale());
        match short.and_then(|(a, b)| add_scaled_ints(a, b)) {
            Some(amount) => Ok(Self { quantity_amount: amount, is_arithmetic_result: true }),
            None => self.add_decimal(&other.quantity_amount.to_decimal()),
        }
    }

    /// The difference.
    ///
    /// # Errors
    /// The difference has more than 1000 digits.
    pub fn subtract(&self, other: &Self) -> Result<Self, QuantityError> {
        let short =
            self.quantity_amount.as_int_and_scale().zip(other.quantity_amount.as_int_and_scale());
        // As in Kubernetes, the negation of the smallest integer overflows to the same integer.
        match short
            .and_then(|(a, (value, scale))| add_scaled_ints(a, (value.wrapping_neg(), scale)))
        {
            Some(amount) => Ok(Self { quantity_amount: amount, is_arithmetic_result: true }),
            None => self.add_decimal(&other.quantity_amount.to_decimal().negate()),
        }
    }

    fn add_decimal(&self, other: &Decimal) -> Result<Self, QuantityError> {
        let sum = self
            .quantity_amount
            .to_decimal()
            .checked_add(other)
            .ok_or(QuantityError::SumTooLong)?;
        Ok(Self { quantity_amount: QuantityAmount::Decimal(sum), is_arithmetic_result: true })
    }

    /// The amount as an integer, if the quantity is an integer in its short form. `1.0` is not.
    pub fn as_int(&self) -> Option<i64> {
        match self.quantity_amount {
            QuantityAmount::Int { value, scale } => {
                u32::try_from(scale).ok().and_then(|n| scale_int(value, n))
            }
            QuantityAmount::Decimal(_) => None,
        }
    }

    /// The approximate amount. As in Kubernetes, first the digits are rounded, then their product
    /// with the power of ten. An amount above the range is infinite, and a zero with a large
    /// exponent is NaN.
    pub fn to_approximate_float(&self) -> f64 {
        let (number, exponent) = match &self.quantity_amount {
            QuantityAmount::Int { value, scale } => (*value as f64, i64::from(*scale)),
            QuantityAmount::Decimal(number) => {
                let (number, places) = number.to_float_and_places();
                (number, -places)
            }
        };
        if exponent == 0 { number } else { number * power_of_ten(exponent) }
    }
}

impl QuantityAmount {
    /// The value and the scale of the short form; `None` for the long form.
    fn as_int_and_scale(&self) -> Option<(i64, i32)> {
        match *self {
            Self::Int { value, scale } => Some((value, scale)),
            Self::Decimal(_) => None,
        }
    }

    fn to_decimal(&self) -> Decimal {
        match self {
            Self::Int { value, scale } => Decimal::from_int(*value, *scale),
            Self::Decimal(number) => number.clone(),
        }
    }
}

/// The sum at the smaller of the two scales, if it fits.
fn add_scaled_ints((a, m): (i64, i32), (b, n): (i64, i32)) -> Option<QuantityAmount> {
    if b == 0 {
        return Some(QuantityAmount::Int { value: a, scale: m });
    }
    if a == 0 {
        return Some(QuantityAmount::Int { value: b, scale: n });
    }
    let scale = m.min(n);
    let value = scale_int(a, m.abs_diff(scale))?.checked_add(scale_int(b, n.abs_diff(scale))?)?;
    Some(QuantityAmount::Int { value, scale })
}

/// `value` × 10^`scale`, if it fits.
fn scale_int(value: i64, scale: u32) -> Option<i64> {
    if value == 0 {
        return Some(0);
    }
    value.checked_mul(10_i64.checked_pow(scale)?)
}

/// The parts of the text of a quantity. Leading zeros are omitted.
struct QuantityParts<'t> {
    is_negative: bool,
    whole_digits: &'t str,
    fraction_digits: &'t str,
    quantity_suffix: &'t str,
    has_digits: bool,
}

impl<'t> QuantityParts<'t> {
    fn parse(text: &'t str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Malformed);
        }
        let is_negative = text.starts_with('-');
        let number = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (digits, rest) = split_leading_bytes(number, |byte| byte.is_ascii_digit());
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split_leading_bytes(rest, |byte| byte.is_ascii_digit()),
            None => ("", rest),
        };
        let (_letters, rest) = split_leading_bytes(suffix, |byte| b"eEinumkKMGTP".contains(&byte));
        let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        if !rest.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(QuantityError::Malformed);
        }
        Ok(Self {
            is_negative,
            whole_digits: digits.trim_start_matches('0'),
            fraction_digits: fraction,
            quantity_suffix: suffix,
            has_digits: !digits.is_empty() || !fraction.is_empty(),
        })
    }

    fn whole_and_fraction_digits(&self) -> impl Iterator<Item = u8> {
        self.whole_digits.bytes().chain(self.fraction_digits.bytes()).map(|byte| byte - b'0')
    }

    /// The number of digits of the whole part, at least 1, and of the fraction.
    fn count_digits(&self) -> usize {
        self.whole_digits.len().max(1) + self.fraction_digits.len()
    }
}

fn split_leading_bytes(text: &str, belongs: fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !belongs(byte)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// The multiplier that the suffix of a quantity stands for.
#[derive(Clone, Copy)]
enum QuantitySuffix {
    PowerOfTen(i32),
    /// The exponent of two that the suffix multiplies by: from 10 for `Ki` to 60 for `Ei`.
    PowerOfTwo(u32),
}

impl QuantitySuffix {
    fn parse(text: &str) -> Option<Self> {
        let suffix = match text {
            "n" => Self::PowerOfTen(-9),
            "u" => Self::PowerOfTen(-6),
            "m" => Self::PowerOfTen(-3),
            "" => Self::PowerOfTen(0),
            "k" => Self::PowerOfTen(3),
            "M" => Self::PowerOfTen(6),
            "G" => Self::PowerOfTen(9),
            "T" => Self::PowerOfTen(12),
            "P" => Self::PowerOfTen(15),
            "E" => Self::PowerOfTen(18),
            "Ki" => Self::PowerOfTwo(10),
            "Mi" => Self::PowerOfTwo(20),
            "Gi" => Self::PowerOfTwo(30),
            "Ti" => Self::PowerOfTwo(40),
            "Pi" => Self::PowerOfTwo(50),
            "Ei" => Self::PowerOfTwo(60),
            _ => {
                let exponent: i64 = text.strip_prefix(['e', 'E'])?.parse().ok()?;
                // Kubernetes drops the upper half of the exponent.
                Self::PowerOfTen(exponent as i32)
            }
        };
        Some(suffix)
    }
}

/// Parses an amount in the short form; `None` for texts for which Kubernetes uses the long form.
fn parse_int_amount(parts: &QuantityParts<'_>, suffix: QuantitySuffix) -> Option<QuantityAmount> {
    let n_digits = parts.count_digits();
    let (factor, scale) = match suffix {
        QuantitySuffix::PowerOfTen(exponent) if n_digits <= INT_DIGITS_MAX => {
            (1, exponent.checked_sub(parts.fraction_digits.len() as i32)?)
        }
        // A power of two takes about three digits for ten bits. `Pi` and `Ei` take too many digits.
        QuantitySuffix::PowerOfTwo(power)
            if parts.fraction_digits.is_empty() && n_digits + power as usize * 3 / 10 <= 14 =>
        {
            (1_i64 << power, 0)
        }
        QuantitySuffix::PowerOfTen(_) | QuantitySuffix::PowerOfTwo(_) => return None,
    };
    if scale < -i32::from(DECIMAL_PLACES_MAX) {
        return None;
    }
    let digits =
        parts.whole_and_fraction_digits().fold(0, |value, digit| value * 10 + i64::from(digit));
    let value = digits.checked_mul(factor)?;
    Some(QuantityAmount::Int { value: if parts.is_negative { -value } else { value }, scale })
}

/// Parses an amount in the long form. It is rounded up to nine decimal places. Amounts with a
/// binary suffix are capped at the largest integer.
fn parse_decimal_amount(
    parts: &QuantityParts<'_>,
    suffix: QuantitySuffix,
) -> Result<Decimal, QuantityError> {
    if !parts.has_digits {
        return Err(QuantityError::NoDigits);
    }
    let digits = parts.whole_and_fraction_digits().collect();
    let places = parts.fraction_digits.len() as i64;
    let places_max = i64::from(DECIMAL_PLACES_MAX);
    let absolute = match suffix {
        QuantitySuffix::PowerOfTen(exponent) => {
            Decimal::new(false, digits, places - i64::from(exponent)).round_up_to_places(places_max)
        }
        QuantitySuffix::PowerOfTwo(power) => {
            let number = Decimal::new(false, digits, places).multiply_by_power_of_two(power);
            let number = number.round_up_to_places(places_max);
            let largest = Decimal::from_int(i64::MAX, 0);
            if number.cmp(&largest).is_gt() { largest } else { number }
        }
    };
    Ok(if parts.is_negative { absolute.negate() } else { absolute })
}

/// Computes 10^`exponent` like Go: the product or quotient of two rounded powers from tables.
fn power_of_ten(exponent: i64) -> f64 {
    const UP_TO_31: [f64; 32] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31,
    ];
    const LARGE: [f64; 10] = [1e0, 1e32, 1e64, 1e96, 1e128, 1e160, 1e192, 1e224, 1e256, 1e288];
    const SMALL: [f64; 11] =
        [1e-0, 1e-32, 1e-64, 1e-96, 1e-128, 1e-160, 1e-192, 1e-224, 1e-256, 1e-288, 1e-320];
    let n = exponent.unsigned_abs() as usize;
    // The ranges of exponents below keep all indices inside the tables.
    let entry = |table: &[f64], index: usize| table.get(index).copied().unwrap_or(f64::NAN);
    match exponent {
        0..=308 => entry(&LARGE, n / 32) * entry(&UP_TO_31, n % 32),
        -323..0 => entry(&SMALL, n / 32) / entry(&UP_TO_31, n % 32),
        309.. => f64::INFINITY,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests;
