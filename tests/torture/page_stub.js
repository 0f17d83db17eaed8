// A browser as far as the report's scripts need one: elements that remember what was put into them, and a pen that
// counts its strokes and refuses places that are not numbers.

const strokes = {};

function pen() {
  const known = {
    measureText: (text) => ({ width: 6 * text.length }),
    createPattern: () => "pattern",
  };
  return new Proxy(known, {
    get(target, name) {
      if (name in target) return target[name];
      return (...words) => {
        strokes[name] = (strokes[name] ?? 0) + 1;
        if (words.some((word) => typeof word === "number" && !Number.isFinite(word))) throw new Error(`${String(name)}(${words})`);
      };
    },
    set(target, name, value) {
      if (value === undefined || (typeof value === "number" && !Number.isFinite(value))) throw new Error(`${String(name)} = ${value}`);
      target[name] = value;
      return true;
    },
  });
}

function element() {
  const ink = pen();
  return {
    style: {}, dataset: {}, clientWidth: 1000, clientHeight: 46, offsetWidth: 100, offsetHeight: 40, innerHTML: "", textContent: "",
    getContext: () => ink, querySelectorAll: () => [], querySelector: () => null, addEventListener() {}, append() {},
    getBoundingClientRect: () => ({ left: 0, top: 0, width: 1000, height: 400 }),
  };
}

const elements = {};
const document = {
  documentElement: element(), body: element(), addEventListener() {}, createElement: () => element(),
  getElementById: (id) => (elements[id] ??= element()),
};
const window = { devicePixelRatio: 1 };
const location = { hash: "" };
const innerWidth = 1200, innerHeight = 800;
const getComputedStyle = () => ({ getPropertyValue: (name) => ` ${name} ` });
const matchMedia = () => ({ matches: false, addEventListener() {} });
const requestAnimationFrame = (draw) => draw();
class ResizeObserver { observe() {} }
class URLSearchParams { has() { return false; } }
const PACKED = [];
