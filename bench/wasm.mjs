// Evaluates PPO with a k3 penalty in the npm package; answers `ppo` with the nanoseconds on the processor of one call.

import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [folder, pack, instructions, rows, columns, coefficient] = process.argv.slice(-6);
const { evaluate, init } = await import(pathToFileURL(`${pack}/node.js`).href);
await init({ simd: instructions === "simd" });

const shape = [Number(rows), Number(columns)];
const bytes = (name) => new Uint8Array(readFileSync(`${folder}/${name}`));
const inputs = { mask: { shape, data: bytes("mask") } };
for (const name of ["log_prob", "old_log_prob", "ref_log_prob", "advantage"]) {
  inputs[name] = { shape, data: new Float32Array(bytes(name).buffer) };
}
const request = {
  dialect: "verl-0.9",
  dtype: "f32",
  params: { kl_coefficient: Number(coefficient), kl_estimator: "k3" },
  inputs,
  outputs: ["loss", "d_log_prob"],
};
// The engine compiles a function anew once it has run often enough.
let result;
for (let call = 0; call < 20; call++) result = evaluate("objective.ppo", request);

console.log(`Node.js ${process.versions.node}`);
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "stop") break;
  // Several calls, because this clock ticks in microseconds.
  const calls = 5;
  const start = process.cpuUsage();
  for (let call = 0; call < calls; call++) result = evaluate("objective.ppo", request);
  const { user, system } = process.cpuUsage(start);
  console.log(Math.round(((user + system) * 1000) / calls));
}
const numbers = [result.d_log_prob.data, result.loss.data];
writeFileSync(`${folder}/result`, Buffer.concat(numbers.map(({ buffer }) => new Uint8Array(buffer))));
console.log("done");
// An open input would keep the process.
process.stdin.destroy();
