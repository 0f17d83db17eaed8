"use strict";
// One lock: who holds it, who waits at which place, and what was seen of it.

const WAITERS_COUNT = 100;

function lockView(query, go) {
  const offset = Number(query.offset || 0), name = query.name || "";
  const chips = el("span", { class: "chips" }), facts = el("p", { class: "soft" });
  const holders = el("tbody", { role: "rowgroup" }), waiters = el("tbody", { role: "rowgroup" });
  const holderTable = table("Holders", [{ title: "Holder" }, { title: "Token", class: "number" }, { title: "Mode" }, { title: "Held for", class: "number" },
    { title: "TTL left" }, { title: "" }], holders);
  const waiterTable = table("Waiters", [{ title: "Place", class: "number slim" }, { title: "Waiter" }, { title: "Mode" }, { title: "Waits for", class: "number" },
    { title: "Place kept", class: "number" }], waiters);
  const free = empty("Nobody holds it."), title = el("h3", {}, "Waiting"), timeline = timelineView();
  const pages = pager((by) => go({ ...query, offset: Math.max(0, offset + by * WAITERS_COUNT) }));
  const root = el("section", { "aria-labelledby": "lock-title" },
    el("p", { class: "back" }, el("a", { href: "#/locks" }, "← all locks")),
    el("h2", { id: "lock-title", class: "name" }, name), chips, facts,
    el("div", { class: "card" }, el("h3", {}, "Holders"), holderTable, free),
    el("div", { class: "card" }, timeline), el("div", { class: "card" }, title, waiterTable, pages));
  return {
    of: "lock", root, query: { name, offset, limit: WAITERS_COUNT },
    show(lock, status) {
      chips.replaceChildren(...[kindChip(lock), ...otherChips(lock)].filter(Boolean));
      setText(facts, factsOf(lock));
      patch(holders, lock.holders, (claim) => `${claim.token} ${claim.owner}`, (claim) => holderRow(name, claim));
      holderTable.hidden = !lock.holders.length;
      free.hidden = Boolean(lock.holders.length);
      setText(title, lock.waiter_count ? `Waiting: ${lock.waiter_count.toLocaleString("en-US")}` : "Nobody waits");
      patch(waiters, lock.waiters, (claim) => claim.owner, waiterRow);
      waiterTable.hidden = !lock.waiters.length;
      pages.set(offset, lock.waiters.length, lock.waiter_count, "waiter");
      timeline.show(lock.timeline, status.at || 0);
    },
  };
}

function factsOf(lock) {
  const left = lock.unrecovered;
  const unclean = left ? `Token ${left.token} did not end cleanly (${left.ended}), and nobody has put right yet what it left: the next holder with recover= does.` : "";
  return [lock.kind === "semaphore" ? `${lock.used} of ${lock.capacity} in use.` : "", unclean].filter(Boolean).join(" ");
}

function holderRow(name, first) {
  const held = age(first.age), bar = ttlBar(), mode = el("span");
  const acts = el("span", { class: "acts", hidden: true },
    el("button", { type: "button", onclick: () => confirmAct("ask", name, first) }, "Ask"),
    el("button", { type: "button", class: "danger", onclick: () => confirmAct("evict", name, first) }, "Evict"));
  const row = el("tr", { role: "row", "data-token": first.token }, cell("Holder", {}, el("span", { title: `owner ${first.owner}` }, who(first))),
    cell("Token", { class: "number" }, el("span", { class: "figure" }, first.token === null ? "–" : first.token)),
    cell("Mode", {}, mode), cell("Held for", { class: "number" }, held), cell("TTL left", {}, bar), cell("", { class: "number" }, acts));
  row.update = (claim) => {
    held.set(claim.age);
    bar.set(claim);
    setText(mode, (claim.weight > 1 ? `${claim.mode} × ${claim.weight}` : claim.mode) + (claim.live ? "" : ", closed"));
    acts.hidden = !(session.writable && session.signed_in && claim.live);
  };
  return row;
}

function waiterRow(first) {
  const place = el("span", { class: "figure" }), waits = age(first.age), kept = el("span", { class: "figure" });
  const row = el("tr", { role: "row" }, cell("Place", { class: "number" }, place), cell("Waiter", {}, el("span", { title: `owner ${first.owner}` }, who(first))),
    cell("Mode", {}, first.mode), cell("Waits for", { class: "number" }, waits), cell("Place kept", { class: "number" }, kept));
  row.update = (claim) => {
    setText(place, String(claim.place));
    waits.set(claim.age);
    setText(kept, claim.remaining ? seconds(claim.remaining) : "–");
  };
  return row;
}
