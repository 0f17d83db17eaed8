"use strict";
// Elements. Texts become text nodes, and nothing else: no name of a lock is ever read as HTML.

const $ = (id) => document.getElementById(id);

function fill(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

function assign(node, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === false || value === null || value === undefined) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  return node;
}

function el(tag, attributes, ...children) {
  return fill(assign(document.createElement(tag), attributes), children);
}

function svg(tag, attributes, ...children) {
  return fill(assign(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes), children);
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Children of `parent` become those of `items`, in order. A node lives as long as its key: focus and selection stay.
// `make(item)` gives a node; its `update(item)`, if it has one, is called for each new item of the same key.
function patch(parent, items, keyOf, make) {
  const known = new Map([...parent.children].filter((node) => node.patchKey !== undefined).map((node) => [node.patchKey, node]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let node = known.get(key);
    known.delete(key);
    if (!node) {
      node = make(item);
      node.patchKey = key;
    }
    if (node.update) node.update(item);
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  for (const node of known.values()) node.remove();
}

// What runs between two pictures: ages grow, ttls shrink. A node that is gone is forgotten.
const ticking = new Set();
let pictureAt = 0, frozen = false;

function ticks(node, draw) {
  node.tick = draw;
  ticking.add(node);
  return node;
}

function tick() {
  const elapsed = frozen ? 0 : (performance.now() - pictureAt) / 1000;
  for (const node of ticking) {
    if (node.isConnected) node.tick(elapsed);
    else if (node.wasShown) ticking.delete(node);
    node.wasShown = node.wasShown || node.isConnected;
  }
}

function age(value) {
  const node = el("span", { class: "figure" });
  node.set = (next) => { node.value = next; node.tick(0); };
  ticks(node, (elapsed) => setText(node, node.value === null || node.value === undefined ? "–" : seconds(node.value + elapsed)));
  node.set(value);
  return node;
}

function table(label, columns, body) {
  return el("div", { class: "scroll" }, el("table", { role: "table", "aria-label": label },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" },
      columns.map((column) => el("th", { scope: "col", role: "columnheader", class: column.class, "aria-sort": column.sorted }, column.button || column.title)))),
    body));
}

function cell(label, attributes, ...children) {
  return el("td", { role: "cell", "data-label": label, ...attributes }, ...children);
}

function empty(text, more) {
  return el("div", { class: "empty" }, el("p", {}, text), more && el("p", { class: "soft" }, more));
}

function notice(text) {
  setText($("notice"), "");
  setText($("notice"), text);
}

// Pages of a list: what is shown, and buttons to the others.
function pager(go) {
  const text = el("span", { class: "figure" });
  const before = el("button", { type: "button", "data-page": "p", onclick: () => go(-1) }, "← previous");
  const after = el("button", { type: "button", "data-page": "n", onclick: () => go(1) }, "next →");
  const node = el("div", { class: "pager", role: "group", "aria-label": "Pages" }, text, before, after);
  node.set = (offset, shown, total, what) => {
    setText(text, total ? `${(offset + 1).toLocaleString("en-US")}–${(offset + shown).toLocaleString("en-US")} of ${count(total, what)}` : "");
    before.disabled = offset === 0;
    after.disabled = offset + shown >= total;
    node.hidden = !total;
  };
  return node;
}
