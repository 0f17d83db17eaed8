"use strict";
// The five figures with their limits, and the health of the engine as the doctor sees it.

const RULES = {
  acquisition: ["Acquisition", "p99 of waits, of the ttl", "the longest wait now, of the ttl"],
  contention: ["Contention", "not granted at once, of all", "of the names that are held, those waited for"],
  hold: ["Hold", "how near leases come to their end, of the ttl", "the hold nearest to its end, of its ttl"],
  timeouts: ["Timeouts", "gave up, of those who waited", "no survey shows them; programs count them"],
  refusals: ["Fence refusals", "stale tokens refused; one is too many", "stale tokens that fences refused; name them with --fence"],
};

function metricsView() {
  const engine = figureCards(2), programs = figureCards(1), hint = el("p", { class: "soft" }), sources = el("p", { class: "soft" });
  const families = el("tbody", { role: "rowgroup" }), counted = el("tbody", { role: "rowgroup" });
  const programPart = el("div", {}, el("h2", {}, "What programs count"), sources, programs,
    table("Families, as programs count them", [{ title: "Family" }, { title: "Acquired", class: "number" }, { title: "Held", class: "number" }, { title: "Waiting", class: "number" },
      { title: "Lost", class: "number" }, { title: "Wait p99", class: "number" }, { title: "Contention", class: "number" }, { title: "Hold", class: "number" }, { title: "Timeouts", class: "number" }], counted));
  const root = el("section", { "aria-label": "Metrics" }, programPart, el("h2", { class: "next" }, "What the engine shows now"), hint, engine,
    table("Families, as the engine shows them", [{ title: "Family" }, { title: "Names", class: "number" }, { title: "Held", class: "number" }, { title: "Waiting", class: "number" },
      { title: "Oldest hold", class: "number" }, { title: "Longest wait", class: "number" }, { title: "Unrecovered", class: "number" }], families));
  const refused = el("tbody", { role: "rowgroup" }), fenceProblems = el("p", { class: "bad" });
  const fencePart = el("div", { hidden: true }, el("h2", { class: "next" }, "Refusals kept at fences"), fenceProblems,
    table("Refusals kept at fences", [{ title: "Resource" }, { title: "Fence" }, { title: "Refused", class: "number" }, { title: "Last", class: "number" }, { title: "Token", class: "number" },
      { title: "Mark", class: "number" }, { title: "Owner" }], refused));
  root.append(fencePart);
  return {
    of: "metrics", root, query: {},
    show(data) {
      fencePart.hidden = !data.fences;
      if (data.fences) {
        setText(fenceProblems, Object.entries(data.fences.problems).map(([fence, why]) => `${fence}: ${why}`).join("; "));
        patch(refused, data.fences.resources, (each) => `${each.fence} ${each.resource}`, refusalRow);
      }
      setText(hint, "A survey tells how it is at this moment. What 99 % of all saw, timeouts and refusals are counted by programs" + (data.programs ? "." : ": name their pages for Prometheus with --metrics URL."));
      engine.set(data.engine.verdicts);
      patch(families, data.engine.families, (each) => each.family, (first) => figureRow(first.family, (each) => [each.names, each.held, each.waiting, seconds(each.oldest_hold_seconds), seconds(each.oldest_wait_seconds), { text: String(each.unrecovered), bad: each.unrecovered > 0 }],
        ["Names", "Held", "Waiting", "Oldest hold", "Longest wait", "Unrecovered"]));
      programPart.hidden = !data.programs;
      if (!data.programs) return;
      const broken = Object.entries(data.programs.problems).map(([address, why]) => `${address}: ${why}`);
      setText(sources, broken.length ? `Could not be read: ${broken.join("; ")}` : `From ${data.programs.sources.join(", ")}, all together.`);
      sources.classList.toggle("bad", broken.length > 0);
      programs.set(data.programs.verdicts);
      patch(counted, data.programs.families, (each) => each.family, (first) => figureRow(first.family,
        (each) => [each.acquired, each.held, each.waiting, each.lost, ...each.verdicts.map((verdict) => ({ text: percent(verdict.value), bad: !verdict.ok }))],
        ["Acquired", "Held", "Waiting", "Lost", "Wait p99", "Contention", "Hold", "Timeouts"]));
    },
  };
}

function refusalRow(first) {
  const cells = ["Refused", "Last", "Token", "Mark"].map((label) => cell(label, { class: "number figure" })), owner = cell("Owner", {});
  const row = el("tr", { role: "row" }, cell("Resource", { class: "name-cell" }, el("span", { class: "name" }, first.resource)), cell("Fence", {}, first.fence), cells, owner);
  row.update = (each) => {
    [each.count.toLocaleString("en-US"), new Date(each.at * 1000).toLocaleString("en-GB"), each.token, each.mark === null ? "–" : each.mark].forEach((text, number) => setText(cells[number], text));
    setText(owner, each.owner || "–");
  };
  return row;
}

function figureRow(name, read, labels) {
  const cells = labels.map((label) => cell(label, { class: "number figure" }));
  const row = el("tr", { role: "row" }, cell("Family", { class: "name-cell" }, el("span", { class: "name" }, name)), cells);
  row.update = (each) => read(each).forEach((value, number) => {
    setText(cells[number], String(value.text === undefined ? value.toLocaleString("en-US") : value.text));
    cells[number].classList.toggle("bad", Boolean(value.bad));
  });
  return row;
}

function figureCards(words) {
  const node = el("div", { class: "figures" });
  node.set = (verdicts) => patch(node, verdicts, (verdict) => verdict.rule, (first) => {
    const value = el("b", { class: "figure" }), inner = el("i"), mark = el("u"), limit = el("span", { class: "soft" });
    const track = el("span", { class: "gauge", "aria-hidden": "true" }, inner, mark);
    const card = el("div", { class: "figure-card", "data-rule": first.rule }, el("h3", {}, RULES[first.rule][0]), value, track, el("p", { class: "soft" }, RULES[first.rule][words]), limit);
    card.update = (verdict) => {
      const counts = verdict.rule === "refusals", at = gauge(verdict.value, verdict.limit);
      setText(value, verdict.value === null ? "–" : counts ? String(verdict.value) : percent(verdict.value));
      card.dataset.level = verdict.value === null ? "none" : verdict.ok ? "good" : "bad";
      inner.style.width = `${at.value * 100}%`;
      mark.style.left = `${at.limit * 100}%`;
      setText(limit, counts ? "limit: none" : `limit ${percent(verdict.limit)}${verdict.count ? `, of ${count(verdict.count, words === 1 ? "sample" : verdict.rule === "hold" ? "hold" : "name")}` : ""}`);
    };
    return card;
  });
  return node;
}

const HEALTH_ORDER = ["failed", "could not look", "warning", "fine"];
const HEALTH_MARKS = { fine: "✓", warning: "!", failed: "✗", "could not look": "?" };

function healthView() {
  const head = el("p", { class: "outcome" }), when = el("p", { class: "soft" }), list = el("ul", { class: "findings" });
  const root = el("section", { "aria-label": "Health of the engine" }, el("h2", {}, "Engine health"), head, when, list);
  return {
    of: "health", root, query: {},
    show(data) {
      const report = data.report;
      setText(head, report ? report.outcome : data.problem ? "could not look" : "the doctor is looking…");
      head.dataset.outcome = report ? report.outcome : "could not look";
      setText(when, data.problem ? data.problem : report ? `The doctor looked at ${clock(data.at)}, without experiments; holdfast doctor measures, too.` : "");
      const findings = report ? [...report.findings].sort((one, other) => HEALTH_ORDER.indexOf(one.outcome) - HEALTH_ORDER.indexOf(other.outcome)) : [];
      patch(list, findings, (finding) => `${finding.id} ${finding.where} ${finding.outcome} ${finding.seen}`, findingItem);
    },
  };
}

function findingItem(finding) {
  const details = finding.outcome === "fine" ? null : [el("p", {}, finding.why), el("p", {}, el("b", {}, "What to do: "), finding.remedy)];
  return el("li", { "data-outcome": finding.outcome }, el("span", { class: "sign", role: "img", "aria-label": finding.outcome }, HEALTH_MARKS[finding.outcome]),
    el("div", {}, el("h3", {}, finding.title, finding.where && ` (${finding.where})`), el("p", { class: "soft" }, finding.seen), details, el("code", {}, finding.id)));
}
