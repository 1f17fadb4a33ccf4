//! Groups of pictures that are drawn together: their sizes are worked out step by step, each for all frames, which takes
//! fewer instructions than all steps for each frame. The results are the same bits.

use super::marginal::{CELLS, Cell, Inverse};
use super::pattern::Pattern;
use super::tes::stitched;
use super::whole::round_down;
use crate::frame::FrameType as Type;

/// The most frames that are drawn together.
pub(super) const BLOCK: usize = 64;

/// How many cells a type has: one before the first and one after the last are unknown, too.
const OF_TYPE: usize = CELLS + 2;
/// Room for the cells of all types.
const ROOM: usize = (Type::COUNT * OF_TYPE).next_power_of_two();
/// A cell in which sizes must be worked out otherwise.
const UNKNOWN: Cell = Cell { size: -1.0, rise: 0.0 };

/// What the sizes of frames of a type follow from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'a> {
    /// Of [stitching](super::tes::stitch).
    pub(super) xi: f64,
    /// The sizes at quantiles.
    pub(super) inverse: &'a Inverse,
}

/// A number for each frame, aligned so that two of them can be read by the instruction that needs them.
#[derive(Clone, Debug, PartialEq)]
#[repr(align(16))]
struct Numbers([f64; BLOCK]);

/// Whole groups of pictures.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Groups {
    /// The types of their frames.
    pub(super) kinds: [Type; BLOCK],
    /// The number of frames.
    pub(super) count: usize,
    /// The places of the frames of each type, and how many there are.
    places: [([u8; BLOCK], usize); Type::COUNT],
    /// Of each frame: ξ and 1 − ξ in cells, the bounds of its size, and where the cells of its type begin.
    xi: Numbers,
    rest: Numbers,
    least: Numbers,
    most: Numbers,
    begin: [i32; BLOCK],
    cells: Box<[Cell; ROOM]>,
}

impl Groups {
    /// As many as fit, with these types; `None` if not even one does.
    #[must_use]
    pub(super) fn new(pattern: &Pattern, shapes: &[Option<Shape<'_>>; Type::COUNT]) -> Option<Self> {
        let types = pattern.types();
        let count = BLOCK / types.len() * types.len();
        if count == 0 {
            return None;
        }
        let mut groups = Self {
            kinds: [Type::I; BLOCK],
            count,
            places: [([0; BLOCK], 0); Type::COUNT],
            xi: Numbers([1.0; BLOCK]),
            rest: Numbers([0.0; BLOCK]),
            least: Numbers([0.0; BLOCK]),
            most: Numbers([0.0; BLOCK]),
            begin: [0; BLOCK],
            cells: Box::new([UNKNOWN; ROOM]),
        };
        for (shape, cells) in shapes.iter().zip(groups.cells.chunks_mut(OF_TYPE)) {
            if let Some(known) = shape.and_then(|shape| shape.inverse.cells()) {
                // The first and the last one are unknown.
                cells[2..CELLS].copy_from_slice(&known[1..CELLS - 1]);
            }
        }
        for (place, kind) in types.iter().cycle().take(count).enumerate() {
            groups.kinds[place] = *kind;
            let (of, found) = &mut groups.places[*kind as usize];
            // There are few.
            of[*found] = place as u8;
            *found += 1;
            let Shape { xi, inverse } = shapes[*kind as usize]?;
            // Divided by a power of two, so that quotients are the same bits but for ξ below 2⁻¹⁰¹³.
            (groups.xi.0[place], groups.rest.0[place]) = (xi / CELLS as f64, (1.0 - xi) / CELLS as f64);
            (groups.least.0[place], groups.most.0[place]) = inverse.bounds();
            groups.begin[place] = (*kind as usize * OF_TYPE + 1) as i32;
        }
        Some(groups)
    }
    /// The places of the frames of a type.
    pub(super) fn places(&self, kind: Type) -> &[u8] {
        let (places, count) = &self.places[kind as usize];
        places.get(..*count).unwrap_or(&[])
    }

    /// Replaces positions on the circle by what `of` makes of sizes in bytes; rarely `other` is asked for the size of a frame.
    #[inline(never)]
    pub(super) fn sizes<T>(
        &self,
        circle: &[f64; BLOCK],
        other: impl Fn(Type, f64) -> f64,
        of: impl Fn(f64) -> T,
        sizes: &mut [T; BLOCK],
    ) {
        // Beyond the last frame they may become anything.
        let (mut cells, mut within) = ([0; BLOCK], [0.0; BLOCK]);
        for place in 0..BLOCK {
            let quantile = stitched(circle[place], (self.xi.0[place], self.rest.0[place]));
            let (cell, whole) = round_down(quantile);
            cells[place] = self.begin[place].wrapping_add(cell);
            within[place] = quantile - whole;
        }
        let table = &*self.cells;
        let mut one = |place: usize| {
            let Cell { size, rise } = table[cells[place] as usize % ROOM];
            let size = size + within[place] * rise;
            within[place] = if size < 0.0 { other(self.kinds[place], circle[place]) } else { size };
        };
        // Unrolled by the compiler.
        let count = self.count.min(BLOCK);
        (0..count / 4).for_each(|four| (4 * four..4 * four + 4).for_each(&mut one));
        (count / 4 * 4..count).for_each(one);
        for place in 0..BLOCK {
            let (size, least, most) = (within[place], self.least.0[place], self.most.0[place]);
            let size = if size > least { size } else { least };
            sizes[place] = of(if size < most { size } else { most });
        }
    }
}
