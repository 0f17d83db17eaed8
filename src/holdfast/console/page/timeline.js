"use strict";
// What was seen of one name, drawn: holds as bars, gaps and overlaps as bands, the rest as marks; and told as a list.

const SPANS = [["1 min", 60], ["10 min", 600], ["1 h", 3600], ["all", 0]];
const OUTCOMES = {
  held: "holds it", ended: "ended before its ttl", expired: "expired: its ttl ran out", evicted: "evicted from this console",
  unknown: "ended between two surveys too far apart to tell how",
};
const LANE_PX = 22, AXIS_PX = 22, MOST_LANES = 8, LIST_COUNT = 60;

function timelineView() {
  let span = 600, last = null;
  const drawing = el("div", { class: "drawing" }), list = el("ol", { class: "events", "aria-label": "What was seen, the newest first" });
  const buttons = el("div", { class: "spans", role: "group", "aria-label": "How far back" }, SPANS.map(([word, length]) =>
    el("button", { type: "button", "aria-pressed": String(length === span), onclick: (event) => {
      span = length;
      for (const button of buttons.children) button.setAttribute("aria-pressed", String(button === event.target));
      if (last) node.show(...last);
    } }, word)));
  const node = el("section", { class: "timeline", "aria-labelledby": "timeline-title" },
    el("div", { class: "toolbar" }, el("h3", { id: "timeline-title" }, "Timeline"), buttons), drawing, list);
  node.show = (timeline, now) => {
    last = [timeline, now];
    const holds = timeline.holds, marks = timeline.marks;
    if (!holds.length && !marks.length) {
      drawing.replaceChildren(empty("Nothing was seen of this name yet.", "The console remembers what it sees from its start on."));
      list.replaceChildren();
      return;
    }
    const first = Math.min(...holds.map((hold) => hold.begin), ...marks.map((mark) => mark.begin));
    drawTimeline(drawing, holds, marks, span ? Math.max(first, now - span) : first, now);
    patch(list, eventsOf(holds, marks).slice(0, LIST_COUNT), (event) => event.key, eventItem);
  };
  return node;
}

function drawTimeline(root, holds, marks, from, now) {
  const width = Math.max(280, root.clientWidth || 800), begin = Math.min(from, now - 5), scale = width / (now - begin);
  const x = (time) => Math.round((Math.max(begin, Math.min(now, time)) - begin) * scale * 10) / 10;
  const shown = holds.filter((hold) => (hold.end === null ? now : hold.end) >= begin);
  const lanes = laneOf(shown, now, MOST_LANES), height = LANE_PX * (Math.max(0, ...lanes) + 1);
  const box = (kind, from_, to, y, high, words) => svg("rect", { class: kind, x: x(from_), y, width: Math.max(2, x(to) - x(from_)), height: high, rx: 3 }, svg("title", {}, words));
  const parts = [
    ticksOf(begin, now, Math.floor(width / 90)).map((at) => svg("g", { class: "axis" },
      svg("line", { x1: x(at), x2: x(at), y1: 0, y2: height + 5 }), svg("text", { x: x(at) + 4, y: height + 16 }, clock(at)))),
    marks.filter((mark) => mark.kind === "gap" && mark.end >= begin).map((mark) => box(mark.waited ? "gap waited" : "gap", mark.begin, mark.end, 0, height, `${mark.note}, ${seconds(mark.end - mark.begin)}`)),
    shown.map((hold, number) => box(`hold ${hold.outcome}`, hold.begin, hold.end === null ? now : hold.end, lanes[number] * LANE_PX + 3, LANE_PX - 6,
      `token ${hold.token}, ${who(hold)}, ${seconds((hold.end === null ? now : hold.end) - hold.begin)}: ${OUTCOMES[hold.outcome]}`)),
    marks.filter((mark) => mark.kind === "overlap" && mark.end >= begin).map((mark) => box("overlap", mark.begin, mark.end, 0, height, mark.note)),
    marks.filter((mark) => !["gap", "overlap"].includes(mark.kind) && mark.end >= begin).map((mark) =>
      svg("g", { class: `mark ${mark.kind}` }, svg("title", {}, mark.note), svg("line", { x1: x(mark.begin), x2: x(mark.begin), y1: 0, y2: height }), svg("circle", { cx: x(mark.begin), cy: 4, r: 4 }))),
  ];
  root.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${height + AXIS_PX}`, height: height + AXIS_PX, role: "img",
    "aria-label": `${count(shown.length, "hold")} between ${clock(begin)} and ${clock(now)}; the list below tells each` }, ...parts.flat(2)));
}

function eventsOf(holds, marks) {
  const events = [];
  for (const hold of holds) {
    const id = `${hold.token} ${hold.owner}`;
    const waited = hold.waited === null ? "" : `, after a wait of about ${seconds(hold.waited)}`;
    events.push({ key: `g ${id}`, at: hold.begin, kind: "granted", text: `token ${hold.token} granted to ${who(hold)}${waited}` });
    if (hold.end !== null) events.push({ key: `e ${id}`, at: hold.end, kind: hold.outcome, text: `token ${hold.token} of ${who(hold)}: ${OUTCOMES[hold.outcome]}, after ${seconds(hold.end - hold.begin)}` });
  }
  for (const mark of marks) {
    const long = mark.end > mark.begin ? `, for ${seconds(mark.end - mark.begin)}` : "";
    events.push({ key: `m ${mark.kind} ${mark.begin}`, at: mark.begin, kind: mark.kind === "gap" && mark.waited ? "gap waited" : mark.kind, text: mark.note + long });
  }
  return events.sort((one, other) => other.at - one.at || (one.kind === "granted" ? -1 : 1));
}

function eventItem(first) {
  const text = el("span", { class: "what" });
  const node = el("li", {}, el("time", { class: "figure", datetime: new Date(first.at * 1000).toISOString() }, clock(first.at)), el("b", { class: `kind ${first.kind}` }, first.kind), text);
  node.update = (event) => setText(text, event.text);
  return node;
}
