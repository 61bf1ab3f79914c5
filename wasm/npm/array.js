// What an input may look like: `{ shape, data }`, nested lists of numbers, or one number.

import { PlumblineError } from "./error.js";

const TYPED = Object.getPrototypeOf(Float64Array);
const LARGEST_SIZE = 2 ** 32 - 1;

/** The shape as whole numbers, and the numbers as a list or an array of a type whose numbers are no BigInts. */
export function readArray(name, value) {
  if (typeof value === "number") return { shape: [], data: [value] };
  if (Array.isArray(value)) return flatten(name, value);
  if (value === null || typeof value !== "object") throw notAnArray(name);
  const { shape, data } = value;
  if (!isListOf(shape, isSize)) {
    throw new PlumblineError(`\`${name}\`: its shape must be a list of whole numbers`, {
      kind: "wrong_kind",
      argument: name,
    });
  }
  if (Array.isArray(data)) {
    data.forEach((number, index) => checkNumber(name, number, index));
  } else if (!(data instanceof TYPED) || data instanceof BigInt64Array || data instanceof BigUint64Array) {
    throw notAnArray(name);
  }
  return { shape, data };
}

function flatten(name, lists) {
  const shape = [];
  for (let probe = lists; Array.isArray(probe); probe = probe[0]) shape.push(probe.length);
  const data = [];
  const collect = (value, depth) => {
    if (depth === shape.length) {
      checkNumber(name, value, data.length);
      data.push(value);
    } else if (Array.isArray(value) && value.length === shape[depth]) {
      for (const inner of value) collect(inner, depth + 1);
    } else {
      throw new PlumblineError(`\`${name}\`: the nested lists are ragged`, { kind: "shape_mismatch", argument: name });
    }
  };
  collect(lists, 0);
  return { shape, data };
}

function checkNumber(name, value, index) {
  if (typeof value === "number" || typeof value === "boolean") return;
  throw new PlumblineError(`\`${name}\` at index ${index} is not a number`, { kind: "wrong_kind", argument: name, index });
}

function isListOf(list, holds) {
  return (Array.isArray(list) || list instanceof TYPED) && Array.prototype.every.call(list, holds);
}

function isSize(size) {
  return Number.isInteger(size) && size >= 0 && size <= LARGEST_SIZE;
}

function notAnArray(name) {
  return new PlumblineError(`\`${name}\` must be a number, nested lists of numbers, or { shape, data }`, {
    kind: "wrong_kind",
    argument: name,
  });
}
