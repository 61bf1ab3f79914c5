//! The kernels' source, whatever the grid.

use plumbline_conformance::backend::OnDevice;
use plumbline_gpu::{Emulated, Grid, Order};

use crate::same_bits::compare;

/// One warp that does everything; several blocks backwards; more warps than there is work, forwards.
const GRIDS: [Emulated; 3] = [
    Emulated { grid: Grid::ONE, order: Order::Forward },
    Emulated { grid: Grid { blocks: 3, warps: 1 }, order: Order::Backward },
    Emulated { grid: Grid { blocks: 5, warps: 8 }, order: Order::Forward },
];

#[test]
fn every_grid_gives_the_bits_of_core() {
    for device in GRIDS {
        let tally = compare(&OnDevice { name: "emulated", device }).unwrap();
        let cases: usize = tally.equal.values().sum();
        println!("{device:?}: {cases} cases, {} operations with a kernel", tally.equal.len());
        // So many golden cases have a kernel; fewer would mean that some are skipped unnoticed.
        assert!(cases >= 1_654 && tally.equal.len() >= 61, "{tally:?}");
    }
}
