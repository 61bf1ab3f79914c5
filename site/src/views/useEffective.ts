// The parameters that have an effect now, found anew where the kind of computation changes and not while a slider moves.

import { useMemo } from 'preact/hooks';
import type { Operation } from '../catalog/types';
import { effective } from '../compute/effect';
import { state, valueOf } from '../state/state';

export function useEffective(operation: Operation): Set<string> {
  const { dialect, inputs } = state.value;
  const kind = operation.params.filter((param) => param.kind === 'choice').map((param) => valueOf(state.value, param.name));
  const shapes = Object.entries(inputs).map(([name, input]) => `${name}${input.shape}`);
  return useMemo(() => effective(operation, state.peek()), [operation, dialect, kind.join(), shapes.join()]);
}
