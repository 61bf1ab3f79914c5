//! Which operations of the catalog have a kernel, and why others have none.

use std::collections::BTreeMap;

use plumbline_conformance::backend::OnDevice;
use plumbline_core::catalog;
use plumbline_gpu::Emulated;

use crate::same_bits::compare;

/// Operations that no kernel is meant for: their steps wait for each other, or there is one number to compute.
const NO_BATCH_FORM: [(&str, &str); 14] = [
    ("advantage.monte_carlo_value", "a table of running means, which the order of the visits makes"),
    ("advantage.td_lambda_increment", "a table that every row adds to in order"),
    ("bellman.contraction", "a bound, two numbers"),
    ("bellman.evaluate_direct", "a linear system of the size of a table"),
    ("bellman.evaluate_iterative", "sweeps in order; each of them has a kernel"),
    ("bellman.modified_policy_iteration", "sweeps in order; each of them has a kernel"),
    ("bellman.policy_iteration", "linear systems in order"),
    ("bellman.value_iteration", "sweeps in order; each of them has a kernel"),
    ("kl.adaptive_controller", "one number a step"),
    ("kl.fixed_controller", "one number a step"),
    ("preference.bradley_terry_fit", "iterations of a small table in order"),
    ("trust_region.conjugate_gradient", "iterations in order"),
    ("trust_region.line_search", "trials in order"),
    ("trust_region.step_length", "one number a step"),
];
/// Operations with a batch form that no kernel is written for yet.
const NOT_YET: usize = 126;

#[test]
fn every_operation_has_a_kernel_or_is_named() {
    let tally = compare(&OnDevice { name: "emulated", device: Emulated::default() }).unwrap();
    let mut not_yet: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut without_form = 0;
    for operation in catalog::operations() {
        let has_kernel = tally.equal.contains_key(operation.id);
        if let Some((_, reason)) = NO_BATCH_FORM.iter().find(|(id, _)| *id == operation.id) {
            assert!(!has_kernel, "{} has a kernel, although it is said to have no batch form", operation.id);
            println!("no batch form: {} ({reason})", operation.id);
            without_form += 1;
        } else if !has_kernel {
            not_yet.entry(operation.family.name()).or_default().push(operation.id);
        }
    }
    let count: usize = not_yet.values().map(Vec::len).sum();
    for (family, operations) in &not_yet {
        println!("not yet, {family}: {}", operations.join(" "));
    }
    println!("{} with a kernel, {without_form} without a batch form, {count} not yet", tally.equal.len());
    assert_eq!(without_form, NO_BATCH_FORM.len(), "a name that the catalog does not have");
    assert_eq!(count, NOT_YET, "say so here, and in the book's chapter");
}
