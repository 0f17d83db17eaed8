// The panels around the timeline: verdicts, runs, violations, faults, and the operations around what was chosen.

const $ = (id) => document.getElementById(id);
const SHOWN = 400;     // violations in the list at once
const AROUND = 24;     // operations before and after
const TITLES = {
  overlap: "overlap", linearizable: "linearizable", tokens: "tokens", commits: "commits",
  updates: "lost updates", fifo: "fifo", leftovers: "left behind", "in time": "late answers",
};

function look(line) {
  if (line.held === null) return "";
  if (line.held) return "good";
  return line.must ? "bad" : "fair";
}

function title(run) {
  return [run.run.engine, run.run.scenario, run.run.discipline].filter(Boolean).join(" · ");
}

function showHeader(runs, run) {
  const told = run.run;
  $("summary").textContent = [
    title(run), `seed ${told.seed}`, told.ttl ? `ttl ${span(told.ttl * 1e6)}` : "", `${run.clients.length} clients`,
    `${many(run.counts.operations)} operations`, `${many(run.counts.faults)} faults`, seconds(run.end, 1),
  ].filter(Boolean).join("  ·  ");
  const passed = runs.every((one) => one.passed);
  $("outcome").hidden = false;
  $("outcome").className = passed ? "passed" : "failed";
  $("outcome").textContent = passed ? "what must hold, held" : "something that must hold is broken";
}

function showVerdicts(run) {
  $("verdicts").innerHTML = run.lines.map((line) =>
    `<div class="verdict ${look(line)}"><h3>${escape(line.title)}</h3><b>${escape(line.word)}</b><p>${escape(line.text)}</p></div>`).join("");
}

function showRuns(runs, chosen, choose) {
  $("runs").hidden = runs.length < 2;
  const cell = (line) => `<td class="${{ good: "ok", bad: "info", fair: "fail" }[look(line)] ?? "none"}">${escape(line.word)}</td>`;
  const heads = ["engine", "discipline", "operations", "faults", "mutual exclusion", "resource", "lost", "linearizable", "tokens", "fifo", "nothing left", "in time"];
  const row = (run, i) => `<tr data-run="${i}" aria-selected="${i === chosen}"><td>${escape([run.run.engine, run.run.scenario].filter(Boolean).join(" · "))}</td>
    <td>${escape(run.run.discipline)}</td><td class="number">${many(run.counts.operations)}</td><td class="number">${many(run.counts.faults)}</td>
    ${cell(run.lines[0])}${cell(run.lines[1])}<td class="number">${many(run.counts.lost_updates)} of ${many(run.counts.acknowledged)}</td>
    ${run.lines.slice(2).map(cell).join("")}</tr>`;
  const numbers = new Set(["operations", "faults", "lost"]);
  $("runs").innerHTML = `<table><thead><tr>${heads.map((head) => `<th class="${numbers.has(head) ? "number" : ""}">${head}</th>`).join("")}</tr></thead>
    <tbody>${runs.map(row).join("")}</tbody></table>`;
  for (const row of $("runs").querySelectorAll("tbody tr")) row.onclick = () => choose(Number(row.dataset.run));
  $("runs").querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
}

function showCheckers(run, chosen, choose) {
  const found = Object.entries(run.found).filter(([, count]) => count);
  const button = (checker, text) => `<button data-checker="${checker}" aria-pressed="${checker === chosen}">${text}</button>`;
  $("checkers").innerHTML = found.length < 2 ? "" : button("", "all") + found.map(([checker, count]) => button(checker, `${TITLES[checker]} ${many(count)}`)).join("");
  for (const one of $("checkers").querySelectorAll("button")) one.onclick = () => choose(one.dataset.checker);
}

function showViolations(run, listed, chosen, choose) {
  const item = (violation) => `<li data-index="${violation.index}" aria-selected="${violation === chosen}">
    <small><span>${TITLES[violation.checker]}</span><span>${violation.at < 0 ? "after the end" : seconds(violation.at)}</span></small>${escape(shorten(violation.story))}</li>`;
  const from = chosen ? Math.max(0, Math.min(listed.indexOf(chosen) - 20, listed.length - SHOWN)) : 0;
  const shown = listed.slice(from, from + SHOWN);
  const total = listed.length ? Object.values(run.found).reduce((sum, count) => sum + count, 0) : 0;
  let html = shown.map(item).join("");
  if (!listed.length) html = '<li class="none">None. Every operation fits.</li>';
  else if (shown.length < listed.length || run.violations.length < total) {
    html += `<li class="none">${many(shown.length)} of ${many(listed.length)} are listed here; n and p go through them, the JSON beside this page has all</li>`;
  }
  $("violations").innerHTML = html;
  for (const one of $("violations").querySelectorAll("li[data-index]")) {
    one.onclick = () => choose(listed.find((violation) => violation.index === Number(one.dataset.index)));
  }
  const selected = $("violations").querySelector('[aria-selected="true"]');
  if (selected) selected.scrollIntoView({ block: "nearest" });
}

function showFaults(run, go) {
  const kinds = new Map(), not = [];
  for (const fault of run.faults) {
    if (fault.begin < 0) { not.push(fault); continue; }
    const side = fault.target.startsWith("client:") ? "clients" : fault.target;
    const key = `${fault.kind} · ${side}`;
    kinds.set(key, [...(kinds.get(key) ?? []), fault]);
  }
  const rows = [...kinds].map(([key, faults]) =>
    `<p><span>${escape(key)}</span><a data-kind="${escape(key)}">${many(faults.length)} ›</a></p>`);
  const none = not.map((fault) => `<p class="not">${escape(fault.kind)}: ${escape(fault.note)}</p>`);
  $("faults").innerHTML = rows.concat(none).join("") || '<p class="not">None.</p>';
  for (const link of $("faults").querySelectorAll("a")) {
    let next = 0;
    link.onclick = () => { const faults = kinds.get(link.dataset.kind); go(faults[next++ % faults.length]); };
  }
}

// A violation or one operation, with what the same name saw before and after.
function showAround(run, chosen, ops, choose) {
  const all = run.operations;
  const marked = new Set(ops);
  if (!ops.length && !chosen) { $("around").innerHTML = ""; return; }
  const shown = new Set(ops);
  const name = ops.length ? all.name[ops[0]] : -1;
  for (const op of ops) {
    for (const way of [-1, 1]) {
      for (let i = op + way, left = AROUND; i >= 0 && i < all.t0.length && left > 0; i += way) {
        if (all.name[i] === name) { shown.add(i); left--; }
      }
    }
  }
  const rows = [...shown].sort((a, b) => a - b).map((op) => {
    const outcome = all.t1[op] < 0 ? "cut off" : run.outcomes[all.outcome[op]];
    const facts = [
      all.parent[op] >= 0 ? `read ${all.parent[op]}` : "", all.version[op] >= 0 ? `wrote ${all.version[op]}` : "",
      all.held[op] === 0 ? "was not held any more" : "", all.capacity[op] > 1 ? `${all.weight[op]} of ${all.capacity[op]}` : "",
      run.errors[all.error[op]],
    ].filter(Boolean).join(", ");
    return `<tr data-op="${op}" class="${marked.has(op) ? "culprit" : ""}"><td>${seconds(all.t0[op], 6)}</td>
      <td>${all.t1[op] <= all.t0[op] ? "" : span(all.t1[op] - all.t0[op])}</td><td>${escape(run.clients[all.client[op]])}</td><td>${run.verbs[all.verb[op]]}</td>
      <td class="${all.t1[op] < 0 ? "info" : run.outcomes[all.outcome[op]]}">${outcome}</td><td>${all.token[op] || ""}</td><td>${escape(facts)}</td></tr>`;
  });
  const story = chosen ? `<p class="story"><b>${TITLES[chosen.checker]}:</b> ${escape(chosen.story)}</p>` : "";
  const table = rows.length ? `<div class="scroll"><table><thead><tr><th>invoked</th><th>took</th><th>client</th><th>operation</th><th>outcome</th>
    <th>token</th><th>facts${name >= 0 ? ` of ${escape(run.names[name])}` : ""}</th></tr></thead><tbody>${rows.join("")}</tbody></table></div>` : "";
  $("around").innerHTML = story + table;
  for (const row of $("around").querySelectorAll("tbody tr")) row.onclick = () => choose(Number(row.dataset.op));
  const first = $("around").querySelector("tr.culprit"), box = $("around").querySelector(".scroll");
  if (first && box) box.scrollTop = Math.max(0, first.offsetTop - 60);
}
