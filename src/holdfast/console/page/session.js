"use strict";
// Signing in, and the two things that can be changed. The secret is sent once, and kept nowhere.

let session = { required: false, signed_in: false, csrf: null, writable: false };

async function api(method, path, body) {
  const headers = { "Content-Type": "application/json", ...(session.csrf ? { "X-CSRF-Token": session.csrf } : {}) };
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body), credentials: "same-origin", cache: "no-store" });
  const data = await answer.json().catch(() => ({ problem: `the console answered ${answer.status}` }));
  if (!answer.ok) throw Object.assign(new Error(data.problem || `status ${answer.status}`), { status: answer.status });
  return data;
}

async function readSession() {
  session = await api("GET", "/api/session");
  $("sign-out").hidden = !session.signed_in;
}

function signInView(done) {
  const secret = el("input", { id: "secret", type: "password", autocomplete: "current-password", required: true, "aria-describedby": "secret-problem" });
  const problem = el("p", { id: "secret-problem", class: "bad", role: "alert" });
  const form = el("form", { class: "card sign-in", onsubmit: async (event) => {
    event.preventDefault();
    setText(problem, "");
    try {
      await api("POST", "/api/session", { secret: secret.value });
      secret.value = "";
      await readSession();
      done();
    } catch (error) {
      setText(problem, error.message);
      secret.select();
    }
  } }, el("h2", {}, "Sign in"), el("p", { class: "soft" }, "This console has a secret. Whoever started it knows it."),
  el("label", { for: "secret" }, "Secret"), secret, problem, el("button", { type: "submit", class: "primary" }, "Sign in"));
  return { root: form, focus: secret };
}

async function signOut() {
  await api("DELETE", "/api/session").catch(() => null);
  await readSession();
}

const ACTS = {
  evict: {
    title: "Evict this holder?", button: "Evict", danger: true, done: (answer) => answer.evicted ? "Evicted. The next in line is granted." : "There was no such hold any more.",
    text: "The hold ends now, and the next in line is granted at once. The evicted holder learns of it at its next renewal, and may be at work until then: only a fence keeps its late writes out.",
  },
  ask: {
    title: "Ask this holder to give way?", button: "Ask", danger: false, done: (answer) => answer.asked ? "Asked." : "Nobody with that token holds it.",
    text: "Nothing is taken from anybody: the holder learns of it with its next renewal, and does as it sees fit.",
  },
};

function confirmAct(verb, name, claim) {
  const act = ACTS[verb], problem = el("p", { class: "bad", role: "alert" });
  const run = el("button", { type: "button", class: act.danger ? "danger" : "primary", onclick: async () => {
    run.disabled = true;
    try {
      const answer = await api("POST", `/api/${verb}`, { name, token: claim.token });
      dialog.close();
      notice(act.done(answer));
    } catch (error) {
      run.disabled = false;
      setText(problem, error.message);
    }
  } }, act.button);
  const dialog = el("dialog", { "aria-labelledby": "act-title", onclose: () => dialog.remove() }, el("h2", { id: "act-title" }, act.title),
    el("dl", {}, el("dt", {}, "Name"), el("dd", { class: "name" }, name), el("dt", {}, "Token"), el("dd", { class: "figure" }, claim.token), el("dt", {}, "Holder"), el("dd", {}, who(claim))),
    el("p", {}, act.text), problem,
    el("div", { class: "acts" }, el("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Cancel"), run));
  document.body.append(dialog);
  dialog.showModal();
}
