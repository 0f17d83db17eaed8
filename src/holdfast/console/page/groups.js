"use strict";
// Partitions, elections and limits: what consists of several names or of several holders.

function prefixSearch(query, go, what) {
  const search = el("input", { id: "search", type: "search", placeholder: `${what} that begin with…`, "aria-label": `Search ${what} by prefix`,
    autocomplete: "off", spellcheck: "false", maxlength: 512, oninput: () => later(() => go({ ...query, prefix: search.value, offset: 0 }, true)) });
  search.value = query.prefix || "";
  return search;
}

// A view of a list that comes in pages: what they share.
function listView(of, what, key, query, go, make, none) {
  const offset = Number(query.offset || 0), search = prefixSearch(query, go, `${what}s`);
  const { node, body } = make(), more = el("div");
  const pages = pager((by) => go({ ...query, offset: Math.max(0, offset + by * PAGE_COUNT) })), nothing = empty(...none);
  return {
    of, search, more, root: el("section", { "aria-label": `${what}s` }, el("div", { class: "toolbar" }, search), node, nothing, pages, more),
    query: { prefix: query.prefix || "", offset, limit: PAGE_COUNT },
    show(data) {
      patch(body, data[key], body.keyOf, body.make);
      node.hidden = !data[key].length;
      nothing.hidden = Boolean(data[key].length);
      pages.set(offset, data[key].length, data.total, what);
      if (this.showMore) this.showMore(data);
    },
  };
}

function partitionsView(query, go) {
  return listView("partitions", "partition", "partitions", query, go, () => {
    const body = el("div");
    body.keyOf = (partition) => `${partition.name} ${partition.shards}`;
    body.make = partitionCard;
    return { node: body, body };
  }, ["No partition has a member.", "Programs make them with locks.partitions(name, shards=…)."]);
}

function partitionCard(first) {
  const body = el("tbody", { role: "rowgroup" }), facts = el("p", { class: "soft" });
  const node = el("div", { class: "card" }, el("h3", { class: "name" }, first.name), facts,
    table(`Members of ${first.name}`, [{ title: "Member" }, { title: "Where" }, { title: "Weight", class: "number" }, { title: "For", class: "number" }, { title: "Owns", class: "number" }, { title: "Share" }, { title: "Which" }], body));
  node.update = (partition) => {
    setText(facts, `${count(partition.shards, "shard")}, ${count(partition.member_count, "member")}`);
    patch(body, partition.members, (member) => `${member.kind} ${member.id}`, (member) => memberRow(member, partition.shards));
  };
  return node;
}

function memberRow(first, shards) {
  const owns = el("span", { class: "figure" }), which = el("span", { class: "soft which" }), where = el("span"), since = age(first.age), inner = el("i");
  const label = first.kind === "unowned" ? "nobody" : first.kind === "leaving" ? `${first.id} (leaving)` : first.id;
  const row = el("tr", { role: "row", class: first.kind }, cell("Member", {}, el("span", { class: "figure" }, label)), cell("Where", {}, where),
    cell("Weight", { class: "number" }, first.weight === null ? "–" : String(first.weight)), cell("For", { class: "number" }, since),
    cell("Owns", { class: "number" }, owns), cell("Share", {}, el("span", { class: "bar plain", "aria-hidden": "true" }, inner)), cell("Which", {}, which));
  row.update = (member) => {
    setText(where, member.host ? `${member.host}:${member.pid}` : "–");
    since.set(member.age);
    setText(owns, String(member.owns));
    inner.style.width = `${100 * member.owns / shards}%`;
    setText(which, member.which);
  };
  return row;
}

function electionsView(query, go) {
  return listView("elections", "election", "elections", query, go, () => {
    const body = el("tbody", { role: "rowgroup" });
    body.keyOf = (election) => election.name;
    body.make = electionRow;
    return { body, node: table("Elections", [{ title: "Election" }, { title: "Leader" }, { title: "Token", class: "number" }, { title: "Leads for", class: "number" },
      { title: "TTL left" }, { title: "Candidates", class: "number" }, { title: "Leaders seen", class: "number" }], body) };
  }, ["No election has a leader or a candidate.", "Programs make them with locks.election(name)."]);
}

function electionRow(first) {
  const leader = el("span"), token = el("span", { class: "figure" }), leads = age(null), bar = ttlBar(), waiting = el("span", { class: "figure" }), seen = el("span", { class: "figure" });
  const row = el("tr", { role: "row", "data-name": first.name }, cell("Election", { class: "name-cell" }, el("a", { class: "name", href: addressOf("lock", { name: first.name }) }, first.name)),
    cell("Leader", {}, leader), cell("Token", { class: "number" }, token), cell("Leads for", { class: "number" }, leads), cell("TTL left", {}, bar),
    cell("Candidates", { class: "number" }, waiting), cell("Leaders seen", { class: "number" }, seen));
  row.update = (election) => {
    const claim = election.holders[0];
    setText(leader, claim ? who(claim) : "no leader");
    leader.classList.toggle("bad", !claim);
    setText(token, claim && claim.token !== null ? claim.token : "–");
    leads.set(claim ? claim.age : null);
    bar.set(claim || null);
    setText(waiting, String(election.waiter_count));
    setText(seen, String(election.leaders_seen));
  };
  return row;
}

function limitsView(query, go) {
  const view = listView("limits", "limit", "limits", query, go, () => {
    const body = el("tbody", { role: "rowgroup" });
    body.keyOf = (limit) => limit.name;
    body.make = limitRow;
    return { body, node: table("Semaphores and read-write locks", [{ title: "Name" }, { title: "Kind" }, { title: "In use", class: "number" }, { title: "" }, { title: "Waiting", class: "number" }], body) };
  }, ["No semaphore and no read-write lock is in use."]);
  const rates = el("tbody", { role: "rowgroup" });
  const watched = el("div", { class: "card" }, el("h3", {}, "Rate limits"), table("Rate limits", [{ title: "Name" }, { title: "Rate" }, { title: "Burst used", class: "number" }, { title: "" }, { title: "Next may pass in", class: "number" }], rates));
  const hint = el("p", { class: "soft" }, "A limiter is one number at the engine, and no engine lists them. Name those to watch: holdfast console --limit mail=5/s");
  view.more.append(watched, hint);
  view.showMore = (data) => {
    patch(rates, data.rates, (rate) => rate.name, rateRow);
    watched.hidden = !data.rates.length;
    hint.hidden = Boolean(data.rates.length);
  };
  return view;
}

function usage() {
  const inner = el("i"), node = el("span", { class: "bar plain", role: "meter", "aria-label": "in use", "aria-valuemin": 0, "aria-valuemax": 100 }, inner);
  node.set = (part) => {
    const shown = Math.max(0, Math.min(1, part));
    inner.style.width = `${shown * 100}%`;
    node.dataset.level = shown >= 1 ? "bad" : shown >= 0.8 ? "fair" : "good";
    node.setAttribute("aria-valuenow", String(Math.round(shown * 100)));
  };
  return node;
}

function limitRow(first) {
  const used = el("span", { class: "figure" }), bar = usage(), waiting = el("span", { class: "figure" });
  const row = el("tr", { role: "row", "data-name": first.name }, cell("Name", { class: "name-cell" }, el("a", { class: "name", href: addressOf("lock", { name: first.name }) }, first.name)),
    cell("Kind", {}, first.kind), cell("In use", { class: "number" }, used), cell("", {}, bar), cell("Waiting", { class: "number" }, waiting));
  row.update = (limit) => {
    const readers = limit.kind === "read-write";
    setText(used, readers ? (limit.used >= limit.capacity ? "1 writer" : count(limit.holder_count, "reader")) : `${limit.used} of ${limit.capacity}`);
    bar.hidden = readers;
    bar.set(limit.used / limit.capacity);
    setText(waiting, limit.waiter_count ? String(limit.waiter_count) : "–");
  };
  return row;
}

function rateRow(first) {
  const used = el("span", { class: "figure" }), bar = usage(), next = el("span", { class: "figure" });
  const row = el("tr", { role: "row", "data-name": first.name }, cell("Name", { class: "name-cell" }, el("span", { class: "name" }, first.name)), cell("Rate", {}, first.rate),
    cell("Burst used", { class: "number" }, used), cell("", {}, bar), cell("Next may pass in", { class: "number" }, next));
  row.update = (rate) => {
    setText(used, rate.problem || `${rate.used.toFixed(1)} of ${rate.burst}`);
    bar.hidden = Boolean(rate.problem);
    if (!rate.problem) bar.set(rate.used / rate.burst);
    setText(next, rate.problem ? "–" : rate.wait > 0 ? seconds(rate.wait) : "now");
  };
  return row;
}
