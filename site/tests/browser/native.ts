// Core itself, through the command `plumbline`.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const COMMAND = process.env.PLUMBLINE_COMMAND ?? fileURLToPath(new URL('../../../target/debug/plumbline', import.meta.url));

export interface Arrays {
  [name: string]: { shape: number[]; values: (number | string)[]; bits?: string[] };
}

export interface Asked {
  operation: string;
  dialect?: string | null;
  dtype: 'f32' | 'f64';
  params: Record<string, unknown>;
  inputs: Arrays;
}

/** The bits of every output and gradient that core gives, by `output/index`; or its complaint. */
export function coreBits(asked: Asked): Promise<{ bits: Record<string, string>; complaint: string | null }> {
  const options = ['eval', asked.operation, '-', '--dtype', asked.dtype, '--grad', '--hex', '--json'];
  if (asked.dialect) options.push('--dialect', asked.dialect);
  return new Promise((resolve) => {
    const child = execFile(COMMAND, options, { maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      if (error) return resolve({ bits: {}, complaint: stderr.trim() });
      const { outputs } = JSON.parse(stdout) as { outputs: Record<string, { bits: string[] }> };
      const bits: Record<string, string> = {};
      for (const [name, output] of Object.entries(outputs)) output.bits.forEach((word, index) => (bits[`${name}/${index}`] = word));
      resolve({ bits, complaint: null });
    });
    // JavaScript writes −0 as 0; the fixtures' bits say which it is.
    const inputs = Object.fromEntries(Object.entries(asked.inputs).map(([name, array]) => [name, { shape: array.shape, values: numbers(array) }]));
    child.stdin!.end(JSON.stringify({ inputs, params: asked.params }).replaceAll('"-0"', '-0.0'));
  });
}

/** The numbers of an array, −0 as the text `-0`: the decimals of a fixture do not tell it from 0, its bits do. */
export function numbers({ values, bits }: Arrays[string]): (number | string)[] {
  return values.map((value, index) => (Object.is(value, -0) || (value === 0 && /^8/.test(bits?.[index] ?? '')) ? '-0' : value));
}
