//! What one batch and the number that a framework printed for it tell.

use plumbline_diagnosis::one_shot::{Member, Printed, Question, answer_as_json, member, prepare};
use plumbline_evaluate::Param;
use plumbline_evaluate::tensor::Tensor;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::Refused;

#[wasm_bindgen]
extern "C" {
    /// An object of the caller that is told how far a search is.
    pub type Listener;

    /// So many points of a round of so many are looked at.
    #[wasm_bindgen(method)]
    fn progress(this: &Listener, done: usize, of: usize);
}

/// A question, put together piece by piece.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Identification {
    question: Question,
    /// The printed number, as soon as it is known.
    result: Option<Printed>,
}

#[wasm_bindgen]
impl Identification {
    /// Begin, with how many numbers may be looked at.
    #[wasm_bindgen(constructor)]
    pub fn new(effort: f64) -> Identification {
        Identification {
            question: Question {
                inputs: Vec::new(),
                result: Printed::guessed(Tensor::scalar(0.0)),
                gradients: Vec::new(),
                operation: None,
                dialect: None,
                params: Vec::new(),
                effort: Some(effort as u64),
            },
            result: None,
        }
    }

    /// The printed number, in the digits that were printed.
    pub fn printed(&mut self, text: &str) -> Result<(), Refused> {
        let printed = Printed::parse(text)
            .ok_or_else(|| Refused::of("wrong_kind", "loss", format!("`loss` is `{text}`, which is no number")))?;
        self.result = Some(printed);
        Ok(())
    }

    /// The operation that is meant.
    pub fn operation(&mut self, id: String) {
        self.question.operation = Some(id);
    }

    /// The dialect that is meant.
    pub fn dialect(&mut self, name: String) {
        self.question.dialect = Some(name);
    }

    /// A parameter that is known to be a number.
    pub fn number(&mut self, name: String, value: f64) {
        self.question.params.push((name, Param::Number(value)));
    }

    /// A parameter that is known to be yes or no.
    pub fn flag(&mut self, name: String, value: bool) {
        self.question.params.push((name, Param::Flag(value)));
    }

    /// A parameter that is known to be one of its names.
    pub fn choice(&mut self, name: String, value: String) {
        self.question.params.push((name, Param::Name(value)));
    }

    /// A parameter that is known to be switched off.
    pub fn off(&mut self, name: String) {
        self.question.params.push((name, Param::None));
    }

    /// Give an array of the batch: what it is, its name tells. `unit` is what the last printed digit stands for.
    pub fn array(
        &mut self,
        name: String,
        shape: Vec<usize>,
        numbers: Vec<f64>,
        unit: Option<f64>,
    ) -> Result<(), Refused> {
        let tensor = tensor(&name, shape, numbers)?;
        match member(&name) {
            Member::Input => self.question.inputs.push((name, tensor)),
            Member::Gradient(input) => self.question.gradients.push((input.to_owned(), printed(tensor, unit))),
            // What was said apart is meant.
            Member::Result => self.result = self.result.take().or(Some(printed(tensor, unit).into_result())),
        }
        Ok(())
    }

    /// Give the gradient with respect to an input.
    pub fn gradient(
        &mut self,
        input: String,
        shape: Vec<usize>,
        numbers: Vec<f64>,
        unit: Option<f64>,
    ) -> Result<(), Refused> {
        let tensor = tensor(&input, shape, numbers)?;
        self.question.gradients.push((input, printed(tensor, unit)));
        Ok(())
    }

    /// The answer, as JSON.
    pub fn answer(&mut self, listener: &Listener) -> Result<String, Refused> {
        let missing =
            || Refused::of("missing_input", "loss", "the printed number is missing: give it as `loss`".into());
        self.question.result = self.result.clone().ok_or_else(missing)?;
        let inquiry = prepare(&self.question)?;
        let in_turn = |count: usize, job: &(dyn Fn(usize) + Sync)| {
            for index in 0..count {
                job(index);
                listener.progress(index + 1, count);
            }
        };
        Ok(answer_as_json(&inquiry.answer(&in_turn), "batch").to_string())
    }
}

fn printed(tensor: Tensor, unit: Option<f64>) -> Printed {
    match unit {
        Some(unit) => Printed::to_unit(tensor, unit),
        None => Printed::guessed(tensor),
    }
}

fn tensor(name: &str, shape: Vec<usize>, numbers: Vec<f64>) -> Result<Tensor, Refused> {
    Tensor::new(shape, numbers)
        .map_err(|message| Refused::of("length_mismatch", name, format!("`{name}`: its {message}")))
}
