// The formula as it stands in the book, and with the numbers of the form in it.

import type { Operation } from '../catalog/types';
import { substitute, texNumber } from '../numbers/substitute';
import { valueOf, type Setup } from '../state/state';
import { Tex } from './Tex';
import { useEffective } from './useEffective';

export function Formula({ operation, setup }: { operation: Operation; setup: Setup }) {
  const withEffect = useEffective(operation);
  // Where two parameters share a symbol, the formula means the one that has an effect; where both have, neither is put in.
  const named = operation.params.filter((param) => param.symbol !== '' && withEffect.has(param.name));
  const values = named.flatMap((param): [string, string][] => {
    const value = valueOf(setup, param.name);
    const alone = named.filter((other) => other.symbol === param.symbol).length === 1;
    return alone && typeof value === 'number' ? [[param.symbol, texNumber(value)]] : [];
  });
  const live = substitute(operation.formula, values);
  return (
    <section class="card formula" aria-labelledby="formula-heading">
      <h2 id="formula-heading">Formula</h2>
      <Tex display>{operation.formula}</Tex>
      {live !== operation.formula && (
        <>
          <h3>With these settings</h3>
          <Tex display>{live}</Tex>
        </>
      )}
      {operation.gradient !== '' && (
        <>
          <h3>Gradient</h3>
          <Tex display>{operation.gradient}</Tex>
        </>
      )}
    </section>
  );
}
