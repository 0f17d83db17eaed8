// Puts the parts together: what is chosen, what is under the pointer, and the keys.

const timeline = new Timeline($("timeline"));
const state = { runs: [], run: 0, checker: "", violation: null };
let due = false;

function redraw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    timeline.draw();
    drawOverview($("overview"), timeline.run, timeline.view);
  });
}

function listed() {
  const run = state.runs[state.run];
  return state.checker ? run.violations.filter((violation) => violation.checker === state.checker) : run.violations;
}

function chooseRun(number) {
  const run = state.runs[number];
  Object.assign(state, { run: number, checker: "", violation: null });
  timeline.show(run);
  showHeader(state.runs, run);
  showRuns(state.runs, number, chooseRun);
  showVerdicts(run);
  showFaults(run, (fault) => { zoomTo(fault.begin, fault.end, 2); });
  showLegend(run);
  showAround(run, null, [], chooseOperation);
  chooseChecker("");
}

function chooseChecker(checker) {
  state.checker = checker;
  showCheckers(timeline.run, checker, chooseChecker);
  showViolations(timeline.run, listed(), state.violation, chooseViolation);
  redraw();
}

function chooseViolation(violation) {
  state.violation = violation;
  timeline.marked = new Set(violation.operations);
  if (violation.operations.length) {
    const extents = violation.operations.map((op) => timeline.extent(op));
    const grants = extents.map((one) => one.t1 - one.t0).filter((length) => length > 0);
    const most = Math.max(2000, 12 * Math.min(...grants));  // the shortest of them shall be seen
    const begin = Math.min(...extents.map((one) => one.t0)), end = Math.max(...extents.map((one) => one.t1));
    const at = violation.at < 0 ? (begin + end) / 2 : violation.at;
    if (end - begin <= most) zoomTo(begin, end, 1.2);
    else zoomTo(Math.max(begin, at - most), Math.min(end, at + most), 0.6);
  }
  showViolations(timeline.run, listed(), violation, chooseViolation);
  showAround(timeline.run, violation, violation.operations, chooseOperation);
  redraw();
}

function chooseOperation(op) {
  timeline.marked = new Set([op]);
  const { t0, t1 } = timeline.extent(op);
  if (t0 < timeline.view.from || t1 > timeline.view.to) zoomTo(t0, t1, 2);
  showAround(timeline.run, null, [op], chooseOperation);
  redraw();
}

function zoomTo(begin, end, air) {
  const room = Math.max((end - begin) * air, 2000) / 2, centre = (begin + end) / 2;
  timeline.view.set(centre - room - (end - begin) / 2, centre + room + (end - begin) / 2);
  redraw();
}

function go(by) {
  const list = listed();
  if (!list.length) return;
  const at = state.violation ? list.indexOf(state.violation) : by > 0 ? -1 : 0;
  chooseViolation(list[(at + by + list.length) % list.length]);
}

// What is under the pointer: an operation, a fault or a commit.
function under(event) {
  const box = timeline.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  const { run } = timeline, at = timeline.time(x), near = timeline.view.width / timeline.width * 4;
  if (x < GUTTER) return null;
  const hit = (begin, end) => at >= begin - near && at <= end + near;
  const target = run.targets.find((one) => y >= one.y && y < one.y + ENGINE_ROW);
  if (target) return wrap("fault", target.faults.find((fault) => hit(fault.begin, fault.end)));
  const log = timeline.logs.find((one) => y >= one.y && y < one.y + LOG_ROW);
  if (log) return wrap("commit", closest(run.commits, at, near, (commit) => commit.name === log.number));
  const lane = run.lanes.find((one) => y >= one.y && y < one.y + one.height);
  if (!lane) return null;
  const ops = run.operations, row = Math.min(lane.rows - 1, Math.max(0, Math.floor((y - lane.y - GAP / 2) / ROW)));
  const marks = lane.marks.filter((op) => run.rowOf(op) === row && Math.abs((ops.t1[op] < 0 ? ops.t0[op] : ops.t1[op]) - at) <= near);
  if (marks.length) return { kind: "op", op: marks[0] };
  const grant = lane.grants.filter((one) => one.row === row && hit(one.t0, one.end)).at(-1);
  if (grant) return { kind: "op", op: grant.op, grant, fault: lane.faults.find((fault) => hit(fault.begin, fault.end)) };
  return wrap("fault", lane.faults.find((fault) => hit(fault.begin, fault.end)));
}

function wrap(kind, found) { return found === undefined ? null : { kind, [kind]: found }; }

function closest(commits, at, near, wanted) {
  let best;
  for (let i = bisect(commits, at - near, (commit) => commit.time); i < commits.length && commits[i].time <= at + near; i++) {
    const gap = Math.abs(commits[i].time - at);
    if (wanted(commits[i]) && (!best || gap < Math.abs(best.time - at))) best = commits[i];
  }
  return best;
}

function words(found) {
  const { run } = timeline, ops = run.operations;
  const fault = (one) => `<b>${escape(one.kind)}</b> of ${escape(one.target)}<br>from ${seconds(one.begin)} for ${span(one.end - one.begin)}${one.note ? "<br>" + escape(one.note) : ""}`;
  if (found.kind === "fault") return fault(found.fault);
  if (found.kind === "commit") {
    const one = found.commit;
    const undone = one.lost ? "<br><b>acknowledged, and lost</b>" : "";
    return `<b>${one.write ? "write" : "claim"} ${one.number}</b> of ${escape(run.names[one.name])} at ${seconds(one.time)}<br>
      <code>token ${one.token}${one.write ? `, computed from ${one.parent}, replaced ${one.before}` : ""}</code>${undone}`;
  }
  const op = found.op, lines = [`<b>${escape(run.clients[ops.client[op]])}</b> ${run.verbs[ops.verb[op]]} ${escape(run.names[ops.name[op]])}`];
  if (ops.token[op]) lines.push(`<code>token ${ops.token[op]}</code>`);
  const grant = found.grant;
  if (grant) {
    lines.push(`waited ${span(grant.t1 - grant.t0)}${grant.granted ? `, held ${span((grant.lost >= 0 ? grant.lost : grant.end) - grant.t1)}` : ""}`);
    if (grant.lost >= 0) lines.push(`lost, and went on for ${span(grant.end - grant.lost)}`);
    if (!grant.granted) lines.push(grant.failed ? "not acquired" : "nobody knows the outcome");
  } else lines.push(`${run.outcomes[ops.outcome[op]]} at ${seconds(ops.t0[op])}, took ${ops.t1[op] < 0 ? "for ever" : span(ops.t1[op] - ops.t0[op])}`);
  if (ops.parent[op] >= 0) lines.push(`read version ${ops.parent[op]}${ops.version[op] >= 0 ? `, wrote version ${ops.version[op]}` : ""}`);
  if (run.errors[ops.error[op]]) lines.push(escape(run.errors[ops.error[op]]));
  if (found.fault) lines.push(fault(found.fault));
  return lines.join("<br>");
}

function listen() {
  const canvas = timeline.canvas, overview = $("overview");
  let drag = null;
  canvas.addEventListener("wheel", (event) => {
    if (event.offsetX < GUTTER) return;
    event.preventDefault();
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) timeline.view.pan(sideways / timeline.width * timeline.view.width);
    else timeline.view.zoom(Math.exp(event.deltaY * 0.002), timeline.time(event.offsetX));
    redraw();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, moved: false }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const by = event.clientX - drag.x;
      if (drag.moved || Math.abs(by) > 3) {
        timeline.view.pan(-by / (timeline.width - GUTTER) * timeline.view.width);
        Object.assign(drag, { x: event.clientX, moved: true });
        redraw();
      }
    }
    point(drag?.moved ? null : event);
  });
  canvas.addEventListener("pointerup", (event) => {
    const found = drag && !drag.moved ? under(event) : null;
    drag = null;
    if (found?.kind === "op") chooseOperation(found.op);
    if (found?.kind === "commit" && found.commit.op >= 0) chooseOperation(found.commit.op);
  });
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("dblclick", (event) => { timeline.view.zoom(0.4, timeline.time(event.offsetX)); redraw(); });
  const move = (event) => { if (event.buttons) { const half = timeline.view.width / 2, at = overviewTime(overview, timeline.run, event.clientX); timeline.view.set(at - half, at + half); redraw(); } };
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); move(event); });
  overview.addEventListener("pointermove", move);
  const acts = {
    in: () => timeline.view.zoom(0.6), out: () => timeline.view.zoom(1 / 0.6), fit: () => timeline.view.fit(),
    left: () => timeline.view.pan(-timeline.view.width / 4), right: () => timeline.view.pan(timeline.view.width / 4),
    next: () => go(1), previous: () => go(-1),
  };
  const keys = { "+": "in", "=": "in", "-": "out", 0: "fit", ArrowLeft: "left", ArrowRight: "right", n: "next", p: "previous" };
  document.addEventListener("keydown", (event) => { if (keys[event.key] && !event.ctrlKey && !event.metaKey) { event.preventDefault(); acts[keys[event.key]](); redraw(); } });
  for (const button of $("zoom").querySelectorAll("button")) button.onclick = () => { acts[button.dataset.do](); redraw(); };
  new ResizeObserver(redraw).observe($("lanes"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

function point(event) {
  const found = event && under(event), tip = $("tip");
  tip.hidden = !found;
  if (!found) return;
  tip.innerHTML = words(found);
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 12) + "px";
  tip.style.top = Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 12) + "px";
}

async function start() {
  state.runs = (await Promise.all(PACKED.map(unpack))).map(understand);
  if (!state.runs.length) { $("summary").textContent = "no run was recorded"; return; }
  listen();
  chooseRun(Math.max(0, state.runs.findIndex((run) => !run.passed)));
  const asked = new URLSearchParams(location.hash.slice(1));  // a place in a report can be linked to: #run=2&violation=3
  if (asked.has("run")) chooseRun(Number(asked.get("run")) - 1);
  if (asked.has("violation")) go(Number(asked.get("violation")));
  document.body.dataset.ready = "yes";
}

start();
