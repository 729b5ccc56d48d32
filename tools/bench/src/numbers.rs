//! Formats numbers for people.

use std::fmt::Display;

/// Formats nanoseconds with three digits in the most readable unit.
pub(crate) fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 999.5 => return format!("{ns:.0} ns"),
        ns if ns < 999.5e3 => (ns / 1e3, "µs"),
        ns if ns < 999.5e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    match value {
        value if value < 9.995 => format!("{value:.2} {unit}"),
        value if value < 99.95 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

/// Formats a ratio; `-` if it is unknown.
pub(crate) fn ratio(ratio: Option<f64>) -> String {
    match ratio {
        None => "-".to_owned(),
        Some(ratio) if ratio < 9.95 => format!("{ratio:.1}"),
        Some(ratio) => thousands(ratio.round() as u64),
    }
}

/// Formats a whole number with a comma before every third digit from its end.
pub(crate) fn thousands(number: impl Display) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_few_digits() {
        for (ns, want) in [
            (0.0, "0 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (12_345.0, "12.3 µs"),
            (123_456.0, "123 µs"),
            (1.5e6, "1.50 ms"),
            (2e9, "2.00 s"),
        ] {
            assert_eq!(duration(ns), want);
        }
        let numbers = [0_u64, 999, 1000, 1_234_567].map(thousands);
        assert_eq!(numbers, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([None, Some(1.25), Some(1234.5)].map(ratio), ["-", "1.2", "1,235"]);
    }
}
