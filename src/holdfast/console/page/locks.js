"use strict";
// All locks: a page of names, with who holds each, what is left of the ttl, and who waits.

const LOCK_COLUMNS = [
  { title: "Name", sort: "name" }, { title: "Holder" }, { title: "Token", class: "number" },
  { title: "Held for", sort: "held", class: "number" }, { title: "TTL left", sort: "left" }, { title: "Waiting", sort: "waiting", class: "number" },
];
const PAGE_COUNT = 50;

function locksView(query, go) {
  const offset = Number(query.offset || 0), sort = query.sort || "name";
  const search = el("input", { id: "search", type: "search", placeholder: "names that begin with…", "aria-label": "Search names by prefix",
    autocomplete: "off", spellcheck: "false", maxlength: 512, oninput: () => later(() => go({ ...query, prefix: search.value, offset: 0 }, true)) });
  search.value = query.prefix || "";
  const columns = LOCK_COLUMNS.map((column) => ({ ...column, sorted: column.sort === sort ? (sort === "name" || sort === "left" ? "ascending" : "descending") : null,
    button: column.sort && el("button", { type: "button", class: "sort", onclick: () => go({ ...query, sort: column.sort, offset: 0 }) }, column.title) }));
  const body = el("tbody", { role: "rowgroup" }), rows = table("Locks", columns, body);
  const none = el("div", { hidden: true });
  const pages = pager((by) => go({ ...query, offset: Math.max(0, offset + by * PAGE_COUNT) }));
  const sums = el("dl", { class: "sums" });
  const root = el("section", { "aria-label": "Locks" }, el("div", { class: "toolbar" }, search, sums), rows, none, pages);
  let told = -1;
  return {
    of: "locks", root, search,
    query: { prefix: query.prefix || "", sort, offset, limit: PAGE_COUNT },
    show(data, status) {
      showSums(sums, status);
      patch(body, data.locks, (lock) => lock.name, lockRow);
      rows.hidden = !data.total;
      none.hidden = Boolean(data.total);
      if (!data.total) none.replaceChildren(empty(query.prefix ? `No name that begins with “${query.prefix}” is held or waited for.` : "No lock is held or waited for.",
        query.prefix ? "" : "As soon as a program takes one, it is here."));
      pages.set(offset, data.locks.length, data.total, "name");
      if (query.prefix && told !== data.total) notice(count(data.total, "name"));
      told = data.total;
    },
  };
}

function showSums(sums, status) {
  patch(sums, [["names", status.names], ["held", status.held], ["waiting", status.waiting]], ([word]) => word, ([word]) => {
    const figure = el("dd", { class: "figure", id: `sum-${word}` });
    const node = el("div", {}, el("dt", {}, word), figure);
    node.update = ([, value]) => setText(figure, value.toLocaleString("en-US"));
    return node;
  });
}

function lockRow(first) {
  const chips = el("span", { class: "chips" }), holder = el("span"), more = el("span", { class: "soft" }), token = el("span", { class: "figure" });
  const held = age(null), bar = ttlBar(), waiting = el("span", { class: "figure" }), since = el("span", { class: "soft" });
  const link = el("a", { href: addressOf("lock", { name: first.name }), class: "name", title: first.name }, first.name);
  const row = el("tr", { role: "row", "data-name": first.name },
    cell("Name", { class: "name-cell" }, el("div", { class: "name-line" }, link, " ", chips)), cell("Holder", {}, holder, more), cell("Token", { class: "number" }, token),
    cell("Held for", { class: "number" }, held), cell("TTL left", {}, bar), cell("Waiting", { class: "number" }, waiting, since));
  row.update = (lock) => {
    const claim = lock.holders[0];
    chips.replaceChildren(...[kindChip(lock), ...otherChips(lock)].filter(Boolean));
    setText(holder, claim ? who(claim) : "free");
    holder.classList.toggle("soft", !claim);
    setText(more, lock.holder_count > 1 ? ` and ${count(lock.holder_count - 1, "other")}` : "");
    setText(token, claim && claim.token !== null ? claim.token : "–");
    held.set(claim ? claim.age : null);
    bar.set(claim || null);
    setText(waiting, lock.waiter_count ? lock.waiter_count.toLocaleString("en-US") : "–");
    setText(since, lock.waiter_count ? ` for ${seconds(lock.oldest_wait)}` : "");
    row.classList.toggle("contended", lock.waiter_count > 0);
  };
  return row;
}

let pending = 0;
function later(call) {
  clearTimeout(pending);
  pending = setTimeout(call, 200);
}
