// SPDX-License-Identifier: Apache-2.0
// The map's colours by metric, the filter by name, and what is known of one node.
import { data, deficit, fullName, median, nameOf, nodeOf, partsOf, percent, quantity, valuesOf, type Series } from "./data";
import { button, download, element, select, table } from "./dom";
import { shade } from "./matrix";

const tiles = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>("#fleet .node")];

/// The worst deficit of each node and part in a metric, against the median of all parts.
function deficits(s: Series): Map<number, number> {
  const rows = data.rows?.[s.rows], values = valuesOf(s), centre = median(values), out = new Map<number, number>();
  const note = (row: number, d: number): void => { if (row >= 0 && d >= (out.get(row) ?? -Infinity)) out.set(row, d); };
  rows?.part.forEach((p, i) => {
    const d = deficit(values[i] as number, centre, s.better);
    for (const end of rows.to ? [p, rows.to[i] as number] : [p]) {
      note(end, d);
      note(nodeOf(end), d);
    }
  });
  return out;
}

let shown: Series | null = null;
/// The map as it is coloured: every node and part with its state, and its deficit in the metric chosen.
function mapCsv(): void {
  const by = shown ? deficits(shown) : undefined, p = data.parts;
  const rows: (string | number)[][] = [["name", "kind", "state", shown ? `deficit of ${fullName(shown)}` : ""]];
  p?.row.forEach((row, i) => rows.push([p.name[i] ?? "", p.kind[i] ?? "", p.state[i] ?? "", by?.get(row) ?? ""]));
  download("fleet.csv", rows);
}

function colourBy(choice: string): void {
  const s = choice === "" ? null : (data.series?.[Number(choice)] ?? null), by = s ? deficits(s) : undefined;
  shown = s;
  for (const e of document.querySelectorAll<HTMLElement>("#fleet .node, #fleet .node i")) {
    const d = by?.get(Number(e.dataset["row"]));
    const rgb = by ? `rgb(${shade(d ?? NaN).join(" ")})` : "";
    e.style.backgroundColor = rgb;
    if (e.matches(".node")) e.style.color = by ? ((d ?? 0) > 0.12 ? "#fff" : "#1b2430") : "";
  }
}

export function filter(text: string): void {
  const wanted = text.trim().toLowerCase();
  for (const t of tiles()) t.hidden = wanted !== "" && !nameOf(Number(t.dataset["row"])).toLowerCase().includes(wanted);
  for (const f of document.querySelectorAll<HTMLElement>(".finding")) f.hidden = wanted !== "" && !(f.dataset["name"] ?? "").toLowerCase().includes(wanted);
  for (const r of document.querySelectorAll<HTMLElement>("#fleet tbody tr")) r.hidden = wanted !== "" && !(r.textContent ?? "").toLowerCase().includes(wanted);
}

const known = (d: number): number => (Number.isNaN(d) ? -Infinity : d);

/// States of a node's parts and where its values lie in the fleet.
export function showNode(name: string): void {
  const place = document.getElementById("node-detail"), parts = data.parts;
  if (!place || !parts) return;
  const at = parts.name.findIndex((n, i) => n === name && parts.kind[i] === "node"), row = parts.row[at];
  place.replaceChildren();
  for (const t of tiles()) t.classList.toggle("chosen", Number(t.dataset["row"]) === row);
  if (row === undefined) return;
  place.append(element("h3", "", `${name}: ${parts.state[at]}`));
  const why = new Map(data.verdict?.entities.map((e) => [e.name, e.reason]));
  const own = parts.name.flatMap((n, i) => (parts.node[i] === row && parts.state[i] ? [[n, parts.state[i] ?? "", why.get(n) ?? ""]] : []));
  place.append(table("Its parts", ["part", "state", "because"], own));
  const links = element("p");
  data.verdict?.findings.forEach((f, i) => {
    if (!f.name.split(">").some((end) => end === name || end.startsWith(`${name}/`)) && !f.members.includes(name)) return;
    const a = element("a", "", `${f.severity} ${f.metric || f.name}`);
    a.href = `#finding/${i + 1}`;
    links.append(a, element("br"));
  });
  place.append(links);
  const rows: [number, string[]][] = [];
  for (const s of data.series ?? []) {
    if (!s?.judged) continue;
    const ends = data.rows?.[s.rows];
    if (ends?.to) continue;
    const values = valuesOf(s), centre = median(values), names = partsOf(s);
    ends?.part.forEach((p, i) => {
      if (nodeOf(p) !== row) return;
      const d = deficit(values[i] as number, centre, s.better);
      rows.push([d, [fullName(s), names[i] ?? "", quantity(values[i] as number, s.unit), quantity(centre, s.unit), percent(-d)]]);
    });
  }
  rows.sort((a, b) => (known(a[0]) === known(b[0]) ? 0 : known(b[0]) - known(a[0])));
  if (rows.length > 0) place.append(table("Its metrics beside the fleet's median, the slowest first", ["metric", "part", "median", "fleet", "rate"], rows.slice(0, 40).map((r) => r[1])));
}

export function fleetTools(): void {
  const options = (data.series ?? []).flatMap((s, i): [string, string][] => (s?.judged ? [[String(i), fullName(s)]] : []));
  document.getElementById("fleet-tools")?.append(select("Colour by", [["", "state"], ...options], colourBy), button("CSV", mapCsv));
}
