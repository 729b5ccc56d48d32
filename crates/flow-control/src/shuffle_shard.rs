//! Shuffle sharding: each flow may use a few queues, chosen by its hash.
//!
//! Two flows seldom have all their queues in common, so a flow that fills its queues leaves most other flows a queue that
//! is short.

/// The maximum number of bits of a hash that dealing may use.
pub const HASH_BITS_MAX: u32 = 60;

/// How many bits of a hash are needed to deal `hand_size` of `deck_size` queues. A result over [`HASH_BITS_MAX`] means
/// that a hash does not suffice.
pub fn required_entropy_bits(deck_size: u32, hand_size: u32) -> u32 {
    let deck_size = f64::from(deck_size);
    let bits: f64 = (0..hand_size.min(HASH_BITS_MAX * 2))
        .map(|n_dealt| (deck_size - f64::from(n_dealt)).max(1.0).log2())
        .sum();
    // Rounded up to a whole number that is at most 120 * 32.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 <= bits <= 3,840"
    )]
    let bits = bits.ceil() as u32;
    bits
}

/// The maximum number of queues of one flow. A larger hand needs more bits than a hash has, so validation refuses it.
const HAND_SIZE_MAX: usize = 32;

/// The queues of a flow, as numbers below the size of the deck, each at most once and in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct QueueHand {
    queue_indexes: [u32; HAND_SIZE_MAX],
    n_dealt_queues: usize,
}

impl QueueHand {
    /// Deals the queues of a flow.
    ///
    /// 1. Divide the hash by the number of queues that are left; the remainder chooses one of them.
    /// 2. Go on with the quotient until the hand is full.
    pub(crate) fn deal_queues(mut hash: u64, deck_size: u32, hand_size: u32) -> Self {
        let mut hand = Self { queue_indexes: [0; HAND_SIZE_MAX], n_dealt_queues: 0 };
        let hand_size = usize::try_from(hand_size).unwrap_or(HAND_SIZE_MAX).min(HAND_SIZE_MAX);
        for n_left in (1..=deck_size).rev().take(hand_size) {
            let remainder = hash % u64::from(n_left);
            hash /= u64::from(n_left);
            // INVARIANT: the remainder is below `n_left`, which is a u32.
            let mut queue = u32::try_from(remainder).unwrap_or(0);
            // The remainder counts the queues that are left; skip those that are dealt already.
            let mut n_lower = 0;
            for &dealt in hand.iter() {
                if queue >= dealt {
                    queue += 1;
                    n_lower += 1;
                }
            }
            if let Some(rest) = hand.queue_indexes.get_mut(n_lower..=hand.n_dealt_queues) {
                rest.rotate_right(1);
                if let Some(first) = rest.first_mut() {
                    *first = queue;
                }
            }
            hand.n_dealt_queues += 1;
        }
        hand
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, u32> {
        self.queue_indexes.get(..self.n_dealt_queues).unwrap_or(&[]).iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entropy_of_known_decks() {
        // The values of Kubernetes' documentation and validation.
        assert_eq!(required_entropy_bits(1, 1), 0);
        assert_eq!(required_entropy_bits(64, 8), 48);
        assert_eq!(required_entropy_bits(128, 6), 42);
        assert_eq!(required_entropy_bits(1024, 6), 60);
        assert!(required_entropy_bits(512, 8) > HASH_BITS_MAX);
    }

    #[test]
    fn flows_differ_in_their_hands() {
        let hands: std::collections::HashSet<QueueHand> = (0..1000u64)
            .map(|n| QueueHand::deal_queues(n.wrapping_mul(0x9E37_79B9_7F4A_7C15), 128, 6))
            .collect();
        assert_eq!(hands.len(), 1000);
    }

    proptest! {
        #[test]
        fn a_hand_has_distinct_queues_of_the_deck(hash: u64, deck in 1u32..300, hand in 0u32..40) {
            let dealt: Vec<u32> = QueueHand::deal_queues(hash, deck, hand).iter().copied().collect();
            prop_assert_eq!(dealt.len(), hand.min(deck).min(32) as usize);
            prop_assert!(dealt.iter().all(|&queue| queue < deck));
            prop_assert!(dealt.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
