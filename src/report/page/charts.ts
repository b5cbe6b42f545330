// SPDX-License-Identifier: Apache-2.0
// Pictures that can be moved in, in place of the still ones, which stay for print.
import { LineChart, ScatterChart } from "echarts/charts";
import { DataZoomInsideComponent, GridComponent, MarkAreaComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { init, use, type EChartsCoreOption, type EChartsType } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { bytes, data, nameOf, partsOf, quantity, valuesOf, type Evidence, type Series } from "./data";
import { button, download, element } from "./dom";

use([LineChart, ScatterChart, GridComponent, TooltipComponent, DataZoomInsideComponent, MarkAreaComponent, MarkLineComponent, CanvasRenderer]);

type Row = (string | number)[];
export interface Chart { option: EChartsCoreOption; csv: Row[]; height?: number }

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const drawn: { chart: EChartsType; make: () => Chart }[] = [];

function axis(unit: string | ((v: number) => string), extra: object = {}, label: object = {}): object {
  return {
    axisLabel: { color: colour("soft"), formatter: typeof unit === "string" ? (v: number) => quantity(v, unit) : unit, hideOverlap: true, ...label },
    axisLine: { lineStyle: { color: colour("faint") } }, splitLine: { lineStyle: { color: colour("rule") } }, ...extra,
  };
}
function base(x: object, y: object, series: object[], tip: (p: { data: unknown; seriesName?: string; dataIndex: number }) => string, left = 78): EChartsCoreOption {
  return {
    animation: false, textStyle: { fontFamily: "inherit" }, grid: { left, right: 24, top: 18, bottom: 34 }, xAxis: x, yAxis: y, series,
    // Text on the canvas: no markup is made of names.
    tooltip: { trigger: "item", renderMode: "richText", confine: true, backgroundColor: colour("paper"), borderColor: colour("rule"), textStyle: { color: colour("ink"), fontSize: 12 }, formatter: tip },
    dataZoom: [{ type: "inside", xAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl" }],
  };
}
const line = (name: string, points: [number, number][], extra: object = {}): object => ({ type: "line", name, data: points, symbolSize: 5, lineStyle: { width: 1.6 }, color: colour("accent"), ...extra });
/// The area between two lines: the lower one unseen, the difference stacked on it.
function band(low: [number, number][], high: [number, number][]): object[] {
  const plain = { type: "line", stack: "band", stackStrategy: "all", symbol: "none", lineStyle: { opacity: 0 }, silent: true };
  return [{ ...plain, data: low }, { ...plain, data: high.map(([x, y], i) => [x, y - (low[i]?.[1] ?? 0)]), areaStyle: { color: colour("band"), opacity: 1 } }];
}

export function evidenceChart(e: Evidence): Chart {
  const finding = data.verdict?.findings[e.finding], rows: [string, number[], string][] = [[`${e.peer_count} peers`, e.peers, colour("peer")], ["first", e.first, colour("accent")], ["again", e.again, colour("fail")]];
  const shown = rows.filter(([, values]) => values.length > 0);
  const series = shown.map(([name, values, c], k) => ({
    type: "scatter", name, color: c, symbolSize: 7, itemStyle: { opacity: 0.6 }, data: values.map((v, i) => [v, k + ((i * 7) % 5) / 10 - 0.2]),
    ...(k === 0 && finding?.reference ? { markLine: { symbol: "none", silent: true, lineStyle: { color: colour("fail") }, label: { position: "start", formatter: `${finding.reference_kind} ${quantity(finding.reference, e.unit)}`, color: colour("soft") }, data: [{ xAxis: finding.reference }] } } : {}),
  }));
  const y = { type: "value", min: -1, max: shown.length, interval: 1, inverse: true, axisLabel: { color: colour("ink"), formatter: (v: number) => shown[Math.round(v)]?.[0] ?? "" }, splitLine: { show: false }, axisLine: { show: false }, axisTick: { show: false } };
  const option = base({ type: "value", scale: true, ...axis(e.unit), axisLine: { onZero: false, lineStyle: { color: colour("faint") } }, position: "bottom" }, y, series, (p) => `${p.seriesName}: ${quantity((p.data as number[])[0] ?? NaN, e.unit)}`, 110);
  return { option, height: 90 + 50 * shown.length, csv: [["group", `value (${e.unit})`], ...shown.flatMap(([name, values]) => values.map((v): Row => [name, v]))] };
}

const dots = (name: string, points: [number, number][], c: string, extra: object = {}): object => ({ type: "scatter", name, data: points, color: c, symbolSize: 6, itemStyle: { opacity: 0.7 }, ...extra });
/// Samples over the time of the run; shaded: counters that moved, events and flags of the part.
export function timelineChart(e: Evidence): Chart {
  const finding = data.verdict?.findings[e.finding], shades: Record<string, string> = { counter: "warn", event: "accent", flag: "fail" };
  const areas = e.marks.map((m) => [{ name: m.text, xAxis: m.from, itemStyle: { color: colour(shades[m.kind] ?? "warn"), opacity: 0.18 } }, { xAxis: m.to > m.from ? m.to : m.from + 0.05 }]);
  const bound = finding?.reference ? { markLine: { symbol: "none", silent: true, lineStyle: { color: colour("fail") }, label: { show: false }, data: [{ yAxis: finding.reference }] } } : {};
  const series = [dots("first", e.first_at, colour("accent"), { ...bound, markArea: { label: { color: colour("soft"), fontSize: 10, position: "insideTop" }, data: areas } }), dots("again", e.again_at, colour("fail"))];
  const values = [...e.first_at, ...e.again_at].map(([, v]) => v), extent = finding?.reference ? [...values, finding.reference] : values;
  const least = Math.min(...extent), most = Math.max(...extent), room = 0.06 * (most - least || Math.abs(most) || 1);
  const option = base({ type: "value", scale: true, ...axis("s") }, { type: "value", scale: true, min: least - room, max: most + room, ...axis(e.unit, {}, { showMinLabel: false, showMaxLabel: false }) }, series,
    (p) => { const d = p.data as { name?: string } | number[]; return Array.isArray(d) ? `${p.seriesName}, ${d[0]} s: ${quantity(d[1] ?? NaN, e.unit)}` : (d.name ?? ""); });
  const csv: Row[] = [["what", "from (s)", "to (s)", `value (${e.unit})`], ...e.first_at.map(([t, v]): Row => ["first", t, t, v]), ...e.again_at.map(([t, v]): Row => ["again", t, t, v]), ...e.marks.map((m): Row => [`${m.kind}: ${m.text}`, m.from, m.to, ""])];
  return { option, height: 240, csv };
}

export function sweepChart(index: number): Chart {
  const s = data.sweeps?.[index];
  if (!s) return { option: {}, csv: [] };
  const points = (values: (number | null)[]): [number, number][] => values.flatMap((v, i): [number, number][] => (v !== null && v > 0 ? [[s.sizes[i] as number, v]] : []));
  // Stacks do not add up on a logarithmic axis: the band is two thin lines there.
  const thin = { symbol: "none", lineStyle: { width: 1, type: "dotted" }, silent: true };
  const lines = [line("5 %", points(s.low), thin), line("95 %", points(s.high), thin), line("median", points(s.median))];
  if (s.bound_kind) lines.push(line(s.bound_kind, points(s.bound), { symbol: "none", lineStyle: { type: "dashed", width: 1.4 }, color: colour("fail") }));
  if (points(s.previous).length > 0) lines.push(line("run before", points(s.previous), { lineStyle: { type: "dotted", width: 1.8 }, color: colour("peer") }));
  for (const b of s.blamed) lines.push(line(b.name, points(b.values), { symbol: "diamond", color: colour("fail") }));
  const option = base({ type: "log", logBase: 2, ...axis(bytes, { splitLine: { show: false } }) }, { type: "log", ...axis(s.unit) }, lines,
    (p) => `${p.seriesName}, ${bytes((p.data as number[])[0] ?? 0)}: ${quantity((p.data as number[])[1] ?? NaN, s.unit)}`);
  const csv: Row[] = [["size (B)", "5 %", "median", "95 %", s.bound_kind || "bound", "run before", ...s.blamed.map((b) => b.name)]];
  s.sizes.forEach((x, i) => csv.push([x, ...[s.low, s.median, s.high, s.bound, s.previous, ...s.blamed.map((b) => b.values)].map((l) => l[i] ?? "")]));
  return { option, csv };
}

/// What ran at a time.
const caseAt = (t: number): string => data.spans?.filter((s) => s.from <= t && t <= s.to).map((s) => `\nduring ${s.suite}/${s.case}`).join("") ?? "";
/// The suites one after the other, shaded in turn; upright lines where a flag was set or a value was wrong.
function circumstances(): object {
  const suites: { from: number; to: number; suite: string }[] = [];
  for (const s of data.spans ?? []) {
    const last = suites.at(-1);
    if (last?.suite === s.suite) last.to = Math.max(last.to, s.to);
    else suites.push({ ...s });
  }
  const marks = [...(data.flags ?? []).filter((f) => f.value !== 0).map((f) => ({ t: f.t, name: `${nameOf(f.part)} ${f.flag}` })), ...(data.errors ?? []).map((e) => ({ t: e.t, name: `${nameOf(e.part)}: wrong value` }))];
  return {
    markArea: { silent: true, label: { position: "insideTopLeft", color: colour("soft"), fontSize: 10 }, data: suites.map((s, i) => [{ name: s.suite, xAxis: s.from, itemStyle: { color: colour("ink"), opacity: i % 2 === 0 ? 0.025 : 0.06 } }, { xAxis: s.to }]) },
    markLine: { symbol: "none", lineStyle: { color: colour("fail"), type: "solid", width: 1.2 }, label: { show: marks.length < 4, formatter: (p: { name: string }) => p.name, color: colour("fail"), fontSize: 10, position: "end" }, data: marks.flatMap((m) => (m.t === null ? [] : [{ name: m.name, xAxis: m.t }])) },
  };
}

export function telemetryChart(name: string): Chart {
  const csv: Row[] = [["part", "t (s)", name]], series: object[] = [];
  let unit = "";
  for (const t of data.telemetry ?? []) {
    const q = t.quantities[name];
    if (!q) continue;
    unit = q.unit;
    const points: [number, number][] = [];
    q.values.forEach((v, i) => { if (v !== null) { points.push([t.t[i] as number, v]); csv.push([nameOf(t.part), t.t[i] as number, v]); } });
    series.push(line(nameOf(t.part), points, { symbol: "circle", symbolSize: 3, lineStyle: { width: 1, opacity: 0.7 }, ...(series.length === 0 ? circumstances() : {}) }));
  }
  return { option: base({ type: "value", ...axis("s") }, { type: "value", scale: true, ...axis(unit) }, series, 
    (p) => { const d = p.data as { name?: string } | number[]; return Array.isArray(d) ? `${p.seriesName}\n${d[0]} s: ${quantity(d[1] ?? NaN, unit)}${caseAt(d[0] ?? NaN)}` : (d.name ?? ""); }), csv };
}

export function trendChart(index: number): Chart {
  const m = data.trend.metrics[index], runs = data.trend.runs;
  if (!m) return { option: {}, csv: [] };
  const points = (v: number[]): [number, number][] => m.run.map((r, i) => [r, v[i] as number]);
  const marks = m.changes.slice(0, 6).map((c) => ({ xAxis: c.run - 0.5, name: c.part }));
  const mid = line("median", points(m.median), { markLine: { symbol: "none", lineStyle: { color: colour("fail") }, label: { formatter: (p: { name: string }) => p.name, color: colour("soft"), fontSize: 10 }, data: marks } });
  const when = (v: number): string => runs[v]?.started.slice(0, 10) ?? "";
  const option = base({ type: "value", min: -0.5, max: runs.length - 0.5, ...axis(when, { splitLine: { show: false } }) }, { type: "value", scale: true, ...axis(m.unit) }, [...band(points(m.low), points(m.high)), mid],
    (p) => `${when((p.data as number[])[0] ?? 0)}: ${quantity((p.data as number[])[1] ?? NaN, m.unit)}`);
  return { option, csv: [["run", "file", "5 %", "median", "95 %"], ...m.run.map((r, i): Row => [runs[r]?.started ?? "", runs[r]?.file ?? "", m.low[i] ?? "", m.median[i] ?? "", m.high[i] ?? ""])] };
}

/// Every part of a metric, from the slowest to the fastest.
export function distributionChart(s: Series): Chart {
  const names = partsOf(s), rows = valuesOf(s).map((v, i): [number, string] => [v, names[i] ?? ""]).filter(([v]) => Number.isFinite(v));
  rows.sort((a, b) => (s.better === "lower" ? b[0] - a[0] : a[0] - b[0]));
  const step = Math.max(1, Math.ceil(rows.length / 5000)), shown = rows.filter((_, i) => i % step === 0 || i < 200 || i > rows.length - 200);
  const option = base({ type: "value", name: "", ...axis((v) => String(v)) }, { type: "value", scale: true, ...axis(s.unit) }, [{ type: "scatter", color: colour("accent"), symbolSize: 6, data: shown.map(([v], i) => [i, v]) }],
    (p) => `${shown[p.dataIndex]?.[1] ?? ""}: ${quantity(shown[p.dataIndex]?.[0] ?? NaN, s.unit)}`);
  return { option, csv: [["part", `median (${s.unit})`], ...rows.map(([v, n]): Row => [n, v])] };
}

export function draw(place: HTMLElement, label: string, make: () => Chart): void {
  const made = make(), box = element("div", "chart");
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", label);
  place.append(box);
  if (made.height) box.style.height = `${made.height}px`;
  const chart = init(box);
  chart.setOption(made.option);
  drawn.push({ chart, make });
  const tools = element("div", "tools");
  tools.append(button("CSV", () => download(`${label.replace(/[^\w.-]+/g, "_")}.csv`, made.csv)));
  place.append(tools);
}
/// After the colours or the width changed.
export const redraw = (): void => drawn.forEach(({ chart, make }) => { chart.setOption(make().option, true); chart.resize(); });
export const resize = (): void => drawn.forEach(({ chart }) => chart.resize());
