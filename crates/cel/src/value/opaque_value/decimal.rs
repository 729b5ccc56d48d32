//! Decimal numbers of any precision, for quantities that do not fit into 64 bits.

use std::cmp::Ordering;

/// The maximum number of digits of a sum. A call of `add` costs 1 for any operands, so the limit
/// bounds the memory of a sum such as `1e1000000` + `1`. It is well above the range of floating
/// point numbers.
pub(super) const SUM_DIGITS_MAX: i64 = 1_000;

/// `digits` × 10^`exponent`, negated if `is_negative`.
///
/// INVARIANT: each digit is at most 9, and neither the first nor the last is 0. Zero has no digits,
/// is not negative and has the exponent 0. So each number has one representation, and a large
/// exponent takes no memory.
#[derive(Debug, Clone)]
pub(super) struct Decimal {
    is_negative: bool,
    /// The most significant digit comes first.
    digits: Vec<u8>,
    exponent: i64,
    /// The decimal places of the text of the number. The value does not depend on them, but the
    /// conversion to floating point does, because it rounds twice.
    decimal_places: i64,
}

impl Decimal {
    /// The number with these digits, the last `decimal_places` of them after the decimal point.
    /// Negative places stand for zeros before the point.
    pub(super) fn new(is_negative: bool, digits: Vec<u8>, decimal_places: i64) -> Self {
        Self { is_negative, digits, exponent: -decimal_places, decimal_places }.normalize_digits()
    }

    /// Returns `value` × 10^`scale`.
    pub(super) fn from_int(value: i64, scale: i32) -> Self {
        Self::new(value < 0, decimal_digits(value.unsigned_abs().into()), -i64::from(scale))
    }

    /// The sign: -1, 0 or 1.
    pub(super) fn signum(&self) -> i64 {
        match (self.is_zero(), self.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// The number with the other sign.
    pub(super) fn negate(mut self) -> Self {
        self.is_negative = !self.is_negative && !self.is_zero();
        self
    }

    /// Returns the number times 2^`power`. The power is at most 60, so no product overflows.
    pub(super) fn multiply_by_power_of_two(mut self, power: u32) -> Self {
        let mut carry = 0;
        for digit in self.digits.iter_mut().rev() {
            let product = (u128::from(*digit) << power) + carry;
            *digit = (product % 10) as u8;
            carry = product / 10;
        }
        self.digits.splice(..0, decimal_digits(carry));
        self.normalize_digits()
    }

    /// Rounds away from zero to this number of decimal places. Zero keeps its decimal places.
    pub(super) fn round_up_to_places(mut self, decimal_places: i64) -> Self {
        if self.is_zero() {
            return self;
        }
        self.decimal_places = decimal_places;
        let n_dropped = usize::try_from(-decimal_places - self.exponent).unwrap_or(0);
        if n_dropped == 0 {
            return self;
        }
        // The last digit is not 0, so the dropped digits are not all 0, and the number is rounded
        // up.
        self.digits.truncate(self.digits.len().saturating_sub(n_dropped));
        self.exponent = -decimal_places;
        while self.digits.pop_if(|digit| *digit == 9).is_some() {
            self.exponent += 1;
        }
        match self.digits.last_mut() {
            Some(digit) => *digit += 1,
            None => self.digits.push(1),
        }
        self
    }

    /// The sum, or `None` if it has more than [`SUM_DIGITS_MAX`] digits.
    pub(super) fn checked_add(&self, other: &Self) -> Option<Self> {
        let places = self.decimal_places.max(other.decimal_places);
        if self.is_zero() || other.is_zero() {
            let sum = if self.is_zero() { other } else { self };
            return Some(Self { decimal_places: places, ..sum.clone() });
        }
        let low = self.exponent.min(other.exponent);
        let high = self.order_of_magnitude().max(other.order_of_magnitude());
        if high - low > SUM_DIGITS_MAX {
            return None;
        }
        let (large, small) =
            if self.compare_absolute(other).is_lt() { (other, self) } else { (self, other) };
        let is_sum = large.is_negative == small.is_negative;
        let mut digits = Vec::new();
        let mut carry = 0;
        for power in low..=high {
            let addend = small.digit_at_power(power);
            let digit = large.digit_at_power(power) + carry + if is_sum { addend } else { -addend };
            digits.push(digit.rem_euclid(10) as u8);
            carry = digit.div_euclid(10);
        }
        digits.reverse();
        let sum =
            Self { is_negative: large.is_negative, digits, exponent: low, decimal_places: places };
        Some(sum.normalize_digits())
    }

    /// Compares two numbers of any magnitude.
    pub(super) fn cmp(&self, other: &Self) -> Ordering {
        self.signum().cmp(&other.signum()).then_with(|| {
            let absolute = self.compare_absolute(other);
            if self.is_negative { absolute.reverse() } else { absolute }
        })
    }

    /// The number without its decimal point, rounded to a floating point number, and the number of
    /// decimal places.
    pub(super) fn to_float_and_places(&self) -> (f64, i64) {
        if self.is_zero() {
            return (0.0, self.decimal_places);
        }
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let text = format!("{digits}e{}", self.exponent + self.decimal_places);
        // The text is always a valid number, so parsing does not fail.
        let absolute = text.parse().unwrap_or(f64::NAN);
        (if self.is_negative { -absolute } else { absolute }, self.decimal_places)
    }

    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The smallest exponent `n` such that the absolute value of the number is less than 10^`n`.
    fn order_of_magnitude(&self) -> i64 {
        self.exponent + self.digits.len() as i64
    }

    /// The digit at a power of ten.
    fn digit_at_power(&self, power: i64) -> i8 {
        let from_first = usize::try_from(self.order_of_magnitude() - 1 - power).ok();
        from_first.and_then(|idx| self.digits.get(idx)).map_or(0, |digit| *digit as i8)
    }

    /// Compares the absolute values of two numbers.
    fn compare_absolute(&self, other: &Self) -> Ordering {
        self.order_of_magnitude()
            .cmp(&other.order_of_magnitude())
            .then_with(|| self.digits.cmp(&other.digits))
    }

    /// Restores the invariant after a change of the digits.
    fn normalize_digits(mut self) -> Self {
        while self.digits.pop_if(|digit| *digit == 0).is_some() {
            self.exponent += 1;
        }
        let n_leading = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..n_leading);
        if self.is_zero() {
            self.is_negative = false;
            self.exponent = 0;
        }
        self
    }
}

fn decimal_digits(value: u128) -> Vec<u8> {
    value.to_string().bytes().map(|byte| byte - b'0').collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers with all kinds of signs, zeros and points, and in millionths.
    fn numbers() -> impl Strategy<Value = (Decimal, i128)> {
        let scales = -6_i32..=6;
        prop_oneof![-99_i64..=99, -999_999_i64..=999_999].prop_flat_map(move |value| {
            scales.clone().prop_map(move |scale| {
                let number = Decimal::from_int(value, scale);
                (number, i128::from(value) * 10_i128.pow((6 + scale) as u32))
            })
        })
    }

    fn in_millionths(number: &Decimal) -> i128 {
        let digits = number.digits.iter().fold(0, |value, digit| value * 10 + i128::from(*digit));
        i128::from(number.signum()) * digits * 10_i128.pow((6 + number.exponent) as u32)
    }

    fn check_invariant(number: &Decimal) {
        assert!(number.digits.iter().all(|digit| *digit <= 9), "{number:?}");
        assert!(
            number.digits.first() != Some(&0) && number.digits.last() != Some(&0),
            "{number:?}"
        );
        assert!(!number.is_zero() || !number.is_negative && number.exponent == 0, "{number:?}");
    }

    proptest! {
        #[test]
        fn agrees_with_integers((a, x) in numbers(), (b, y) in numbers(), power in 0_u32..=30) {
            prop_assert_eq!(in_millionths(&a), x);
            prop_assert_eq!(a.cmp(&b), x.cmp(&y));
            let sum = a.checked_add(&b).unwrap();
            check_invariant(&sum);
            prop_assert_eq!(in_millionths(&sum), x + y);
            let difference = a.checked_add(&b.clone().negate()).unwrap();
            check_invariant(&difference);
            prop_assert_eq!(in_millionths(&difference), x - y);
            let shifted = a.clone().multiply_by_power_of_two(power);
            check_invariant(&shifted);
            prop_assert_eq!(in_millionths(&shifted), x << power);
            let rounded = a.round_up_to_places(2);
            check_invariant(&rounded);
            let unit = 10_i128.pow(4);
            prop_assert_eq!(in_millionths(&rounded), (x.abs() + unit - 1) / unit * unit * x.signum());
        }
    }

    #[test]
    fn the_smallest_number_rounds_up_to_a_unit() {
        let tiny = Decimal::from_int(-1, -2_000_000_000).round_up_to_places(9);
        assert!(tiny.cmp(&Decimal::from_int(-1, -9)).is_eq());
        let nines = Decimal::from_int(9_999, -10).round_up_to_places(9);
        assert!(nines.cmp(&Decimal::from_int(1, -6)).is_eq());
    }

    #[test]
    fn exponents_are_compared_but_not_written_out() {
        let huge = Decimal::from_int(1, 2_000_000_000);
        let one = Decimal::from_int(1, 0);
        assert!(huge.cmp(&one).is_gt());
        assert!(huge.clone().negate().cmp(&one).is_lt());
        assert!(huge.checked_add(&one).is_none());
    }

    #[test]
    fn a_sum_has_as_many_digits_as_allowed_and_no_more() {
        let one = Decimal::from_int(1, 0);
        let scale_max = i32::try_from(SUM_DIGITS_MAX).unwrap() - 1;
        let sum = Decimal::from_int(1, scale_max).checked_add(&one).unwrap();
        assert_eq!(sum.digits.len() as i64, SUM_DIGITS_MAX);
        assert!(Decimal::from_int(1, scale_max + 1).checked_add(&one).is_none());
    }
}
