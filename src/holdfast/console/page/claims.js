"use strict";
// What a claim looks like wherever it stands: who, its token, the ttl that is left of it.

function who(claim) {
  return `${claim.host}:${claim.pid}`;
}

function ttlBar() {
  const inner = el("i"), text = el("span", { class: "figure" });
  const track = el("span", { class: "bar", role: "meter", "aria-label": "ttl left", "aria-valuemin": 0, "aria-valuemax": 100 }, inner);
  const node = el("span", { class: "ttl" }, track, text);
  node.set = (claim) => { node.claim = claim; node.tick(0); };
  ticks(node, (elapsed) => {
    const claim = node.claim;
    node.hidden = !claim;
    if (!claim) return;
    const remaining = claim.remaining === null ? null : Math.max(0, claim.remaining - elapsed);
    const left = leftOf(remaining, claim.ttl), level = claim.live ? levelOf(left) : "closed";
    track.hidden = left === null;
    inner.style.width = `${(left || 0) * 100}%`;
    if (node.dataset.level !== level) node.dataset.level = level;
    setText(text, left === null ? "no ttl" : claim.live ? seconds(remaining) : `closed, ${seconds(remaining)}`);
    track.setAttribute("aria-valuenow", String(Math.round((left || 0) * 100)));
    track.setAttribute("aria-valuetext", left === null ? "no ttl" : `${seconds(remaining)} of about ${seconds(claim.ttl)} left`);
  });
  return node;
}

function kindChip(lock) {
  return lock.kind === "lock" ? null : el("span", { class: "chip" }, lock.kind);
}

// What the engine tells of a name that this page has no place of its own for: a true fact is a chip, anything else a pair.
function otherChips(lock) {
  const left = lock.unrecovered;
  const unrecovered = left ? [el("span", { class: "chip warn", title: `token ${left.token}, owner ${left.owner}` }, `unrecovered: ${left.ended}`)] : [];
  return [...unrecovered, ...others(lock)];
}

function others(lock) {
  return Object.entries(lock.other).filter(([, value]) => value !== null && value !== false && value !== "").map(([name, value]) =>
    el("span", { class: value === true ? "chip warn" : "chip" }, value === true ? name : `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`));
}
