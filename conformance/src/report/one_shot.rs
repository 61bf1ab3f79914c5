//! The answer to one batch, for people and for programs.

use std::fmt::Write as _;

use plumbline_diagnosis::one_shot::{Answer, Conclusion, Fit, GradientFit, Name};

use super::style::{BAD, GOOD, HEAD, UNSURE};

/// The most that is printed of what fits equally; `--json` has all.
const SHOWN: usize = 24;

/// For a terminal; styles are stripped by the writer where the output is none.
pub fn answer_as_text(answer: &Answer, file: &str) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write(&mut text, answer, file);
    text
}

fn write(text: &mut String, answer: &Answer, file: &str) -> std::fmt::Result {
    writeln!(text, "{file}: {}", answer.batch)?;
    for note in &answer.notes {
        writeln!(text, "  {note}")?;
    }
    let printed = &answer.printed;
    match printed.tensor.values[..] {
        [value] => writeln!(text, "printed: {value} ({})", printed.precision())?,
        _ => writeln!(text, "printed: numbers of shape {:?} ({})", printed.tensor.shape, printed.precision())?,
    }
    if let (Some(meant), Some(value)) = (answer.meant, answer.meant_value) {
        writeln!(text, "{} gives {value}", name(&meant))?;
    }
    writeln!(text)?;
    let (style, line) = headline(answer);
    writeln!(text, "{style}{line}{style:#}")?;
    for fit in answer.fits.iter().take(SHOWN) {
        writeln!(text, "  {}", words(fit))?;
    }
    if answer.fits.len() > SHOWN {
        writeln!(text, "  and {} more (--json lists all)", answer.fits.len() - SHOWN)?;
    }
    if let Some(apart) = &answer.apart {
        writeln!(text, "{apart}")?;
    }
    if answer.conclusion == Conclusion::GradientDiffers
        && let Some(GradientFit::Differs(difference)) = answer.fits.first().map(|fit| &fit.gradient)
    {
        writeln!(text, "Of the first, {difference}.")?;
    }
    if answer.fits.iter().any(|fit| fit.gradient == GradientFit::NotGiven) {
        writeln!(text, "No gradient was given: what only a gradient shows (stop-gradients, clip rules) is not told.")?;
    }
    if !answer.nearest.is_empty() {
        writeln!(text, "The nearest:")?;
        for near in &answer.nearest {
            let change = if near.text.is_empty() { String::new() } else { format!(", if {}", near.text) };
            writeln!(text, "  {} gives {}{change}", names(&near.names), near.value)?;
        }
    }
    let chance = match answer.by_chance {
        few if few < 0.01 => "fewer than 0.01".to_owned(),
        more => format!("{more:.2}"),
    };
    writeln!(text)?;
    writeln!(
        text,
        "{HEAD}Tried{HEAD:#} {} points; by chance alone {chance} of them would give a number of this precision.",
        answer.tried
    )?;
    if answer.left_out > 0 {
        writeln!(
            text,
            "{UNSURE}{} further points were left out: the batch is large. Name the operation (--op) or add --thorough.{UNSURE:#}",
            answer.left_out
        )?;
    }
    if answer.idle_left_out > 0 && answer.fits.is_empty() {
        writeln!(
            text,
            "{} more change nothing on a sample of the rows and were left out; --thorough tries them too.",
            answer.idle_left_out
        )?;
    }
    Ok(())
}

fn headline(answer: &Answer) -> (anstyle::Style, String) {
    let count = answer.fits.len();
    let many = if count == 1 { "one point gives".to_owned() } else { format!("{count} points give") };
    if answer.may_be_chance() {
        return (
            UNSURE,
            format!("The numbers cannot tell: {many} this number, but so few digits fit many by chance. They are:"),
        );
    }
    match answer.conclusion {
        Conclusion::Known if count == 1 => (GOOD, "This is:".into()),
        Conclusion::Known => (GOOD, format!("The numbers cannot tell {count} apart; this is one of:")),
        Conclusion::Changed => match (answer.meant, count) {
            (Some(meant), 1) => (BAD, format!("This is not {}. The number is right if it is:", name(&meant))),
            (Some(meant), _) => (
                BAD,
                format!("This is not {}. {count} fit equally; the number is right if it is one of:", name(&meant)),
            ),
            (None, 1) => {
                (BAD, "No operation in any of its dialects gives this number. With one change this does:".into())
            }
            (None, _) => (
                BAD,
                format!(
                    "No operation in any of its dialects gives this number. With one change these {count} do, equally:"
                ),
            ),
        },
        Conclusion::GradientDiffers => {
            (BAD, format!("The value fits, the gradient does not. For the value, {many} it:"))
        }
        Conclusion::Unknown => (BAD, "Nothing that is known gives this number.".into()),
    }
}

fn words(fit: &Fit) -> String {
    let change = if fit.text.is_empty() { String::new() } else { format!(", if {}", fit.text) };
    let gradient = match fit.gradient {
        GradientFit::NotCompared => "; its gradient was not compared",
        _ => "",
    };
    format!("{}{change} ({}{gradient})", names(&fit.names), fit.value)
}

/// All names of one point, the dialects of an operation together.
fn names(names: &[Name]) -> String {
    let mut operations: Vec<(&str, Vec<&str>)> = Vec::new();
    for name in names {
        let dialect = name.dialect.unwrap_or("defaults");
        match operations.iter_mut().find(|(operation, _)| *operation == name.operation) {
            Some((_, dialects)) => dialects.push(dialect),
            None => operations.push((name.operation, vec![dialect])),
        }
    }
    let each: Vec<String> =
        operations.into_iter().map(|(operation, dialects)| format!("{operation} [{}]", dialects.join(", "))).collect();
    each.join(" = ")
}

fn name(name: &Name) -> String {
    format!("{} [{}]", name.operation, name.dialect.unwrap_or("defaults"))
}
