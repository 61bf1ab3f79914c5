// The frame of every plot: axes, series, a text alternative, and the picture as a file.

import type { ComponentChildren } from 'preact';
import { scaleLinear, type ScaleLinear } from 'd3-scale';
import { line } from 'd3-shape';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { short } from '../numbers/format';

export interface Series {
  name: string;
  /** The number of its colour, from 1. */
  colour: number;
  points: [number, number][];
  dashed?: boolean;
}

export interface Scales {
  x: ScaleLinear<number, number>;
  y: ScaleLinear<number, number>;
  width: number;
  height: number;
}

interface Properties {
  title: string;
  /** What the plot shows, in a sentence with its numbers: the text alternative. */
  description: string;
  xLabel: string;
  yLabel: string;
  series: Series[];
  height?: number;
  xDomain?: [number, number];
  yDomain?: [number, number];
  /** Drawn behind the series. */
  behind?: (scales: Scales) => ComponentChildren;
  /** Drawn in front of them. */
  front?: (scales: Scales) => ComponentChildren;
  /** Names in place of the ticks of the vertical axis, for plots with a row for each. */
  rowNames?: string[];
  /** Which rows the table beside the plot has; without it the series' points. */
  table?: { head: string[]; rows: (string | number)[][] };
}

export const MARGIN = { top: 14, right: 14, bottom: 34, left: 52 };

export function useWidth(initial: number) {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(initial);
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return;
    const measure = () => setWidth(Math.max(240, Math.round(element.clientWidth)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { frame, width };
}

export function Plot(properties: Properties) {
  const { title, description, xLabel, yLabel, series, height = 260, behind, front } = properties;
  const { frame, width } = useWidth(560);
  const finite = series.flatMap(({ points }) => points.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y)));
  const xDomain = properties.xDomain ?? extent(finite.map(([x]) => x));
  const yDomain = properties.yDomain ?? padded(extent(finite.map(([, y]) => y)));
  const left = properties.rowNames ? Math.max(MARGIN.left, 14 + 6.4 * Math.max(...properties.rowNames.map((name) => name.length))) : MARGIN.left;
  const x = scaleLinear().domain(xDomain).range([left, width - MARGIN.right]);
  const y = scaleLinear().domain(yDomain).range([height - MARGIN.bottom, MARGIN.top]);
  const scales = { x, y, width, height };
  const path = line<[number, number]>().defined(([across, up]) => Number.isFinite(across) && Number.isFinite(up)).x(([value]) => x(value)).y(([, value]) => y(value));
  return (
    <figure class="plot">
      <figcaption>{title}</figcaption>
      <div ref={frame} class="plot-frame" style={{ height: `${height}px` }}>
        <svg role="img" aria-label={`${title}. ${description}`} width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
          {behind?.(scales)}
          <Axes scales={scales} xLabel={xLabel} yLabel={yLabel} rowNames={properties.rowNames} />
          {series.map(({ name, colour, points, dashed }) => (
            <path key={name} class={`series colour-${colour}${dashed ? ' dashed' : ''}`} d={path(points) ?? ''} />
          ))}
          {front?.(scales)}
        </svg>
      </div>
      <Legend series={series} />
      <Alternative title={title} description={description} table={properties.table ?? pointsTable(xLabel, series)} />
    </figure>
  );
}

interface AxesProperties {
  scales: Scales;
  xLabel: string;
  yLabel: string;
  rowNames?: string[] | undefined;
}

export function Axes({ scales, xLabel, yLabel, rowNames }: AxesProperties) {
  const { x, y, width, height } = scales;
  const zero = (x.domain()[0]! <= 0 && x.domain()[1]! >= 0 && x(0)) || null;
  const left = x.range()[0]!;
  const ground = rowNames ? null : y.domain()[0]! <= 0 && y.domain()[1]! >= 0 ? y(0) : null;
  return (
    <g class="axes" aria-hidden="true">
      {(rowNames ? rowNames.map((_, index) => index) : y.ticks(5)).map((tick) => (
        <g key={tick}>
          <line class="grid" x1={left} x2={width - MARGIN.right} y1={y(tick)} y2={y(tick)} />
          <text x={left - 7} y={y(tick) + 4} text-anchor="end">
            {rowNames?.[tick] ?? short(tick)}
          </text>
        </g>
      ))}
      {x.ticks(Math.max(3, Math.round(width / 90))).map((tick) => (
        <g key={tick}>
          <line class="grid" x1={x(tick)} x2={x(tick)} y1={MARGIN.top} y2={height - MARGIN.bottom} />
          <text x={x(tick)} y={height - MARGIN.bottom + 15} text-anchor="middle">
            {short(tick)}
          </text>
        </g>
      ))}
      {ground !== null && <line class="zero" x1={left} x2={width - MARGIN.right} y1={ground} y2={ground} />}
      {zero !== null && <line class="zero" x1={zero} x2={zero} y1={MARGIN.top} y2={height - MARGIN.bottom} />}
      <text class="label" x={width - MARGIN.right} y={height - 5} text-anchor="end">
        {xLabel}
      </text>
      <text class="label" x={left + 5} y={MARGIN.top + 4}>
        {yLabel}
      </text>
    </g>
  );
}

export function Legend({ series }: { series: { name: string; colour: number; dashed?: boolean }[] }) {
  if (series.length < 2) return null;
  return (
    <ul class="legend">
      {series.map(({ name, colour, dashed }) => (
        <li key={name}>
          <svg width="22" height="8" aria-hidden="true">
            <line x1="1" x2="21" y1="4" y2="4" class={`series colour-${colour}${dashed ? ' dashed' : ''}`} />
          </svg>
          {name}
        </li>
      ))}
    </ul>
  );
}

/** The plot in words and as a table, and as a file. */
export function Alternative({ title, description, table }: { title: string; description: string; table: { head: string[]; rows: (string | number)[][] } }) {
  return (
    <details class="alternative">
      <summary>Text and table</summary>
      <p>{description}</p>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={`${title}, table`}>
        <table class="numbers">
          <thead>
            <tr>
              {table.head.map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {table.rows.map((row, index) => (
              <tr key={index}>
                {row.map((cell, column) => (
                  <td key={column}>{typeof cell === 'number' ? short(cell) : cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <button type="button" onClick={(event) => download(event.currentTarget.closest('figure')?.querySelector('svg[role=img]') ?? null, title)}>
        Download the plot (SVG)
      </button>
    </details>
  );
}

const STYLES = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-opacity', 'font-size', 'font-family', 'opacity', 'text-anchor'];

/** Save a plot with the colours that it has on the page. */
function download(svg: Element | null, title: string): void {
  if (!svg) return;
  const copy = svg.cloneNode(true) as SVGElement;
  const originals = [svg, ...svg.querySelectorAll('*')];
  [copy, ...copy.querySelectorAll('*')].forEach((element, index) => {
    const style = getComputedStyle(originals[index]!);
    for (const name of STYLES) element.setAttribute(name, style.getPropertyValue(name));
    element.removeAttribute('class');
  });
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([copy.outerHTML], { type: 'image/svg+xml' }));
  link.download = `${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.svg`;
  link.click();
  URL.revokeObjectURL(link.href);
}

function pointsTable(xLabel: string, series: Series[]) {
  // About twenty rows say what the curve does.
  const longest = series.reduce((best, one) => (one.points.length > best.points.length ? one : best), series[0] ?? { name: '', colour: 1, points: [] });
  const step = Math.max(1, Math.floor(longest.points.length / 20));
  const rows = longest.points
    .map(([x], index) => [x, ...series.map(({ points }) => points[index]?.[1] ?? NaN)])
    .filter((_, index) => index % step === 0);
  return { head: [xLabel, ...series.map(({ name }) => name)], rows };
}

export function extent(values: number[]): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

export function padded([low, high]: [number, number]): [number, number] {
  const room = (high - low) * 0.08;
  return [low - room, high + room];
}
