//! The points of the space, from the simplest on.

use plumbline_core::spec::{Operation, Value};

use super::candidates::single_changes;
use super::change::{Change, Place, Split, plain};
use super::edit::Edit;
use super::evidence::Sample;
use super::finding::Explanation;
use super::meaning::Meaning;
use super::space::Point;
use super::tolerance::Tolerance;
use crate::vectors::Case;

/// The search over points.
pub(super) struct Search<'a> {
    /// What the implementation is meant to compute.
    pub meaning: &'a Meaning,
    /// What was observed.
    pub samples: &'a [Sample<'a>],
    /// When numbers count as the same.
    pub tolerance: Tolerance,
}

/// How a point stands to what was observed.
#[derive(Clone, Copy, Debug)]
struct Fit {
    value: bool,
    gradient: bool,
}

impl Search<'_> {
    pub(super) fn explanations(&self) -> Vec<Explanation> {
        let singles = single_changes(self.meaning, &self.cases());
        let base = self.fit(&[], true);
        // Where the value is wrong a gradient that fits says nothing by itself.
        let fits: Vec<Fit> = singles.iter().map(|change| self.fit(std::slice::from_ref(change), base.value)).collect();
        let mut found: Vec<Explanation> = Vec::new();
        for (change, fit) in singles.iter().zip(&fits) {
            if fit.value && fit.gradient {
                found.push(self.explanation(vec![change.clone()]));
            } else if fit.value && !base.value && self.fit(&[change.clone(), Change::Unstopped], false).gradient {
                found.push(self.explanation(vec![change.clone(), Change::Unstopped]));
            }
        }
        found.extend(self.factors(&[]));
        found.extend(self.terms());
        found.extend(self.row_factor());
        found.extend(self.sign_factors());
        if base.value && self.fit(&[Change::NoGradient], true).gradient {
            found.push(self.explanation(vec![Change::NoGradient]));
        }
        if base.value && found.is_empty() {
            for (change, _) in singles.iter().zip(&fits).filter(|(_, fit)| fit.gradient) {
                found.push(self.explanation(vec![Change::GradientOf(Box::new(change.clone()))]));
            }
        }
        if !found.is_empty() {
            return found;
        }
        let of_value: Vec<&Change> =
            singles.iter().zip(&fits).filter(|(_, fit)| fit.value).map(|pair| pair.0).collect();
        let of_gradient: Vec<&Change> = match of_value.is_empty() {
            true => Vec::new(),
            false => singles.iter().filter(|change| self.fit(std::slice::from_ref(*change), true).gradient).collect(),
        };
        for value in of_value {
            for gradient in &of_gradient {
                let changes = vec![value.clone(), Change::GradientOf(Box::new((*gradient).clone()))];
                found.push(self.explanation(changes));
            }
        }
        for change in &singles {
            found.extend(self.factors(std::slice::from_ref(change)));
        }
        if !found.is_empty() || base.value {
            return found;
        }
        self.pairs(&singles)
    }

    /// The cases of the samples.
    pub(super) fn cases(&self) -> Vec<&Case> {
        self.samples.iter().map(|sample| sample.case).collect()
    }

    /// Whether value and gradient of a point are what was observed, on all samples. Gradients are looked at where the
    /// value fits, or where `gradient` asks for them in any case.
    fn fit(&self, changes: &[Change], gradient: bool) -> Fit {
        let point = Point { meaning: self.meaning, changes: changes.to_vec() };
        let mut fit = Fit { value: true, gradient: true };
        for sample in self.samples {
            if !gradient {
                let value = point.numbers(sample.case, &[]);
                if !value.is_ok_and(|numbers| sample.value_is(&numbers, self.tolerance)) {
                    return Fit { value: false, gradient: false };
                }
            }
        }
        for sample in self.samples {
            let Ok(numbers) = point.numbers(sample.case, &sample.trainables) else {
                return Fit { value: false, gradient: false };
            };
            fit.value = fit.value && sample.value_is(&numbers, self.tolerance);
            fit.gradient = fit.gradient && sample.gradient_is(&numbers, self.tolerance);
            if !fit.value && !fit.gradient {
                break;
            }
        }
        fit
    }

    /// Two changes together: first the changes that give different values, one of each kind of value, then, where two of
    /// them fit, those that cannot be told from them alone, and where none do, all others.
    fn pairs(&self, singles: &[Change]) -> Vec<Explanation> {
        let (classes, dormant) = self.by_value(singles);
        let mut tried = Tried { search: self, found: Vec::new(), near: Vec::new() };
        for (position, first) in classes.iter().enumerate() {
            for second in classes.iter().skip(position + 1) {
                tried.attempt(first.first(), second.first());
            }
            for second in dormant.iter().filter(|_| first.first().is_some_and(chooses)) {
                tried.attempt(first.first(), Some(second));
            }
        }
        let class_of = |change: &Change| {
            classes
                .iter()
                .find(|class| class.contains(change))
                .map_or(std::slice::from_ref(change), Vec::as_slice)
                .to_vec()
        };
        for (first, second) in std::mem::take(&mut tried.near) {
            for first in &class_of(&first) {
                for second in &class_of(&second) {
                    tried.attempt(Some(first), Some(second));
                }
            }
        }
        if tried.found.is_empty() {
            let all: Vec<&Change> = classes.iter().flatten().chain(&dormant).collect();
            for (position, first) in all.iter().enumerate() {
                all.iter().skip(position + 1).for_each(|second| tried.attempt(Some(first), Some(second)));
            }
        }
        tried.found
    }

    /// The changes that may be paired, together those that give the same values, and those that change no value: they may
    /// act beside what switches an option on.
    fn by_value(&self, singles: &[Change]) -> (Vec<Vec<Change>>, Vec<Change>) {
        let mut classes: Vec<(Vec<Change>, Vec<Vec<f64>>)> = Vec::new();
        let mut dormant: Vec<Change> = Vec::new();
        for change in singles.iter().filter(|change| may_be_paired(change)) {
            let point = Point { meaning: self.meaning, changes: vec![change.clone()] };
            let values: Option<Vec<Vec<f64>>> =
                self.samples.iter().map(|sample| Some(point.numbers(sample.case, &[]).ok()?.value)).collect();
            let Some(values) = values else { continue };
            let is_active = values.iter().zip(self.samples).any(|(value, sample)| *value != sample.expected.value);
            match classes.iter_mut().find(|(_, other)| *other == values) {
                _ if !is_active => dormant.push(change.clone()),
                Some((class, _)) => class.push(change.clone()),
                None => classes.push((vec![change.clone()], values)),
            }
        }
        (classes.into_iter().map(|(class, _)| class).collect(), dormant)
    }

    /// Whether a point gives the observed values; most points are rejected by the first evaluation.
    fn value_fits(&self, changes: &[Change]) -> bool {
        let point = Point { meaning: self.meaning, changes: changes.to_vec() };
        self.samples.iter().all(|sample| {
            point.numbers(sample.case, &[]).is_ok_and(|numbers| sample.value_is(&numbers, self.tolerance))
        })
    }

    fn explanation(&self, changes: Vec<Change>) -> Explanation {
        let cost = changes.iter().map(|change| self.cost(change)).sum();
        let words: Vec<String> = changes.iter().map(|change| change.words(&|name| self.setting(name))).collect();
        Explanation { ids: changes.iter().map(Change::id).collect(), text: words.join(", and "), cost, changes }
    }

    pub(super) fn words(&self, changes: &[Change]) -> String {
        changes.iter().map(|change| format!("{}, and ", change.words(&|name| self.setting(name)))).collect()
    }

    pub(super) fn cost(&self, change: &Change) -> u32 {
        match change {
            Change::Dialect(_) => 0,
            Change::Set(_, Value::None) => 1,
            Change::Set(_, Value::Name(_) | Value::Flag(_)) => 2,
            Change::Set(_, Value::Number(number)) if *number == 0.0 || *number == 1.0 => 3,
            Change::Set(name, value) if self.default_of(name) == Some(*value) => 3,
            Change::Set(_, Value::Number(_)) => 4,
            Change::Set(_, Value::Integer(_)) | Change::Scale(..) | Change::Operation(_) => 3,
            Change::ExchangeParams(first, second) if !(self.is_varied(first) && self.is_varied(second)) => 5,
            // What learns is not what is taken from elsewhere.
            Change::Copy { to, .. } if self.trains(to) => 5,
            Change::Copy { edit: None, at: Place::All, .. } => 2,
            Change::OperationBy { .. } | Change::Copy { .. } | Change::Output(_) | Change::Outside(..) => 4,
            Change::Only(..) => 5,
            Change::Ignored(_) => 1,
            Change::Parts(Split { by_rows: true, .. })
            | Change::Misplaced(_)
            | Change::Square(_)
            | Change::Reciprocal(_)
            | Change::ZeroWhere(..) => 3,
            Change::GradientOf(change) => 1 + self.cost(change),
            Change::Branch(change) | Change::Term(_, change) => 2 + self.cost(change),
            _ => 2,
        }
    }

    fn trains(&self, input: &str) -> bool {
        self.meaning.operation.outputs.iter().any(|output| output.gradient_of == Some(input))
    }

    fn default_of(&self, name: &str) -> Option<Value> {
        let (_, param) = self.meaning.operation.param(name)?;
        Some(self.meaning.operation.default_of(param))
    }

    /// Whether a parameter differs between the cases.
    fn is_varied(&self, name: &str) -> bool {
        let Some((position, _)) = self.meaning.operation.param(name) else { return false };
        let mut values =
            self.samples.iter().filter_map(|sample| self.meaning.parameters(sample.case).ok()?.get(position).copied());
        let first = values.next();
        values.any(|value| Some(value) != first)
    }

    /// What a parameter was meant to be: its value where all cases share it.
    fn setting(&self, name: &str) -> String {
        let operation: &'static Operation = self.meaning.operation;
        let Some((position, _)) = operation.param(name) else { return "none".into() };
        let mut values =
            self.samples.iter().filter_map(|sample| self.meaning.parameters(sample.case).ok()?.get(position).copied());
        let first = values.next().unwrap_or(Value::None);
        if values.all(|value| value == first) { plain(first) } else { "as the case says".into() }
    }

    /// The closest points, where none reproduces the numbers.
    pub(super) fn unknown(&self) -> String {
        let mut ranked: Vec<(f64, f64, Change)> = Vec::new();
        for change in single_changes(self.meaning, &self.cases()) {
            let point = Point { meaning: self.meaning, changes: vec![change.clone()] };
            if let Some((distance, cosine)) = self.distance(&point) {
                ranked.push((distance, cosine, change));
            }
        }
        ranked.sort_by(|first, second| first.0.total_cmp(&second.0));
        let base = self.distance(&Point { meaning: self.meaning, changes: Vec::new() });
        let mut text = String::from(" No single or double change that is known gives these numbers");
        if let Some((distance, cosine)) = base {
            text += &format!(
                " (they are off by {:.2} % of their size, cosine {cosine:.6} with the right ones)",
                100.0 * distance
            );
        }
        let closest: Vec<String> = ranked
            .iter()
            .take(3)
            .map(|(distance, _, change)| {
                format!("{} ({:.2} % off)", change.words(&|name| self.setting(name)), 100.0 * distance)
            })
            .collect();
        if !closest.is_empty() {
            text += &format!("; the closest are: {}", closest.join("; "));
        }
        text + "."
    }

    /// Mean relative distance and mean cosine over the samples.
    fn distance(&self, point: &Point<'_>) -> Option<(f64, f64)> {
        let (mut distance, mut cosine) = (0.0, 0.0);
        for sample in self.samples {
            let numbers = point.numbers(sample.case, &sample.trainables).ok()?;
            let (got, of_point): (Vec<f64>, Vec<f64>) = (sample.got.all().collect(), numbers.all().collect());
            if got.len() != of_point.len() {
                return None;
            }
            let norm = |numbers: &[f64]| numbers.iter().map(|number| number * number).sum::<f64>().sqrt();
            let apart: Vec<f64> = got.iter().zip(&of_point).map(|(got, of_point)| got - of_point).collect();
            let (size, other) = (norm(&got), norm(&of_point));
            distance += norm(&apart) / size.max(other).max(f64::MIN_POSITIVE);
            let product: f64 = got.iter().zip(&of_point).map(|(got, of_point)| got * of_point).sum();
            cosine += product / (size * other).max(f64::MIN_POSITIVE);
        }
        let count = self.samples.len() as f64;
        distance.is_finite().then_some((distance / count, cosine / count))
    }
}

/// The pairs that were tried.
struct Tried<'a> {
    search: &'a Search<'a>,
    found: Vec<Explanation>,
    /// Those that give the observed values, whether their gradients fit or not.
    near: Vec<(Change, Change)>,
}

impl Tried<'_> {
    fn attempt(&mut self, first: Option<&Change>, second: Option<&Change>) {
        let (Some(first), Some(second)) = (first, second) else { return };
        if same_axis(first, second) {
            return;
        }
        // Two changes of inputs may give one result or another by their order.
        let both_orders = changes_inputs(first) && changes_inputs(second);
        for (first, second) in [(first, second), (second, first)].into_iter().take(1 + usize::from(both_orders)) {
            let changes = [first.clone(), second.clone()];
            if !self.search.value_fits(&changes) {
                continue;
            }
            self.near.push((first.clone(), second.clone()));
            let is_new = self.found.iter().all(|found| {
                let ids = [first.id(), second.id()];
                found.ids != ids && !found.ids.iter().rev().eq(&ids)
            });
            if is_new && self.search.fit(&changes, true).gradient {
                self.found.push(self.search.explanation(changes.to_vec()));
            }
            return;
        }
    }
}

/// Changes that switch options.
fn chooses(change: &Change) -> bool {
    matches!(change, Change::Set(..) | Change::Dialect(_))
}

/// Changes that are tried two at a time: those that stand for a decision, not for a size.
pub fn may_be_paired(change: &Change) -> bool {
    match change {
        Change::Set(_, Value::Number(number)) => *number == 0.0 || *number == 1.0,
        Change::Set(..)
        | Change::Dialect(_)
        | Change::ExchangeInputs(..)
        | Change::Reflect(..)
        | Change::Mirror(_)
        | Change::Ignored(_)
        | Change::And(..)
        | Change::Or(..)
        | Change::MaskedAsZeros
        | Change::DualClipUngated
        | Change::Copy { edit: None, at: Place::All, .. }
        | Change::Parts(Split { by_rows: false, .. }) => true,
        Change::Input(_, edit) => !matches!(edit, Edit::Whitened { eps: Some(_), .. }),
        _ => false,
    }
}

fn changes_inputs(change: &Change) -> bool {
    !matches!(change, Change::Set(..) | Change::Dialect(_) | Change::Parts(_) | Change::Mirror(_))
}

/// Two changes of the same parameter or input are one change.
pub fn same_axis(first: &Change, second: &Change) -> bool {
    fn axis(change: &Change) -> Option<&'static str> {
        match change {
            Change::Set(name, _) | Change::Scale(name, _) | Change::Input(name, _) => Some(name),
            Change::Copy { to, .. } => Some(to),
            Change::Dialect(_) => Some("dialect"),
            Change::Parts(_) => Some("parts"),
            _ => None,
        }
    }
    axis(first).is_some() && axis(first) == axis(second)
}
