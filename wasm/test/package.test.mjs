// What the package promises, on the packed and installed package in Node.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import * as plumbline from "plumbline-rl";
import { identify } from "plumbline-rl/identify";

const { PlumblineError, catalog, evaluate, init, kl } = plumbline;
const entry = pathToFileURL(createRequire(import.meta.url).resolve("plumbline-rl")).href;
const pair = { log_prob: [[-1, -2]], ref_log_prob: [[-1.5, -1]] };

test("k3 and its derivative are e^-d - 1 + d and 1 - e^-d", () => {
  const { kl: value, d_log_prob: derivative } = kl.k3({ inputs: pair });
  assert.deepEqual(value.shape, [1, 2]);
  for (const [index, difference] of [0.5, -1].entries()) {
    assert.ok(Math.abs(value.data[index] - (Math.exp(-difference) - 1 + difference)) < 1e-15);
    assert.ok(Math.abs(derivative.data[index] - (1 - Math.exp(-difference))) < 1e-15);
  }
});

test("arrays of every kind give the same bits", () => {
  const typed = (type) => ({
    log_prob: { shape: [1, 2], data: type.of(-1, -2) },
    ref_log_prob: { shape: [1, 2], data: type.of(-1.5, -1) },
    mask: { shape: [1, 2], data: Uint8Array.of(1, 0) },
  });
  for (const dtype of ["f32", "f64"]) {
    const expected = kl.k3({ dtype, inputs: { ...pair, mask: [[true, false]] } });
    assert.equal(expected.kl.data[1], 0);
    for (const type of [Float32Array, Float64Array, Array]) {
      assert.deepEqual(kl.k3({ dtype, inputs: typed(type) }), expected);
    }
  }
});

test("the precision is the one asked for", () => {
  assert.ok(kl.k3({ dtype: "f32", inputs: pair }).kl.data instanceof Float32Array);
  assert.ok(kl.k3({ inputs: pair }).kl.data instanceof Float64Array);
});

test("only the outputs asked for are computed, and none where none are", () => {
  assert.deepEqual(Object.keys(kl.k3({ inputs: pair, outputs: ["d_log_prob"] })), ["d_log_prob"]);
  assert.deepEqual(kl.k3({ inputs: pair, outputs: [] }), {});
});

test("what the caller gave stays as it was", () => {
  const data = Float64Array.of(-1, -2);
  evaluate("kl.k1", { inputs: { ...pair, log_prob: { shape: [1, 2], data } } });
  assert.deepEqual([...data], [-1, -2]);
});

test("every operation of the catalog has its function", () => {
  const operations = catalog();
  assert.ok(operations.length > 150);
  for (const { id, family } of operations) {
    assert.equal(typeof plumbline[family][id.slice(family.length + 1)], "function", id);
  }
});

test("every operation refuses an empty request by the name of what is missing", () => {
  for (const { id, inputs } of catalog()) {
    const required = inputs.find((input) => !input.optional);
    if (!required) continue;
    assert.throws(() => evaluate(id, { inputs: {} }), (error) => {
      assert.ok(error instanceof PlumblineError, `${id}: ${error}`);
      assert.equal(error.kind, "missing_input", id);
      assert.equal(error.argument, required.name, id);
      return true;
    });
  }
});

const refusals = [
  [{ inputs: { ...pair, log_probs: 1 } }, "unknown_name", "log_probs", undefined],
  [{ inputs: { ...pair, log_prob: [[-1, NaN]] } }, "non_finite", "log_prob", 1],
  [{ inputs: { ...pair, log_prob: [[-1, -2, -3]] } }, "shape_mismatch", "ref_log_prob", undefined],
  [{ inputs: { ...pair, log_prob: [[-1], [-2, -3]] } }, "shape_mismatch", "log_prob", undefined],
  [{ inputs: { ...pair, log_prob: [["-1", -2]] } }, "wrong_kind", "log_prob", 0],
  [{ inputs: { ...pair, log_prob: "many" } }, "wrong_kind", "log_prob", undefined],
  [{ inputs: { ...pair, log_prob: { shape: [1, -2], data: [] } } }, "wrong_kind", "log_prob", undefined],
  [{ inputs: { ...pair, log_prob: { shape: [1, 2], data: [1] } } }, "length_mismatch", "log_prob", undefined],
  [{ inputs: { ...pair, log_prob: { shape: [1, 2], data: BigInt64Array.of(1n, 2n) } } }, "wrong_kind", "log_prob", undefined],
  [{ inputs: { ...pair, mask: [[1, 0.5]] } }, "element_out_of_range", "mask", 1],
  [{ inputs: { ...pair, mask: { shape: [1, 2], data: Uint8Array.of(1, 2) } } }, "element_out_of_range", "mask", 1],
  [{ inputs: pair, params: { differences: 1 } }, "unknown_name", "differences", undefined],
  [{ inputs: pair, params: { difference_clamp: -1 } }, "out_of_range", "difference_clamp", undefined],
  [{ inputs: pair, params: { difference_clamp: "wide" } }, "wrong_kind", "difference_clamp", undefined],
  [{ inputs: pair, dialect: "verl" }, "unknown_name", "verl", undefined],
  [{ inputs: pair, dtype: "f16" }, "wrong_kind", "dtype", undefined],
  [{ inputs: pair, outputs: ["loss"] }, "unknown_name", "loss", undefined],
  [{ inputs: pair, outputs: "kl" }, "wrong_kind", "outputs", undefined],
];
for (const [request, kind, argument, index] of refusals) {
  test(`refused: ${kind} of ${argument}`, () => {
    assert.throws(() => kl.k3(request), (error) => {
      assert.ok(error instanceof PlumblineError, String(error));
      assert.deepEqual([error.kind, error.argument, error.index], [kind, argument, index], error.message);
      assert.ok(error.message.length > 0 && !error.message.includes("\n"));
      return true;
    });
    // The module goes on working.
    assert.equal(kl.k1({ inputs: pair }).kl.data[0], 0.5);
  });
}

test("an operation that is not there is refused with the nearest name", () => {
  assert.throws(() => evaluate("kl.k9", { inputs: {} }), /did you mean `kl\.k1`/);
});

test("memory that cannot be had is an error, and the module goes on working", () => {
  const visits = { reward: [[1]], state: [[0]] };
  assert.throws(() => evaluate("advantage.monte_carlo_value", { inputs: visits, params: { S: 4294967295 } }), {
    kind: "too_large",
  });
  assert.equal(kl.k1({ inputs: pair }).kl.data[0], 0.5);
});

const batch = {
  log_prob: [[-1, -0.5, -2], [-0.25, -1.5, -0.75]],
  old_log_prob: [[-1.25, -0.5, -1.75], [-0.5, -1.25, -0.5]],
  advantage: [1.5, -0.5],
  mask: [[1, 1, 1], [1, 0, 0]],
};

test("identify names the operation and the dialect that give a loss, under a framework's names too", () => {
  const { loss } = plumbline.objective.grpo({ dialect: "verl-0.9", inputs: batch });
  const { log_prob, old_log_prob, advantage, mask } = batch;
  const inputs = { logprobs: log_prob, old_log_probs: old_log_prob, advantages: advantage, response_mask: mask };
  const answer = identify({ inputs, loss: loss.data[0], operation: "objective.grpo" });
  assert.equal(answer.conclusion, "known", JSON.stringify(answer));
  const names = answer.fits.flatMap((fit) => fit.names);
  assert.ok(names.some((name) => name.operation === "objective.grpo" && name.dialect === "verl-0.9"), JSON.stringify(names));
});

test("identify names a variant where the meant dialect gives another number", () => {
  const { loss } = plumbline.objective.grpo({
    dialect: "trl-1.16",
    params: { aggregation: "token_mean" },
    inputs: batch,
  });
  const answer = identify({ inputs: batch, loss: loss.data[0], operation: "objective.grpo", dialect: "trl-1.16" });
  assert.equal(answer.conclusion, "changed", JSON.stringify(answer));
  assert.ok(answer.fits.length > 0);
  assert.ok(Math.abs(answer.fits[0].value - loss.data[0]) < 1e-12);
});

test("identify refuses what is no number and what it cannot read", () => {
  assert.throws(() => identify({ inputs: batch, loss: "low" }), { kind: "wrong_kind", argument: "loss" });
  assert.throws(() => identify({ inputs: batch }), { kind: "missing_input", argument: "loss" });
  assert.throws(() => identify({ inputs: batch, loss: true }), { kind: "wrong_kind", argument: "loss" });
  const half = { inputs: { ...batch, response_mask: [[1, 0.5, 1], [1, 0, 0]], mask: undefined }, loss: 1 };
  assert.throws(() => identify(half), { argument: "response_mask", index: 1 });
  assert.throws(() => identify({ inputs: { ...batch, log_prob: "x" }, loss: 1 }), { argument: "log_prob" });
  assert.throws(() => identify({ inputs: {}, loss: 1 }), PlumblineError);
});

test("init may be called at any time", async () => {
  await init();
  await init({ simd: true });
  assert.equal(kl.k1({ inputs: pair }).kl.data[0], 0.5);
});

test("without a way to read files the package says that it is not loaded, and init loads it", async () => {
  // What a browser sees: the same files without node.js in front of them.
  const folder = new URL(".", entry);
  const { lazyModule } = await import(`${folder}module.js?fresh`);
  const bindings = await import(`${folder}bindings/plumbline_wasm.js?fresh`);
  const fresh = lazyModule(bindings, undefined, "say so");
  assert.throws(() => fresh.bindings(), { kind: "not_loaded" });
  await fresh.init({ module: readFileSync(new URL("bindings/plumbline_wasm_scalar.wasm", folder)) });
  const { Call } = fresh.bindings();
  const call = new Call("kl.k1", false);
  assert.throws(() => call.run());
  call.free();
});

test("the example of the README runs and prints the loss and its gradient", async () => {
  const readme = readFileSync(new URL("README.md", entry), "utf8");
  const [, example] = /```js\n(.*?)```/s.exec(readme);
  assert.ok(example.trim().split("\n").filter((line) => line !== "").length <= 5);
  const printed = [];
  const { log } = console;
  console.log = (...values) => printed.push(values);
  try {
    const here = example.replaceAll('"plumbline-rl"', JSON.stringify(entry));
    await import(`data:text/javascript,${encodeURIComponent(here)}`);
  } finally {
    console.log = log;
  }
  // Ratios e^0.1 and e^0.4: the second is above 1.28, where the gradient is cut.
  const [[loss, shape, gradient]] = printed;
  assert.ok(Math.abs(loss + (2 * Math.exp(0.1) + 2 * 1.28) / 2) < 1e-12, String(loss));
  assert.deepEqual(shape, [1, 2]);
  assert.ok(Math.abs(gradient[0] + Math.exp(0.1)) < 1e-12);
  assert.equal(gradient[1], 0);
});
