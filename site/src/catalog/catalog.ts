// The catalog of this page, read once from the package.

import type { Operation, ParamSpec, Setting, Shape } from './types';

let operations: Operation[] = [];
let byId = new Map<string, Operation>();

/** Fill the catalog; called once, when the package has started. */
export function setCatalog(all: Operation[]): void {
  operations = all;
  byId = new Map(all.map((operation) => [operation.id, operation]));
}

export function allOperations(): Operation[] {
  return operations;
}

export function findOperation(id: string): Operation | undefined {
  return byId.get(id);
}

/** Families in the order of the catalog, each with its operations. */
export function families(): [string, Operation[]][] {
  const groups = new Map<string, Operation[]>();
  for (const operation of operations) {
    const group = groups.get(operation.family);
    if (group) group.push(operation);
    else groups.set(operation.family, [operation]);
  }
  return [...groups];
}

/** A family's or choice's name as people read it. */
export function words(name: string): string {
  return name === 'kl' ? 'KL' : name === 'td' ? 'temporal difference' : name.replaceAll('_', ' ');
}

/** The value a parameter has under a dialect before anyone changes it. */
export function baseValue(operation: Operation, dialect: string | null, param: ParamSpec): Setting {
  const settings = operation.dialects.find((candidate) => candidate.name === dialect)?.settings;
  return settings && param.name in settings ? (settings[param.name] as Setting) : param.default;
}

export function choices(param: ParamSpec): string[] {
  return param.kind === 'choice' && Array.isArray(param.legal) ? (param.legal as string[]) : [];
}

export function hasInput(operation: Operation, name: string): boolean {
  return operation.inputs.some((input) => input.name === name);
}

export function hasParam(operation: Operation, name: string): boolean {
  return operation.params.some((param) => param.name === name);
}

export function hasOutput(operation: Operation, name: string): boolean {
  return operation.outputs.some((output) => output.name === name);
}

export function sameShape(left: Shape, right: Shape): boolean {
  return left.length === right.length && left.every((name, index) => name === right[index]);
}

/** Operations that match every word of a search, the best first. */
export function search(text: string): Operation[] {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return operations;
  const scored: [number, Operation][] = [];
  for (const operation of operations) {
    const id = operation.id.toLowerCase();
    const title = operation.title.toLowerCase();
    const rest = `${operation.summary} ${operation.sources.map((source) => `${source.title} ${source.reference}`).join(' ')}`.toLowerCase();
    let score = 0;
    for (const word of wanted) {
      const here =
        id === word ? 200 :
        id.endsWith(`.${word}`) || title === word ? 100 :
        title.startsWith(word) || id.includes(`.${word}`) ? 40 :
        title.includes(word) || id.includes(word) ? 20 :
        rest.includes(word) ? 5 : -1;
      if (here < 0) {
        score = -1;
        break;
      }
      score += here;
    }
    if (score >= 0) scored.push([score, operation]);
  }
  return scored.sort((left, right) => right[0] - left[0]).map(([, operation]) => operation);
}
