//! Operations of the catalog on a device: the host's arrays go there, the kernels run, the results come back.
//!
//! Which operation a kernel computes is told by the catalog: a setting of the policy objective by its parameters, a KL
//! estimate by the estimator that it is named after, a backup by its identifier.

use plumbline_core::Error as CoreError;
use plumbline_core::advantage::row_scan::{RowScan, scan_of};
use plumbline_core::kl::estimator::{DIFFERENCE_CLAMP, KlEstimator, VALUE_CLAMP};
use plumbline_core::objective::policy::{AdvantageSource, setting};
use plumbline_core::spec::{
    Choice, Data, Elementwise, Evaluable, Family, Given, Input, Operation, Output, Params, Value, formula_of,
};
use plumbline_gpu_kernels::memory::Number;

use crate::array::Plain;
use crate::bellman::{ProcessArrays, action_values, backup, state_values};
use crate::elementwise::{ElementArrays, map_elements};
use crate::kl::kl_estimate;
use crate::policy::{PolicyArrays, PolicyResults, PolicyWorkspace, Values, policy_objective};
use crate::scan::{StepArrays, scan_rows};
use crate::{Array, Device, Error};

/// One evaluation by names, as [`plumbline_core::spec::evaluate`] takes it.
pub fn evaluate<D: Device, R: Number + Plain + Evaluable>(
    device: &D,
    operation: &'static Operation,
    dialect: Option<&str>,
    given: &[Given<'_>],
    inputs: &[Input<'_, R>],
    outputs: &mut [Output<'_, R>],
) -> Result<(), Error> {
    let mut call = Call { device, inputs, outputs };
    let params = Params::resolve(operation, dialect, given)?;
    if let Some(setting) = setting::<R>(operation, params) {
        let (objective, source) = setting?;
        if source != AdvantageSource::Given {
            return Err(Error::NoKernel(format!("{} with advantages from rewards", operation.id)));
        }
        return call.policy(&objective);
    }
    if operation.family == Family::Kl
        && let Some(estimator) = operation.id.split_once('.').and_then(|(_, name)| KlEstimator::from_name(name))
    {
        let clamp = |name: &str| match operation.param(name).map(|(position, _)| params.get(position)) {
            Some(Value::Number(clamp)) => Some(R::from_f64(clamp)),
            _ => None,
        };
        return call.kl(estimator, [clamp(DIFFERENCE_CLAMP.name), clamp(VALUE_CLAMP.name)]);
    }
    if matches!(operation.id, "bellman.optimality_v" | "bellman.expectation_v" | "bellman.q_from_v") {
        // Core judges the process; asked for no output, it computes little.
        plumbline_core::spec::evaluate(operation, dialect, given, inputs, &mut [])?;
        let discount = match operation.param("discount").map(|(position, _)| params.get(position)) {
            Some(Value::Number(discount)) => R::from_f64(discount),
            _ => R::one(),
        };
        return call.bellman(operation.id == "bellman.q_from_v", discount);
    }
    // Core judges the inputs of what follows: asked for no output, it writes none.
    let judge = || plumbline_core::spec::evaluate(operation, dialect, given, inputs, &mut []);
    macro_rules! elementwise {
        ($($single:ident, $double:ident: $formula:ty, $inputs:literal, $outputs:literal;)+) => {
            $(
                if <$formula as Elementwise<R, $inputs, $outputs>>::OPERATION == operation.id {
                    judge()?;
                    return call.elements::<$formula, $inputs, $outputs>(formula_of::<R, _, $inputs, $outputs>(operation, params)?);
                }
            )+
        };
    }
    plumbline_gpu_kernels::elementwise_formulas! { elementwise }
    macro_rules! scan {
        ($($single:ident, $double:ident: $scan:ty, $outputs:literal;)+) => {
            $(
                if <$scan as RowScan<R, $outputs>>::OPERATIONS.contains(&operation.id) {
                    // Core looks at the steps only where an output is asked for: one that is thrown away.
                    let mut aside = vec![R::zero(); call.slots("reward")];
                    let output = Output { name: <$scan as RowScan<R, $outputs>>::OUTPUTS[0], data: &mut aside };
                    plumbline_core::spec::evaluate(operation, dialect, given, inputs, &mut [output])?;
                    let Some(scan) = scan_of::<R, $scan, $outputs>(operation, params)? else {
                        return Err(Error::NoKernel(format!("{} with whitening", operation.id)));
                    };
                    return call.scan::<$scan, $outputs>(scan, gamma(operation, &params));
                }
            )+
        };
    }
    plumbline_gpu_kernels::scans! { scan }
    Err(Error::NoKernel(operation.id.to_owned()))
}

/// The discount factor among the parameters.
fn gamma<R: Number>(operation: &'static Operation, params: &Params) -> R {
    match operation.param("gamma").map(|(position, _)| params.get(position)) {
        Some(Value::Number(gamma)) => R::from_f64(gamma),
        _ => R::one(),
    }
}

struct Call<'c, 'b, D, R> {
    device: &'c D,
    inputs: &'c [Input<'c, R>],
    outputs: &'c mut [Output<'b, R>],
}

impl<'c, D: Device, R: Number + Plain> Call<'c, '_, D, R> {
    fn input(&self, name: &str) -> Option<&'c Input<'c, R>> {
        self.inputs.iter().find(|input| input.name == name)
    }

    fn slots(&self, name: &str) -> usize {
        self.input(name).map_or(0, |input| input.data.len())
    }

    fn real(&self, name: &str) -> Result<Option<Array<D, R>>, Error> {
        match self.input(name).map(|input| input.data) {
            Some(Data::Real(values)) => Array::from_host(self.device, values).map(Some),
            _ => Ok(None),
        }
    }

    fn needed(&self, name: &'static str) -> Result<Array<D, R>, Error> {
        self.real(name)?.ok_or(Error::Core(CoreError::MissingInput { argument: name }))
    }

    fn bytes(&self, name: &str) -> Result<Option<Array<D, u8>>, Error> {
        match self.input(name).map(|input| input.data) {
            Some(Data::Mask(values)) => Array::from_host(self.device, values).map(Some),
            _ => Ok(None),
        }
    }

    fn indices(&self, name: &str) -> Result<Option<Array<D, u32>>, Error> {
        match self.input(name).map(|input| input.data) {
            Some(Data::Index(values)) => Array::from_host(self.device, values).map(Some),
            _ => Ok(None),
        }
    }

    /// An array for an output, where it was asked for.
    fn room(&self, name: &str) -> Result<Option<Array<D, R>>, Error> {
        let output = self.outputs.iter().find(|output| output.name == name);
        output.map(|output| Array::new(self.device, output.data.len())).transpose()
    }

    fn take(&mut self, name: &str, array: Option<&Array<D, R>>) -> Result<(), Error> {
        match (array, self.outputs.iter_mut().find(|output| output.name == name)) {
            (Some(array), Some(output)) => array.read(self.device, output.data),
            _ => Ok(()),
        }
    }

    fn put(&mut self, name: &str, value: R) {
        if let Some(output) = self.outputs.iter_mut().find(|output| output.name == name) {
            output.data.fill(value);
        }
    }

    /// An elementwise formula.
    fn elements<F: Elementwise<R, I, O>, const I: usize, const O: usize>(&mut self, formula: F) -> Result<(), Error> {
        let device = self.device;
        let mut inputs = Vec::with_capacity(I);
        for name in F::INPUTS {
            inputs.push(self.needed(name)?);
        }
        let mask = self.bytes("mask")?;
        let marks = F::MARK.map(|name| self.bytes(name)).transpose()?.flatten();
        let mut rooms = Vec::with_capacity(O);
        for name in F::OUTPUTS {
            rooms.push(self.room(name)?);
        }
        let arrays = ElementArrays {
            inputs: std::array::from_fn(|input| &inputs[input]),
            mask: mask.as_ref(),
            marks: marks.as_ref(),
        };
        let mut outputs = rooms.iter_mut();
        let outputs = std::array::from_fn(|_| outputs.next().and_then(Option::as_mut));
        map_elements(device, formula, &arrays, outputs)?;
        for (name, room) in F::OUTPUTS.iter().zip(&rooms) {
            self.take(name, room.as_ref())?;
        }
        Ok(())
    }

    /// A return.
    fn scan<S: RowScan<R, O>, const O: usize>(&mut self, scan: S, gamma: R) -> Result<(), Error> {
        let device = self.device;
        let shape = match self.input("reward").map(|input| input.shape) {
            Some([rows, columns]) => [*rows, *columns],
            _ => return Err(Error::Core(CoreError::ShapeMismatch { argument: "reward" })),
        };
        let reward = self.needed("reward")?;
        let value = S::VALUE.map(|name| self.needed(name)).transpose()?;
        let numbers = ["next_value", "bootstrap_value", "discount", "log_prob", "old_log_prob"];
        let [next_value, bootstrap_value, discount, log_prob, old_log_prob] = numbers.map(|name| self.real(name));
        let bytes = ["mask", "terminated", "truncated", "greedy"];
        let [mask, terminated, truncated, greedy] = bytes.map(|name| self.bytes(name));
        let (next_value, bootstrap_value, discount) = (next_value?, bootstrap_value?, discount?);
        let (log_prob, old_log_prob) = (log_prob?, old_log_prob?);
        let (mask, terminated, truncated, greedy) = (mask?, terminated?, truncated?, greedy?);
        let arrays = StepArrays {
            reward: &reward,
            value: value.as_ref(),
            next_value: next_value.as_ref(),
            bootstrap_value: bootstrap_value.as_ref(),
            discount: discount.as_ref(),
            log_prob: log_prob.as_ref(),
            old_log_prob: old_log_prob.as_ref(),
            mask: mask.as_ref(),
            terminated: terminated.as_ref(),
            truncated: truncated.as_ref(),
            greedy: greedy.as_ref(),
            shape,
            gamma,
        };
        let mut rooms: [Array<D, R>; O] = std::array::from_fn(|_| Array::none());
        for room in &mut rooms {
            *room = Array::new(device, reward.length())?;
        }
        scan_rows(device, scan, &arrays, rooms.each_mut())?;
        for (name, room) in S::OUTPUTS.iter().zip(&rooms) {
            self.take(name, Some(room))?;
        }
        Ok(())
    }

    fn kl(&mut self, estimator: KlEstimator, clamps: [Option<R>; 2]) -> Result<(), Error> {
        let device = self.device;
        let (log_prob, reference) = (self.needed("log_prob")?, self.needed("ref_log_prob")?);
        let mask = self.bytes("mask")?;
        let mut kl = Array::new(device, log_prob.length())?;
        let mut gradient = Array::new(device, log_prob.length())?;
        let pair = [&log_prob, &reference];
        kl_estimate(device, estimator, clamps, pair, mask.as_ref(), [&mut kl, &mut gradient])?;
        self.take("kl", Some(&kl))?;
        self.take("d_log_prob", Some(&gradient))
    }

    fn bellman(&mut self, of_actions: bool, discount: R) -> Result<(), Error> {
        let device = self.device;
        let (probability, reward, value) = (self.needed("transition")?, self.needed("reward")?, self.needed("value")?);
        let [row_start, next_state] = ["row_start", "next_state"].map(|name| self.indices(name));
        let (row_start, next_state, done) = (row_start?, next_state?, self.bytes("done")?);
        let shape = |name: &str| self.input(name).map_or(&[][..], |input| input.shape);
        let sparse = shape("transition").len() == 1;
        let states = value.length();
        let actions = match (shape("transition"), shape("row_start")) {
            ([_, actions, _], _) | (_, [_, actions]) => *actions,
            _ => return Err(Error::Core(CoreError::MissingInput { argument: "row_start" })),
        };
        let process = ProcessArrays {
            probability: &probability,
            reward: &reward,
            sparse: match (&row_start, &next_state) {
                (Some(row_start), Some(next_state)) if sparse => Some([row_start, next_state]),
                _ => None,
            },
            done: done.as_ref(),
            shape: [states, actions],
            reward_per_action: shape("reward").len() == 2,
            discount,
        };
        let (policy, mut backed_up) = (self.real("policy")?, Array::new(device, states)?);
        if of_actions || policy.is_some() {
            let mut q = Array::new(device, states * actions)?;
            action_values(device, &process, &value, &mut q)?;
            if of_actions {
                return self.take("q", Some(&q));
            }
            state_values(device, process.shape, &q, policy.as_ref(), &mut backed_up)?;
            return self.take("backup", Some(&backed_up));
        }
        let [mut action, mut ties] = [self.room("action")?, self.room("ties")?];
        let choice = [action.as_mut(), ties.as_mut()];
        backup(device, &process, &value, &mut backed_up, choice)?;
        self.take("backup", Some(&backed_up))?;
        self.take("action", action.as_ref())?;
        self.take("ties", ties.as_ref())
    }

    fn policy(&mut self, objective: &plumbline_core::objective::policy::PolicyObjective<R>) -> Result<(), Error> {
        let device = self.device;
        let log_prob = self.needed("log_prob")?;
        let [old, reference, entropy] = ["old_log_prob", "ref_log_prob", "entropy"].map(|name| self.real(name));
        let [mask, keep, selected] = ["mask", "keep", "selected"].map(|name| self.bytes(name));
        let (advantage, weight, group) =
            (self.needed("advantage")?, self.real("importance_weight")?, self.indices("group")?);
        let (old, reference, entropy, mask, keep, selected) = (old?, reference?, entropy?, mask?, keep?, selected?);
        let [rows, columns] = match self.input("log_prob").map(|input| input.shape) {
            Some([rows, columns]) => [*rows, *columns],
            _ => return Err(Error::Core(CoreError::ShapeMismatch { argument: "log_prob" })),
        };
        let rank = |name: &str| self.input(name).map_or(0, |input| input.shape.len());
        let values = |name: &str, array| if rank(name) == 2 { Values::PerToken(array) } else { Values::PerRow(array) };
        let arrays = PolicyArrays {
            log_prob: &log_prob,
            old_log_prob: old.as_ref(),
            ref_log_prob: reference.as_ref(),
            advantage: values("advantage", &advantage),
            importance_weight: weight.as_ref().map(|weight| values("importance_weight", weight)),
            entropy: entropy.as_ref(),
            mask: mask.as_ref(),
            keep: keep.as_ref(),
            selected: selected.as_ref(),
            group: group.as_ref(),
        };
        let names = ["d_log_prob", "d_entropy", "token_loss", "token_weight"];
        let [d_log_prob, d_entropy, token_loss, token_weight] = names.map(|name| self.room(name));
        let mut rooms = [d_log_prob?, d_entropy?, token_loss?, token_weight?];
        let [d_log_prob, d_entropy, token_loss, token_weight] = &mut rooms;
        let results = PolicyResults {
            d_log_prob: d_log_prob.as_mut(),
            d_entropy: d_entropy.as_mut(),
            token_loss: token_loss.as_mut(),
            token_weight: token_weight.as_mut(),
        };
        let mut workspace = PolicyWorkspace::new(device, rows, columns)?;
        policy_objective(device, objective, &arrays, results, &mut workspace)?;
        let loss = workspace.result(device, objective)?;
        for (name, room) in names.iter().zip(&rooms) {
            self.take(name, room.as_ref())?;
        }
        if let Values::PerRow(advantage) = arrays.advantage {
            self.take("advantage", Some(advantage))?;
        }
        for (name, value) in loss.named() {
            self.put(name, value);
        }
        Ok(())
    }
}
