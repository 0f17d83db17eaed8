// A run as the page draws it: lanes of grants, waits and marks, made from the columns of operations.
// Times are microseconds from the start of the run; -1 is none. Operations are sorted by t0, and known by their index.

const ACQUIRE = 0, QUEUED = 1, RELEASE = 2, LOST = 3, READ = 4, CLAIM = 5, WRITE = 6;
const OK = 0, FAIL = 1, INFO = 2;

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// Everything the timeline needs, each list sorted by its start so that what is in view is found by bisection.
function understand(run) {
  const ops = run.operations, count = ops.t0.length;
  run.end = Math.max(1, run.seconds * 1e6);
  const ends = new Map();  // of each acquire: when it was let go of, and when it was lost
  for (let i = 0; i < count; i++) {
    const verb = ops.verb[i];
    if (verb !== RELEASE && verb !== LOST) continue;
    const end = ends.get(ops.of[i]) ?? { lost: -1, freed: -1, done: -1, release: -1 };
    if (verb === LOST && end.lost < 0) end.lost = ops.t0[i];
    if (verb === RELEASE && end.freed < 0) Object.assign(end, { freed: ops.t0[i], done: ops.t1[i], release: i });
    ends.set(ops.of[i], end);
  }
  const last = run.clients.map(() => 0);
  for (let i = 0; i < count; i++) last[ops.client[i]] = Math.max(last[ops.client[i]], ops.t1[i], ops.t0[i]);
  run.longest = 1;
  const kills = faultsOn(run, (kind) => /kill/.test(kind));
  run.lanes = run.clients.map((client, number) => ({ client, number, grants: [], marks: [], faults: [], rows: 1 }));
  for (let i = 0; i < count; i++) {
    const lane = run.lanes[ops.client[i]], verb = ops.verb[i];
    if (verb === ACQUIRE) lane.grants.push(grantOf(run, i, ends.get(i), last[lane.number], kills.get(lane.client)));
    else if (verb === READ || verb === CLAIM || verb === WRITE) lane.marks.push(i);
  }
  run.grants = new Map();
  for (const lane of run.lanes) {
    stack(lane);
    for (const grant of lane.grants) {
      run.grants.set(grant.op, grant);
      run.longest = Math.max(run.longest, grant.end - grant.t0);
    }
  }
  run.rowOf = (op) => run.grants.get(ops.verb[op] === ACQUIRE ? op : ops.of[op])?.row ?? 0;
  sortFaults(run);
  run.commits = run.commits.map(([time, number, write, name, token, op, before, parent, lost]) =>
    ({ time, number, write, name, token, op, before, parent, lost }));
  run.byNumber = new Map(run.commits.map((commit) => [commit.number, commit]));
  run.violations = run.violations.map(([checker, name, story, operations, commits, at], index) =>
    ({ checker, name, story, operations, commits, at, index }));
  run.violations.sort((a, b) => (a.at < 0) - (b.at < 0) || a.at - b.at);
  return run;
}

function grantOf(run, op, end, last, kills) {
  const ops = run.operations;
  const t0 = ops.t0[op], granted = ops.outcome[op] === OK;
  let t1 = ops.t1[op] < 0 ? cutOff(t0, last, kills) : ops.t1[op];
  const grant = { op, t0, t1, granted, failed: ops.outcome[op] === FAIL, name: ops.name[op], lost: -1, end: t1, row: 0 };
  if (!granted) return grant;
  grant.lost = end?.lost ?? -1;
  grant.end = end && end.freed >= 0 ? end.freed : cutOff(t1, Math.max(last, t1), kills);
  grant.clean = end !== undefined && end.release >= 0 && ops.held[end.release] === 1;
  if (grant.lost >= 0 && grant.lost > grant.end) grant.lost = -1;
  return grant;
}

// A grant that nothing ended lasts until its process was killed, or was last heard of.
function cutOff(from, last, kills) {
  const kill = kills?.find((time) => time >= from);
  return kill === undefined ? Math.max(from, last) : kill;
}

function faultsOn(run, wanted) {
  const found = new Map();
  for (const [kind, target, begin] of run.faults) {
    if (begin < 0 || !target.startsWith("client:") || !wanted(kind)) continue;
    const client = target.slice(7);
    found.set(client, [...(found.get(client) ?? []), begin].sort((a, b) => a - b));
  }
  return found;
}

// Grants of one client that are open at once stand in rows of their own.
function stack(lane) {
  const free = [];
  for (const grant of lane.grants) {
    let row = free.findIndex((end) => end <= grant.t0);
    if (row < 0) row = Math.min(free.length, 3);
    free[row] = Math.max(grant.end, grant.t1);
    grant.row = row;
  }
  lane.rows = Math.max(1, free.length);
}

function sortFaults(run) {
  const byClient = new Map(run.lanes.map((lane) => [lane.client, lane]));
  const targets = new Map();
  run.faults = run.faults.map(([kind, target, begin, end, note]) => ({ kind, target, begin, end, note }));
  for (const fault of run.faults) {
    if (fault.begin < 0) continue;
    const lane = fault.target.startsWith("client:") ? byClient.get(fault.target.slice(7)) : undefined;
    if (lane) lane.faults.push(fault);
    else targets.set(fault.target, [...(targets.get(fault.target) ?? []), fault]);
  }
  run.targets = [...targets].map(([target, faults]) => ({ target, faults: faults.sort((a, b) => a.begin - b.begin) }));
  for (const lane of run.lanes) lane.faults.sort((a, b) => a.begin - b.begin);
}

// The first index whose key is not below the value.
function bisect(list, value, key) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(list[middle]) < value) low = middle + 1; else high = middle;
  }
  return low;
}

// words

function seconds(us, digits) {
  return (us / 1e6).toFixed(digits ?? 3) + " s";
}
function span(us) {
  if (us < 1000) return us.toFixed(0) + " µs";
  if (us < 1e6) return (us / 1000).toFixed(us < 1e4 ? 1 : 0) + " ms";
  return (us / 1e6).toFixed(us < 1e7 ? 2 : 1) + " s";
}
// A token of sixteen digits is told apart by its last ones.
function short(token) {
  const text = String(token);
  return text.length > 9 ? "…" + text.slice(-6) : text;
}
function shorten(story) {
  return story.replace(/token \d{10,}/g, (words) => "token " + short(words.slice(6)));
}
function many(number) {
  return number.toLocaleString("en");
}
function escape(text) {
  return String(text).replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);
}
