//! What one batch and the number that a framework printed for it tell.

use plumbline_diagnosis::one_shot::{Printed, Question, answer_as_json, in_turn, prepare};
use plumbline_evaluate::Param;
use plumbline_evaluate::tensor::Tensor;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::Refused;

/// A question, put together piece by piece.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Identification(Question);

#[wasm_bindgen]
impl Identification {
    /// Begin with the printed number, in the digits that were printed, and with how many numbers may be looked at.
    #[wasm_bindgen(constructor)]
    pub fn new(printed: &str, effort: f64) -> Result<Identification, Refused> {
        let result = Printed::parse(printed)
            .ok_or_else(|| Refused::of("wrong_kind", "loss", format!("`loss` is `{printed}`, which is no number")))?;
        Ok(Identification(Question {
            inputs: Vec::new(),
            result,
            gradients: Vec::new(),
            operation: None,
            dialect: None,
            params: Vec::new(),
            effort: Some(effort as u64),
        }))
    }

    /// The operation that is meant.
    pub fn operation(&mut self, id: String) {
        self.0.operation = Some(id);
    }

    /// The dialect that is meant.
    pub fn dialect(&mut self, name: String) {
        self.0.dialect = Some(name);
    }

    /// A parameter that is known to be a number.
    pub fn number(&mut self, name: String, value: f64) {
        self.0.params.push((name, Param::Number(value)));
    }

    /// A parameter that is known to be yes or no.
    pub fn flag(&mut self, name: String, value: bool) {
        self.0.params.push((name, Param::Flag(value)));
    }

    /// A parameter that is known to be one of its names.
    pub fn choice(&mut self, name: String, value: String) {
        self.0.params.push((name, Param::Name(value)));
    }

    /// A parameter that is known to be switched off.
    pub fn off(&mut self, name: String) {
        self.0.params.push((name, Param::None));
    }

    /// Give an array of the batch.
    pub fn input(&mut self, name: String, shape: Vec<usize>, numbers: Vec<f64>) -> Result<(), Refused> {
        let tensor = tensor(&name, shape, numbers)?;
        self.0.inputs.push((name, tensor));
        Ok(())
    }

    /// Give the gradient with respect to an input.
    pub fn gradient(&mut self, input: String, shape: Vec<usize>, numbers: Vec<f64>) -> Result<(), Refused> {
        let tensor = tensor(&input, shape, numbers)?;
        self.0.gradients.push((input, Printed::guessed(tensor)));
        Ok(())
    }

    /// The answer, as JSON.
    pub fn answer(&self) -> Result<String, Refused> {
        let inquiry = prepare(&self.0).map_err(|error| Refused::told("unanswerable", error.0))?;
        Ok(answer_as_json(&inquiry.answer(&in_turn), "batch").to_string())
    }
}

fn tensor(name: &str, shape: Vec<usize>, numbers: Vec<f64>) -> Result<Tensor, Refused> {
    Tensor::new(shape, numbers)
        .map_err(|message| Refused::of("length_mismatch", name, format!("`{name}`: its {message}")))
}
