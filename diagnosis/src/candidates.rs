//! The single changes of a meaning, made from the operation's description.

use plumbline_core::catalog;
use plumbline_core::spec::{Domain, InputSpec, Operation, ParamKind, Value};

use super::change::{Change, LogRatioEdit, OutputEdit, Place, Power, Split, are_interchangeable};
use super::coefficient::coefficients;
use super::edit::Edit;
use super::meaning::Meaning;
use crate::vectors::Case;
use plumbline_evaluate::is_real;

/// All single changes of a meaning, in the order in which explanations of equal cost are printed.
pub fn single_changes(meaning: &Meaning, cases: &[&Case]) -> Vec<Change> {
    let mut changes = changes_of_the_whole(meaning, cases);
    changes.extend(term_changes(meaning, &given_inputs(meaning.operation, cases), cases));
    changes
}

/// Those that are not of one term of the sum alone.
pub(super) fn changes_of_the_whole(meaning: &Meaning, cases: &[&Case]) -> Vec<Change> {
    let operation = meaning.operation;
    if cases.is_empty() {
        return Vec::new();
    }
    let mut changes: Vec<Change> = Vec::new();
    changes.extend(
        operation
            .dialects
            .iter()
            .filter(|dialect| Some(dialect.name) != meaning.dialect)
            .map(|dialect| Change::Dialect(dialect.name)),
    );
    let by_case: Vec<Vec<Value>> = cases.iter().filter_map(|case| meaning.parameters(case).ok()).collect();
    for (position, param) in operation.params.iter().enumerate() {
        let mut values: Vec<Value> = Vec::new();
        for value in by_case.iter().map(|params| params[position]) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let changed = param_changes(param.name, param.kind, &values, operation.default_of(param));
        // A value that all cases have is no change.
        changes.extend(changed.into_iter().filter(|change| match change {
            Change::Set(_, value) => values != [*value],
            _ => true,
        }));
    }
    changes.extend(parameter_pairs(operation, &by_case));
    let given = given_inputs(operation, cases);
    changes.extend(input_changes(&given));
    changes.extend(input_pairs(operation, &given));
    changes.extend(policy_changes(operation, &given));
    changes.extend(Split::ALL.into_iter().map(Change::Parts));
    changes.extend(result_changes(operation, &given));
    changes.push(Change::Unstopped);
    let others: Vec<&'static Operation> =
        catalog::operations().filter(|other| are_interchangeable(operation, other)).collect();
    changes.extend(others.iter().map(|other| Change::Operation(other.id)));
    changes.extend(others.iter().flat_map(|other| own_parameter_of(operation, other, &by_case)));
    changes
}

fn given_inputs(operation: &'static Operation, cases: &[&Case]) -> Vec<&'static InputSpec> {
    operation.inputs.iter().filter(|input| cases.iter().any(|case| case.input(input.name).is_some())).collect()
}

fn param_changes(name: &'static str, kind: ParamKind, values: &[Value], default: Value) -> Vec<Change> {
    let set = |value: Value| Change::Set(name, value);
    match kind {
        ParamKind::Choice { names, .. } => names.iter().map(|name| set(Value::Name(name))).collect(),
        ParamKind::Flag { .. } => vec![set(Value::Flag(false)), set(Value::Flag(true))],
        ParamKind::Integer { low, high, .. } => {
            let mut numbers = vec![0, 1];
            for value in values {
                if let Value::Integer(number) = value {
                    numbers.extend([number - 1, number + 1]);
                }
            }
            numbers.sort_unstable();
            numbers.dedup();
            numbers.retain(|number| (low..=high).contains(number));
            numbers.into_iter().map(|number| set(Value::Integer(number))).collect()
        }
        ParamKind::Number { range, .. } | ParamKind::OptionalNumber { range, .. } => {
            let mut changes = Vec::new();
            if matches!(kind, ParamKind::OptionalNumber { .. }) {
                changes.push(set(Value::None));
            }
            if default != Value::None {
                changes.push(set(default));
            }
            // Round values to which options are often fixed, and common epsilons.
            for number in [0.0, 1.0, 0.5, 2.0, 3.0, 1e-8, 1e-6, 1e-5, 1e-4] {
                if range.contains(number) && Value::Number(number) != default && is_plausible(default, number) {
                    changes.push(set(Value::Number(number)));
                }
            }
            // A bound that is never reached is as good as switched off.
            if matches!(kind, ParamKind::Number { .. }) && range.contains(UNREACHED) && is_bound(name) {
                changes.push(set(Value::Number(UNREACHED)));
            }
            if values.iter().any(|value| matches!(value, Value::Number(number) if *number != 0.0)) {
                changes.extend([0.5, 2.0, -1.0].into_iter().map(|factor| Change::Scale(name, factor)));
                // An epsilon is applied once or not at all.
                if !matches!(default, Value::Number(default) if default.abs() < 1e-2) {
                    changes.extend([Change::Square(name), Change::Reciprocal(name)]);
                }
            }
            changes
        }
    }
}

/// A bound that no number on the cases reaches.
pub(super) const UNREACHED: f64 = 1e9;

fn is_bound(name: &str) -> bool {
    ["_max", "_range", "cap", "_threshold", "clip_rho", "clip_c"].iter().any(|end| name.ends_with(end))
}

/// Epsilons are tried for parameters that are epsilons, and round numbers for those that are not.
fn is_plausible(default: Value, number: f64) -> bool {
    let is_small = matches!(default, Value::Number(default) if default.abs() < 1e-2);
    number == 0.0 || (number < 1e-2) == is_small || matches!(default, Value::Number(0.0))
}

/// Parameters in each other's role: pairs of real ones that are both set, to different numbers, on some case, and pairs
/// of options of which one is set.
fn parameter_pairs(operation: &'static Operation, by_case: &[Vec<Value>]) -> Vec<Change> {
    let mut changes = Vec::new();
    for (first, first_param) in operation.params.iter().enumerate() {
        for (second, second_param) in operation.params.iter().enumerate().skip(first + 1) {
            let are_options = matches!(first_param.kind, ParamKind::OptionalNumber { .. })
                && matches!(second_param.kind, ParamKind::OptionalNumber { .. });
            let differ = |params: &Vec<Value>| match (params[first], params[second]) {
                (Value::Number(first), Value::Number(second)) => first != second,
                (Value::None, Value::Number(_)) | (Value::Number(_), Value::None) => are_options,
                _ => false,
            };
            if by_case.iter().any(differ) {
                changes.push(Change::ExchangeParams(first_param.name, second_param.name));
                if stem(first_param.name) == stem(second_param.name) {
                    changes.push(Change::CopyParam { to: first_param.name, from: second_param.name });
                    changes.push(Change::CopyParam { to: second_param.name, from: first_param.name });
                }
            }
        }
    }
    changes
}

/// A name without its last word: parameters that share it have the same kind.
fn stem(name: &str) -> &str {
    name.rsplit_once('_').map_or(name, |(stem, _)| stem)
}

/// The parameters of another operation that this one lacks, with numbers that were meant for others.
fn own_parameter_of(operation: &Operation, other: &'static Operation, by_case: &[Vec<Value>]) -> Vec<Change> {
    let mut changes = Vec::new();
    for to in other.params.iter().filter(|param| operation.param(param.name).is_none()) {
        if !matches!(to.kind, ParamKind::Number { .. } | ParamKind::OptionalNumber { .. }) {
            continue;
        }
        for (position, from) in operation.params.iter().enumerate() {
            let is_set =
                by_case.iter().any(|params| matches!(params[position], Value::Number(number) if number != 0.0));
            if is_set && other.param(from.name).is_none() {
                let by = |squared| Change::OperationBy { id: other.id, to: to.name, from: from.name, squared };
                changes.extend([by(false), by(true)]);
            }
        }
    }
    changes
}

fn input_changes(given: &[&'static InputSpec]) -> Vec<Change> {
    let mut changes = Vec::new();
    let is_given = |name: &str| given.iter().any(|input| input.name == name);
    for input in given {
        if input.optional && input.domain != Domain::Mask {
            changes.push(Change::Input(input.name, Edit::Ignored));
        }
        let is_batch = input.shapes.iter().any(|shape| shape.len() == 2);
        let edits: &[Edit] = match input.domain {
            Domain::Mask if input.optional && input.name != "mask" => &[Edit::Ignored],
            Domain::Mask if is_batch => &[
                Edit::KeepsAll,
                Edit::DropsLast,
                Edit::DropsFirst,
                Edit::KeepsOneMore,
                Edit::FromNextStep,
                Edit::FromPreviousStep,
                Edit::DropsLastRow,
            ],
            Domain::Mask => &[Edit::KeepsAll],
            Domain::Done if is_batch => {
                &[Edit::Zero, Edit::FromNextStep, Edit::FromPreviousStep, Edit::LastOfRow, Edit::RolledFromNext]
            }
            Domain::Done => &[Edit::Zero],
            Domain::Index(_) => &[],
            Domain::Count => &[Edit::BatchTotal, Edit::Squared, Edit::One],
            Domain::Group => &[Edit::OneGroup, Edit::OwnGroups, Edit::Rearranged],
            _ => &[
                Edit::Negated,
                Edit::Zero,
                Edit::FromNextStep,
                Edit::FromPreviousStep,
                Edit::RolledFromNext,
                Edit::RolledFromPrevious,
                Edit::RowMean,
                Edit::RowMeanPadded,
                Edit::BatchMean,
                Edit::Centred,
            ],
        };
        // Steps and rows are told apart only where there are two dimensions.
        let needs_steps = |edit: &Edit| {
            matches!(
                edit,
                Edit::FromNextStep
                    | Edit::FromPreviousStep
                    | Edit::RolledFromNext
                    | Edit::RolledFromPrevious
                    | Edit::RowMean
                    | Edit::RowMeanPadded
            )
        };
        changes.extend(
            edits.iter().filter(|edit| is_batch || !needs_steps(edit)).map(|edit| Change::Input(input.name, *edit)),
        );
        match input.domain {
            Domain::Advantage | Domain::Reward | Domain::Value | Domain::Real => {
                changes.extend(whitenings().map(|edit| Change::Input(input.name, edit)));
                changes.push(Change::Mirror(input.name));
            }
            Domain::NonNegative | Domain::Positive => {
                changes.extend([Edit::One, Edit::Squared].map(|edit| Change::Input(input.name, edit)));
            }
            Domain::Probability => changes.push(Change::Input(input.name, Edit::Complement)),
            Domain::Logit => changes.push(Change::Input(input.name, Edit::Softmax)),
            _ => {}
        }
        if input.domain == Domain::Advantage {
            changes.push(Change::Input(input.name, Edit::One));
            if is_given("log_prob") && is_given("old_log_prob") {
                changes.push(Change::Input(input.name, Edit::TimesRatio));
            }
        }
    }
    if is_given("mask") {
        changes.push(Change::MaskedAsZeros);
    }
    changes
}

/// Whitening with the epsilons that are in use.
fn whitenings() -> impl Iterator<Item = Edit> {
    [None, Some(-8), Some(-6), Some(-5)]
        .into_iter()
        .flat_map(|eps| [true, false].map(|sample| Edit::Whitened { sample, eps }))
}

/// Inputs in each other's role, flags that are taken for others, families of inputs that go together.
fn input_pairs(operation: &'static Operation, given: &[&'static InputSpec]) -> Vec<Change> {
    let mut changes = Vec::new();
    let flags: Vec<&'static str> =
        given.iter().filter(|input| input.domain == Domain::Done).map(|input| input.name).collect();
    for first in given {
        for second in given.iter().filter(|second| second.name != first.name) {
            let alike = first.domain == second.domain && first.shapes == second.shapes;
            let is_later = given.iter().position(|input| input.name == second.name)
                > given.iter().position(|input| input.name == first.name);
            if alike && is_real(first.domain) && is_later {
                changes.push(Change::ExchangeInputs(first.name, second.name));
                changes.push(Change::Reflect(first.name, second.name));
            }
            let copy = |edit, at| Change::Copy { to: first.name, from: second.name, edit, at };
            if alike && !matches!(first.domain, Domain::Mask | Domain::Group) {
                changes.push(copy(None, Place::All));
            }
            let are_worths = |input: &InputSpec| {
                matches!(input.domain, Domain::Value | Domain::Reward)
                    && input.shapes.iter().any(|shape| shape.len() == 2)
            };
            if are_worths(first) && are_worths(second) {
                changes.extend(flags.iter().map(|flag| copy(None, Place::Where(flag))));
                changes.push(copy(None, Place::LastStep));
                if alike {
                    let edits =
                        [Edit::RolledFromNext, Edit::RolledFromPrevious, Edit::FromNextStep, Edit::FromPreviousStep];
                    changes.extend(edits.into_iter().map(|edit| copy(Some(edit), Place::All)));
                }
            }
            if first.domain == Domain::Done && second.domain == Domain::Done {
                changes.push(Change::Or(first.name, second.name));
            }
            if first.name == "mask" && second.domain == Domain::Mask && first.shapes == second.shapes {
                changes.push(Change::And(first.name, second.name));
            }
        }
        if matches!(first.domain, Domain::Reward | Domain::Value) {
            changes.extend(flags.iter().map(|flag| Change::ZeroWhere(first.name, flag)));
        }
    }
    if given.iter().filter(|input| input.domain == Domain::Count && input.name.ends_with("length")).count() > 1 {
        changes.push(Change::LengthsTotal);
    }
    for word in words_of(given) {
        let with: Vec<&&InputSpec> = given.iter().filter(|input| input.name.contains(word)).collect();
        let has_other = |input: &&&InputSpec| operation.input(&input.name.replacen(word, "", 1)).is_some();
        if with.len() > 1 && with.iter().all(has_other) {
            changes.push(Change::CopyFamily(word));
        }
        let first: Vec<&&&InputSpec> = with.iter().filter(|input| input.name.starts_with(word)).collect();
        if first.len() > 1 && first.iter().all(|input| input.optional) {
            changes.push(Change::Ignored(word));
        }
    }
    if given.iter().any(|input| input.name == "next_value") && flags.contains(&"terminated") {
        changes.push(Change::TraceNeverCut);
    }
    if given.iter().any(|input| input.name == "bootstrap_value") {
        changes.extend([Change::Power(Power::Once), Change::Power(Power::FullWindow)]);
    }
    changes
}

/// The words of the inputs' names, with the underscore that follows.
fn words_of(given: &[&'static InputSpec]) -> Vec<&'static str> {
    let mut words: Vec<&'static str> = Vec::new();
    for input in given {
        let mut rest = input.name;
        while let Some(end) = rest.find('_') {
            let (word, after) = rest.split_at(end + 1);
            if !words.contains(&word) {
                words.push(word);
            }
            rest = after;
        }
    }
    words
}

/// What can go wrong with a ratio of policies and its clip range.
fn policy_changes(operation: &'static Operation, given: &[&'static InputSpec]) -> Vec<Change> {
    let mut changes = Vec::new();
    let has = |name: &str| given.iter().any(|input| input.name == name);
    if !has("log_prob") || !has("old_log_prob") {
        return changes;
    }
    changes.push(Change::LogRatio(LogRatioEdit::ColumnCentred));
    let is_clipped = operation.param("clip_ratio_low").is_some() && operation.param("clip_ratio_high").is_some();
    if is_clipped {
        changes.extend([Change::LogRatio(LogRatioEdit::ClippedBothSides), Change::RatioBoundsForLog]);
    }
    let has_tokens = operation.outputs.iter().any(|output| output.name == "token_loss");
    if is_clipped && has_tokens && has("advantage") {
        let edits = [Edit::One, Edit::Negated, Edit::Centred, Edit::BatchMean, Edit::RowMean];
        let edits = edits.into_iter().chain(whitenings());
        changes.extend(edits.map(|edit| Change::Branch(Box::new(Change::Input("advantage", edit)))));
        if operation.param("clip_ratio_c").is_some() {
            changes.extend([Change::DualClipUngated, Change::DualClipReciprocal]);
        }
    }
    changes
}

/// What is done with results: rows against rows, inputs outside, one result after another.
fn result_changes(operation: &'static Operation, given: &[&'static InputSpec]) -> Vec<Change> {
    let mut changes = Vec::new();
    let Some(main) = operation.outputs.first() else { return changes };
    let trains = |name: &str| operation.outputs.iter().any(|output| output.gradient_of == Some(name));
    for input in given.iter().filter(|input| is_real(input.domain)) {
        if main.shape.is_empty() {
            if !trains(input.name) {
                changes.push(Change::Broadcast(input.name));
                changes.extend([-1.0, 1.0].map(|sign| Change::Outside(input.name, sign)));
            }
            changes.extend([-1.0, 1.0].map(|factor| Change::Only(input.name, factor)));
        } else if input.shapes.contains(&main.shape) {
            changes.extend([1.0, -1.0].map(|factor| Change::Only(input.name, factor)));
            if !operation.outputs.iter().any(|output| output.gradient_of.is_some()) {
                changes.push(Change::Output(OutputEdit::Plus(input.name)));
                changes.push(Change::Output(OutputEdit::Minus(input.name)));
            }
        }
    }
    if !main.shape.is_empty() && !operation.outputs.iter().any(|output| output.gradient_of.is_some()) {
        if given.iter().any(|input| input.domain == Domain::Group) {
            changes.push(Change::Output(OutputEdit::MinusFirst));
        }
        changes.push(Change::Output(OutputEdit::Centred));
        for by_length in [false, true] {
            let edits = [None, Some(-8), Some(-6)].map(|eps| OutputEdit::Whitened { by_length, eps });
            changes.extend(edits.map(Change::Output));
        }
    }
    if main.shape == ["B"] && given.iter().any(|input| input.name == "mask") {
        changes.extend([false, true].map(|mean| Change::TokenByToken { mean }));
    }
    changes
}

/// A term, told by its coefficient, under the changes that a normaliser or a mask may have.
fn term_changes(meaning: &Meaning, given: &[&'static InputSpec], cases: &[&Case]) -> Vec<Change> {
    let operation = meaning.operation;
    let mut changes = Vec::new();
    for param in coefficients(meaning, cases) {
        changes.push(Change::Misplaced(param.name));
        let mut inner: Vec<Change> = Vec::new();
        for choice in operation.params {
            if let ParamKind::Choice { names, .. } = choice.kind {
                inner.extend(names.iter().map(|name| Change::Set(choice.name, Value::Name(name))));
            }
        }
        for mask in given.iter().filter(|input| input.name == "mask") {
            let edits = [Edit::KeepsAll, Edit::DropsLast, Edit::DropsFirst, Edit::KeepsOneMore];
            inner.extend(edits.map(|edit| Change::Input(mask.name, edit)));
            let others = given.iter().filter(|other| other.domain == Domain::Mask && other.name != "mask");
            inner.extend(
                others.filter(|other| other.shapes == mask.shapes).map(|other| Change::And(mask.name, other.name)),
            );
        }
        inner.extend(Split::ALL.into_iter().map(Change::Parts));
        changes.extend(inner.into_iter().map(|change| Change::Term(param.name, Box::new(change))));
    }
    changes
}
