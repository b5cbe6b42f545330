// SPDX-License-Identifier: Apache-2.0
// Elements made of texts: nothing of the data is ever parsed as markup.

export function element<K extends keyof HTMLElementTagNameMap>(tag: K, className = "", text = ""): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text) e.textContent = text;
  return e;
}

export function button(text: string, act: () => void): HTMLButtonElement {
  const b = element("button", "", text);
  b.type = "button";
  b.addEventListener("click", act);
  return b;
}

export function select(label: string, options: [string, string][], act: (value: string) => void): HTMLLabelElement {
  const box = element("label", "", `${label} `), list = element("select");
  for (const [value, text] of options) {
    const o = element("option", "", text);
    o.value = value;
    list.append(o);
  }
  list.addEventListener("change", () => act(list.value));
  box.append(list);
  return box;
}

export function table(caption: string, head: string[], rows: (string | Node)[][]): HTMLElement {
  const frame = element("div", "scroll"), t = element("table"), top = element("tr"), body = element("tbody");
  t.append(element("caption", "", caption));
  for (const h of head) top.append(element("th", "", h));
  const thead = element("thead");
  thead.append(top);
  for (const r of rows) {
    const tr = element("tr");
    for (const c of r) {
      const td = element("td");
      td.append(c);
      tr.append(td);
    }
    body.append(tr);
  }
  t.append(thead, body);
  frame.append(t);
  return frame;
}

/// A spreadsheet must not take a name for a formula.
const field = (v: string | number): string => {
  const text = typeof v === "string" && /^[=+\-@]/.test(v) ? `'${v}` : String(v);
  return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
};
export function download(name: string, rows: (string | number)[][]): void {
  const url = URL.createObjectURL(new Blob([rows.map((r) => r.map(field).join(",")).join("\n") + "\n"], { type: "text/csv" }));
  const a = element("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
