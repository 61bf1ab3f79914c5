// Compiled, not run: the types accept what is right and refuse what is wrong (an unused `@ts-expect-error` is an error).

import { PlumblineError, catalog, evaluate, init, kl, objective, type Operation, type Values } from "plumbline-rl";
import { identify, type Answer } from "plumbline-rl/identify";

await init({ simd: false });
const operations: Operation[] = catalog();
const first: string = operations[0]?.inputs[0]?.name ?? "";

const inputs = { log_prob: [[-1, -2]], ref_log_prob: { shape: [1, 2], data: Float32Array.of(-1, -1) } };
const inDouble: Float64Array = kl.k3({ inputs }).kl.data;
const inSingle: Float32Array = kl.k3({ inputs, dtype: "f32" }).d_log_prob.data;
const only: { kl: Values } = kl.k3({ inputs, outputs: ["kl"] });

const loss = objective.grpo({
  dialect: "trl-1.16",
  params: { aggregation: "seq_mean_token_mean", clip_ratio_c: null, kl_coefficient: 0.04 },
  inputs: { ...inputs, advantage: [1] },
});
const gradient: Float64Array = loss.d_log_prob.data;

const byName: Record<string, Values<"f32">> = evaluate("kl.k3", { dtype: "f32", inputs });
try {
  evaluate("of a later version", { inputs: {} });
} catch (error) {
  if (error instanceof PlumblineError) {
    const place: [string | undefined, number | undefined] = [error.argument, error.index];
    console.log(place, error.kind, error.message);
  }
}

const answer: Answer = identify({ inputs, loss: "0.1235", operation: "kl.k3" });
const variants: string[] = answer.fits.map((fit) => fit.text);

// @ts-expect-error: a required input is missing
kl.k3({ inputs: { log_prob: [[1]] } });
// @ts-expect-error: no such input
kl.k3({ inputs: { ...inputs, log_probs: [[1]] } });
// @ts-expect-error: no such parameter
objective.grpo({ inputs, params: { clip: 0.2 } });
// @ts-expect-error: no such choice
objective.grpo({ inputs, params: { aggregation: "mean" } });
// @ts-expect-error: no such dialect
objective.grpo({ inputs, dialect: "trl" });
// @ts-expect-error: no such output
kl.k3({ inputs, outputs: ["loss"] });
// @ts-expect-error: what was not asked for is not there
kl.k3({ inputs, outputs: ["kl"] }).d_log_prob;

console.log(first, inDouble, inSingle, only, gradient, byName, variants);
