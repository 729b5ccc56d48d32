//! The clauses of a format: `%s`, `%.3f` and so on.

/// A formatting clause, such as `%s` or `%.3f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormatClause {
    /// The verb `%s`: any value as text.
    Text,
    /// The verb `%d`: a decimal number.
    Decimal,
    /// `%f`, and the number of digits after the point.
    Fixed(u64),
    /// `%e` with a width. The format specifies the number of digits after the point, but cel-go
    /// uses it as the width of the whole number.
    Scientific(u64),
    /// The verb `%b`: a binary number.
    Binary,
    /// The verb `%x`: lower-case hexadecimal digits.
    Hex,
    /// The verb `%X`: upper-case hexadecimal digits.
    UpperHex,
    /// The verb `%o`: an octal number.
    Octal,
}

/// The reason why a clause cannot be read, with cel-go's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FormatClauseError {
    /// The format ends after the percent sign.
    #[error("unexpected end of string")]
    EndOfFormat,
    /// The letter is not a verb.
    #[error("could not parse formatting clause: unrecognized formatting clause \"{0}\"")]
    UnknownVerb(char),
    /// The format ends within the precision.
    #[error(
        "could not parse formatting clause: error while parsing precision: \
         could not find end of precision specifier"
    )]
    UnterminatedPrecision,
    /// No digit follows the point.
    #[error(
        "could not parse formatting clause: error while parsing precision: \
         error while converting precision to integer: strconv.Atoi: parsing \"\": invalid syntax"
    )]
    EmptyPrecision,
    /// The precision does not fit into 63 bits.
    #[error(
        "could not parse formatting clause: error while parsing precision: \
         error while converting precision to integer: strconv.Atoi: parsing \"{0}\": \
         value out of range"
    )]
    PrecisionTooLarge(String),
}

/// The number of digits when none is given.
const DEFAULT_PRECISION: u64 = 6;

impl FormatClause {
    /// The message for a value of a type that the clause does not accept.
    pub(super) fn type_error_message(self, type_name: &str) -> String {
        let takes = match self {
            Self::Text => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, \
                 lists, types, durations, and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed(_) => "fixed-point clause can only be used on doubles",
            Self::Scientific(_) => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Hex | Self::UpperHex => {
                "only integers, byte buffers, and strings can be formatted as hex"
            }
            Self::Octal => "octal clause can only be used on integers",
        };
        format!("{takes}, was given {type_name}")
    }
}

/// Reads a format string from left to right.
#[derive(Debug)]
pub(super) struct FormatScanner<'f> {
    unread_format: &'f str,
}

/// The next part of a format string.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormatPart<'f> {
    /// Text that is copied to the result.
    Text(&'f str),
    /// A clause, which [`FormatScanner::read_clause`] reads.
    Clause,
}

impl<'f> FormatScanner<'f> {
    pub(super) fn new(format: &'f str) -> Self {
        Self { unread_format: format }
    }

    /// Reads the next part; `None` at the end. After a [`FormatPart::Clause`], the caller must read
    /// the clause before the next part.
    pub(super) fn next_format_part(&mut self) -> Option<FormatPart<'f>> {
        let Some(clause) = self.unread_format.strip_prefix('%') else {
            let end = self.unread_format.find('%').unwrap_or(self.unread_format.len());
            let (text, rest) = self.unread_format.split_at_checked(end)?;
            self.unread_format = rest;
            return if text.is_empty() { None } else { Some(FormatPart::Text(text)) };
        };
        self.unread_format = clause;
        match clause.strip_prefix('%') {
            Some(rest) => {
                self.unread_format = rest;
                Some(FormatPart::Text("%"))
            }
            None => Some(FormatPart::Clause),
        }
    }

    /// Reports whether the format has no further characters.
    pub(super) fn is_at_format_end(&self) -> bool {
        self.unread_format.is_empty()
    }

    /// Reads the clause that follows a percent sign.
    pub(super) fn read_clause(&mut self) -> Result<FormatClause, FormatClauseError> {
        if self.is_at_format_end() {
            return Err(FormatClauseError::EndOfFormat);
        }
        let precision = self.read_precision()?.unwrap_or(DEFAULT_PRECISION);
        // The verb is read as one byte, as in cel-go, so the message shows only a part of a
        // multi-byte character.
        let letter = self.unread_format.as_bytes().first().copied().unwrap_or_default();
        let clause = match letter {
            b's' => FormatClause::Text,
            b'd' => FormatClause::Decimal,
            b'f' => FormatClause::Fixed(precision),
            b'e' => FormatClause::Scientific(precision),
            b'b' => FormatClause::Binary,
            b'x' => FormatClause::Hex,
            b'X' => FormatClause::UpperHex,
            b'o' => FormatClause::Octal,
            other => return Err(FormatClauseError::UnknownVerb(char::from(other))),
        };
        self.unread_format = self.unread_format.get(1..).unwrap_or_default();
        Ok(clause)
    }

    /// Reads `.digits`, if there is a point.
    fn read_precision(&mut self) -> Result<Option<u64>, FormatClauseError> {
        let Some(rest) = self.unread_format.strip_prefix('.') else { return Ok(None) };
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .ok_or(FormatClauseError::UnterminatedPrecision)?;
        let (digits, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
        self.unread_format = rest;
        match digits.parse::<u64>() {
            Ok(precision) if i64::try_from(precision).is_ok() => Ok(Some(precision)),
            _ if digits.is_empty() => Err(FormatClauseError::EmptyPrecision),
            _ => Err(FormatClauseError::PrecisionTooLarge(digits.to_owned())),
        }
    }
}
