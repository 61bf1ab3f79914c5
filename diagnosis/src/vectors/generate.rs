//! From an operation's description to its cases.
//!
//! Defaults that hide mistakes are avoided: three rows of lengths 1, 2 and 4 (no broadcast fits by accident), lower and
//! upper bounds that differ, log-ratios on both sides of the clip range and far outside it, advantages of both signs
//! and 0, no factor that is 1. Junk stands under the mask in cases of its own, one input at a time.

use plumbline_core::num::Dtype;
use plumbline_core::spec::{Domain, Family, InputSpec, Operation, ParamKind, Range, Shape, Value};

use super::telling::telling;
use super::{Case, Junk, Purpose, Random, Relation};
use plumbline_evaluate::is_real;
use plumbline_evaluate::tensor::{Tensor, round_to};

/// Which inputs and parameters an implementation takes.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// Their names; `None` where it takes whatever the operation has.
    pub names: Option<Vec<String>>,
}

impl Taken {
    /// Whether it takes the input or parameter of that name.
    pub fn takes(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.iter().any(|taken| taken == name))
    }
}

/// How many seeded random cases are tried beside the chosen ones.
const RANDOM_CASES: usize = 16;
/// How often a random case that the operation rejects is drawn again.
const ATTEMPTS: usize = 8;

/// The cases of an operation. `base` holds the parameters of the implementation's setting by position; `accept` says
/// whether the operation itself accepts a case; the inputs are rounded to `dtype`, so that both sides compute
/// from the same numbers.
pub fn cases_for(
    operation: &'static Operation,
    base: &[Value],
    taken: &Taken,
    seed: u64,
    dtype: Dtype,
    accept: &dyn Fn(&Case) -> bool,
) -> Vec<Case> {
    let mut cases = cases_of_seed(operation, base, taken, seed, dtype, accept);
    // Cases of other seeds that tell apart what these do not.
    let mut others: Vec<(u64, Vec<Case>)> = Vec::new();
    for (other, name) in telling(operation.id) {
        if others.iter().all(|(seed, _)| *seed != other) {
            others.push((other, cases_of_seed(operation, base, taken, other, dtype, accept)));
        }
        let found = others.iter().find(|(seed, _)| *seed == other).map(|(_, cases)| cases);
        let case = found.and_then(|cases| cases.iter().find(|case| case.id == name));
        cases.extend(case.map(|case| Case { id: format!("{name}-of-seed-{other}"), ..case.clone() }));
    }
    let derived =
        related_cases(operation, &cases).chain(behind_ends(operation, &cases)).chain(under_masks(operation, &cases));
    let derived: Vec<Case> = derived.filter(|case| accept(case)).collect();
    cases.extend(derived);
    cases
}

/// Those cases of [`cases_for`] that are drawn from the seed by itself.
pub(crate) fn cases_of_seed(
    operation: &'static Operation,
    base: &[Value],
    taken: &Taken,
    seed: u64,
    dtype: Dtype,
    accept: &dyn Fn(&Case) -> bool,
) -> Vec<Case> {
    let maker = Maker { operation, base, taken, dtype };
    let mut random = Random::new(seed, operation.id);
    let mut cases: Vec<Case> = Vec::new();
    let keep = |cases: &mut Vec<Case>, case: Case| {
        let accepted = accept(&case);
        if accepted {
            cases.push(case);
        }
        accepted
    };

    // Chosen cases: one for each way in which an input may be shaped, the others in their first shape.
    let chosen: Vec<Case> = maker
        .shapings()
        .into_iter()
        .enumerate()
        .map(|(number, shaping)| {
            let plan = Plan::chosen(&maker, shaping, &[1, 2, 4, 3, 2]);
            maker.case(format!("chosen-{}", number + 1), Purpose::Regular, &plan, &mut random)
        })
        .collect();
    for case in chosen {
        keep(&mut cases, case);
    }

    for (param, names) in maker.taken_choices() {
        let Some(first) = cases.first().cloned() else { break };
        for name in names {
            let mut case = first.clone();
            case.id = format!("{param}-{name}");
            case.overrides.retain(|(candidate, _)| *candidate != param);
            case.overrides.push((param, Value::Name(name)));
            keep(&mut cases, case);
        }
    }
    for (param, range) in maker.taken_options() {
        let Some(first) = cases.first().cloned() else { break };
        let mut case = first;
        case.id = format!("with-{param}");
        case.overrides.push((param, Value::Number(inside(range, &mut random))));
        keep(&mut cases, case);
    }
    if maker.has_mask() {
        let plan = Plan::chosen(&maker, Vec::new(), &[0, 2, 4, 3, 1]);
        let case = maker.case("empty-row".into(), Purpose::EmptyRow, &plan, &mut random);
        keep(&mut cases, case);
    }
    if maker.has_log_ratio() {
        let plan = Plan { far: true, ..Plan::chosen(&maker, Vec::new(), &[1, 2, 4, 3, 2]) };
        let case = maker.case("far-ratio".into(), Purpose::FarRatio, &plan, &mut random);
        keep(&mut cases, case);
    }
    for case in edge_cases(&maker, &mut random) {
        keep(&mut cases, case);
    }
    for case in joint_cases(&maker, &cases, &random) {
        keep(&mut cases, case);
    }
    for number in 1..=RANDOM_CASES {
        for _ in 0..ATTEMPTS {
            let plan = Plan::random(&maker, &mut random);
            let case = maker.case(format!("random-{number}"), Purpose::Regular, &plan, &mut random);
            if keep(&mut cases, case) {
                break;
            }
        }
    }
    cases
}

/// The first case again, changed in the ways that the result must not depend on.
fn related_cases<'a>(operation: &'a Operation, cases: &'a [Case]) -> impl Iterator<Item = Case> + 'a {
    let first = cases.first().filter(|case| is_chosen(case));
    first
        .into_iter()
        .flat_map(move |first| Relation::ALL.into_iter().filter_map(|relation| related(operation, first, relation)))
}

fn is_chosen(case: &Case) -> bool {
    case.id.starts_with("chosen-")
}

/// Junk behind the end of an episode, where nothing is read.
fn behind_ends<'a>(operation: &'a Operation, cases: &'a [Case]) -> impl Iterator<Item = Case> + 'a {
    let ended = |case: &Case| case.input("done").or_else(|| case.input("terminated")).map(|flags| flags.values.clone());
    let inputs = operation.inputs.iter().filter(|input| input.name.starts_with("next_") && is_real(input.domain));
    inputs.flat_map(move |input| {
        let clean = cases.iter().position(|case| {
            case.purpose == Purpose::Regular
                && case.input(input.name).is_some()
                && ended(case).is_some_and(|flags| flags.iter().any(|flag| *flag != 0.0))
        });
        clean.into_iter().flat_map(move |clean| {
            Junk::ALL.into_iter().map(move |junk| {
                let mut case = cases[clean].clone();
                case.id = format!("behind-done-{}-{}", input.name, junk.name());
                case.purpose = Purpose::UnderMask { input: input.name, junk, clean };
                let flags = ended(&case).unwrap_or_default();
                let values = case.values_mut(input.name).map(Vec::as_mut_slice).unwrap_or_default();
                let width = values.len() / flags.len().max(1);
                for (slot, value) in values.iter_mut().enumerate() {
                    if flags.get(slot / width.max(1)).is_some_and(|flag| *flag != 0.0) {
                        *value = junk.number();
                    }
                }
                case
            })
        })
    })
}

/// Junk under the mask of one input at a time: beside the first chosen case in which that input has the mask's shape.
fn under_masks<'a>(operation: &'a Operation, cases: &'a [Case]) -> impl Iterator<Item = Case> + 'a {
    operation.inputs.iter().filter(|input| is_real(input.domain)).flat_map(move |input| {
        let clean = cases.iter().take_while(|case| is_chosen(case)).position(|case| {
            let shape = case.input("mask").map(|mask| &mask.shape);
            shape.is_some() && case.input(input.name).is_some_and(|tensor| Some(&tensor.shape) == shape)
        });
        clean.into_iter().flat_map(move |clean| {
            Junk::ALL.into_iter().map(move |junk| {
                let mut case = cases[clean].clone();
                case.id = format!("under-mask-{}-{}", input.name, junk.name());
                case.purpose = Purpose::UnderMask { input: input.name, junk, clean };
                let kept = case.kept(input.name);
                for (value, _) in case.values_mut(input.name).into_iter().flatten().zip(kept).filter(|(_, kept)| !kept)
                {
                    *value = junk.number();
                }
                case
            })
        })
    })
}

/// What acts only together: all options on far out, and each choice there, with an empty row, and with a group of one.
fn joint_cases(maker: &Maker<'_>, cases: &[Case], random: &Random) -> Vec<Case> {
    let mut own = random.clone();
    let options: Vec<(&'static str, Value)> = maker
        .taken_options()
        .into_iter()
        .map(|(param, range)| (param, Value::Number(inside(range, &mut own))))
        .collect();
    let of = |purpose: Purpose| cases.iter().find(|case| case.purpose == purpose).cloned();
    let (far, empty) = (of(Purpose::FarRatio), of(Purpose::EmptyRow));
    let Some(start) = far.or(cases.first().cloned()) else { return Vec::new() };
    let mut joint = Vec::new();
    let with_options = |mut case: Case| {
        case.overrides.retain(|(candidate, _)| !options.iter().any(|(option, _)| option == candidate));
        case.overrides.extend(&options);
        case
    };
    if !options.is_empty() {
        joint.push(with_options(Case { id: "with-options".into(), ..start.clone() }));
    }
    // Each option alone too: one bound hides another.
    for (param, value) in &options {
        let mut case = Case { id: format!("far-with-{param}"), ..start.clone() };
        case.overrides.retain(|(candidate, _)| candidate != param);
        case.overrides.push((param, *value));
        joint.push(case);
    }
    for (param, names) in maker.taken_choices() {
        for name in names {
            let chosen = |case: &Case, with: &str| {
                let mut case = Case { id: format!("{param}-{name}-{with}"), ..case.clone() };
                case.overrides.retain(|(candidate, _)| *candidate != param);
                case.overrides.push((param, Value::Name(name)));
                case
            };
            if !options.is_empty() {
                joint.push(with_options(chosen(&start, "with-options")));
            }
            joint.extend(empty.as_ref().map(|empty| chosen(empty, "empty-row")));
            if param == "group_of_one" {
                let mut alone = chosen(&cases[0], "alone");
                alone.purpose = Purpose::Edge;
                for group in alone.values_mut("group").into_iter().flatten().skip(1) {
                    *group = 1.0;
                }
                joint.push(alone);
            }
        }
    }
    joint
}

/// The first case again, changed in a way that the result must not depend on; `None` where the operation has no such way.
fn related(operation: &Operation, clean: &Case, relation: Relation) -> Option<Case> {
    let mut case = clean.clone();
    case.id = relation.name().into();
    case.purpose = Purpose::Related { relation, clean: 0 };
    let shape_of =
        |name: &str, rank: usize| operation.input(name)?.shapes.iter().find(|shape| shape.len() == rank).copied();
    let mut is_changed = false;
    for (name, tensor) in &mut case.inputs {
        let shape = shape_of(name, tensor.shape.len())?;
        let domain = operation.input(name)?.domain;
        match relation {
            Relation::ReversedRows if shape.first().is_some_and(|first| ["B", "N"].contains(first)) => {
                let rows = (*tensor.shape.first()?).max(1);
                let width = tensor.values.len() / rows;
                let reversed = tensor.values.chunks(width.max(1)).rev().flatten().copied().collect();
                tensor.values = reversed;
                is_changed = true;
            }
            Relation::PaddedColumn if shape.contains(&"T") => {
                let ([_, columns], ["B", "T"]) = (tensor.shape.as_slice(), shape) else { return None };
                let columns = *columns;
                let rows = tensor.values.chunks(columns.max(1));
                // What stands there is a number like any other, and masked.
                let filler =
                    |row: &[f64]| if domain == Domain::Mask { 0.0 } else { row.first().copied().unwrap_or(0.0) };
                tensor.values = rows.flat_map(|row| [row, &[filler(row)]].concat()).collect();
                tensor.shape[1] = columns + 1;
                is_changed = true;
            }
            Relation::ShiftedRewards if domain == Domain::Reward => {
                tensor.values.iter_mut().for_each(|value| *value += 0.5);
                is_changed = true;
            }
            Relation::FirstShard | Relation::OtherShard
                if shape.first().is_some_and(|first| ["B", "N"].contains(first)) && tensor.shape[0] > 1 =>
            {
                let rows = tensor.shape[0];
                let (width, cut) = (tensor.values.len() / rows, rows.div_ceil(2));
                let kept = if relation == Relation::FirstShard { 0..cut } else { cut..rows };
                tensor.shape[0] = kept.len();
                tensor.values = tensor.values[kept.start * width..kept.end * width].to_vec();
                is_changed = true;
            }
            _ => {}
        }
    }
    if let Relation::TraceOfOne | Relation::TraceOfZero = relation {
        let decay = if relation == Relation::TraceOfOne { 1.0 } else { 0.0 };
        let is_decay = |name: &str| {
            operation.param(name).is_some_and(|(_, param)| {
                param.symbol == r"\lambda"
                    && matches!(param.kind, ParamKind::Number { range, .. } if range == Range::UNIT)
            })
        };
        for (_, value) in case.overrides.iter_mut().filter(|(name, _)| is_decay(name)) {
            *value = Value::Number(decay);
            is_changed = true;
        }
    }
    let has_mask = case.input("mask").is_some();
    (is_changed && (has_mask || relation != Relation::PaddedColumn)).then_some(case)
}

/// Edges that hide behind ordinary numbers: exponentials that overflow in single precision, certainty, a single token, a
/// group of one, whole numbers, members of one class only. Drawn from their own streams, so that they move no other case.
fn edge_cases(maker: &Maker<'_>, random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut own = random.clone();
    let chosen = || Plan::chosen(maker, Vec::new(), &[1, 2, 4, 3, 2]);
    let mut add = |name: &str, purpose: Purpose, plan: &Plan, change: &dyn Fn(&InputSpec, &mut Tensor)| {
        let mut case = maker.case(name.into(), purpose, plan, &mut own);
        let before: Vec<Tensor> = case.inputs.iter().map(|(_, tensor)| tensor.clone()).collect();
        for (name, tensor) in &mut case.inputs {
            if let Some(spec) = maker.operation.input(name) {
                change(spec, tensor);
                tensor.values.iter_mut().for_each(|value| *value = round_to(*value, maker.dtype));
            }
        }
        // A case like its plan's says nothing new.
        if case.inputs.iter().zip(&before).any(|((_, now), before)| now != before) {
            cases.push(case);
        }
    };
    let log_probs: Vec<&str> =
        maker.inputs().filter(|input| input.domain == Domain::LogProb).map(|input| input.name).collect();
    if log_probs.len() > 1 {
        // The first lies between the others: ratios overflow on one side and vanish on the other.
        let (first, others) = (log_probs[0], &log_probs[1..]);
        add("overflow", Purpose::FarRatio, &chosen(), &|input, tensor| {
            // Sums over responses and scaled margins need more than a token's ratio does.
            let size = if input.shapes.contains(&(&["B", "T"] as Shape)) { 95.0 } else { 1500.0 };
            let is_other = others.contains(&input.name);
            for (index, value) in tensor.values.iter_mut().enumerate() {
                match input.domain {
                    Domain::LogProb if input.name == first => *value = -size - 1.0,
                    Domain::LogProb if is_other && index % 3 == 0 => *value -= 2.0 * size,
                    Domain::LogProb if is_other && index % 3 == 1 => *value = -1.0 - 0.1 * index as f64,
                    Domain::LogProb if is_other => *value = -size - 1.5,
                    // Where the ratio is infinite in single precision the advantage is 0.
                    Domain::Advantage if index % 3 == 0 => *value = 0.0,
                    _ => {}
                }
            }
        });
    }
    if !log_probs.is_empty() && maker.operation.family == Family::Preference {
        add("near-certainty", Purpose::FarRatio, &chosen(), &|input, tensor| {
            if input.domain == Domain::LogProb {
                tensor.values.iter_mut().for_each(|value| *value *= 1e-9);
            }
        });
    }
    if maker.operation.family == Family::Preference {
        add("far-scores", Purpose::FarRatio, &chosen(), &|input, tensor| {
            if input.domain == Domain::Reward && input.shapes.contains(&(&["N"] as Shape)) {
                let sign = if input.name.starts_with("chosen") { -1.0 } else { 1.0 };
                tensor.values.iter_mut().for_each(|value| *value = sign * (60.0 + value.abs()));
            }
        });
    }
    if maker.has_mask() {
        add("one-token", Purpose::Edge, &chosen(), &|input, tensor| {
            if input.name == "mask" {
                tensor.values.iter_mut().skip(1).for_each(|kept| *kept = 0.0);
            }
        });
    }
    add("group-of-one", Purpose::Edge, &chosen(), &|input, tensor| {
        if input.domain == Domain::Group {
            tensor.values.iter_mut().enumerate().for_each(|(index, group)| *group = f64::from(u8::from(index > 0)));
        }
    });
    if maker.operation.family == Family::TemporalDifference {
        add("round-numbers", Purpose::Edge, &chosen(), &|input, tensor| {
            if matches!(input.domain, Domain::Reward | Domain::Value) {
                tensor.values.iter_mut().for_each(|value| *value = value.round());
            }
            if input.domain == Domain::Done {
                tensor.values.fill(1.0);
            }
        });
    }
    add("one-class", Purpose::Edge, &chosen(), &|input, tensor| {
        if input.domain == Domain::Mask && !input.optional && input.name != "mask" {
            tensor.values.fill(1.0);
        }
    });
    cases
}

/// Keep only the case of that name; for one that is made from another also that one.
pub fn retain(cases: &mut Vec<Case>, name: &str) {
    let clean = cases.iter().find(|case| case.id == name).and_then(|case| match case.purpose {
        Purpose::UnderMask { clean, .. } | Purpose::Related { clean, .. } => {
            cases.get(clean).map(|case| case.id.clone())
        }
        _ => None,
    });
    cases.retain(|case| case.id == name || Some(&case.id) == clean.as_ref());
    for case in cases {
        if let Purpose::UnderMask { clean, .. } | Purpose::Related { clean, .. } = &mut case.purpose {
            *clean = 0;
        }
    }
}

/// Shapes, lengths and size of the numbers of a case to be made.
struct Plan {
    sizes: Vec<(&'static str, usize)>,
    /// For an input: which of its shapes, where not the first.
    shaping: Vec<(&'static str, usize)>,
    /// Unmasked tokens of each row.
    lengths: Vec<usize>,
    /// Whether some masked slots lie between unmasked ones.
    holes: bool,
    /// Whether the numbers are drawn rather than taken from the chosen patterns.
    drawn: bool,
    /// Whether log-ratios are far from 0.
    far: bool,
}

impl Plan {
    fn chosen(maker: &Maker<'_>, shaping: Vec<(&'static str, usize)>, lengths: &[usize]) -> Plan {
        let rows = if maker.has_groups() { 5 } else { 3 };
        let others = [3, 4, 5, 2, 6, 7];
        let mut unnamed = others.iter().cycle();
        let sizes = maker
            .dimensions()
            .into_iter()
            .map(|name| match name {
                "B" => (name, rows),
                "T" => (name, 4),
                _ => (name, *unnamed.next().unwrap_or(&3)),
            })
            .collect();
        Plan { sizes, shaping, lengths: lengths.to_vec(), holes: false, drawn: false, far: false }
    }

    fn random(maker: &Maker<'_>, random: &mut Random) -> Plan {
        let mut sizes = Vec::new();
        for name in maker.dimensions() {
            let size = match name {
                "B" if maker.has_groups() => 4 + random.below(3),
                "B" | "T" => 2 + random.below(5),
                _ => 2 + random.below(4),
            };
            sizes.push((name, size));
        }
        let columns = sizes.iter().find(|(name, _)| *name == "T").map_or(1, |(_, size)| *size);
        let lengths = (0..8).map(|_| 1 + random.below(columns)).collect();
        let shapings = maker.shapings();
        let shaping = shapings.get(random.below(shapings.len())).cloned().unwrap_or_default();
        Plan { sizes, shaping, lengths, holes: random.below(2) == 0, drawn: true, far: false }
    }

    /// Two groups where there are four members: in turn, or in drawn cases also one behind the other or mixed.
    fn groups(&self, count: usize, random: &mut Random) -> Vec<f64> {
        let groups = if count < 4 { 1 } else { 2 };
        let mut values = draw(count, |index| (index % groups) as f64);
        match if self.drawn { random.below(3) } else { 0 } {
            0 => {}
            1 => values.sort_unstable_by(f64::total_cmp),
            _ => (1..count).rev().for_each(|last| values.swap(last, random.below(last + 1))),
        }
        values
    }

    fn shape(&self, input: &InputSpec) -> Shape {
        let pick = self.shaping.iter().find(|(name, _)| *name == input.name).map_or(0, |(_, pick)| *pick);
        input.shapes.get(pick).copied().unwrap_or(&[])
    }

    fn size(&self, dimension: &str) -> usize {
        self.sizes.iter().find(|(name, _)| *name == dimension).map_or(1, |(_, size)| *size)
    }
}

/// What cases are made from.
struct Maker<'a> {
    operation: &'static Operation,
    base: &'a [Value],
    taken: &'a Taken,
    dtype: Dtype,
}

impl Maker<'_> {
    fn inputs(&self) -> impl Iterator<Item = &'static InputSpec> + '_ {
        self.operation.inputs.iter().filter(|input| !input.optional || self.taken.takes(input.name))
    }

    fn has_mask(&self) -> bool {
        self.inputs().any(|input| input.name == "mask" && input.shapes.first().is_some_and(|shape| shape.len() == 2))
    }

    fn has_groups(&self) -> bool {
        self.inputs().any(|input| input.domain == Domain::Group)
    }

    fn has_log_ratio(&self) -> bool {
        self.inputs().filter(|input| input.domain == Domain::LogProb).count() >= 2
            || self.inputs().any(|input| input.domain == Domain::LogRatio)
    }

    fn dimensions(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        for name in self.inputs().flat_map(|input| input.shapes.iter()).flat_map(|shape| shape.iter()) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        names
    }

    fn shapings(&self) -> Vec<Vec<(&'static str, usize)>> {
        let mut shapings = vec![Vec::new()];
        for input in self.inputs() {
            shapings.extend((1..input.shapes.len()).map(|pick| vec![(input.name, pick)]));
        }
        shapings
    }

    fn taken_choices(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        let params = self.operation.params.iter().zip(self.base);
        params
            .filter(|(param, _)| self.is_varied(param.name))
            .filter_map(|(param, base)| match param.kind {
                ParamKind::Choice { names, .. } => {
                    let others = names.iter().copied().filter(|name| *base != Value::Name(name));
                    Some((param.name, others.collect()))
                }
                _ => None,
            })
            .collect()
    }

    /// Options that are off by default and that the implementation takes.
    fn taken_options(&self) -> Vec<(&'static str, Range)> {
        let params = self.operation.params.iter().zip(self.base);
        params
            .filter(|(param, base)| self.is_varied(param.name) && **base == Value::None)
            .filter_map(|(param, _)| match param.kind {
                ParamKind::OptionalNumber { range, .. } => Some((param.name, range)),
                _ => None,
            })
            .collect()
    }

    /// Only parameters that the implementation says it takes are varied.
    fn is_varied(&self, name: &str) -> bool {
        self.taken.names.is_some() && self.taken.takes(name)
    }

    fn case(&self, id: String, purpose: Purpose, plan: &Plan, random: &mut Random) -> Case {
        let mut overrides = Vec::new();
        for (param, base) in self.operation.params.iter().zip(self.base) {
            if self.is_varied(param.name)
                && let Some(value) = draw_param(param.kind, *base, plan.drawn, random)
            {
                overrides.push((param.name, value));
            }
        }
        let mut inputs: Vec<(&'static str, Tensor)> = Vec::new();
        let mut log_probs = LogProbs::default();
        for input in self.inputs() {
            let shape = plan.shape(input);
            let sizes: Vec<usize> = shape.iter().map(|name| plan.size(name)).collect();
            let count = sizes.iter().product();
            let values = match input.domain {
                Domain::Mask => self.mask(plan, shape, &sizes, random),
                Domain::Done => draw(count, |_| f64::from(u8::from(random.below(10) < 3))),
                Domain::Group => plan.groups(count, random),
                Domain::Index(dimension) => {
                    let limit = plan.size(dimension);
                    draw(count, |_| random.below(limit) as f64)
                }
                // Lengths are at least 1; identifiers of tokens may be that of padding.
                Domain::Count if shape == ["B", "T"] => draw(count, |_| random.below(4) as f64),
                Domain::Count => draw(count, |_| 1.0 + random.below(4) as f64),
                Domain::LogProb => log_probs.next(count, self.inputs().filter(is_log_prob).count(), plan, random),
                domain => self.reals(domain, shape, count, &sizes, plan, random),
            };
            let mut tensor = Tensor { shape: sizes, values };
            tensor.values.iter_mut().for_each(|value| *value = round_to(*value, self.dtype));
            inputs.push((input.name, tensor));
        }
        Case { id, purpose, overrides, inputs }
    }

    fn mask(&self, plan: &Plan, shape: Shape, sizes: &[usize], random: &mut Random) -> Vec<f64> {
        let [rows, columns] = sizes else {
            let count = sizes.iter().product();
            return draw(count, |slot| f64::from(u8::from(slot == 0 || random.below(4) > 0)));
        };
        // Along time rows have lengths; elsewhere some members are left out.
        let is_selection = !shape.last().is_some_and(|name| ["T", "S"].contains(name));
        let mut kept = Vec::with_capacity(rows * columns);
        for row in 0..*rows {
            let length = if is_selection { *columns } else { plan.lengths[row % plan.lengths.len()].min(*columns) };
            for column in 0..*columns {
                let hole = plan.holes && column > 0 && column + 1 < length && random.below(4) == 0;
                kept.push(f64::from(u8::from(column < length && !hole)));
            }
        }
        kept
    }

    fn reals(
        &self,
        domain: Domain,
        shape: Shape,
        count: usize,
        sizes: &[usize],
        plan: &Plan,
        random: &mut Random,
    ) -> Vec<f64> {
        let mut values: Vec<f64> = (0..count)
            .map(|index| match domain {
                Domain::LogRatio => log_ratio(index, plan, random),
                Domain::Logit => random.between(-2.5, 2.5),
                Domain::Advantage => advantage(index, plan, random),
                Domain::Reward => random.between(-1.0, 2.0),
                Domain::Value => random.between(-1.2, 1.6),
                Domain::Probability => random.between(0.05, 0.95),
                Domain::Positive => random.between(0.3, 2.4),
                Domain::NonNegative => random.between(0.0, 2.0),
                _ => random.between(-2.0, 2.0),
            })
            .collect();
        // A distribution over the last dimension, where that is neither the batch nor time.
        if domain == Domain::Probability
            && let (Some(last), Some(name)) = (sizes.last(), shape.last())
            && !["B", "T"].contains(name)
            && *last > 0
        {
            for row in values.chunks_mut(*last) {
                let sum: f64 = row.iter().sum();
                row.iter_mut().for_each(|value| *value /= sum);
            }
        }
        values
    }
}

fn draw(count: usize, number: impl FnMut(usize) -> f64) -> Vec<f64> {
    (0..count).map(number).collect()
}

fn is_log_prob(input: &&'static InputSpec) -> bool {
    input.domain == Domain::LogProb
}

/// Log-probabilities that belong together: the first input's, and the others at chosen distances from it.
#[derive(Default)]
struct LogProbs {
    base: Vec<f64>,
    distances: Vec<Vec<f64>>,
    given: usize,
}

impl LogProbs {
    fn next(&mut self, count: usize, inputs: usize, plan: &Plan, random: &mut Random) -> Vec<f64> {
        if self.base.len() != count {
            // A new family of inputs of this size: the distances first, then a base that keeps all of them below 0.
            let others = inputs.saturating_sub(1);
            self.distances = (0..others)
                .map(|other| {
                    let scale = if other == 0 { 1.0 } else { 0.7 };
                    (0..count).map(|index| scale * log_ratio(index + 5 * other, plan, random)).collect()
                })
                .collect();
            self.base = (0..count)
                .map(|index| {
                    let highest = self.distances.iter().map(|row| -row[index]).fold(0.0, f64::max);
                    -highest - random.between(0.1, 2.0)
                })
                .collect();
            self.given = 0;
            return self.base.clone();
        }
        let distances = self.distances.get(self.given);
        self.given += 1;
        match distances {
            Some(distances) => self.base.iter().zip(distances).map(|(base, distance)| base - distance).collect(),
            None => self.base.iter().map(|base| base - random.between(0.0, 1.0)).collect(),
        }
    }
}

/// The sign of the advantage and the log-ratio of chosen tokens, by index. With rows of lengths 1, 2 and 4 out of 4
/// columns the tokens 0, 4, 5 and 8 to 11 stand: both signs above, inside and below usual clip ranges, one token where
/// a dual clip acts, one advantage of 0. The first three signs serve where there is one advantage for each row.
const CHOSEN: [(f64, f64); 12] = [
    (-1.0, -0.06),
    (1.0, -0.55),
    (-1.0, 0.33),
    (1.0, -0.07),
    (1.0, 1.4),
    (-1.0, -2.4),
    (-1.0, 0.02),
    (1.0, 0.9),
    (-1.0, 2.1),
    (1.0, -0.6),
    (1.0, 0.06),
    (0.0, -0.13),
];

fn advantage(index: usize, plan: &Plan, random: &mut Random) -> f64 {
    let size = random.between(0.3, 2.1);
    if plan.drawn {
        [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.0][random.below(7)] * size
    } else {
        CHOSEN[index % CHOSEN.len()].0 * size
    }
}

/// Log-ratios inside and outside usual clip ranges, on both sides; for far cases beyond ±20, where libraries clamp.
fn log_ratio(index: usize, plan: &Plan, random: &mut Random) -> f64 {
    const FAR: [f64; 5] = [12.5, -18.0, 24.0, -23.0, 19.0];
    let jitter = random.between(-0.01, 0.01);
    if plan.far && index.is_multiple_of(2) {
        FAR[index / 2 % FAR.len()] + jitter
    } else if plan.drawn {
        let width = [0.15, 0.6, 2.0][random.below(3)];
        random.between(-width, width)
    } else {
        CHOSEN[index % CHOSEN.len()].1 + jitter
    }
}

/// A value for a parameter that the implementation takes; `None` to leave it at its setting.
fn draw_param(kind: ParamKind, base: Value, drawn: bool, random: &mut Random) -> Option<Value> {
    match (kind, base) {
        (ParamKind::Number { range, .. } | ParamKind::OptionalNumber { range, .. }, Value::Number(base)) => {
            Some(Value::Number(near(base, range, random)))
        }
        (ParamKind::OptionalNumber { range, .. }, Value::None) if drawn && random.below(2) == 0 => {
            Some(Value::Number(inside(range, random)))
        }
        // Small numbers too: a window that is longer than every row hides how long it is.
        (ParamKind::Integer { low, high, .. }, Value::Integer(base)) => {
            let start = if drawn && random.below(2) == 0 { low.max(1) } else { base };
            Some(Value::Integer((start + random.below(3) as i64).clamp(low, high)))
        }
        (ParamKind::Flag { .. }, Value::Flag(_)) if drawn => Some(Value::Flag(random.below(2) == 0)),
        (ParamKind::Choice { names, .. }, Value::Name(_)) if drawn && random.below(2) == 0 => {
            names.get(random.below(names.len())).map(|name| Value::Name(name))
        }
        _ => None,
    }
}

/// A number of the size of `base` that is not `base`; where `base` is 0 or an end of the range, one inside the range.
fn near(base: f64, range: Range, random: &mut Random) -> f64 {
    let number = base * random.between(0.6, 1.6);
    let at_end = base == range.low || base == range.high || base == 0.0;
    if !at_end && range.contains(number) { number } else { inside(range, random) }
}

fn inside(range: Range, random: &mut Random) -> f64 {
    let share = random.between(0.15, 0.9);
    // A bound that is only there to keep numbers finite is as good as none.
    let bounded = |bound: f64| bound.abs() <= 100.0;
    match (bounded(range.low), bounded(range.high)) {
        (true, true) => range.low + (range.high - range.low) * share,
        (true, false) => range.low + 2.5 * share,
        (false, true) => range.high - 2.5 * share,
        (false, false) => 2.5 * share,
    }
}
