//! How many seats each level has.

use crate::priority_level::{PriorityLevel, PriorityLevelKind};

/// The seats of a level: its part of `seats_max` by its shares, rounded up. Exempt levels have no limit and no seats.
pub(crate) fn nominal_seats(level: &PriorityLevel, total_shares: u64, seats_max: u32) -> u32 {
    let PriorityLevelKind::Limited { nominal_concurrency_shares, .. } = level.kind else {
        return 0;
    };
    let seats = u64::from(seats_max) * u64::from(nominal_concurrency_shares);
    // The quotient is at most `seats_max`, because no level has more shares than all levels together.
    u32::try_from(seats.div_ceil(total_shares.max(1))).unwrap_or(seats_max)
}

/// The shares of all levels together.
pub(crate) fn total_concurrency_shares(levels: &[PriorityLevel]) -> u64 {
    levels
        .iter()
        .map(|level| match level.kind {
            PriorityLevelKind::Exempt => 0,
            PriorityLevelKind::Limited { nominal_concurrency_shares, .. } => {
                u64::from(nominal_concurrency_shares)
            }
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::priority_level::LimitResponse;

    fn level(shares: u32) -> PriorityLevel {
        PriorityLevel {
            name: "any".to_owned(),
            uid: String::new(),
            kind: PriorityLevelKind::Limited {
                nominal_concurrency_shares: shares,
                limit_response: LimitResponse::Reject,
            },
        }
    }

    #[test]
    fn seats_follow_shares_and_are_rounded_up() {
        let levels = [level(5), level(30), level(0), level(210)];
        let all = total_concurrency_shares(&levels);
        assert_eq!(all, 245);
        let seats = levels.each_ref().map(|own| nominal_seats(own, all, 600));
        assert_eq!(seats, [13, 74, 0, 515]);
    }

    #[test]
    fn levels_without_any_shares_have_no_seats() {
        let levels = [level(0)];
        assert_eq!(nominal_seats(&level(0), total_concurrency_shares(&levels), 600), 0);
    }

    #[test]
    fn the_largest_shares_do_not_overflow() {
        let levels = [level(u32::MAX), level(u32::MAX)];
        let all = total_concurrency_shares(&levels);
        assert_eq!(nominal_seats(&level(u32::MAX), all, u32::MAX), u32::MAX.div_ceil(2));
    }
}
