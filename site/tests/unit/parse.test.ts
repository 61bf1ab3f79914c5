import { describe, expect, test } from 'vitest';
import { parse, PasteError } from '../../src/paste/parse';

function read(text: string): Record<string, { shape: number[]; data: number[] }> {
  return Object.fromEntries([...parse(text)].map(([name, { shape, data }]) => [name, { shape, data: Array.from(data) }]));
}

function complaint(text: string): string {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof PasteError) return error.message;
    throw error;
  }
  return 'nothing';
}

describe('what is read', () => {
  const matrix = { shape: [2, 2], data: [1, -2.5, 3, 4] };

  test.each([
    ['JSON', '[[1, -2.5], [3, 4]]'],
    ['JSON with a shape', '{"shape": [2, 2], "values": [1, -2.5, 3, 4]}'],
    ['torch', "tensor([[ 1.0000, -2.5000],\n        [ 3.0000,  4.0000]], device='cuda:0', dtype=torch.float64,\n       grad_fn=<AddBackward0>)"],
    ['NumPy repr', 'array([[ 1. , -2.5],\n       [ 3. ,  4. ]])'],
    ['NumPy print', '[[ 1.  -2.5]\n [ 3.   4. ]]'],
    ['tuples', '((1, -2.5), (3, 4))'],
    ['CSV', '1,-2.5\n3,4\n'],
    ['a spreadsheet', '1\t-2.5\r\n3\t4'],
    ['a spreadsheet with decimal commas', '1\t-2,5\n3\t4,0'],
    ['semicolons with decimal commas', '1;-2,5\n3;4'],
    ['spaces', '1 -2.5\n3 4'],
  ])('%s', (_, text) => {
    expect(read(text)).toEqual({ '': matrix });
  });

  test('several arrays by name', () => {
    const expected = { log_prob: { shape: [1, 2], data: [-1, -2] }, mask: { shape: [1, 2], data: [1, 0] } };
    expect(read('log_prob = tensor([[-1., -2.]])\nmask = tensor([[True, False]])')).toEqual(expected);
    expect(read('{"log_prob": [[-1, -2]], "mask": [[1, 0]]}')).toEqual(expected);
    expect(read("{'log_prob': tensor([[-1., -2.]]), 'mask': tensor([[1, 0]])}")).toEqual(expected);
  });

  test('a golden vector: names, shapes, bits beside the numbers', () => {
    const text = '{"id": "x", "operation": "kl.k1", "dialect": null, "inputs": {"log_prob": {"shape": [1, 2], "values": [-1, "NaN"], "bits": ["a", "b"]}}}';
    expect(read(text)).toEqual({ log_prob: { shape: [1, 2], data: [-1, NaN] } });
  });

  test('columns with names and places', () => {
    expect(read('response,token,log_prob,mask\n0,0,-1,1\n0,1,-2,0\n1,0,-3,1\n1,1,-4,1')).toEqual({
      log_prob: { shape: [2, 2], data: [-1, -2, -3, -4] },
      mask: { shape: [2, 2], data: [1, 0, 1, 1] },
    });
    expect(read('log_prob\n-1\n-2')).toEqual({ log_prob: { shape: [2], data: [-1, -2] } });
  });

  test('what is not finite', () => {
    expect(read('[nan, inf, -inf]')['']!.data).toEqual([NaN, Infinity, -Infinity]);
    expect(read('["NaN", "-Infinity"]')['']!.data).toEqual([NaN, -Infinity]);
  });
});

describe('what is refused, and where', () => {
  test.each([
    ['', 'line 1, column 1: there is nothing here'],
    ['[[1, 2], [3]]', 'line 1, column 10: this row has 1 entry, the first one has 2'],
    ['[[1, 2],\n [3, x]]', 'line 2, column 6: “x” is no number'],
    ['[[1, 2], 3]', 'line 1, column 10: a number stands where the other rows have a list'],
    ['[[1, 2]', 'line 1, column 1: the list that begins here has no ]'],
    ['tensor([1., 2., ..., 9.])', 'line 1, column 17: the printout is shortened here; print all of it (torch.set_printoptions(threshold=float("inf")))'],
    ['1,2\n3', 'line 2, column 1: this row has 1 cell, the first one has 2'],
    ['1,2\n3,x', 'line 2, column 3: “x” is no number'],
    ['1,2\n3,', 'line 2, column 3: a number is missing'],
    ['log_prob,mask', 'line 1, column 1: the names stand without numbers'],
    ['[1, 2] and more', 'line 1, column 8: “and” is no number'],
    ['{"shape": [3], "values": [1, 2]}', 'line 1, column 1: shape [3] does not hold 2 numbers'],
    ['a = [1]\na = [2]', 'line 2, column 5: “a” stands here twice'],
    ['tensor([1, 2]', 'line 1, column 14: a ) is missing at the end'],
  ])('%s', (text, expected) => {
    expect(complaint(text)).toBe(expected);
  });
});
