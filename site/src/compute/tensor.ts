// An array with its shape, row-major.

export interface Tensor {
  shape: number[];
  data: Float64Array;
}

export function tensor(shape: number[], data: ArrayLike<number>): Tensor {
  return { shape, data: Float64Array.from(data) };
}

export function count(shape: number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** The position of a flat index, outermost first. */
export function position(shape: number[], index: number): number[] {
  const result: number[] = [];
  let rest = index;
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    const size = Math.max(1, shape[axis]!);
    result.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return result;
}

/** The same numbers in another shape: what lies in both is kept, the rest comes from `fill`. */
export function resized(old: Tensor, shape: number[], fill: Tensor): Tensor {
  const data = new Float64Array(count(shape));
  for (let index = 0; index < data.length; index += 1) {
    const place = position(shape, index);
    const inside = place.length === old.shape.length && place.every((at, axis) => at < old.shape[axis]!);
    data[index] = inside
      ? old.data[place.reduce((flat, at, axis) => flat * old.shape[axis]! + at, 0)]!
      : (fill.data[index] ?? 0);
  }
  return { shape, data };
}
