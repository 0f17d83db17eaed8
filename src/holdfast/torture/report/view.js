// The window on the run, and the strokes that everything is drawn with. Shapes carry the meaning, colours help:
// a thin line waits, a full bar holds, hatching sleeps, a red half bar goes on after the loss.

const HUES = [212, 158, 275, 26, 330, 190, 48, 120];

class View {
  constructor(end) {
    this.limit = end;
    this.fit();
  }
  fit() {
    const room = this.limit * 0.01;
    this.from = -room;
    this.to = this.limit + room;
  }
  set(from, to) {
    const least = 20, most = this.limit * 1.02;
    let width = Math.min(Math.max(to - from, least), most);
    from = (from + to - width) / 2;
    from = Math.min(Math.max(from, -this.limit * 0.01), this.limit * 1.01 - width);
    this.from = from;
    this.to = from + width;
  }
  zoom(factor, at) {
    const centre = at ?? (this.from + this.to) / 2;
    this.set(centre - (centre - this.from) * factor, centre + (this.to - centre) * factor);
  }
  pan(by) { this.set(this.from + by, this.to + by); }
  get width() { return this.to - this.from; }
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue("--" + name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const all = Object.fromEntries(
    ["paper", "sheet", "ink", "soft", "rule", "lane", "good", "bad", "fair", "wait", "pause", "accent"].map((name) => [name, named(name)]));
  all.hold = (name, light) => `hsl(${HUES[name % HUES.length]} ${dark ? 52 : 58}% ${(dark ? 52 : 42) + (light ?? 0)}%)`;
  all.text = named("text");
  all.figures = named("figures");
  return all;
}

// A canvas in real pixels, and how wide it is in those of the page.
function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  if (height !== undefined) canvas.style.height = height + "px";
  const tall = height ?? canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(tall * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(tall * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, tall);
  return { pen, width, height: tall };
}

const hatchings = new Map();
function hatch(pen, colour) {
  if (hatchings.has(colour)) return hatchings.get(colour);
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const ink = tile.getContext("2d");
  ink.strokeStyle = colour;
  ink.lineWidth = 1.4;
  ink.beginPath();
  for (const x of [-3, 3, 9]) { ink.moveTo(x - 3, 9); ink.lineTo(x + 9, -3); }
  ink.stroke();
  hatchings.set(colour, pen.createPattern(tile, "repeat"));
  return hatchings.get(colour);
}

function sleep(pen, c, x0, x1, y, height) {
  pen.globalAlpha = 0.12;
  pen.fillStyle = c.pause;
  pen.fillRect(x0, y, Math.max(1, x1 - x0), height);
  pen.globalAlpha = 0.55;
  pen.fillStyle = hatch(pen, c.pause);
  pen.fillRect(x0, y, Math.max(1, x1 - x0), height);
  pen.globalAlpha = 1;
}

function bar(pen, x0, x1, y, height, colour) {
  const width = Math.max(1, x1 - x0);
  pen.fillStyle = colour;
  if (width < 6) { pen.fillRect(x0, y, width, height); return; }
  pen.beginPath();
  pen.roundRect(x0, y, width, height, 2.5);
  pen.fill();
}

// Text inside a bar, if it has the room: whether it has.
function label(pen, text, x0, x1, y, colour, font, edge) {
  const left = Math.max(x0, edge) + 4, room = x1 - left - 4;
  if (room < 14) return false;
  pen.font = font;
  if (pen.measureText(text).width > room) return false;
  pen.fillStyle = colour;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  pen.fillText(text, left, y);
  return true;
}

function cross(pen, x, y, size, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 1.8;
  pen.beginPath();
  pen.moveTo(x - size, y - size); pen.lineTo(x + size, y + size);
  pen.moveTo(x + size, y - size); pen.lineTo(x - size, y + size);
  pen.stroke();
}

// Round steps for an axis: 1, 2 or 5 times a power of ten, about a hundred pixels apart.
function step(width, pixels) {
  const rough = width / Math.max(1, pixels / 110), power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((by) => by * power).find((value) => value >= rough);
}
