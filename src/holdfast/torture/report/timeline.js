// The timeline: the engine's faults, a lane for each client, and the resource's own log, on one clock.
// Only what is in view is drawn; of what is narrower than a pixel, one stroke for each pixel.

const GUTTER = 116, AXIS = 24, GAP = 9, ENGINE_ROW = 18, LOG_ROW = 22;
let ROW = 17;  // taller where there is room

class Timeline {
  constructor(canvas) {
    this.canvas = canvas;
    this.marked = new Set();
  }

  show(run) {
    this.run = run;
    this.view = new View(run.end);
    this.marked = new Set();
    this.arrange();
  }

  arrange() {
    const rows = this.run.lanes.reduce((sum, lane) => sum + lane.rows, 0);
    ROW = Math.min(28, Math.max(16, Math.floor(330 / Math.max(1, rows)) - GAP));
    let y = AXIS;
    for (const target of this.run.targets) { target.y = y; y += ENGINE_ROW; }
    if (this.run.targets.length) y += 6;
    for (const lane of this.run.lanes) { lane.y = y; lane.height = lane.rows * ROW + GAP; y += lane.height; }
    y += 8;
    this.logs = this.run.commits.length ? this.run.names.map((name, number) => ({ name, number, y: y + number * LOG_ROW })) : [];
    this.height = y + this.logs.length * LOG_ROW + 8;
  }

  x(time) { return GUTTER + (time - this.view.from) / this.view.width * (this.width - GUTTER); }
  time(x) { return this.view.from + (x - GUTTER) / (this.width - GUTTER) * this.view.width; }
  top(op) {
    const lane = this.run.lanes[this.run.operations.client[op]];
    return lane.y + GAP / 2 + this.run.rowOf(op) * ROW;
  }

  draw() {
    const { pen, width, height } = prepare(this.canvas, this.height);
    Object.assign(this, { pen, width, c: colours() });
    this.font = `11px ${this.c.text}`;
    this.small = `10px ${this.c.figures}`;
    this.drawGrid(height);
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, AXIS, width - GUTTER, height - AXIS);
    pen.clip();
    for (const target of this.run.targets) this.drawTarget(target);
    for (const lane of this.run.lanes) this.drawLane(lane);
    for (const log of this.logs) this.drawLog(log);
    this.drawMarked();
    pen.restore();
    this.drawNames();
  }

  drawGrid(height) {
    const { pen, c, view } = this;
    for (const [number, lane] of this.run.lanes.entries()) {
      if (number % 2) continue;
      pen.fillStyle = c.lane;
      pen.fillRect(0, lane.y, this.width, lane.height);
    }
    const by = step(view.width, this.width - GUTTER), digits = Math.max(0, -Math.floor(Math.log10(by / 1e6) + 1e-9));
    pen.font = this.small;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let time = Math.ceil(Math.max(0, view.from) / by) * by; time <= Math.min(view.to, this.run.end); time += by) {
      const x = Math.round(this.x(time)) + 0.5;
      pen.strokeStyle = c.rule;
      pen.lineWidth = 1;
      pen.beginPath(); pen.moveTo(x, AXIS - 5); pen.lineTo(x, height); pen.stroke();
      pen.fillStyle = c.soft;
      const text = seconds(time, digits), room = pen.measureText(text).width / 2;
      if (x > GUTTER + 16) pen.fillText(text, Math.min(x, this.width - room), AXIS / 2 - 1);
    }
  }

  drawNames() {
    const { pen, c } = this;
    pen.fillStyle = c.sheet;
    pen.globalAlpha = 0.9;
    pen.fillRect(0, AXIS, GUTTER - 4, this.height - AXIS);
    pen.globalAlpha = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const write = (text, y, colour, font) => { pen.font = font; pen.fillStyle = colour; pen.fillText(text, GUTTER - 12, y, GUTTER - 16); };
    for (const target of this.run.targets) write(target.target, target.y + ENGINE_ROW / 2, c.bad, this.font);
    for (const lane of this.run.lanes) write(lane.client, lane.y + lane.height / 2, c.ink, `550 12px ${c.text}`);
    for (const log of this.logs) write(log.name, log.y + LOG_ROW / 2, c.hold(log.number, -6), this.font);
    if (this.logs.length) {
      const y = Math.round(this.logs[0].y) - 4.5;
      pen.strokeStyle = c.rule;
      pen.beginPath(); pen.moveTo(0, y); pen.lineTo(this.width, y); pen.stroke();
    }
  }

  drawTarget(target) {
    const { pen, c } = this;
    for (const [number, fault] of target.faults.entries()) {
      const x0 = this.x(fault.begin), x1 = Math.max(x0 + 2, this.x(fault.end)), y = target.y + ENGINE_ROW / 2;
      const next = target.faults[number + 1], room = next ? this.x(next.begin) : this.width;
      if (x1 < GUTTER || x0 > this.width) continue;
      bar(pen, x0, x1, target.y + 3, ENGINE_ROW - 6, c.bad);
      if (!label(pen, fault.kind, x0, x1, y, c.sheet, this.font, GUTTER)) label(pen, fault.kind, x1 - 1, room, y, c.bad, this.font, GUTTER);
    }
  }

  drawLane(lane) {
    const { pen, c, view } = this;
    const all = lane.height - 2;
    const first = bisect(lane.grants, view.from - this.run.longest, (grant) => grant.t0);
    const beyond = bisect(lane.grants, view.to, (grant) => grant.t0), room = Math.ceil(this.width - GUTTER);
    if (isDense(beyond - first, room)) {
      drawDense(pen, c, lane, lane.grants.slice(first, beyond), (time) => this.x(time) - GUTTER, GUTTER, room);
      this.drawKills(lane);
      return;
    }
    for (const fault of lane.faults) {
      const x0 = this.x(fault.begin), x1 = this.x(fault.end);
      if (x1 < GUTTER || x0 > this.width) continue;
      if (!/kill/.test(fault.kind)) sleep(pen, c, x0, x1, lane.y + 1, all);
    }
    const seen = new Map();  // the last pixel that was drawn of each row and kind
    const fresh = (key, x0, x1) => {
      const pixel = Math.floor(x1 * 2);
      if (x1 - x0 >= 1 || seen.get(key) !== pixel) { seen.set(key, pixel); return true; }
      return false;
    };
    for (let i = first; i < beyond; i++) this.drawGrant(lane, lane.grants[i], fresh);
    const ops = this.run.operations;
    let j = bisect(lane.marks, view.from - this.run.longest, (op) => ops.t0[op]);
    for (; j < lane.marks.length && ops.t0[lane.marks[j]] <= view.to; j++) this.drawMark(lane, lane.marks[j], fresh);
    for (const fault of lane.faults) {
      const x0 = this.x(fault.begin), x1 = this.x(fault.end);
      if (x1 < GUTTER || x0 > this.width || /kill/.test(fault.kind)) continue;
      pen.globalAlpha = 0.3;  // a holder that sleeps still holds: hatch its bar too
      pen.fillStyle = hatch(pen, c.sheet);
      pen.fillRect(x0, lane.y + 1, Math.max(1, x1 - x0), all);
      pen.globalAlpha = 1;
      if (x1 - x0 > 40) this.plate(`${fault.kind} ${span(fault.end - fault.begin)}`, x0, x1, lane.y + lane.height / 2);
    }
    this.drawKills(lane);
  }

  drawKills(lane) {
    for (const fault of lane.faults) {
      if (/kill/.test(fault.kind)) cross(this.pen, this.x(fault.begin), lane.y + lane.height / 2, 5, this.c.bad);
    }
  }

  // Words on hatching need a ground of their own.
  plate(text, x0, x1, y) {
    const { pen, c } = this;
    pen.font = `10.5px ${c.text}`;
    const wide = pen.measureText(text).width + 8, left = Math.max(x0, GUTTER), right = Math.min(x1, this.width);
    if (wide > right - left - 8) return;
    const x = (left + right - wide) / 2;
    pen.fillStyle = c.sheet;
    pen.globalAlpha = 0.92;
    pen.beginPath(); pen.roundRect(x, y - 7, wide, 14, 3); pen.fill();
    pen.globalAlpha = 1;
    pen.fillStyle = c.pause;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillText(text, x + 4, y + 0.5);
  }

  drawGrant(lane, grant, fresh) {
    const { pen, c } = this;
    const y = lane.y + GAP / 2 + grant.row * ROW, x0 = this.x(grant.t0), x1 = this.x(grant.t1), end = this.x(grant.end);
    if (end < GUTTER) return;
    if (fresh("wait" + grant.row, x0, x1)) {
      pen.fillStyle = grant.failed ? c.soft : c.wait;
      pen.fillRect(x0, y + ROW / 2 - 1.5, Math.max(0.6, x1 - x0), 3);
    }
    if (!grant.granted) {
      if (x1 - x0 > 10) cross(pen, x1, y + ROW / 2, 2.5, c.soft);
      return;
    }
    const held = grant.lost >= 0 ? Math.min(this.x(grant.lost), end) : end;
    if (fresh("hold" + grant.row, x1, held)) bar(pen, x1, held, y + 1.5, ROW - 4, c.hold(grant.name));
    if (grant.lost >= 0) {
      bar(pen, held, Math.max(held + 2, end), y + ROW / 2, ROW / 2 - 2.5, c.bad);
      pen.fillStyle = c.bad;
      pen.fillRect(held - 1, y, 2, ROW - 1);
    }
    label(pen, short(this.run.operations.token[grant.op]), x1, held, y + ROW / 2, "#fff", this.small, GUTTER);
  }

  drawMark(lane, op, fresh) {
    const { pen, c } = this;
    const ops = this.run.operations, y = lane.y + GAP / 2 + this.run.rowOf(op) * ROW;
    const write = ops.verb[op] === WRITE, x = this.x(ops.t1[op] < 0 ? ops.t0[op] : ops.t1[op]);
    if (x < GUTTER) return;
    if (ops.outcome[op] === FAIL) { if (fresh("refused", x, x)) cross(pen, x, y + ROW / 2, 3.5, c.fair); return; }
    if (this.view.width > 4e6 || !fresh(write ? "write" : "read", x, x)) return;
    pen.fillStyle = c.sheet;
    pen.globalAlpha = 0.95;
    if (write) { pen.beginPath(); pen.moveTo(x, y + ROW - 8); pen.lineTo(x + 3, y + ROW - 2.5); pen.lineTo(x - 3, y + ROW - 2.5); pen.fill(); }
    else pen.fillRect(x - 0.75, y + ROW - 7, 1.5, 4.5);
    pen.globalAlpha = 1;
  }

  // The resource's own order: short strokes claim, full strokes write, a ring is an update that was lost.
  drawLog(log) {
    const { pen, c, run, view } = this;
    const middle = log.y + LOG_ROW / 2, room = Math.ceil(this.width - GUTTER);
    const first = bisect(run.commits, view.from, (commit) => commit.time), beyond = bisect(run.commits, view.to, (commit) => commit.time);
    const seen = run.commits.slice(first, beyond).filter((commit) => commit.name === log.number);
    if (isDense(seen.length, room)) { drawDenseLog(pen, c, log, seen, (time) => this.x(time) - GUTTER, GUTTER, room); return; }
    let last = -1;
    for (const commit of seen) {
      const x = this.x(commit.time);
      if (commit.lost) {
        pen.strokeStyle = c.bad; pen.lineWidth = 1.6; pen.fillStyle = c.sheet;
        pen.beginPath(); pen.arc(x, middle, 4, 0, 7); pen.fill(); pen.stroke();
        continue;
      }
      if (Math.floor(x * 2) === last) continue;
      last = Math.floor(x * 2);
      pen.fillStyle = c.hold(log.number);
      pen.globalAlpha = commit.write ? 1 : 0.55;
      pen.fillRect(x - 0.75, commit.write ? log.y + 4 : middle, 1.5, commit.write ? LOG_ROW - 8 : LOG_ROW / 2 - 4);
      pen.globalAlpha = 1;
    }
  }

  // What a violation is about: framed, and joined in the order of time.
  drawMarked() {
    const { pen, c } = this;
    const points = [];
    for (const op of this.marked) {
      const { t0, t1 } = this.extent(op), x0 = this.x(t0), x1 = this.x(t1), y = this.top(op);
      pen.strokeStyle = c.bad;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.roundRect(x0 - 2, y - 1, Math.max(4, x1 - x0 + 4), ROW + 1, 4);
      pen.stroke();
      points.push([Math.max(x0, GUTTER), y]);
    }
    if (points.length < 2) return;
    pen.globalAlpha = 0.5;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    points.sort((a, b) => a[0] - b[0]).forEach(([x, y], i) => { if (i) pen.lineTo(x, y + ROW / 2); else pen.moveTo(x, y + ROW / 2); });
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  // From when to when an operation is seen: a grant to its end, others from call to return.
  extent(op) {
    const ops = this.run.operations;
    if (ops.verb[op] === ACQUIRE) {
      const grant = this.run.grants.get(op);
      if (grant) return { t0: grant.granted ? grant.t1 : grant.t0, t1: grant.end };
    }
    return { t0: ops.t0[op], t1: ops.t1[op] < 0 ? ops.t0[op] : ops.t1[op] };
  }
}
