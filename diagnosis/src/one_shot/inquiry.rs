//! From a question to its answer.

use std::fmt;
use std::sync::OnceLock;

use plumbline_core::num::Dtype;
use plumbline_core::spec::{Operation, Value};
use plumbline_evaluate::nearest::nearest;
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Refusal, Request, Wanted, evaluate, operation_named, resolved_params};

use super::arrays::{Arrays, Both};
use super::candidates::{Base, Candidate, bases, changed};
use super::factors::factors;
use super::names::{canonical, inputs};
use super::{Answer, Conclusion, Execute, Fit, GradientFit, Name, Near, Printed, Question};
use crate::change::plain;
use crate::vectors::{Case, Purpose};
use crate::{Change, Meaning, Point};

/// Why a question cannot be answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Unanswerable {
    /// In one sentence.
    pub message: String,
    /// The array or parameter at fault, under the name that it was given with.
    pub argument: Option<String>,
    /// The flat index of the element at fault.
    pub index: Option<usize>,
}

impl Unanswerable {
    fn told(message: impl Into<String>) -> Self {
        Unanswerable { message: message.into(), argument: None, index: None }
    }

    fn of(argument: &str, message: impl Into<String>) -> Self {
        Unanswerable { argument: Some(argument.to_owned()), ..Unanswerable::told(message) }
    }

    /// With the name that the array at fault has among those that were given.
    fn named_as_in(mut self, given: &[(String, Tensor)]) -> Self {
        if let Some(argument) = &mut self.argument
            && given.iter().all(|(name, _)| name != argument)
            && let Some((name, _)) = given.iter().find(|(name, _)| canonical(name) == Some(argument))
        {
            argument.clone_from(name);
        }
        self
    }
}

impl fmt::Display for Unanswerable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Refusal> for Unanswerable {
    fn from(refusal: Refusal) -> Self {
        Unanswerable {
            message: refusal.to_string(),
            argument: refusal.argument().map(str::to_owned),
            index: refusal.index(),
        }
    }
}

/// A question that can be answered.
pub struct Inquiry {
    printed: Printed,
    gradients: Vec<(&'static str, Printed)>,
    meant: Option<Name>,
    case: Case,
    arrays: Both,
    bases: Vec<Base>,
    /// Those that are meant, or all.
    scope: Vec<usize>,
    notes: Vec<String>,
    batch: String,
    elements: u64,
    effort: u64,
    /// Of a large batch some rows: what changes nothing there is tried last.
    sample: Option<Case>,
}

/// What a point gives, beside what was printed.
struct Look {
    /// The first number.
    value: f64,
    fits: bool,
}

/// A point that takes one evaluation of this cost, in units of a fast one: inputs are copied and converted.
const SLOW: u64 = 6;
/// Batches up to this size are looked at in double precision at once.
const SMALL: u64 = 1 << 14;
/// Batches up to this size have derivatives by differences.
const DIFFERENCES: u64 = 1 << 9;
/// Single precision passes what is within this share of the size of the terms, for the double one to decide.
const GLANCE: f64 = 2e-5;
/// Rows of a large batch on which is seen first whether a change changes anything.
const SAMPLED_ROWS: usize = 8;
/// The most points that are printed as near.
const NEAREST: usize = 3;

/// Check a question.
pub fn prepare(question: &Question) -> Result<Inquiry, Unanswerable> {
    checked(question).map_err(|unanswerable| unanswerable.named_as_in(&question.inputs))
}

fn checked(question: &Question) -> Result<Inquiry, Unanswerable> {
    let mut notes = Vec::new();
    let inputs = named(&question.inputs, &mut notes)?;
    let operations = operations(question, &inputs)?;
    let meant = match &question.operation {
        None => None,
        Some(_) => operations.first().map(|operation| Name {
            operation: operation.id,
            dialect: question.dialect.as_deref().and_then(|name| operation.dialect(name)).map(|dialect| dialect.name),
        }),
    };
    let all = alternatives(meant, &operations, &inputs, &question.result.tensor.shape);
    let arrays = Both::new(&inputs, &all)?;
    if let Some((input, index)) = arrays.non_finite_under_mask() {
        let place = inputs.iter().find(|(name, _)| *name == input).map(|(_, tensor)| tensor.position(index));
        notes.push(format!(
            "`{input}` is not finite under the mask, at {:?} first: a loss that multiplies by the mask gives NaN here",
            place.unwrap_or_default()
        ));
    }
    let elements = inputs.iter().map(|(_, tensor)| tensor.values.len()).max().unwrap_or(0) as u64;
    let case = Case { id: "batch".into(), purpose: Purpose::Regular, overrides: Vec::new(), inputs };
    let mut bases_of = bases(&operations, question.dialect.as_deref(), &question.params, &case);
    let scope: Vec<usize> = (0..bases_of.len()).collect();
    if meant.is_some() {
        // Other operations and dialects explain what is not the one that is meant.
        for base in bases(&all, None, &question.params, &case) {
            match bases_of.iter_mut().find(|other| other.names.iter().any(|name| base.names.contains(name))) {
                Some(other) => {
                    let more = base.names.into_iter().filter(|name| !other.names.contains(name)).collect::<Vec<_>>();
                    other.names.extend(more);
                }
                None => bases_of.push(base),
            }
        }
    }
    if let Some(refusal) = refusal_of_all(&arrays, &bases_of, &case) {
        return Err(refusal.into());
    }
    let gradients = gradients(question, &operations, &case)?;
    let batch = size(&case);
    let sample = if elements > SMALL { rows_of(&case, SAMPLED_ROWS) } else { None };
    Ok(Inquiry {
        printed: question.result.clone(),
        gradients,
        meant,
        case,
        arrays,
        bases: bases_of,
        scope,
        notes,
        batch,
        elements: elements.max(1),
        effort: question.effort.unwrap_or(u64::MAX),
        sample,
    })
}

/// Where no operation has a value on this batch: why the first one has none.
fn refusal_of_all(arrays: &Both, bases: &[Base], case: &Case) -> Option<Refusal> {
    let mut first = None;
    for base in bases {
        let point = Point { meaning: &base.meaning, changes: Vec::new() };
        let Ok((operation, params)) = point.parameters(case) else { continue };
        match arrays.evaluate(Dtype::F64, operation, &params, &[]) {
            Ok(_) => return None,
            Err(error) => first = first.or(Some(error.into())),
        }
    }
    first
}

/// The arrays under the catalog's names.
fn named(given: &[(String, Tensor)], notes: &mut Vec<String>) -> Result<Vec<(&'static str, Tensor)>, Unanswerable> {
    let mut named: Vec<(&'static str, Tensor)> = Vec::new();
    let mut origins: Vec<(&str, &'static str)> = Vec::new();
    for (given, tensor) in given {
        let Some(name) = canonical(given) else {
            let near = nearest(given, inputs()).map_or(String::new(), |near| format!(" (is `{near}` meant?)"));
            notes.push(format!("`{given}` is not used: no operation has an input of that name{near}"));
            continue;
        };
        if let Some((other, _)) = origins.iter().find(|(_, other)| *other == name) {
            let message = format!("`{other}` and `{given}` are both `{name}`; give one of them");
            return Err(Unanswerable::of(given, message));
        }
        if given != name {
            notes.push(format!("`{given}` is taken as `{name}`"));
        }
        origins.push((given, name));
        named.push((name, tensor.clone()));
    }
    // Frameworks keep one number per row as a column.
    let columns = named.iter().filter(|(_, tensor)| tensor.shape.len() == 2).map(|(_, tensor)| tensor.shape[1]).max();
    for (name, tensor) in &mut named {
        if let [rows, 1] = tensor.shape[..]
            && columns > Some(1)
        {
            tensor.shape = vec![rows];
            notes.push(format!("`{name}` of shape [{rows}, 1] is taken as one number per row"));
        }
    }
    Ok(named)
}

/// The operation that is meant, or all whose inputs are there and whose main output has the shape of what was printed.
fn operations(question: &Question, inputs: &[(&'static str, Tensor)]) -> Result<Vec<&'static Operation>, Unanswerable> {
    let shape = &question.result.tensor.shape;
    if let Some(id) = &question.operation {
        let operation = operation_named(id)?;
        resolved_params(operation, question.dialect.as_deref(), &question.params)?;
        let given: Vec<(String, Tensor)> = inputs
            .iter()
            .filter(|(name, _)| operation.input(name).is_some())
            .map(|(name, tensor)| ((*name).to_owned(), tensor.clone()))
            .collect();
        let main = operation.outputs.first().map(|output| output.name).unwrap_or_default();
        let outputs = evaluate(&Request {
            operation: operation.id,
            dialect: question.dialect.as_deref(),
            dtype: Dtype::F64,
            params: &question.params,
            inputs: &given,
            outputs: Wanted::Named(&[main]),
        })?;
        return match outputs.first() {
            Some((_, tensor)) if tensor.shape == *shape => Ok(vec![operation]),
            Some((name, tensor)) => Err(Unanswerable::told(format!(
                "`{name}` of {id} has shape {:?} on this batch; what was printed has shape {shape:?}",
                tensor.shape
            ))),
            None => Err(Unanswerable::told(format!("{id} has no output on this batch"))),
        };
    }
    if let Some(name) = question.dialect.as_deref() {
        return Err(Unanswerable::told(format!("the dialect `{name}` needs the operation that it is a dialect of")));
    }
    let all = alternatives(None, &[], inputs, shape);
    if all.is_empty() {
        // An input of the wrong kind keeps every operation from taking it: then that is what to say.
        let takers = plumbline_core::catalog::operations().filter(|operation| has_required(operation, inputs));
        for operation in takers {
            Arrays::<f64>::new(inputs, &[operation])?;
        }
        return Err(nothing_takes(inputs, shape));
    }
    for (name, _) in &question.params {
        if all.iter().all(|operation| operation.param(name).is_none()) {
            let known = all.iter().flat_map(|operation| operation.params).map(|param| param.name);
            let hint = nearest(name, known).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(Unanswerable::told(format!("no operation of these inputs has a parameter `{name}`{hint}")));
        }
    }
    Ok(all)
}

/// The operations that can be evaluated on the inputs and give an output of the shape.
fn alternatives(
    meant: Option<Name>,
    chosen: &[&'static Operation],
    inputs: &[(&'static str, Tensor)],
    shape: &[usize],
) -> Vec<&'static Operation> {
    let mut all = chosen.to_vec();
    let family = meant.and_then(|_| chosen.first()).map(|operation| operation.family);
    for operation in plumbline_core::catalog::operations() {
        let may = has_required(operation, inputs) && family.is_none_or(|family| family == operation.family);
        if may && all.iter().all(|other| other.id != operation.id) && gives(operation, inputs, shape) {
            all.push(operation);
        }
    }
    all
}

fn has_required(operation: &Operation, inputs: &[(&'static str, Tensor)]) -> bool {
    let mut required = operation.inputs.iter().filter(|input| !input.optional).peekable();
    required.peek().is_some() && required.all(|input| inputs.iter().any(|(name, _)| *name == input.name))
}

fn gives(operation: &'static Operation, inputs: &[(&'static str, Tensor)], shape: &[usize]) -> bool {
    let known: Vec<(&'static str, Tensor)> =
        inputs.iter().filter(|(name, _)| operation.input(name).is_some()).cloned().collect();
    let Some(main) = operation.outputs.first() else { return false };
    if main.shape.len() != shape.len() {
        return false;
    }
    let meaning = Meaning { operation, dialect: None, settings: Vec::new() };
    let case = Case { id: String::new(), purpose: Purpose::Regular, overrides: Vec::new(), inputs: Vec::new() };
    let Ok(params) = meaning.parameters(&case) else { return false };
    crate::output_shape(operation, &params, &known, main.name).as_deref() == Some(shape)
}

fn nothing_takes(inputs: &[(&'static str, Tensor)], shape: &[usize]) -> Unanswerable {
    let given: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
    let lacks = plumbline_core::catalog::operations()
        .filter(|operation| operation.outputs.first().is_some_and(|main| main.shape.len() == shape.len()))
        .map(|operation| {
            let needed = operation.inputs.iter().filter(|input| !input.optional && !given.contains(&input.name));
            let used = operation.inputs.iter().filter(|input| given.contains(&input.name)).count();
            (needed.map(|input| input.name).collect::<Vec<_>>(), used, operation)
        })
        .filter(|(_, used, _)| *used > 0)
        .min_by_key(|(lacks, used, _)| (lacks.len(), usize::MAX - used));
    let what = if given.is_empty() { "no inputs were given".into() } else { format!("given are {}", given.join(", ")) };
    match lacks {
        Some((lacks, _, operation)) if !lacks.is_empty() => Unanswerable::told(format!(
            "no operation gives a result of shape {shape:?} from these inputs: {what}; {} also needs {}",
            operation.id,
            lacks.join(", ")
        )),
        Some((_, _, operation)) => Unanswerable::told(format!(
            "no operation gives a result of shape {shape:?} from these inputs: {what}, and their shapes do not fit {}; \
             name the operation to see which does not",
            operation.id
        )),
        None => Unanswerable::told(format!("no operation gives a result of shape {shape:?} from these inputs: {what}")),
    }
}

/// The gradients by the catalog's names of their inputs.
fn gradients(
    question: &Question,
    operations: &[&'static Operation],
    case: &Case,
) -> Result<Vec<(&'static str, Printed)>, Unanswerable> {
    let mut found = Vec::new();
    let trainable = |name: &str| {
        let mut outputs = operations.iter().flat_map(|operation| operation.outputs);
        outputs.find_map(|output| {
            output.gradient_of.filter(|input| (name.is_empty() || *input == name) && case.input(input).is_some())
        })
    };
    for (name, printed) in &question.gradients {
        let input = match name.as_str() {
            "" => trainable(""),
            name => canonical(name).and_then(trainable),
        };
        let Some(input) = input else {
            let message = format!("a gradient by `{name}` was given, which these operations do not have");
            return Err(Unanswerable::told(message));
        };
        let right = case.input(input).map(|tensor| tensor.shape.clone()).unwrap_or_default();
        if printed.tensor.shape != right {
            return Err(Unanswerable::told(format!(
                "the gradient by `{input}` has shape {:?} where {right:?} is right",
                printed.tensor.shape
            )));
        }
        found.push((input, printed.clone()));
    }
    Ok(found)
}

fn size(case: &Case) -> String {
    let Some((rows, columns)) = case.rows_and_columns() else {
        return case.inputs.first().map_or(String::new(), |(_, tensor)| format!("shape {:?}", tensor.shape));
    };
    let kept = case.input("mask").map(|mask| mask.values.iter().filter(|kept| **kept != 0.0).count());
    match kept {
        Some(kept) => format!("{rows} x {columns}, {kept} unmasked"),
        None => format!("{rows} x {columns}, no mask"),
    }
}

/// The batch cut down to some of its rows, evenly spread; `None` where there are not more.
fn rows_of(case: &Case, count: usize) -> Option<Case> {
    let (rows, _) = case.rows_and_columns().filter(|(rows, _)| *rows > count)?;
    let chosen: Vec<usize> = (0..count).map(|index| index * rows / count).collect();
    let mut cut = case.clone();
    for (_, tensor) in cut.inputs.iter_mut().filter(|(_, tensor)| tensor.shape.first() == Some(&rows)) {
        let width: usize = tensor.shape.iter().skip(1).product();
        tensor.values = chosen.iter().flat_map(|row| tensor.values[row * width..(row + 1) * width].to_vec()).collect();
        tensor.shape[0] = count;
    }
    Some(cut)
}

impl Inquiry {
    /// Try the points, from the simplest kind on, until one fits.
    pub fn answer(&self, execute: Execute<'_>) -> Answer {
        let mut work = Work { spent: 0, tried: Vec::new(), left_out: 0, idle_left_out: 0, distinct: Vec::new() };
        let plain: Vec<Candidate> = (0..self.bases.len()).map(|base| Candidate { base, change: None }).collect();
        let mut fits = self.try_all(plain, execute, &mut work);
        let meant_value = self.meant.and_then(|_| work.tried.first().map(|(_, value)| *value));
        let of_bases: Vec<(usize, f64)> =
            work.tried.iter().map(|(candidate, value)| (candidate.base, *value)).collect();
        let is_gradient_right = |fits: &[Fit]| fits.iter().any(|fit| fit.gradient.is_same());
        if !is_gradient_right(&fits) {
            let (active, idle) = self.active(changed(&self.bases, &self.scope, &self.case), execute);
            let mut more = self.try_all(active, execute, &mut work);
            let left_out = work.left_out;
            more.extend(self.try_all(idle, execute, &mut work));
            work.idle_left_out = work.left_out - left_out;
            work.left_out = left_out;
            more.extend(self.try_factors(&of_bases, &mut work));
            // A value that fits with a change says nothing where one without any does, unless its gradient fits too.
            if fits.is_empty() || is_gradient_right(&more) {
                fits.extend(more);
            }
        }
        if is_gradient_right(&fits) {
            fits.retain(|fit| fit.gradient.is_same());
        }
        fits.sort_by_key(|fit| (!self.is_meant(fit), fit.cost));
        let fits = together(fits);
        let conclusion = match fits.first() {
            None => Conclusion::Unknown,
            Some(fit) if !fit.gradient.is_same() => Conclusion::GradientDiffers,
            Some(fit) if fit.changes.is_empty() && (self.meant.is_none() || self.is_meant(fit)) => Conclusion::Known,
            Some(_) => Conclusion::Changed,
        };
        let apart = self.apart(&fits);
        let nearest = if fits.is_empty() { self.nearest(&work) } else { Vec::new() };
        Answer {
            conclusion,
            notes: self.notes.clone(),
            batch: self.batch.clone(),
            printed: self.printed.clone(),
            meant: self.meant,
            meant_value,
            by_chance: self.by_chance(&work),
            fits,
            nearest,
            apart,
            tried: work.tried.len() + work.distinct.len(),
            left_out: work.left_out,
            idle_left_out: work.idle_left_out,
        }
    }

    fn is_meant(&self, fit: &Fit) -> bool {
        let is_it = |name: &Name| {
            self.meant.is_some_and(|meant| {
                meant.operation == name.operation && (meant.dialect.is_none() || meant.dialect == name.dialect)
            })
        };
        fit.changes.is_empty() && fit.names.iter().any(is_it)
    }

    /// The candidates that change something on the sampled rows, and those that do not; without a sample all may.
    fn active(&self, candidates: Vec<Candidate>, execute: Execute<'_>) -> (Vec<Candidate>, Vec<Candidate>) {
        let Some(sample) = &self.sample else { return (candidates, Vec::new()) };
        let bits = |base: usize, change: Option<&Change>| {
            let point = Point { meaning: &self.bases[base].meaning, changes: change.cloned().into_iter().collect() };
            let numbers = point.numbers(sample, &[]).ok()?;
            Some(numbers.value.iter().map(|number| number.to_bits()).collect::<Vec<u64>>())
        };
        let of_bases: Vec<Option<Vec<u64>>> = (0..self.bases.len()).map(|base| bits(base, None)).collect();
        let idle: Vec<OnceLock<bool>> = candidates.iter().map(|_| OnceLock::new()).collect();
        execute(candidates.len(), &|index| {
            let Candidate { base, change } = &candidates[index];
            let _ = idle[index].set(bits(*base, change.as_ref()) == of_bases[*base]);
        });
        let mut parts = (Vec::new(), Vec::new());
        for (candidate, idle) in candidates.into_iter().zip(idle) {
            let part = if idle.get() == Some(&true) { &mut parts.1 } else { &mut parts.0 };
            part.push(candidate);
        }
        parts
    }

    /// Look at the points as far as the effort lasts; those that fit.
    fn try_all(&self, candidates: Vec<Candidate>, execute: Execute<'_>, work: &mut Work) -> Vec<Fit> {
        let mut affordable = 0;
        for candidate in &candidates {
            let cost = self.elements * if candidate.is_of_params() { 1 } else { SLOW };
            if work.spent + cost > self.effort {
                break;
            }
            work.spent += cost;
            affordable += 1;
        }
        work.left_out += candidates.len() - affordable;
        let looks: Vec<OnceLock<Option<Look>>> = (0..affordable).map(|_| OnceLock::new()).collect();
        execute(affordable, &|index| {
            let _ = looks[index].set(self.look(&candidates[index]));
        });
        let mut fits = Vec::new();
        for (candidate, look) in candidates.into_iter().zip(looks) {
            let Some(look) = look.into_inner().flatten() else { continue };
            if look.fits {
                fits.push(self.fit(&candidate, look.value));
            }
            work.tried.push((candidate, look.value));
        }
        fits
    }

    /// What a point gives; `None` where it has no value on this batch.
    fn look(&self, candidate: &Candidate) -> Option<Look> {
        let base = &self.bases[candidate.base];
        let point = Point { meaning: &base.meaning, changes: candidate.change.iter().cloned().collect() };
        let kept = self.kept();
        if candidate.is_of_params() {
            let (operation, params) = point.parameters(&self.case).ok()?;
            if self.elements > SMALL {
                let found = self.arrays.evaluate(Dtype::F32, operation, &params, &[]).ok()?;
                let near =
                    self.printed.tensor.values.iter().zip(&found.value).enumerate().all(|(index, (printed, value))| {
                        let room = self.printed.allowed(*value, found.scale) + GLANCE * found.scale.max(value.abs());
                        !kept(index) || (printed - value).abs() <= room || printed == value
                    });
                if !near {
                    return Some(Look { value: *found.value.first()?, fits: false });
                }
            }
            let found = self.arrays.evaluate(Dtype::F64, operation, &params, &[]).ok()?;
            return Some(Look { value: *found.value.first()?, fits: self.printed.is(&found.value, found.scale, kept) });
        }
        let numbers = point.numbers(&self.case, &[]).ok()?;
        let value = *numbers.value.first()?;
        Some(Look { value, fits: self.printed.is(&numbers.value, value.abs(), kept) })
    }

    /// Whether a number of the result counts: those under a mask of the same shape do not.
    fn kept(&self) -> impl Fn(usize) -> bool {
        let shape = &self.printed.tensor.shape;
        let mask = self.case.input("mask").filter(|mask| !shape.is_empty() && mask.shape == *shape);
        move |index| mask.is_none_or(|mask| mask.values.get(index) != Some(&0.0))
    }

    /// Factors on the values of the bases in scope.
    fn try_factors(&self, of_bases: &[(usize, f64)], work: &mut Work) -> Vec<Fit> {
        let mut fits = Vec::new();
        let factors = factors(&self.case);
        let is_one = self.printed.tensor.values.len() == 1;
        for (base, value) in of_bases.iter().filter(|(base, _)| is_one && self.scope.contains(base)) {
            for factor in &factors {
                let product = factor.number * value;
                work.distinct.push(product);
                // How large the terms are is not known here, so that only the digits decide.
                if *value != 0.0 && self.printed.is(&[product], product.abs(), |_| true) {
                    fits.push(Fit {
                        names: self.bases[*base].names.clone(),
                        changes: vec![format!("factor:{}", factor.text)],
                        text: format!("it is multiplied by {}", factor.text),
                        value: product,
                        gradient: self.compare(&Candidate { base: *base, change: None }, factor.number),
                        cost: 2 + factor.cost,
                    });
                }
            }
        }
        fits
    }

    fn fit(&self, candidate: &Candidate, value: f64) -> Fit {
        let base = &self.bases[candidate.base];
        let setting = |name: &str| {
            let position = base.meaning.operation.param(name).map(|(position, _)| position);
            position.and_then(|position| base.params.get(position)).map_or("none".into(), |value| plain(*value))
        };
        Fit {
            names: base.names.clone(),
            changes: candidate.change.iter().map(Change::id).collect(),
            text: candidate.change.as_ref().map_or(String::new(), |change| change.words(&setting)),
            value,
            gradient: self.compare(candidate, 1.0),
            cost: match &candidate.change {
                None => 0,
                Some(Change::Set(_, Value::None | Value::Name(_) | Value::Flag(_))) => 1,
                Some(Change::Set(..) | Change::ExchangeParams(..) | Change::Scale(..)) => 2,
                Some(_) => 3,
            },
        }
    }

    /// The given gradients beside the point's, times a factor.
    fn compare(&self, candidate: &Candidate, factor: f64) -> GradientFit {
        if self.gradients.is_empty() {
            return GradientFit::NotGiven;
        }
        let Some(found) = self.gradients_of(candidate) else { return GradientFit::NotCompared };
        for ((input, printed), right) in self.gradients.iter().zip(&found) {
            let right: Vec<f64> = right.iter().map(|number| factor * number).collect();
            let scale = right.iter().map(|number| number.abs()).filter(|size| size.is_finite()).fold(0.0, f64::max);
            if printed.is(&right, scale, |_| true) {
                continue;
            }
            return GradientFit::Differs(difference(input, printed, &right));
        }
        GradientFit::Same
    }

    fn gradients_of(&self, candidate: &Candidate) -> Option<Vec<Vec<f64>>> {
        let base = &self.bases[candidate.base];
        let point = Point { meaning: &base.meaning, changes: candidate.change.iter().cloned().collect() };
        let by: Vec<&str> = self.gradients.iter().map(|(input, _)| *input).collect();
        if candidate.is_of_params() {
            let (operation, params) = point.parameters(&self.case).ok()?;
            return Some(self.arrays.evaluate(Dtype::F64, operation, &params, &by).ok()?.gradients);
        }
        if self.elements > DIFFERENCES && point.needs_differences(&by) {
            return None;
        }
        let trainables: Vec<crate::Trainable> = by
            .iter()
            .filter_map(|input| base.meaning.trainables(&self.case).into_iter().find(|t| t.input == *input))
            .collect();
        (trainables.len() == by.len()).then_some(())?;
        Some(point.numbers(&self.case, &trainables).ok()?.gradients)
    }

    /// What would tell the fitting points apart.
    fn apart(&self, fits: &[Fit]) -> Option<String> {
        let (first, rest) = fits.split_first()?;
        if rest.is_empty() {
            return None;
        }
        let differing: Vec<&Fit> = rest.iter().filter(|fit| fit.value.to_bits() != first.value.to_bits()).collect();
        let mut text = match differing.first() {
            None => "They give the same number to the last bit on this batch".to_owned(),
            Some(_) => {
                let apart = differing.iter().map(|fit| (fit.value - first.value).abs()).fold(f64::INFINITY, f64::min);
                format!("More digits would tell some apart: they lie {apart:.1e} from each other or more")
            }
        };
        if self.gradients.is_empty() {
            text += "; a gradient may tell more, and so may a batch in which rows differ in length, ratios leave the clip \
                     range and no term is 0";
        }
        Some(text + ".")
    }

    fn nearest(&self, work: &Work) -> Vec<Near> {
        let Some(printed) = self.printed.tensor.values.first().filter(|_| self.printed.tensor.values.len() == 1) else {
            return Vec::new();
        };
        let mut ranked: Vec<&(Candidate, f64)> = work.tried.iter().filter(|(_, value)| value.is_finite()).collect();
        ranked.sort_by(|first, second| (first.1 - printed).abs().total_cmp(&(second.1 - printed).abs()));
        ranked.dedup_by(|first, second| first.1 == second.1);
        let near = |(candidate, value): &&(Candidate, f64)| {
            let fit = self.fit(candidate, *value);
            Near { names: fit.names, text: fit.text, value: *value }
        };
        ranked.iter().take(NEAREST).map(near).collect()
    }

    /// The tried numbers that differ, counted in a window around the printed one, times the share of it that fits.
    fn by_chance(&self, work: &Work) -> f64 {
        let [printed] = self.printed.tensor.values[..] else { return 0.0 };
        let allowed = self.printed.allowed(printed, 0.0);
        let window = printed.abs().max(20.0 * allowed);
        let mut values: Vec<f64> =
            work.tried.iter().map(|(_, value)| *value).chain(work.distinct.iter().copied()).collect();
        values.retain(|value| (value - printed).abs() <= window && (value - printed).abs() > allowed);
        values.sort_unstable_by(f64::total_cmp);
        values.dedup_by(|first, second| (*first - *second).abs() <= 1e-9 * window);
        values.len() as f64 * allowed / window
    }
}

/// Changed points that differ only in the base and give the same bits become one with all names.
fn together(fits: Vec<Fit>) -> Vec<Fit> {
    let mut all: Vec<Fit> = Vec::new();
    for fit in fits {
        let same = |other: &&mut Fit| {
            !fit.changes.is_empty()
                && other.changes == fit.changes
                && other.text == fit.text
                && other.value.to_bits() == fit.value.to_bits()
                && other.gradient == fit.gradient
        };
        match all.iter_mut().find(same) {
            Some(other) => other.names.extend(fit.names),
            None => all.push(fit),
        }
    }
    all
}

/// What was tried.
struct Work {
    spent: u64,
    /// The points and the first number of each.
    tried: Vec<(Candidate, f64)>,
    left_out: usize,
    idle_left_out: usize,
    /// Further numbers that were compared.
    distinct: Vec<f64>,
}

impl Candidate {
    /// Whether it is told by parameters alone.
    fn is_of_params(&self) -> bool {
        matches!(self.change, None | Some(Change::Set(..) | Change::Scale(..) | Change::ExchangeParams(..)))
    }
}

impl GradientFit {
    /// Whether nothing speaks against it.
    pub fn is_same(&self) -> bool {
        !matches!(self, GradientFit::Differs(_))
    }
}

/// The largest difference in words, and the factor between the two where there is one.
fn difference(input: &str, printed: &Printed, right: &[f64]) -> String {
    let got = &printed.tensor.values;
    if got.iter().all(|number| *number == 0.0) {
        return format!("the gradient by `{input}` is 0 everywhere");
    }
    let square: f64 = right.iter().map(|number| number * number).sum();
    let product: f64 = got.iter().zip(right).map(|(got, right)| got * right).sum();
    let factor = product / square;
    let scale = right.iter().map(|number| (factor * number).abs()).fold(0.0, f64::max);
    let scaled: Vec<f64> = right.iter().map(|number| factor * number).collect();
    if factor.is_finite() && factor != 0.0 && printed.is(&scaled, scale, |_| true) {
        return format!("the gradient by `{input}` is {} times the right one", crate::factor::fraction(factor));
    }
    let worst = got
        .iter()
        .zip(right)
        .enumerate()
        .map(|(index, (got, right))| (index, if (got - right).is_nan() { f64::INFINITY } else { (got - right).abs() }))
        .max_by(|first, second| first.1.total_cmp(&second.1))
        .map_or(0, |(index, _)| index);
    let position = printed.tensor.position(worst);
    let differing =
        got.iter().zip(right).filter(|(got, right)| (**got - **right).abs() > printed.allowed(**right, scale)).count();
    format!(
        "the gradient by `{input}` differs in {differing} of {} numbers, most at {position:?}: {} instead of {}",
        got.len(),
        crate::words::number(got[worst]),
        crate::words::number(right[worst])
    )
}
