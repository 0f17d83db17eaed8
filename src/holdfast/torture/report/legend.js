// The legend: each stroke of the timeline, drawn with the same pen.

function showLegend(run) {
  const c = colours(), entries = [
    ["waiting", (pen) => { pen.fillStyle = c.wait; pen.fillRect(2, 5.5, 26, 3); }],
    ["holding, with its token", (pen) => bar(pen, 2, 28, 1, 12, c.hold(0))],
    ["read, write", (pen) => { bar(pen, 2, 28, 1, 12, c.hold(0)); pen.fillStyle = "#fff"; pen.fillRect(9, 7, 1.5, 4.5); pen.beginPath(); pen.moveTo(20, 6); pen.lineTo(23, 11.5); pen.lineTo(17, 11.5); pen.fill(); }],
    ["paused", (pen) => sleep(pen, c, 2, 28, 0, 14)],
    ["lost, and still at it", (pen) => { bar(pen, 5, 28, 7, 6, c.bad); pen.fillStyle = c.bad; pen.fillRect(3, 1, 2, 12); }],
    ["refused by the fence", (pen) => cross(pen, 15, 7, 4, c.fair)],
    ["killed", (pen) => cross(pen, 15, 7, 5, c.bad)],
    ["update lost", (pen) => { pen.strokeStyle = c.bad; pen.lineWidth = 1.6; pen.beginPath(); pen.arc(15, 7, 4, 0, 7); pen.stroke(); }],
  ];
  const seen = {
    paused: run.lanes.some((lane) => lane.faults.length), killed: run.faults.some((fault) => /kill/.test(fault.kind) && fault.begin >= 0),
    "lost, and still at it": run.counts.losses, "refused by the fence": run.counts.refused, "update lost": run.counts.lost_updates,
  };
  $("legend").innerHTML = "";
  for (const [text, draw] of entries) {
    if (text in seen && !seen[text]) continue;
    const item = document.createElement("li"), swatch = document.createElement("canvas");
    swatch.width = 60; swatch.height = 28;
    const pen = swatch.getContext("2d");
    pen.scale(2, 2);
    draw(pen);
    item.append(swatch, text);
    $("legend").append(item);
  }
}
