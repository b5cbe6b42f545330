// SPDX-License-Identifier: Apache-2.0
// A matrix of pairs on a canvas, with a lens that names what is under the pointer.
import { data, deficit, median, nameOf, nodeOf, percent, quantity, valuesOf, type Finding, type Matrix, type Series } from "./data";
import { button, download, element, select } from "./dom";

const mix = (a: number[], b: number[], t: number): number[] => a.map((v, i) => Math.round(v + ((b[i] ?? 0) - v) * t));
/// The same colours as the still picture: blue is faster, brown slower.
export function shade(d: number): number[] {
  if (!Number.isFinite(d)) return [200, 204, 210];
  return d < 0 ? mix([247, 245, 240], [33, 102, 172], Math.min(1, d / -0.1)) : mix([247, 245, 240], [127, 39, 4], Math.min(1, d / 0.2));
}

const isDead = (value: number, s: Series): boolean => s.dead !== undefined && Math.abs(value - s.dead) <= 0.51 * s.scale;

interface Cell { value: number; deficit: number }
/// Pairs that were measured, by sender * n + receiver: of a large cluster they are few.
interface Cells { names: string[]; pairs: Map<number, Cell>; n: number }

const across = "across rails";
const own = (row: number): string => { const name = nameOf(row); return name.slice(name.lastIndexOf("/") + 1); };

/// The links of one rail, or of all: of each pair the slowest.
function cellsOf(m: Matrix, s: Series, rail: string): Cells {
  const rows = data.rows?.[s.rows], n = m.order.length, place = new Map(m.order.map((row, i) => [row, i]));
  const values = valuesOf(s), centre = median(values);
  const out: Cells = { names: m.order.map(nameOf), pairs: new Map(), n };
  rows?.part.forEach((p, i) => {
    const to = rows.to?.[i] ?? -1, a = place.get(m.inside ? p : nodeOf(p)), b = place.get(m.inside ? to : nodeOf(to));
    if (a === undefined || b === undefined) return;
    if (rail && (own(p) === own(to) ? own(p) : across) !== rail) return;
    const at = a * n + b, value = values[i] as number, behind = deficit(value, centre, s.better);
    if (Number.isNaN(behind) || behind <= (out.pairs.get(at)?.deficit ?? -Infinity)) return;
    out.pairs.set(at, { value, deficit: behind });
  });
  return out;
}

/// A point for each `fold` by `fold` pairs: the slowest of them, which a browser that scales would leave out.
function paint(canvas: HTMLCanvasElement, cells: Cells, fold: number): void {
  const pen = canvas.getContext("2d"), n = cells.n, side = Math.ceil(n / fold), worst = new Float64Array(side * side).fill(NaN);
  if (!pen) return;
  canvas.width = canvas.height = side;
  cells.pairs.forEach(({ deficit: d }, i) => {
    const at = Math.floor(i / n / fold) * side + Math.floor((i % n) / fold);
    if (!(d <= (worst[at] as number))) worst[at] = d;
  });
  const image = pen.createImageData(side, side);
  for (let i = 0; i < side * side; i++) image.data.set([...shade(worst[i] as number), 255], 4 * i);
  pen.putImageData(image, 0, 0);
}

/// Pairs to a side of a point: as the still picture, few enough points that those measured fill them.
function foldOf(cells: Cells): number {
  const most = cells.n <= 128 ? cells.n : Math.min(360, Math.max(64, Math.floor(Math.sqrt(cells.pairs.size))));
  return Math.ceil(cells.n / most);
}

/// Parts that a finding blames, as frames over their row and column.
function marksOf(names: string[], suite: string): HTMLElement[] {
  const claimed = new Set<string>(), n = names.length;
  // A slow memory is no matter of the links.
  const ofLinks = (f: Finding): boolean => f.severity !== "INFO" && (f.metric === "" || f.suite === suite || ["nic", "link", "switch"].includes(f.level));
  for (const f of data.verdict?.findings ?? []) if (ofLinks(f)) for (const end of f.name.split(">")) for (const who of [end, end.split("/")[0] ?? ""]) claimed.add(who);
  return names.flatMap((who, i) => (claimed.has(who) ? [true, false] : []).map((lying) => {
    const mark = element("div", "mark");
    mark.title = who;
    if (lying) mark.append(element("span", "", `\u25C2 ${who}`));
    mark.style.cssText = lying ? `left:0;right:0;top:${(100 * i) / n}%;height:${100 / n}%` : `top:0;bottom:0;left:${(100 * i) / n}%;width:${100 / n}%`;
    return mark;
  }));
}

export function drawMatrix(place: HTMLElement, series: number): void {
  const m = data.matrices?.find((x) => x.series === series), s = data.series?.[series];
  if (!m || !s) return;
  const n = m.order.length, canvas = element("canvas"), lens = element("canvas"), readout = element("p", "readout", "Move over the matrix, or use the arrow keys, to read a pair.");
  let cells = cellsOf(m, s, ""), rail = "", x = 0, y = 0, fold = 1;
  canvas.style.width = `${Math.min(360, Math.max(240, n * 12))}px`;
  canvas.style.aspectRatio = "1";
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${s.suite}/${s.case}: rows send, columns receive; arrow keys read a pair`);
  readout.setAttribute("aria-live", "polite");
  lens.className = "lens";
  lens.width = lens.height = 99;
  lens.setAttribute("aria-hidden", "true");
  const show = (): void => {
    fold = foldOf(cells);
    paint(canvas, cells, fold);
  };
  show();
  const tell = (): void => {
    const cell = cells.pairs.get(y * n + x);
    readout.textContent = `${cells.names[y]} \u2192 ${cells.names[x]}${rail ? ` on ${rail}` : ""}: ${!cell ? "not measured" : isDead(cell.value, s) ? "no valid value" : `${quantity(cell.value, s.unit)}, rate ${percent(-cell.deficit)}`}`;
    lens.classList.add("used");
    const glass = lens.getContext("2d");
    if (!glass) return;
    glass.clearRect(0, 0, 99, 99);
    for (let r = Math.max(0, y - 4); r <= Math.min(n - 1, y + 4); r++) for (let c = Math.max(0, x - 4); c <= Math.min(n - 1, x + 4); c++) {
      glass.fillStyle = `rgb(${shade(cells.pairs.get(r * n + c)?.deficit ?? NaN).join(" ")})`;
      glass.fillRect(11 * (c - x + 4), 11 * (r - y + 4), 11, 11);
    }
    glass.strokeRect(44, 44, 11, 11);
  };
  const go = (column: number, row: number): void => {
    x = Math.min(n - 1, Math.max(0, column));
    y = Math.min(n - 1, Math.max(0, row));
    tell();
  };
  canvas.addEventListener("pointermove", (e) => {
    const box = canvas.getBoundingClientRect();
    const first = (v: number, size: number): number => Math.min(n - 1, Math.floor(Math.floor((v / size) * canvas.width) * fold));
    const column = first(e.clientX - box.left, box.width), line = first(e.clientY - box.top, box.height);
    // Of the pairs of a point the one that it shows.
    let worst = line * n + column, most = -Infinity;
    for (let r = line; r < Math.min(n, line + fold); r++) for (let c = column; c < Math.min(n, column + fold); c++) {
      const behind = cells.pairs.get(r * n + c)?.deficit ?? -Infinity;
      if (behind > most) [worst, most] = [r * n + c, behind];
    }
    go(worst % n, Math.floor(worst / n));
  });
  canvas.addEventListener("keydown", (e) => {
    const move: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }, by = move[e.key];
    if (!by) return;
    e.preventDefault();
    go(x + by[0], y + by[1]);
  });
  const row = element("div", "tools"), pictures = element("div", "tools"), frame = element("div", "framed");
  if (m.rails.length > 0) row.append(select("Rail or NIC", [["", "all"], ...m.rails.map((r): [string, string] => [r, r])], (r) => {
    rail = r;
    cells = cellsOf(m, s, r);
    show();
    tell();
  }));
  row.append(button("CSV", () => {
    const rows: (string | number)[][] = [["from", "to", `median of the slowest link (${s.unit})`]];
    for (const [i, cell] of [...cells.pairs].sort((a, b) => a[0] - b[0])) rows.push([cells.names[Math.floor(i / n)] ?? "", cells.names[i % n] ?? "", isDead(cell.value, s) ? "no valid value" : cell.value]);
    download(`${s.suite}_${s.case}${rail ? `_${rail}` : ""}_pairs.csv`, rows);
  }));
  frame.append(canvas, ...marksOf(cells.names, s.suite));
  pictures.append(frame, lens);
  place.append(pictures, readout, row);
}
