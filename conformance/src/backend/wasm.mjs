// The other end of wasm.rs: evaluates requests from standard input with the npm package. A message, either way, is the length
// of a JSON text (32 bits), the text, and the numbers of its arrays one after the other (64 bits each), all little-endian.

import { readSync, writeSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, simd] = process.argv.slice(-2);
const { PlumblineError, catalog, evaluate, init } = await import(pathToFileURL(`${folder}/node.js`).href);
await init({ simd: simd === "simd128" });

const domains = new Map();
for (const { id, inputs } of catalog()) {
  for (const { name, domain } of inputs) domains.set(`${id} ${name}`, domain);
}

/** The numbers in the type that a caller who cares for speed would have them in. */
function typed(operation, dtype, name, numbers) {
  switch (domains.get(`${operation} ${name}`)) {
    case "mask":
    case "done":
      return Uint8Array.from(numbers);
    case "group":
    case "index":
    case "count":
      return Uint32Array.from(numbers);
    default:
      return dtype === "f32" ? Float32Array.from(numbers) : numbers;
  }
}

function answer({ operation, dialect, dtype, params, inputs, outputs }) {
  const arrays = {};
  for (const { name, shape } of inputs) {
    const count = shape.reduce((product, size) => product * size, 1);
    const numbers = new Float64Array(read(8 * count).buffer);
    arrays[name] = { shape, data: typed(operation, dtype, name, numbers) };
  }
  try {
    const results = Object.entries(evaluate(operation, { dialect, dtype, params, inputs: arrays, outputs }));
    send(
      { outputs: results.map(([name, { shape }]) => ({ name, shape })) },
      results.map(([, { data }]) => Float64Array.from(data)),
    );
  } catch (error) {
    send(error instanceof PlumblineError ? { refused: error.message } : { broke: String(error) });
  }
}

/** So many bytes; ends the process where there are no more. */
function read(count) {
  const bytes = new Uint8Array(count);
  for (let have = 0; have < count; ) {
    const got = readSync(0, bytes, have, count - have, null);
    if (got === 0) process.exit(0);
    have += got;
  }
  return bytes;
}

function send(message, arrays = []) {
  const text = Buffer.from(JSON.stringify(message));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  for (const bytes of [length, text, ...arrays.map(({ buffer }) => new Uint8Array(buffer))]) {
    for (let done = 0; done < bytes.length; ) done += writeSync(1, bytes, done);
  }
}

send({ operations: catalog().length });
for (;;) {
  const length = new DataView(read(4).buffer).getUint32(0, true);
  answer(JSON.parse(new TextDecoder().decode(read(length))));
}
