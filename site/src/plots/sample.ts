// Points of a curve.

export function linspace(low: number, high: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => low + ((high - low) * index) / (count - 1));
}
