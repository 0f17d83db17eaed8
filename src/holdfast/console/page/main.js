"use strict";
// Puts the parts together: which view is shown, the keys, the colours.

const VIEWS = [["locks", "Locks", locksView], ["partitions", "Partitions", partitionsView], ["elections", "Elections", electionsView],
  ["limits", "Limits", limitsView], ["metrics", "Metrics", metricsView], ["health", "Health", healthView]];
let current = null;

const stream = new Stream(showPicture, showState, signIn);

function showState(state, text) {
  const live = $("live");
  if (live.dataset.state !== state && live.dataset.state !== "connecting") notice(text || state);
  live.dataset.state = state;
  setText(live.querySelector("span"), text || state);
}

function showPicture(message) {
  const { status, data } = message, problem = $("problem");
  pictureAt = performance.now();
  frozen = Boolean(status.problem);
  setText($("engine"), `${status.engine}`);
  setText($("about"), `holdfast ${status.release} · namespace ${status.namespace} · surveyed every ${seconds(status.interval)}, the last took ${Math.round(status.took * 1000)} ms${status.writable ? "" : " · read only"}`);
  problem.hidden = !status.problem;
  setText(problem, status.problem ? `${status.problem} ${status.at ? `What is shown is from ${clock(status.at)}.` : ""}` : "");
  showState(status.problem ? "stale" : "live", status.problem ? "engine out of reach" : "live");
  if (!current || current.of !== message.of) return;
  current.show(data, status);
  tick();
  document.body.dataset.version = status.version;
}

function signIn() {
  stream.close();
  current = null;
  const view = signInView(() => open());
  $("tabs").parentElement.hidden = true;
  setText($("engine"), "");
  setText($("about"), "");
  showState("signed-out", "signed out");
  $("main").replaceChildren(view.root);
  view.focus.focus();
}

function go(query, quietly) {
  const address = addressOf(parseAddress(location.hash).view, query);
  if (quietly) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  open(quietly);
}

// `keep`: the view is asked for another part of the same; what is being typed stays.
function open(keep) {
  if (session.required && !session.signed_in) return signIn();
  const { view, query } = parseAddress(location.hash);
  const found = VIEWS.find(([name]) => name === view), typed = keep && current && current.search;
  current = view === "lock" ? lockView(query, go) : (found || VIEWS[0])[2](query, go);
  $("tabs").parentElement.hidden = false;
  for (const link of $("tabs").querySelectorAll("a")) {
    const here = link.dataset.view === view || (view === "lock" && link.dataset.view === "locks");
    assign(link, { "aria-current": here ? "page" : null });
  }
  document.title = `${view === "lock" ? query.name : (found || VIEWS[0])[1]} · holdfast console`;
  $("main").replaceChildren(current.root);
  if (typed && current.search) {
    const end = current.search.value.length;
    current.search.focus();
    current.search.setSelectionRange(end, end);
  }
  stream.open(current.of, current.query);
  return undefined;
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typing = event.target.matches("input, textarea");
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    else if (parseAddress(location.hash).view === "lock") location.hash = "#/locks";
    return;
  }
  const links = [...$("main").querySelectorAll("tbody a.name")];
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const by = event.key === "ArrowDown" ? 1 : -1, at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    if (next) { event.preventDefault(); next.focus(); }
    return;
  }
  if (typing) return;
  if (event.key === "/" && current && current.search) { event.preventDefault(); current.search.focus(); current.search.select(); }
  const page = $("main").querySelector(`.pager:not([hidden]) [data-page="${CSS.escape(event.key)}"]:not(:disabled)`);
  if (page) page.click();
}

const THEMES = { auto: "dark", dark: "light", light: "auto" };

function showTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText($("theme"), theme);
  $("theme").setAttribute("aria-label", `Colours: ${theme === "auto" ? "as the system" : theme}. Change them`);
}

async function begin() {
  try {
    await readSession();
  } catch {
    showState("reconnecting");
    return void setTimeout(begin, 2000);
  }
  return open();
}

function start() {
  $("tabs").append(...VIEWS.map(([name, title]) => el("li", {}, el("a", { href: `#/${name}`, "data-view": name }, title))));
  let theme = localStorage.getItem("theme") || "auto";
  showTheme(theme);
  $("theme").onclick = () => { theme = THEMES[theme] || "auto"; localStorage.setItem("theme", theme); showTheme(theme); };
  $("sign-out").onclick = async () => { await signOut(); open(); };
  document.addEventListener("keydown", key);
  addEventListener("hashchange", () => open());
  setInterval(tick, 500);
  begin();
}

start();
