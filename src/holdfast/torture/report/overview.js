// The whole run in a strip: grants as an area, faults below it, violations above it, and the window of the timeline.

const BINS = 400;

function histogram(run) {
  const bins = new Float64Array(BINS);
  for (const lane of run.lanes) for (const grant of lane.grants) {
    if (grant.granted) bins[Math.min(BINS - 1, Math.max(0, Math.floor(grant.t1 / run.end * BINS)))]++;
  }
  return bins;
}

function drawOverview(canvas, run, view) {
  const { pen, width, height } = prepare(canvas);
  const c = colours(), bins = (run.bins ??= histogram(run)), most = Math.max(1, ...bins);
  const room = width - GUTTER, x = (time) => GUTTER + (time / run.end * 0.98 + 0.01) * room;
  pen.fillStyle = c.soft;
  pen.font = `11px ${c.text}`;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  pen.fillText("whole run", GUTTER - 12, height / 2);
  pen.globalAlpha = 0.35;
  for (let i = 0; i < BINS; i++) {
    const tall = bins[i] / most * (height - 18);
    pen.fillRect(x(i / BINS * run.end), height - 6 - tall, Math.max(1, room / BINS), tall);
  }
  pen.globalAlpha = 0.8;
  for (const fault of run.faults) {
    if (fault.begin < 0) continue;
    pen.fillStyle = fault.target.startsWith("client:") ? c.pause : c.bad;
    pen.fillRect(x(fault.begin), height - 4, Math.max(1.5, x(fault.end) - x(fault.begin)), 4);
  }
  pen.fillStyle = c.bad;
  for (const mild of [1, 0]) {  // overlaps are expected: paler, and below the others
    const marks = new Set(run.moments.filter((one) => one[1] === mild).map((one) => Math.round(x(one[0]))));
    pen.globalAlpha = mild ? 0.3 : 1;
    for (const at of marks) pen.fillRect(at, 1, 1, mild ? 4 : 7);
  }
  pen.globalAlpha = 1;
  const from = x(Math.max(0, view.from)), to = x(Math.min(run.end, view.to));
  pen.fillStyle = c.paper;
  pen.globalAlpha = 0.65;
  pen.fillRect(GUTTER, 0, from - GUTTER, height);
  pen.fillRect(to, 0, width - to, height);
  pen.globalAlpha = 1;
  pen.strokeStyle = c.accent;
  pen.lineWidth = 1.5;
  pen.strokeRect(from, 0.75, Math.max(3, to - from), height - 1.5);
}

function overviewTime(canvas, run, clientX) {
  const box = canvas.getBoundingClientRect(), room = box.width - GUTTER;
  return ((clientX - box.left - GUTTER) / room - 0.01) / 0.98 * run.end;
}
