// SPDX-License-Identifier: Apache-2.0
// The data block: results-schema/page.schema.json. Nothing here is computed that decides anything.

export interface Series {
  suite: string; case: string; metric: string; unit: string; better: "higher" | "lower" | "none"; kind: string; judged: boolean;
  rows: number; scale: number; base: number; median: (number | null)[];
  dead?: number;  // of links: what stands for impossible values
}
export interface Finding { severity: string; level: string; suite: string; name: string; metric: string; text: string; unit: string; reference: number | null; reference_kind: string; members: string[] }
export interface Mark { from: number; to: number; kind: string; text: string }
export interface Evidence {
  finding: number; metric: string; unit: string; peer_count: number; peers: number[]; first: number[]; again: number[];
  first_at: [number, number][]; again_at: [number, number][]; marks: Mark[];
}
export interface Sweep {
  title: string; unit: string; sizes: number[]; series: number[]; low: (number | null)[]; median: (number | null)[]; high: (number | null)[];
  bound: (number | null)[]; bound_kind: string; previous: (number | null)[]; blamed: { name: string; values: (number | null)[] }[];
}
export interface Trend {
  runs: { file: string; started: string }[];
  metrics: { metric: string; unit: string; run: number[]; low: number[]; median: number[]; high: number[]; changes: { part: string; run: number; change: number }[] }[];
}
export interface Matrix { series: number; order: number[]; inside: boolean; median: number; rails: string[] }
export interface Data {
  file?: string;
  verdict?: { findings: Finding[]; entities: { name: string; state: string; reason: string }[] };
  parts?: { row: number[]; name: string[]; kind: string[]; node: number[]; state: string[] };
  rows?: { part: number[]; to?: number[] }[];
  series?: (Series | null)[];
  evidence?: Evidence[];
  matrices?: Matrix[];
  sweeps?: Sweep[];
  telemetry?: { part: number; t: number[]; quantities: Record<string, { unit: string; values: (number | null)[] }> }[];
  flags?: { t: number | null; part: number; flag: string; value: number }[];
  spans?: { from: number; to: number; suite: string; case: string }[];
  errors?: { t: number | null; part: number }[];
  trend: Trend;
  comparison?: { metrics: { metric: string; unit: string; a: number; b: number; ratio: number | null; low: number | null; high: number | null; node: string[]; node_ratio: (number | null)[] }[] };
}

export const data = JSON.parse(document.getElementById("data")?.textContent ?? "{}") as Data;

const nameByRow = new Map<number, string>(), nodeByRow = new Map<number, number>();
data.parts?.row.forEach((row, i) => {
  nameByRow.set(row, data.parts?.name[i] ?? "");
  nodeByRow.set(row, data.parts?.node[i] ?? -1);
});
export const nameOf = (row: number): string => nameByRow.get(row) ?? "cluster";
export const nodeOf = (row: number): number => nodeByRow.get(row) ?? -1;

export const valuesOf = (s: Series): number[] => s.median.map((v) => (v === null ? NaN : (s.base + v) * s.scale));
export const fullName = (s: Series): string => `${s.suite}/${s.case}:${s.metric}`;

/// Names of the parts of a series; links by both ends.
export function partsOf(s: Series): string[] {
  const rows = data.rows?.[s.rows];
  if (!rows) return [];
  return rows.part.map((p, i) => (rows.to ? `${nameOf(p)}>${nameOf(rows.to[i] ?? -1)}` : nameOf(p)));
}

export function median(values: number[]): number {
  const v = values.filter(Number.isFinite).sort((a, b) => a - b);
  const m = v.length >> 1;
  return v.length === 0 ? NaN : v.length % 2 === 1 ? (v[m] as number) : ((v[m - 1] as number) + (v[m] as number)) / 2;
}
/// How much of the rate is missing against a reference: as the verdict counts it.
export const deficit = (value: number, reference: number, better: string): number => (better === "lower" ? 1 - reference / value : 1 - value / reference);

const prefixes: [number, string][] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "u"], [1e-9, "n"]];
// As base/units.cpp has it: no ks, and no mB/s.
const scaledUp = new Set(["B/s", "b/s", "bit/s", "FLOP/s", "FLOP", "FLOP/J", "token/s", "op/s", "B", "Hz", "W", "J"]), scaledDown = new Set(["W", "J", "s", "nat"]);
/// Four significant digits with a prefix and the unit.
export function quantity(value: number, unit: string): string {
  if (!Number.isFinite(value)) return "-";
  if (unit === "count" || unit === "1" || unit === "") return String(Number(value.toPrecision(4)));
  const size = Math.abs(value), usable = prefixes.filter(([f]) => f === 1 || (f > 1 ? scaledUp : scaledDown).has(unit));
  // Four digits round 999.95 up to 1000, which has the next prefix.
  const [factor, prefix] = usable.find(([f]) => size >= 0.99995 * f) ?? (size === 0 ? [1, ""] : (usable[usable.length - 1] ?? [1, ""]));
  return `${Number((value / factor).toPrecision(4))} ${prefix}${unit}`;
}
export function bytes(value: number): string {
  const steps = ["B", "KiB", "MiB", "GiB"];
  let i = 0, v = value;
  while (v >= 1024 && i < 3) { v /= 1024; i++; }
  return `${Number(v.toPrecision(4))} ${steps[i]}`;
}
export const percent = (fraction: number): string => (!Number.isFinite(fraction) ? "-" : `${fraction > 0 ? "+" : ""}${(100 * fraction).toFixed(Math.abs(fraction) < 0.01 ? 2 : 1)} %`.replace("-", "\u2212"));
