import type { Rate } from './measure.js';

export interface Row {
  readonly what: string;
  readonly inFlight: number;
  readonly rate: Rate;
}

/** One aim of the project, beside what this run got. */
export interface Aim {
  readonly what: string;
  readonly got: number;
  readonly wanted: number;
  /** Whether `wanted` is the least or the most. */
  readonly bound: 'at least' | 'at most';
  readonly unit?: string;
}

export interface Section {
  readonly name: string;
  readonly rows: readonly Row[];
  readonly aims: readonly Aim[];
  /** Numbers that are no rates, and sentences on what was left out and why. */
  readonly notes: readonly string[];
}

function isMet({ got, wanted, bound }: Aim): boolean {
  return bound === 'at least' ? got >= wanted : got <= wanted;
}

export function render(section: Section): string {
  const { name, rows, aims, notes } = section;
  return [`\n${name}`, ...table(rows), ...aims.map(ratioLine), ...notes, ''].join('\n');
}

function table(rows: readonly Row[]): string[] {
  if (rows.length === 0) return [];
  const cells = [
    ['', 'in flight', 'per second', 'p50 ms', 'p99 ms', 'cpu ms', 'count'],
    ...rows.map(({ what, inFlight, rate }) => [
      what,
      String(inFlight),
      Math.round(rate.perSecond).toLocaleString('en'),
      rate.p50Ms.toFixed(2),
      rate.p99Ms.toFixed(2),
      rate.cpuMs?.toFixed(2) ?? '',
      rate.count.toLocaleString('en'),
    ]),
  ];
  const widths = cells[0]?.map((_, at) => Math.max(...cells.map((row) => (row[at] ?? '').length))) ?? [];
  return cells.map((row) =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}

function ratioLine(aim: Aim): string {
  const { what, got, wanted, bound, unit = 'x' } = aim;
  const sign = bound === 'at least' ? '>=' : '<=';
  const digits = unit === 'x' ? 2 : 0;
  const text = (value: number) => `${value.toFixed(digits)} ${unit}`;
  return `ratio  ${what}: aim ${sign} ${text(wanted)}, got ${text(got)}, ${isMet(aim) ? 'met' : 'missed'}`;
}

/** The rate of one row; a benchmark that asks for a row it did not measure is wrong. */
export function rateIn(rows: readonly Row[], what: string, inFlight: number): Rate {
  const found = rows.find((row) => row.what === what && row.inFlight === inFlight);
  if (found === undefined) throw new Error(`no row ${what} at ${inFlight}`);
  return found.rate;
}
