"use strict";
// The stream of pictures. A browser reconnects by itself after a cut; after a refusal it does not, so this does, more
// and more slowly, and asks first whether the session has ended.

const LONGEST_PAUSE_MS = 15000;

class Stream {
  constructor(show, state, signIn) {
    this.show = show;
    this.state = state;
    this.signIn = signIn;
    this.source = null;
    this.timer = 0;
    this.failures = 0;
  }

  open(of, query) {
    this.close();
    const text = new URLSearchParams({ of, ...query }).toString();
    const source = this.source = new EventSource(`/api/stream?${text}`);
    source.addEventListener("picture", (event) => {
      if (source !== this.source) return;
      this.failures = 0;
      const message = JSON.parse(event.data);
      this.show(message);
    });
    source.onerror = () => {
      if (source !== this.source) return;
      this.state("reconnecting");
      if (source.readyState === EventSource.CLOSED) this.again(of, query);
    };
  }

  again(of, query) {
    this.failures += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      try {
        await readSession();
      } catch {
        return this.again(of, query);
      }
      if (session.required && !session.signed_in) return this.signIn();
      return this.open(of, query);
    }, Math.min(LONGEST_PAUSE_MS, 500 * 2 ** this.failures));
  }

  close() {
    clearTimeout(this.timer);
    if (this.source) this.source.close();
    this.source = null;
  }
}
