// When operations are narrower than pixels, a lane shows shares instead of strokes: how much of each pixel's time was
// held (a column from below, in the colour of the name that was held most), slept through (hatched from above), and
// whether a lease was lost in it (a red stroke).

// The part of each pixel column that the spans cover, from 0 to 1.
function shares(width, spans) {
  const covered = new Float32Array(width);
  for (const [x0, x1] of spans) {
    const from = Math.max(0, x0), to = Math.min(width, Math.max(x1, x0));
    for (let column = Math.floor(from); column < to; column++) {
      covered[column] += Math.min(to, column + 1) - Math.max(from, column);
    }
  }
  return covered;
}

function isDense(grants, width) {
  return grants > width * 0.9;
}

// `left` is where the columns begin; `x` gives the pixel of a time, counted from there.
function drawDense(pen, c, lane, grants, x, left, width) {
  const top = lane.y + 2, tall = lane.height - 4, names = new Map(), lost = new Uint8Array(width);
  for (const grant of grants) {
    if (!grant.granted) continue;
    if (!names.has(grant.name)) names.set(grant.name, []);
    names.get(grant.name).push([x(grant.t1), x(grant.lost >= 0 ? grant.lost : grant.end)]);
    if (grant.lost >= 0) { const column = Math.floor(x(grant.lost)); if (column >= 0 && column < width) lost[column] = 1; }
  }
  const held = [...names].sort(([a], [b]) => a - b).map(([name, spans]) => [c.hold(name), shares(width, spans)]);
  const slept = shares(width, lane.faults.filter((fault) => !/kill/.test(fault.kind)).map((fault) => [x(fault.begin), x(fault.end)]));
  for (let column = 0; column < width; column++) {
    let bottom = top + tall;
    for (const [colour, covered] of held) {
      const part = Math.min(1, covered[column]) * tall;
      if (part < 0.3) continue;
      pen.fillStyle = colour;
      pen.fillRect(left + column, Math.max(top, bottom - part), 1, Math.min(part, bottom - top));
      bottom -= part;
    }
    if (slept[column] > 0.02) {
      pen.globalAlpha = 0.55 * Math.min(1, slept[column]) + 0.15;
      pen.fillStyle = hatch(pen, c.pause);
      pen.fillRect(left + column, top, 1, tall);
      pen.globalAlpha = 1;
    }
    if (lost[column]) { pen.fillStyle = c.bad; pen.fillRect(left + column, top - 1, 1, 5); }
  }
}

// The log of one name: how many commits fall into each column, and how many of them were lost.
function drawDenseLog(pen, c, log, commits, x, left, width) {
  const all = new Uint16Array(width), lost = new Uint16Array(width);
  for (const commit of commits) {
    const column = Math.floor(x(commit.time));
    if (!commit.write || column < 0 || column >= width) continue;
    all[column]++;
    lost[column] += commit.lost;
  }
  let most = 1;
  for (const count of all) most = Math.max(most, count);
  const tall = LOG_ROW - 6, bottom = log.y + LOG_ROW - 3;
  for (let column = 0; column < width; column++) {
    const part = all[column] / most * tall, red = lost[column] / most * tall;
    pen.fillStyle = c.hold(log.number);
    pen.fillRect(left + column, bottom - part, 1, part - red);
    pen.fillStyle = c.bad;
    pen.fillRect(left + column, bottom - red, 1, red);
  }
}
