//! The committed PTX, instruction by instruction.

use plumbline_conformance::backend::OnDevice;
use plumbline_core::kl::estimator::KlEstimator;
use plumbline_core::surrogate::ClipRange;
use plumbline_core::surrogate::ppo_clip::PpoClip;
use plumbline_gpu::array::Plain;
use plumbline_gpu::elementwise::{ElementArrays, map_elements};
use plumbline_gpu::kl::kl_estimate;
use plumbline_gpu::{Array, Grid};
use plumbline_gpu_interpreter::Interpreted;
use plumbline_gpu_kernels::memory::Number;

use crate::same_bits::{compare, compare_family};

const PTX: &str = include_str!("../../../gpu/ptx/plumbline.ptx");
/// More than one block and warp, and fewer warps than there are tiles.
const GRID: Grid = Grid { blocks: 2, warps: 2 };

fn device(text: &str) -> Result<OnDevice<Interpreted>, String> {
    Ok(OnDevice { name: "interpreted", device: Interpreted::new(text, GRID)? })
}

#[test]
fn the_committed_ptx_gives_the_bits_of_core() {
    let tally = compare(&device(PTX).unwrap()).unwrap();
    let cases: usize = tally.equal.values().sum();
    println!("{cases} cases, {} operations", tally.equal.len());
    assert!(cases >= 1_654 && tally.equal.len() >= 61, "{tally:?}");
}

/// A kernel for numbers that stand one after the other loads and stores each once, 16 bytes at a time, and has no memory of
/// its own.
#[test]
fn elementwise_kernels_touch_each_number_once() {
    fn check<R: Number + Plain>() {
        const COUNT: usize = 4096;
        let device = Interpreted::new(PTX, GRID).unwrap();
        let array = |scale: f64| {
            let numbers: Vec<R> = (1..=COUNT).map(|index| R::from_f64(-scale * index as f64)).collect();
            Array::from_host(&device, &numbers).unwrap()
        };
        let (log_prob, reference, mut kl, mut gradient) = (array(0.001), array(0.0007), array(0.0), array(0.0));
        device.traffic();
        let pair = [&log_prob, &reference];
        kl_estimate(&device, KlEstimator::K3, [None; 2], pair, None, [&mut kl, &mut gradient]).unwrap();
        let traffic = device.traffic();
        let bytes = (2 * COUNT * size_of::<R>()) as u64;
        println!("{}: {traffic:?}", R::SUFFIX);
        assert_eq!((traffic.loads, traffic.stores, traffic.local), (bytes / 16, bytes / 16, 0));
        // The least there can be; the exponential's two signs are constants of the module and not counted here.
        assert_eq!((traffic.loaded, traffic.stored), (bytes, bytes));
    }
    check::<f32>();
    check::<f64>();
}

/// The same of PPO's clip, whose advantage is one number a response: it is loaded once for each 16 bytes of its row.
#[test]
fn a_number_per_row_is_not_spread_in_memory() {
    const ROWS: usize = 8;
    const COLUMNS: usize = 512;
    let device = Interpreted::new(PTX, GRID).unwrap();
    let array = |count: usize, scale: f32| {
        let numbers: Vec<f32> = (1..=count).map(|index| -scale * index as f32).collect();
        Array::from_host(&device, &numbers).unwrap()
    };
    let count = ROWS * COLUMNS;
    let (log_prob, old_log_prob, advantage) = (array(count, 0.001), array(count, 0.0011), array(ROWS, 0.5));
    let (mut loss, mut gradient) = (array(count, 0.0), array(count, 0.0));
    device.traffic();
    let formula = PpoClip { clip: ClipRange::relative(0.2, 0.2), ratio_max: f32::INFINITY, dual: 3.0 };
    let arrays = ElementArrays { inputs: [&log_prob, &old_log_prob, &advantage], mask: None, marks: None };
    map_elements(&device, formula, &arrays, [Some(&mut loss), Some(&mut gradient), None]).unwrap();
    let traffic = device.traffic();
    println!("{traffic:?}");
    let packs = count as u64 / 4;
    assert_eq!((traffic.loads, traffic.stores, traffic.local), (3 * packs, 2 * packs, 0));
    // Two arrays of 4 bytes a token and an advantage for each four tokens; two arrays of results.
    assert_eq!((traffic.loaded, traffic.stored), (packs * 36, packs * 32));
}

/// Each kind of change to the text of a kernel that the golden cases run through is seen.
#[test]
fn changes_of_the_text_are_seen() {
    let module = Interpreted::new(PTX, GRID).unwrap();
    let lines: Vec<&str> = PTX.lines().collect();
    let (mut made, mut seen) = (0, 0);
    for name in ["kl_estimate_f32", "kl_estimate_f64"] {
        let (first, last) = module.module().entry(name).unwrap().lines;
        for (from, to) in [
            ("add.rn", "sub.rn"),
            ("mul.rn", "add.rn"),
            ("sub.rn", "add.rn"),
            ("setp.gt", "setp.lt"),
            ("selp.f", "selp.b"),
            ("0d3F", "0d3E"),
        ] {
            let places = (first..last).filter(|line| lines[*line].contains(from)).take(4);
            for place in places {
                let mut changed = lines.clone();
                // A selection is turned round by the names of its operands, everything else by its own.
                let line = if from == "selp.f" { turned(lines[place]) } else { lines[place].replacen(from, to, 1) };
                changed[place] = &line;
                made += 1;
                let outcome = device(&changed.join("\n")).and_then(|device| compare_family(&device, "kl."));
                seen += usize::from(outcome.is_err());
            }
        }
    }
    println!("{seen} of {made} changes seen");
    assert!(made >= 30 && seen * 10 >= made * 7, "{seen} of {made}");
}

/// A selection with its two sources exchanged.
fn turned(line: &str) -> String {
    let (head, sources) = line.split_once(',').unwrap();
    let parts: Vec<&str> = sources.split(',').collect();
    format!("{head},{},{},{}", parts[1], parts[0], parts[2])
}
