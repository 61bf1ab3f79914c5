//! What a catalog entry must have.

use plumbline_core::spec::{Domain, Operation, ParamKind, ParamSpec, Params, Value};

/// What the entry lacks or contradicts.
pub fn holes(operation: &Operation) -> Vec<String> {
    let mut holes = Vec::new();
    let mut require = |holds: bool, hole: &str| {
        if !holds {
            holes.push(hole.to_owned());
        }
    };
    require(
        operation.id.split('.').next() == Some(operation.family.name()),
        "its identifier has another family's name",
    );
    require(!operation.title.is_empty(), "no title");
    require(!operation.summary.is_empty(), "no summary");
    require(!operation.formula.is_empty(), "no formula");
    require(!operation.sources.is_empty(), "no source");
    for source in operation.sources {
        let complete = !source.title.is_empty() && !source.reference.is_empty() && !source.place.is_empty();
        require(complete, "a source lacks title, reference or place");
    }
    require(!operation.notes.is_empty() || !operation.dialects.is_empty(), "neither dialects nor a note on them");
    require(!operation.inputs.is_empty() || !operation.params.is_empty(), "neither inputs nor parameters");
    for input in operation.inputs {
        require(!input.shapes.is_empty(), &format!("input `{}` has no shape", input.name));
        require(!input.meaning.is_empty(), &format!("input `{}` has no meaning", input.name));
    }
    for param in operation.params {
        require(!param.meaning.is_empty(), &format!("parameter `{}` has no meaning", param.name));
        if let Some(hole) = default_hole(param, operation.default_of(param)) {
            require(false, &hole);
        }
    }
    for (name, _) in operation.defaults {
        require(operation.param(name).is_some(), &format!("a default for `{name}`, which is no parameter"));
    }
    for dialect in operation.dialects {
        for (name, value) in dialect.settings {
            match operation.param(name) {
                None => require(false, &format!("{} sets `{name}`, which is no parameter", dialect.name)),
                Some((_, param)) => {
                    if let Some(hole) = default_hole(param, *value) {
                        require(false, &format!("{}: {hole}", dialect.name));
                    }
                }
            }
        }
        require(
            Params::resolve(operation, Some(dialect.name), &[]).is_ok(),
            &format!("the settings of {} are refused", dialect.name),
        );
    }
    match operation.outputs.first() {
        None => require(false, "no output"),
        Some(first) => require(first.gradient_of.is_none(), "its first output is a gradient"),
    }
    let mut trainable = false;
    for output in operation.outputs {
        require(!output.meaning.is_empty(), &format!("output `{}` has no meaning", output.name));
        let Some(input) = output.gradient_of else { continue };
        trainable = true;
        require(
            output.name == format!("d_{input}"),
            &format!("gradient `{}` is not named after its input", output.name),
        );
        let real = operation.input(input).is_some_and(|input| {
            !matches!(input.domain, Domain::Mask | Domain::Done | Domain::Group | Domain::Index(_))
        });
        require(real, &format!("`{}` differentiates by `{input}`, which is no real input", output.name));
    }
    require(
        trainable != operation.gradient.is_empty(),
        "gradient outputs and the gradient's formula do not go together",
    );
    holes
}

fn default_hole(param: &ParamSpec, value: Value) -> Option<String> {
    let legal = match (param.kind, value) {
        (ParamKind::Number { range, .. } | ParamKind::OptionalNumber { range, .. }, Value::Number(number)) => {
            range.contains(number)
        }
        (ParamKind::OptionalNumber { .. }, Value::None) | (ParamKind::Flag { .. }, Value::Flag(_)) => true,
        (ParamKind::Integer { low, high, .. }, Value::Integer(number)) => low <= number && number <= high,
        (ParamKind::Choice { names, .. }, Value::Name(name)) => names.contains(&name),
        _ => false,
    };
    (!legal).then(|| format!("`{}` = {value:?} is outside its legal range", param.name))
}
