//! Pattern-defeating quicksort with the same steps as Go's `sort.Slice`.
//!
//! The algorithm is not stable. If keys are equal or not ordered (NaN), the order of the result
//! depends on the steps of the algorithm. Another algorithm would return the same order for short
//! lists only.

/// Ranges up to this length are sorted by insertion sort.
const INSERTION_SORT_LENGTH_MAX: usize = 12;
/// Ranges of at least this length use a median of medians as pivot, and a partial insertion sort if
/// they are nearly sorted.
const NINTHER_LENGTH_MIN: usize = 50;
/// If choosing the pivot takes this many swaps, the range is assumed to be descending.
const DESCENDING_SWAPS_MIN: usize = 12;
/// The maximum number of out-of-order pairs that are swapped before a range counts as unsorted.
const REPAIRED_PAIRS_MAX: usize = 5;

/// Sorts the positions `0..length` by `less`.
pub(super) fn sorted_positions(
    length: usize,
    is_less: &dyn Fn(usize, usize) -> bool,
) -> Vec<usize> {
    let mut sorter = PdqSorter { element_positions: (0..length).collect(), is_less };
    let bad_choices = usize::BITS - length.leading_zeros();
    sorter.sort_range(0, length, bad_choices);
    sorter.element_positions
}

/// The order of a range, as observed while choosing its pivot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PivotHint {
    Unknown,
    Ascending,
    Descending,
}

/// Sorts positions. INVARIANT: all methods are called with indices within `element_positions`.
struct PdqSorter<'l> {
    element_positions: Vec<usize>,
    is_less: &'l dyn Fn(usize, usize) -> bool,
}

impl PdqSorter<'_> {
    fn is_less_at(&self, a: usize, b: usize) -> bool {
        match (self.element_positions.get(a), self.element_positions.get(b)) {
            (Some(&a), Some(&b)) => (self.is_less)(a, b),
            (None, _) | (_, None) => false,
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.element_positions.swap(a, b);
    }

    /// Sorts the range from `start` to before `end`. After too many bad pivots, it uses heap sort.
    fn sort_range(&mut self, mut start: usize, mut end: usize, mut bad_choices: u32) {
        let mut was_balanced = true;
        let mut was_partitioned = true;
        loop {
            let length = end - start;
            if length <= INSERTION_SORT_LENGTH_MAX {
                return self.insertion_sort(start, end);
            }
            if bad_choices == 0 {
                return self.heap_sort(start, end);
            }
            if !was_balanced {
                self.shuffle_middle_elements(start, end);
                bad_choices -= 1;
            }
            let (mut pivot, mut hint) = self.choose_pivot(start, end);
            if hint == PivotHint::Descending {
                if let Some(part) = self.element_positions.get_mut(start..end) {
                    part.reverse();
                }
                pivot = (end - 1) - (pivot - start);
                hint = PivotHint::Ascending;
            }
            if was_balanced
                && was_partitioned
                && hint == PivotHint::Ascending
                && self.partial_insertion_sort(start, end)
            {
                return;
            }
            // No element of this range is less than the element before the range. If that element
            // equals the pivot, the elements that equal the pivot come first.
            if start > 0 && !self.is_less_at(start - 1, pivot) {
                start = self.partition_equal(start, end, pivot);
                continue;
            }
            let (middle, already_partitioned) = self.partition(start, end, pivot);
            was_partitioned = already_partitioned;
            let (left, right) = (middle - start, end - middle);
            was_balanced = left.min(right) >= length / 8;
            if left < right {
                self.sort_range(start, middle, bad_choices);
                start = middle + 1;
            } else {
                self.sort_range(middle + 1, end, bad_choices);
                end = middle;
            }
        }
    }

    fn insertion_sort(&mut self, start: usize, end: usize) {
        for i in start + 1..end {
            let mut j = i;
            while j > start && self.is_less_at(j, j - 1) {
                self.swap(j, j - 1);
                j -= 1;
            }
        }
    }

    fn heap_sort(&mut self, start: usize, end: usize) {
        let length = end - start;
        for root in (0..=(length - 1) / 2).rev() {
            self.sift_down(root, length, start);
        }
        for last in (0..length).rev() {
            self.swap(start, start + last);
            self.sift_down(0, last, start);
        }
    }

    fn sift_down(&mut self, mut root: usize, length: usize, start: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= length {
                return;
            }
            if child + 1 < length && self.is_less_at(start + child, start + child + 1) {
                child += 1;
            }
            if !self.is_less_at(start + root, start + child) {
                return;
            }
            self.swap(start + root, start + child);
            root = child;
        }
    }

    /// Moves the elements that are less than the pivot to its left. Returns the new index of the
    /// pivot, and whether the range was already partitioned.
    fn partition(&mut self, start: usize, end: usize, pivot: usize) -> (usize, bool) {
        self.swap(start, pivot);
        let (mut i, mut j) = (start + 1, end - 1);
        let mut already_partitioned = true;
        loop {
            while i <= j && self.is_less_at(i, start) {
                i += 1;
            }
            while i <= j && !self.is_less_at(j, start) {
                j -= 1;
            }
            if i > j {
                break;
            }
            already_partitioned = false;
            self.swap(i, j);
            i += 1;
            j -= 1;
        }
        self.swap(j, start);
        (j, already_partitioned)
    }

    /// Moves the elements that equal the pivot to the left. Returns the index of the first other
    /// element.
    fn partition_equal(&mut self, start: usize, end: usize, pivot: usize) -> usize {
        self.swap(start, pivot);
        let (mut i, mut j) = (start + 1, end - 1);
        loop {
            while i <= j && !self.is_less_at(start, i) {
                i += 1;
            }
            while i <= j && self.is_less_at(start, j) {
                j -= 1;
            }
            if i > j {
                return i;
            }
            self.swap(i, j);
            i += 1;
            j -= 1;
        }
    }

    /// Sorts a range with few misplaced elements. Returns false if the range is not sorted
    /// afterwards.
    fn partial_insertion_sort(&mut self, start: usize, end: usize) -> bool {
        let mut i = start + 1;
        for _ in 0..REPAIRED_PAIRS_MAX {
            while i < end && !self.is_less_at(i, i - 1) {
                i += 1;
            }
            if i == end {
                return true;
            }
            if end - start < NINTHER_LENGTH_MIN {
                return false;
            }
            self.swap(i, i - 1);
            if i - start >= 2 {
                let mut j = i - 1;
                while j >= 1 && self.is_less_at(j, j - 1) {
                    self.swap(j, j - 1);
                    j -= 1;
                }
            }
            if end - i >= 2 {
                let mut j = i + 1;
                while j < end && self.is_less_at(j, j - 1) {
                    self.swap(j, j - 1);
                    j += 1;
                }
            }
        }
        false
    }

    /// Swaps three elements around the middle with pseudo-random elements. The numbers depend on
    /// the length only.
    fn shuffle_middle_elements(&mut self, start: usize, end: usize) {
        let length = end - start;
        if length < 8 {
            return;
        }
        let mut random = length as u64;
        let mask = (1_usize << (usize::BITS - length.leading_zeros())) - 1;
        let middle = start + (length / 4) * 2;
        for position in middle - 1..=middle + 1 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let other = (random as usize) & mask;
            self.swap(position, start + if other >= length { other - length } else { other });
        }
    }

    fn choose_pivot(&self, start: usize, end: usize) -> (usize, PivotHint) {
        let length = end - start;
        let quarter = length / 4;
        let (mut i, mut j, mut k) = (start + quarter, start + quarter * 2, start + quarter * 3);
        let mut swaps = 0;
        if length >= 8 {
            if length >= NINTHER_LENGTH_MIN {
                i = self.median_of_three([i - 1, i, i + 1], &mut swaps);
                j = self.median_of_three([j - 1, j, j + 1], &mut swaps);
                k = self.median_of_three([k - 1, k, k + 1], &mut swaps);
            }
            j = self.median_of_three([i, j, k], &mut swaps);
        }
        let hint = match swaps {
            0 => PivotHint::Ascending,
            DESCENDING_SWAPS_MIN => PivotHint::Descending,
            _ => PivotHint::Unknown,
        };
        (j, hint)
    }

    fn median_of_three(&self, [mut a, mut b, mut c]: [usize; 3], swaps: &mut usize) -> usize {
        let mut put_in_order = |a: &mut usize, b: &mut usize| {
            if self.is_less_at(*b, *a) {
                *swaps += 1;
                std::mem::swap(a, b);
            }
        };
        put_in_order(&mut a, &mut b);
        put_in_order(&mut b, &mut c);
        put_in_order(&mut a, &mut b);
        b
    }
}

#[cfg(test)]
mod tests {
    use super::sorted_positions;

    /// Sorts numbers by a part of them, so that there are equal keys.
    fn sorted_by_key(numbers: &[u64], modulus: u64) -> Vec<usize> {
        sorted_positions(numbers.len(), &|a, b| numbers[a] % modulus < numbers[b] % modulus)
    }

    #[test]
    fn sorts_any_input() {
        let mut random = 88172645463325252_u64;
        let mut next = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        for length in [0_usize, 1, 2, 12, 13, 49, 50, 51, 200, 1000] {
            let ascending: Vec<u64> = (0..length as u64).collect();
            let descending: Vec<u64> = ascending.iter().rev().copied().collect();
            let organ_pipe: Vec<u64> =
                ascending.iter().map(|n| (*n).min(length as u64 - n)).collect();
            let random: Vec<u64> = ascending.iter().map(|_| next()).collect();
            for numbers in [ascending, descending, organ_pipe, random] {
                for modulus in [u64::MAX, 7, 1] {
                    let order = sorted_by_key(&numbers, modulus);
                    let keys: Vec<u64> = order.iter().map(|i| numbers[*i] % modulus).collect();
                    assert!(keys.is_sorted(), "{length} {modulus}: {keys:?}");
                    let mut positions = order;
                    positions.sort_unstable();
                    assert!(positions.into_iter().eq(0..length));
                }
            }
        }
    }
}
