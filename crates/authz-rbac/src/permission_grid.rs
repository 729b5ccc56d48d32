//! The permissions of one rule, a bit for each.

use crate::held_rule::HeldRule;
use crate::policy::PolicyRule;
use crate::rules::RulePart;

const WORD_BITS: usize = u64::BITS as usize;
const N_AXES: usize = 4;

/// One bit for each permission in a rule: every API group, resource, name and verb, or every path and verb. A bit is
/// set once a rule that the user holds grants that permission.
#[derive(Debug)]
pub(crate) struct PermissionGrid<'w> {
    /// The lists of the rule. In the order of permissions, the last list varies fastest.
    grid_axes: [GridAxis<'w>; N_AXES],
    /// The axis whose entries are the bits of a row: the longest, so that there are few rows.
    grid_bit_axis: usize,
    /// The other axes, in order.
    grid_row_axes: [usize; N_AXES - 1],
    words_per_grid_row: usize,
    granted_bits: Vec<u64>,
    n_missing_permissions: u64,
}

/// One list of a rule, such as its verbs: one dimension of the grid.
#[derive(Debug, Clone, Copy)]
struct GridAxis<'w> {
    /// `None` if the rule has fewer lists than the grid has axes.
    rule_part: Option<RulePart>,
    /// The elements. Empty if the axis has no list, and for a list of names that stands for all names.
    values: &'w [String],
}

/// One permission: a verb on one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Permission<'w> {
    pub(crate) verb: &'w str,
    pub(crate) target: PermissionTarget<'w>,
}

/// The target of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PermissionTarget<'w> {
    Resource { api_group: &'w str, resource: &'w str, name: Option<&'w str> },
    Path(&'w str),
}

/// The part of a grid that one held rule grants: for each axis the granted elements, as bits.
#[derive(Debug)]
pub(crate) struct GrantedGridPart {
    granted_masks_by_axis: [Vec<u64>; N_AXES],
    is_empty: bool,
    /// The number of steps to find and to mark the part.
    pub(crate) n_comparison_steps: u64,
}

#[expect(
    clippy::indexing_slicing,
    reason = "INVARIANT: `bit_axis` and `row_axes` are positions of axes, and every array has one element for each axis"
)]
impl<'w> PermissionGrid<'w> {
    /// Makes the grids of a rule: none, one, or two if the rule is about resources and paths.
    pub(crate) fn grids_of_rule(rule: &'w PolicyRule) -> impl Iterator<Item = Self> {
        let axis =
            |part: RulePart| GridAxis { rule_part: Some(part), values: part.values_in_rule(rule) };
        let resources =
            [RulePart::ApiGroup, RulePart::Resource, RulePart::Verb, RulePart::ResourceName]
                .map(axis);
        let unnamed = GridAxis { rule_part: Some(RulePart::ResourceName), values: &[] };
        let none = GridAxis { rule_part: None, values: &[] };
        let paths = [axis(RulePart::Path), axis(RulePart::Verb), unnamed, none];
        let is_empty = |axes: &[GridAxis<'w>; N_AXES]| {
            let can_be_empty =
                |axis: &GridAxis<'_>| matches!(axis.rule_part, Some(RulePart::ResourceName) | None);
            axes.iter().any(|axis| axis.values.is_empty() && !can_be_empty(axis))
        };
        [resources, paths].into_iter().filter(move |axes| !is_empty(axes)).map(Self::new)
    }

    fn new(axes: [GridAxis<'w>; N_AXES]) -> Self {
        let bit_axis = (0..N_AXES).max_by_key(|at| axes[*at].len()).unwrap_or_default();
        let row_axes = match bit_axis {
            0 => [1, 2, 3],
            1 => [0, 2, 3],
            2 => [0, 1, 3],
            _ => [0, 1, 2],
        };
        let words_per_row = axes[bit_axis].len().div_ceil(WORD_BITS);
        let n_rows: usize = row_axes.iter().map(|at| axes[*at].len()).product();
        let n_missing = (n_rows * axes[bit_axis].len()) as u64;
        Self {
            grid_axes: axes,
            grid_bit_axis: bit_axis,
            grid_row_axes: row_axes,
            words_per_grid_row: words_per_row,
            granted_bits: vec![0; n_rows * words_per_row],
            n_missing_permissions: n_missing,
        }
    }

    /// The number of permissions that no held rule grants.
    pub(crate) fn n_missing_permissions(&self) -> u64 {
        self.n_missing_permissions
    }

    pub(crate) fn n_permissions(&self) -> u64 {
        self.grid_axes.iter().map(|axis| axis.len() as u64).product()
    }

    /// The entries of a list.
    pub(crate) fn values(&self, part: RulePart) -> &'w [String] {
        let axis = self.grid_axes.iter().find(|axis| axis.rule_part == Some(part));
        axis.map_or(&[], |axis| axis.values)
    }

    /// Computes the part of the grid that a held rule grants.
    pub(crate) fn grid_part_granted_by(&self, held_rule: &HeldRule<'_>) -> GrantedGridPart {
        let mut part = GrantedGridPart {
            granted_masks_by_axis: Default::default(),
            is_empty: false,
            n_comparison_steps: 0,
        };
        let mut n_rows = 1;
        for (at, axis) in self.grid_axes.iter().enumerate() {
            let (mask, n_granted) = axis.axis_elements_granted_by(held_rule);
            part.n_comparison_steps += axis.len() as u64;
            if n_granted == 0 {
                return GrantedGridPart { is_empty: true, ..part };
            }
            n_rows *= if at == self.grid_bit_axis { 1 } else { n_granted };
            part.granted_masks_by_axis[at] = mask;
        }
        part.n_comparison_steps += (n_rows * self.words_per_grid_row) as u64;
        part
    }

    /// Marks a part as granted. Returns the number of its permissions that were missing before.
    pub(crate) fn mark_permissions_granted(&mut self, part: &GrantedGridPart) -> u64 {
        if part.is_empty {
            return 0;
        }
        let Self {
            grid_axes: axes,
            grid_bit_axis: bit_axis,
            grid_row_axes: row_axes,
            words_per_grid_row: words_per_row,
            granted_bits,
            n_missing_permissions: n_missing,
        } = self;
        let [outer, middle, inner] = row_axes.map(|at| &part.granted_masks_by_axis[at]);
        let [_, n_middle, n_inner] = row_axes.map(|at| axes[at].len());
        let mut n_new = 0;
        for a in positions_of_set_bits(outer) {
            for b in positions_of_set_bits(middle) {
                for c in positions_of_set_bits(inner) {
                    let start = ((a * n_middle + b) * n_inner + c) * *words_per_row;
                    let row = granted_bits.iter_mut().skip(start).take(*words_per_row);
                    for (word, granted) in row.zip(&part.granted_masks_by_axis[*bit_axis]) {
                        n_new += u64::from((granted & !*word).count_ones());
                        *word |= granted;
                    }
                }
            }
        }
        *n_missing -= n_new;
        n_new
    }

    /// The permissions that no held rule grants, in order.
    pub(crate) fn missing_permissions(&self) -> impl Iterator<Item = Permission<'w>> {
        let lengths = self.grid_axes.map(|axis| axis.len());
        let n_all = if self.n_missing_permissions == 0 { 0 } else { lengths.iter().product() };
        (0..n_all).filter_map(move |number| {
            let (mut rest, mut places) = (number, [0; N_AXES]);
            for at in (0..N_AXES).rev() {
                places[at] = rest % lengths[at];
                rest /= lengths[at];
            }
            (!self.is_permission_granted(places)).then(|| self.permission_at(places)).flatten()
        })
    }

    fn is_permission_granted(&self, places: [usize; N_AXES]) -> bool {
        let [a, b, c] = self.grid_row_axes.map(|at| places[at]);
        let [_, n_middle, n_inner] = self.grid_row_axes.map(|at| self.grid_axes[at].len());
        let row = (a * n_middle + b) * n_inner + c;
        let bit = places[self.grid_bit_axis];
        let word = self.granted_bits.get(row * self.words_per_grid_row + bit / WORD_BITS);
        word.is_some_and(|word| word >> (bit % WORD_BITS) & 1 == 1)
    }

    fn permission_at(&self, places: [usize; N_AXES]) -> Option<Permission<'w>> {
        let entry = |at: usize| self.grid_axes[at].values.get(places[at]).map(String::as_str);
        match self.grid_axes[0].rule_part {
            Some(RulePart::Path) => {
                let target = PermissionTarget::Path(entry(0)?);
                Some(Permission { verb: entry(1)?, target })
            }
            _ => {
                let (api_group, resource, name) = (entry(0)?, entry(1)?, entry(3));
                let target = PermissionTarget::Resource { api_group, resource, name };
                Some(Permission { verb: entry(2)?, target })
            }
        }
    }
}

impl GridAxis<'_> {
    /// The number of values, at least 1: an empty or missing list counts as one value.
    fn len(&self) -> usize {
        self.values.len().max(1)
    }

    /// The elements that a held rule grants, as bits, and their number.
    fn axis_elements_granted_by(&self, held_rule: &HeldRule<'_>) -> (Vec<u64>, usize) {
        let mut mask = vec![0; self.len().div_ceil(WORD_BITS)];
        let mut n_granted = 0;
        let mut grant = |at: usize| {
            if let Some(word) = mask.get_mut(at / WORD_BITS) {
                *word |= 1 << (at % WORD_BITS);
            }
            n_granted += 1;
        };
        match self.rule_part {
            // A permission without a name is granted only by rules for all names.
            Some(RulePart::ResourceName) if self.values.is_empty() => {
                if held_rule.resource_names.is_empty() {
                    grant(0);
                }
            }
            Some(part) => {
                let values = self.values.iter().enumerate();
                values
                    .filter(|(_, value)| held_rule.grants_rule_part_element(part, value))
                    .for_each(|(at, _)| grant(at));
            }
            None => grant(0),
        }
        (mask, n_granted)
    }
}

impl Permission<'_> {
    /// Returns a rule that grants only this permission.
    pub(crate) fn rule(&self) -> PolicyRule {
        let one = |text: &str| vec![text.to_owned()];
        let verbs = one(self.verb);
        match self.target {
            PermissionTarget::Resource { api_group, resource, name } => PolicyRule {
                verbs,
                api_groups: one(api_group),
                resources: one(resource),
                resource_names: name.map(one).unwrap_or_default(),
                ..PolicyRule::default()
            },
            PermissionTarget::Path(url) => {
                PolicyRule { verbs, non_resource_urls: one(url), ..PolicyRule::default() }
            }
        }
    }
}

/// The numbers of the bits that are set.
fn positions_of_set_bits(mask: &[u64]) -> impl Iterator<Item = usize> {
    mask.iter().enumerate().flat_map(|(at, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(at * WORD_BITS + bit)
        })
    })
}
