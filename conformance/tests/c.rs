//! The C library has core's numbers.

use plumbline_conformance::backend::{Backend, C, Core, Failure};
use plumbline_conformance::fixture;
use plumbline_conformance::verify::verify;
use plumbline_core::num::Dtype;
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Request, Wanted};

#[test]
fn golden_values_pass_through_the_c_library() {
    let library = C::default();
    assert_eq!(library.ready(), Ok(()));
    let report = verify(&library, &fixture::embedded().unwrap(), "", |_| {});
    assert!(report.cases.len() >= 3_500, "only {} golden cases are left", report.cases.len());
    assert_eq!((report.failed(), report.skipped(), report.broke()), (0, 0, 0));
}

#[test]
fn outputs_and_refusals_are_those_of_core() {
    let tensor = |values: [f64; 2]| Tensor { shape: vec![1, 2], values: values.to_vec() };
    let inputs =
        vec![("log_prob".to_owned(), tensor([-0.5, -1.0])), ("ref_log_prob".to_owned(), tensor([-0.75, -0.5]))];
    let request = Request {
        operation: "kl.k3",
        dialect: Some("verl-0.9"),
        dtype: Dtype::F32,
        params: &[],
        inputs: &inputs,
        outputs: Wanted::All,
    };
    let library = C::default();
    let outputs = library.evaluate(&request).unwrap();
    assert!(outputs.len() > 1);
    assert_eq!(outputs, Core.evaluate(&request).unwrap());
    let lacking = Request { inputs: &inputs[..1], outputs: Wanted::Named(&["kl"]), ..request };
    let words = "`ref_log_prob` is required but was not given".to_owned();
    assert_eq!(library.evaluate(&lacking), Err(Failure::Refused(words)));
}
