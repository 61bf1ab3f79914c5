//! What every entry of the catalog must have.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use plumbline_core::catalog;
use plumbline_core::spec::{Domain, Family, MAX_DIMS, MAX_OUTPUTS, MAX_PARAMS, Operation, ParamKind, Params, Value};

/// Run a check over every operation and tell all that is wrong at once.
fn every_operation(check: impl Fn(&'static Operation, &mut Vec<String>)) {
    let mut faults = Vec::new();
    let mut seen = 0;
    for operation in catalog::operations() {
        seen += 1;
        let mut own = Vec::new();
        check(operation, &mut own);
        faults.extend(own.into_iter().map(|fault| format!("{}: {fault}", operation.id)));
    }
    assert!(seen >= 17, "only {seen} operations are left");
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

fn require(faults: &mut Vec<String>, holds: bool, fault: impl Into<String>) {
    if !holds {
        faults.push(fault.into());
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_lowercase())
        && text.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
}

fn is_legal(kind: &ParamKind, value: Value) -> bool {
    match (*kind, value) {
        (ParamKind::Number { range, .. } | ParamKind::OptionalNumber { range, .. }, Value::Number(number)) => {
            range.contains(number)
        }
        (ParamKind::OptionalNumber { .. }, Value::None) | (ParamKind::Flag { .. }, Value::Flag(_)) => true,
        (ParamKind::Integer { low, high, .. }, Value::Integer(whole)) => low <= whole && whole <= high,
        (ParamKind::Choice { names, .. }, Value::Name(name)) => names.contains(&name),
        _ => false,
    }
}

#[test]
fn identifiers_are_unique_and_begin_with_their_family() {
    let mut seen = BTreeSet::new();
    for operation in catalog::operations() {
        assert!(seen.insert(operation.id), "{} stands twice", operation.id);
        let (family, name) = operation.id.split_once('.').unwrap();
        assert_eq!(family, operation.family.name(), "{}", operation.id);
        assert!(is_name(name), "{}", operation.id);
        assert!(std::ptr::eq(catalog::find(operation.id).unwrap(), operation));
    }
    assert_eq!(Family::ALL.map(Family::name).into_iter().collect::<BTreeSet<_>>().len(), Family::ALL.len());
}

#[test]
fn families_stand_together() {
    let order: Vec<Family> = catalog::operations().map(|operation| operation.family).collect();
    let mut blocks = order.clone();
    blocks.dedup();
    assert_eq!(blocks.len(), blocks.iter().collect::<std::collections::HashSet<_>>().len(), "{blocks:?}");
}

#[test]
fn every_text_is_there() {
    every_operation(|operation, faults| {
        for (what, text) in [
            ("title", operation.title),
            ("summary", operation.summary),
            ("formula", operation.formula),
            ("notes", operation.notes),
        ] {
            require(faults, !text.trim().is_empty(), format!("no {what}"));
        }
        require(faults, operation.summary.ends_with('.'), "the summary is no sentence");
        require(faults, !operation.summary.contains('\n'), "the summary has a line break");
        require(faults, !operation.sources.is_empty(), "no source");
        for source in operation.sources {
            let whole = [source.title, source.reference, source.place].iter().all(|text| !text.trim().is_empty());
            require(faults, whole, format!("the source `{}` lacks its title, reference or place", source.title));
        }
        for text in [operation.formula, operation.gradient] {
            let depth = text.replace(r"\{", "").replace(r"\}", "").chars().try_fold(0i32, |depth, letter| {
                let depth = depth + i32::from(letter == '{') - i32::from(letter == '}');
                (depth >= 0).then_some(depth)
            });
            require(faults, depth == Some(0), format!("unbalanced braces in {text}"));
            let count = |command: &str| {
                let ends = |rest: &&str| !rest.starts_with(|letter: char| letter.is_ascii_alphabetic());
                text.split(command).skip(1).filter(ends).count()
            };
            require(faults, count(r"\left") == count(r"\right"), "unbalanced \\left");
        }
        for meaning in operation
            .inputs
            .iter()
            .map(|input| input.meaning)
            .chain(operation.params.iter().map(|param| param.meaning))
            .chain(operation.outputs.iter().map(|output| output.meaning))
        {
            require(faults, !meaning.trim().is_empty(), "an argument without a meaning");
        }
    });
}

#[test]
fn names_are_terms_and_stand_once() {
    every_operation(|operation, faults| {
        let inputs = operation.inputs.iter().map(|input| input.name);
        let params = operation.params.iter().map(|param| param.name);
        let mut seen = BTreeSet::new();
        for name in inputs.chain(params) {
            // A whole-number parameter that is a dimension bears the dimension's name.
            let dimension = operation.outputs.iter().any(|output| output.shape.contains(&name));
            require(faults, is_name(name) || dimension, format!("`{name}` is no name"));
            require(faults, seen.insert(name), format!("`{name}` stands twice"));
        }
        let mut seen = BTreeSet::new();
        for output in operation.outputs {
            require(faults, is_name(output.name), format!("`{}` is no name", output.name));
            require(faults, seen.insert(output.name), format!("the output `{}` stands twice", output.name));
        }
        let first_optional = operation.inputs.iter().position(|input| input.optional).unwrap_or(usize::MAX);
        let last_required = operation.inputs.iter().rposition(|input| !input.optional);
        require(
            faults,
            last_required.is_none_or(|last| last < first_optional),
            "an optional input before a required one",
        );
        require(faults, operation.params.len() <= MAX_PARAMS, "too many parameters");
        require(faults, operation.outputs.len() <= MAX_OUTPUTS, "too many outputs");
    });
}

#[test]
fn shapes_are_determined_by_the_inputs() {
    every_operation(|operation, faults| {
        require(faults, !operation.inputs.is_empty(), "no input");
        require(faults, !operation.outputs.is_empty(), "no output");
        let mut dimensions: BTreeSet<&str> = BTreeSet::new();
        for input in operation.inputs {
            require(faults, !input.shapes.is_empty(), format!("`{}` has no shape", input.name));
            dimensions.extend(input.shapes.iter().flat_map(|shape| shape.iter()));
        }
        let whole = operation.params.iter().filter(|param| matches!(param.kind, ParamKind::Integer { .. }));
        dimensions.extend(
            whole
                .map(|param| param.name)
                .filter(|name| operation.outputs.iter().any(|output| output.shape.contains(name))),
        );
        require(faults, dimensions.len() <= MAX_DIMS, "too many dimensions");
        for output in operation.outputs {
            let known = output.shape.iter().all(|name| dimensions.contains(name));
            require(faults, known, format!("the shape of `{}` is not determined", output.name));
        }
        for input in operation.inputs {
            if let Domain::Index(dimension) = input.domain {
                require(faults, dimensions.contains(dimension), format!("`{}` indexes nothing", input.name));
            }
        }
    });
}

#[test]
fn gradients_are_named_after_their_input() {
    every_operation(|operation, faults| {
        let first = operation.outputs.first();
        require(faults, first.is_some_and(|output| output.gradient_of.is_none()), "the first output is a gradient");
        let mut trainable = false;
        for output in operation.outputs {
            if let Some(input) = output.gradient_of {
                trainable = true;
                require(faults, output.name == format!("d_{input}"), format!("`{}` is not d_{input}", output.name));
                let spec = operation.input(input);
                require(faults, spec.is_some(), format!("`{}` differentiates by no input", output.name));
                let same = spec.is_some_and(|spec| spec.shapes.contains(&output.shape));
                require(faults, same, format!("`{}` has another shape than `{input}`", output.name));
            } else {
                require(faults, !output.stop_gradient, format!("`{}` is no gradient", output.name));
            }
        }
        require(
            faults,
            trainable != operation.gradient.is_empty(),
            "gradient outputs without TeX, or TeX without them",
        );
    });
}

#[test]
fn defaults_and_dialects_are_legal() {
    every_operation(|operation, faults| {
        for param in operation.params {
            require(faults, is_legal(&param.kind, param.kind.default()), format!("default of `{}`", param.name));
            if let ParamKind::Choice { names, .. } = param.kind {
                require(faults, names.iter().collect::<BTreeSet<_>>().len() == names.len(), "a choice stands twice");
            }
        }
        let mut settings: Vec<(&str, &[(&str, Value)])> = vec![("defaults", operation.defaults)];
        let mut names = BTreeSet::new();
        for dialect in operation.dialects {
            require(faults, names.insert(dialect.name), format!("the dialect {} stands twice", dialect.name));
            require(faults, !dialect.note.trim().is_empty(), format!("{} has no note", dialect.name));
            // `verl-0.9`, or with a variant of that version `verl-0.9-multi-turn`.
            let mut parts = dialect.name.split('-');
            let version = parts.next().is_some_and(is_name)
                && parts.next().is_some_and(|version| version.split('.').all(|part| part.parse::<u32>().is_ok()))
                && parts.all(is_name);
            require(faults, version || dialect.name == "paper", format!("`{}` names no version", dialect.name));
            settings.push((dialect.name, dialect.settings));
            require(faults, Params::resolve(operation, Some(dialect.name), &[]).is_ok(), dialect.name);
        }
        for (whose, settings) in settings {
            for (name, value) in settings {
                let legal = operation.param(name).is_some_and(|(_, param)| is_legal(&param.kind, *value));
                require(faults, legal, format!("{whose}: `{name}` = {value:?} is no legal setting"));
            }
        }
    });
}

/// A file with a catalog entry that no list names would not be part of anything.
#[test]
fn every_entry_that_is_written_is_listed() {
    let mut faults = Vec::new();
    let mut written = 0;
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                for part in text.split("\n    id: \"").skip(1) {
                    let id = part.split('"').next().unwrap();
                    // The catalog fills its list from entries without a name.
                    if id.is_empty() {
                        continue;
                    }
                    written += 1;
                    if catalog::find(id).is_none() {
                        faults.push(format!("{id} ({})", path.display()));
                    }
                }
            }
        }
    }
    assert!(written > 0, "no entry was found");
    assert!(faults.is_empty(), "not listed: {faults:?}");
}
