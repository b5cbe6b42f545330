// SPDX-License-Identifier: Apache-2.0
import { distributionChart, draw, evidenceChart, redraw, resize, sweepChart, telemetryChart, timelineChart, trendChart, type Chart } from "./charts";
import { data, fullName, partsOf, valuesOf } from "./data";
import { button, download, element } from "./dom";
import { filter, fleetTools, showNode } from "./fleet";
import { drawMatrix } from "./matrix";

/// The chart that a figure asks for: its kind and a number or name.
function chartOf(what: string): (() => Chart) | undefined {
  const slash = what.indexOf("/"), kind = what.slice(0, slash), rest = what.slice(slash + 1), index = Number(rest);
  const e = data.evidence?.[index];
  if (kind === "evidence" && e) return () => evidenceChart(e);
  if (kind === "timeline" && e) return () => timelineChart(e);
  if (kind === "sweep") return () => sweepChart(index);
  if (kind === "telemetry") return () => telemetryChart(rest);
  if (kind === "trend") return () => trendChart(index);
  return undefined;
}

function enliven(figure: HTMLElement): void {
  const what = figure.dataset["chart"] ?? "", place = element("div", "moving");
  if (figure.classList.contains("drawn")) return;
  figure.classList.add("drawn");
  figure.querySelector(".picture")?.after(place);
  const label = figure.querySelector("svg")?.getAttribute("aria-label") ?? what;
  const make = chartOf(what);
  if (what.startsWith("matrix/")) drawMatrix(place, Number(what.slice(7)));
  else if (make) draw(place, label, make);
}

function theme(): void {
  const root = document.documentElement, dark = root.dataset["theme"] ? root.dataset["theme"] === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset["theme"] = dark ? "light" : "dark";
  redraw();
}

function controls(): void {
  const place = document.getElementById("controls");
  if (data.parts) {
    const search = element("input");
    search.type = "search";
    search.placeholder = "Filter by name";
    search.setAttribute("aria-label", "Filter nodes and findings by name");
    search.addEventListener("input", () => filter(search.value));
    place?.append(search);
  }
  place?.append(button("Dark or light", theme), button("Print", () => print()));
}

/// #node/NAME shows the node, #finding/3 opens the finding.
function follow(): void {
  let hash = location.hash.slice(1);
  try { hash = decodeURIComponent(hash); } catch { return; }
  if (hash.startsWith("node/")) {
    showNode(hash.slice(5));
    document.getElementById("node-detail")?.scrollIntoView({ block: "center" });
  }
  if (hash.startsWith("finding/")) {
    const f = document.getElementById(hash);
    if (!(f instanceof HTMLDetailsElement)) return;
    f.open = true;
    f.scrollIntoView();
    f.querySelector("summary")?.focus({ preventScroll: true });
  }
}

function distributions(): void {
  const place = document.getElementById("distribution");
  for (const e of document.querySelectorAll<HTMLElement>("[data-series]")) {
    const s = data.series?.[Number(e.dataset["series"])];
    if (!s || !place) continue;
    const b = button(e.textContent ?? "", () => {
      place.replaceChildren(element("h3", "", fullName(s)));
      draw(place, `${fullName(s)}, every part`, () => distributionChart(s));
      place.scrollIntoView({ block: "nearest" });
    });
    b.className = "plain";
    e.replaceChildren(b);
  }
}

function downloads(): void {
  document.getElementById("downloads")?.append(button("All medians as CSV", () => {
    const rows: (string | number)[][] = [["metric", "unit", "part", "median"]];
    for (const s of data.series ?? []) {
      if (!s) continue;
      const values = valuesOf(s);
      partsOf(s).forEach((p, i) => rows.push([fullName(s), s.unit, p, values[i] ?? ""]));
    }
    download(`${data.file ?? "medians"}.csv`, rows);
  }));
}

const cellsOf = (row: Element): string[] => [...row.children].map((c) => (c.textContent ?? "").trim());
/// Every table, with its folded rows, as it is read.
function tables(): void {
  for (const t of document.querySelectorAll<HTMLTableElement>("main table")) {
    const caption = t.caption, name = caption?.textContent ?? "", folded = t.parentElement?.nextElementSibling;
    if (!caption) continue;
    const rest = folded?.matches("details.more") && !folded.querySelector("caption") ? [...folded.querySelectorAll("tbody tr")] : [];
    const b = button("CSV", () => download(`${name.replace(/[^\w.-]+/g, "_")}.csv`, [...t.rows, ...rest].map(cellsOf)));
    b.className = "js";
    b.setAttribute("aria-label", `${name} as CSV`);
    caption.append(b);
  }
}

function comparisonCsv(): void {
  const c = data.comparison;
  if (!c) return;
  document.getElementById("comparison-csv")?.append(button("CSV", () => {
    const rows: (string | number)[][] = [["metric", "unit", "node", "ratio B/A", "low", "high"]];
    for (const m of c.metrics) {
      rows.push([m.metric, m.unit, "", m.ratio ?? "", m.low ?? "", m.high ?? ""]);
      m.node.forEach((n, i) => rows.push([m.metric, m.unit, n, m.node_ratio[i] ?? "", "", ""]));
    }
    download("comparison.csv", rows);
  }));
}

function watch(): void {
  const seen = new IntersectionObserver((entries) => {
    for (const e of entries) if (e.isIntersecting) { seen.unobserve(e.target); enliven(e.target as HTMLElement); }
  }, { rootMargin: "300px" });
  for (const f of document.querySelectorAll<HTMLElement>("figure[data-chart]")) seen.observe(f);
  const reading = new IntersectionObserver((entries) => {
    for (const e of entries) {
      const link = document.querySelector(`nav a[href="#${CSS.escape(e.target.id)}"]`);
      if (e.isIntersecting) link?.setAttribute("aria-current", "true");
      else link?.removeAttribute("aria-current");
    }
  }, { rootMargin: "-30% 0px -60% 0px" });
  for (const s of document.querySelectorAll("main > section")) reading.observe(s);
}

document.documentElement.classList.add("live");
controls();
fleetTools();
distributions();
downloads();
comparisonCsv();
tables();
watch();
follow();
addEventListener("hashchange", follow);
addEventListener("resize", resize);
addEventListener("beforeprint", () => {
  for (const f of document.querySelectorAll<HTMLDetailsElement>(".finding")) f.open = true;
  // What was left open belongs on paper, but not page after page of names.
  for (const f of document.querySelectorAll<HTMLDetailsElement>("#state details.more, #not-tested details.more")) f.open = f.querySelectorAll("tr, li").length < 200;
});
document.documentElement.dataset["ready"] = performance.now().toFixed(0);  // ms since the page was asked for
