//! The functions of timestamps and durations, and their conversion from text.

use std::sync::LazyLock;

use go_compat::quote;
use jiff::tz::TimeZoneDatabase;

use super::type_conversions::{ParseIntegerError, conversion_error, parse_int};
use crate::function::{EvalError, EvalResult, FunctionImpl, FunctionRegistry, Overload};
use crate::static_type::Type;
use crate::value::{Timestamp, TimestampError, Value, WallTime};

/// Declares the getters of timestamps and durations.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let mut add = |name, in_utc, in_zone, get: FunctionImpl, duration: Vec<Overload>| {
        let zoned = vec![Type::Timestamp, Type::String];
        let mut overloads = vec![
            Overload::new_member_overload(in_utc, vec![Type::Timestamp], Type::Int, get),
            Overload::new_member_overload(in_zone, zoned, Type::Int, get),
        ];
        overloads.extend(duration);
        functions.add_overloads(name, overloads);
    };
    let of_duration = |id, get: FunctionImpl| {
        vec![Overload::new_member_overload(id, vec![Type::Duration], Type::Int, get)]
    };
    add(
        "getFullYear",
        "timestamp_to_year",
        "timestamp_to_year_with_tz",
        |arguments| get_wall_time_part(arguments, |wall| wall.year),
        vec![],
    );
    add(
        "getMonth",
        "timestamp_to_month",
        "timestamp_to_month_with_tz",
        |arguments| get_wall_time_part(arguments, |wall| wall.month - 1),
        vec![],
    );
    add(
        "getDayOfYear",
        "timestamp_to_day_of_year",
        "timestamp_to_day_of_year_with_tz",
        |arguments| get_wall_time_part(arguments, |wall| wall.day_of_year),
        vec![],
    );
    add(
        "getDayOfMonth",
        "timestamp_to_day_of_month",
        "timestamp_to_day_of_month_with_tz",
        |arguments| get_wall_time_part(arguments, |wall| wall.day - 1),
        vec![],
    );
    add(
        "getDate",
        "timestamp_to_day_of_month_1_based",
        "timestamp_to_day_of_month_1_based_with_tz",
        |arguments| get_wall_time_part(arguments, |wall| wall.day),
        vec![],
    );
    add(
        "getDayOfWeek",
        "timestamp_to_day_of_week",
        "timestamp_to_day_of_week_with_tz",
        |arguments| get_wall_time_part(arguments, |wall| wall.day_of_week),
        vec![],
    );
    add(
        "getHours",
        "timestamp_to_hours",
        "timestamp_to_hours_with_tz",
        |arguments| get_wall_time_part(arguments, |wall| wall.hour),
        of_duration("duration_to_hours", |arguments| get_duration_part(arguments, to_whole_hours)),
    );
    add(
        "getMinutes",
        "timestamp_to_minutes",
        "timestamp_to_minutes_with_tz",
        |arguments| get_wall_time_part(arguments, |wall| wall.minute),
        of_duration("duration_to_minutes", |arguments| {
            get_duration_part(arguments, to_whole_minutes)
        }),
    );
    add(
        "getSeconds",
        "timestamp_to_seconds",
        // cel-go's id of this overload has no `with`.
        "timestamp_to_seconds_tz",
        |arguments| get_wall_time_part(arguments, |wall| wall.second),
        of_duration("duration_to_seconds", |arguments| {
            get_duration_part(arguments, to_whole_seconds)
        }),
    );
    add(
        "getMilliseconds",
        "timestamp_to_milliseconds",
        "timestamp_to_milliseconds_with_tz",
        get_timestamp_milliseconds,
        of_duration("duration_to_milliseconds", |arguments| {
            get_duration_part(arguments, |nanos| nanos / 1_000_000)
        }),
    );
}

/// Parses a timestamp. The error is that of `timestamp(text)`.
pub(crate) fn parse_timestamp(text: &str) -> Result<Timestamp, EvalError> {
    text.parse().map_err(|error| match error {
        TimestampError::Malformed => conversion_error("google.protobuf.Timestamp"),
        TimestampError::OutOfRange => EvalError::new("timestamp overflow"),
    })
}

/// Parses a duration in nanoseconds. The error is that of `duration(text)`.
pub(crate) fn parse_duration(text: &str) -> Result<i64, EvalError> {
    go_compat::parse_duration(text).map_err(|_| conversion_error("google.protobuf.Duration"))
}

/// Converts a duration to seconds. Long durations lose precision and may be rounded to the next
/// second.
pub(super) fn nanos_to_seconds(nanos: i64) -> f64 {
    nanos_to_unit(nanos, 1_000_000_000)
}

fn nanos_to_unit(nanos: i64, unit: i64) -> f64 {
    (nanos / unit) as f64 + (nanos % unit) as f64 / unit as f64
}

fn to_whole_hours(nanos: i64) -> i64 {
    nanos_to_unit(nanos, 3_600_000_000_000) as i64
}

fn to_whole_minutes(nanos: i64) -> i64 {
    nanos_to_unit(nanos, 60_000_000_000) as i64
}

fn to_whole_seconds(nanos: i64) -> i64 {
    nanos_to_seconds(nanos) as i64
}

fn get_duration_part<'a>(arguments: &[Value<'a>], part: fn(i64) -> i64) -> EvalResult<'a> {
    match arguments {
        [Value::Duration(nanos)] => Ok(Value::Int(part(*nanos))),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Returns a part of a timestamp in UTC, or in the time zone of the second argument.
fn get_wall_time_part<'a>(arguments: &[Value<'a>], part: fn(WallTime) -> i64) -> EvalResult<'a> {
    let (time, offset) = timestamp_and_offset_arguments(arguments)?;
    Ok(Value::Int(part(time.wall_time_at_offset(offset))))
}

/// Returns the milliseconds within the second. They do not depend on the time zone, but it must
/// exist.
fn get_timestamp_milliseconds<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let (time, _) = timestamp_and_offset_arguments(arguments)?;
    Ok(Value::Int(i64::from(time.nanos_of_second() / 1_000_000)))
}

fn timestamp_and_offset_arguments(arguments: &[Value<'_>]) -> Result<(Timestamp, i64), EvalError> {
    match arguments {
        [Value::Timestamp(time)] => Ok((*time, 0)),
        [Value::Timestamp(time), Value::String(zone)] => {
            Ok((*time, find_utc_offset(time, zone.as_str())?))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Finds the seconds east of UTC of a time zone at a point in time. The zone is an IANA name, or
/// hours and minutes with a colon between them.
fn find_utc_offset(time: &Timestamp, zone: &str) -> Result<i64, EvalError> {
    match zone.split_once(':') {
        Some((hours, minutes)) => parse_fixed_offset(hours, minutes),
        None => find_time_zone_offset(time, zone),
    }
}

/// Parses hours and minutes without a range check. Overflow wraps around, as in cel-go.
fn parse_fixed_offset(hours: &str, minutes: &str) -> Result<i64, EvalError> {
    const NANOS_PER_MINUTE: i64 = 60_000_000_000;
    let west = hours.starts_with('-');
    let hours = parse_utc_offset_part(hours)?.wrapping_mul(60);
    let minutes = parse_utc_offset_part(minutes)?;
    let offset = if west { hours.wrapping_sub(minutes) } else { hours.wrapping_add(minutes) };
    Ok(to_whole_seconds(offset.wrapping_mul(NANOS_PER_MINUTE)))
}

fn parse_utc_offset_part(text: &str) -> Result<i64, EvalError> {
    parse_int(text).map_err(|fault| {
        let reason = match fault {
            ParseIntegerError::Syntax => "invalid syntax",
            ParseIntegerError::Range => "value out of range",
        };
        EvalError::new(format!("strconv.Atoi: parsing {}: {reason}", quote(text)))
    })
}

/// The time zone database that is built into the program.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

fn find_time_zone_offset(time: &Timestamp, zone: &str) -> Result<i64, EvalError> {
    // The result must not depend on the machine, so the local time zone counts as UTC. It is UTC
    // where Kubernetes runs in a container.
    if matches!(zone, "" | "UTC" | "Local") {
        return Ok(0);
    }
    if zone.contains("..") || zone.starts_with(['/', '\\']) {
        return Err(EvalError::new("time: invalid location name"));
    }
    // The database ignores case. cel-go does not.
    let found = ZONES.get(zone).ok().filter(|found| found.iana_name() == Some(zone));
    let Some(found) = found else {
        return Err(EvalError::new(format!("unknown time zone {zone}")));
    };
    // The range of the database ends shortly before that of timestamps. No offset changes in
    // between.
    let end = if time.unix_seconds() < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    let moment = jiff::Timestamp::from_second(time.unix_seconds()).unwrap_or(end);
    Ok(i64::from(found.to_offset(moment).seconds()))
}

#[cfg(test)]
mod tests;
