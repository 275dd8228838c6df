// Talking to `cbabo serve`. The token arrives in the address once and is kept for this tab only.

const KEY = "cbabo-token";

export class Server {
  constructor() {
    const stated = new URLSearchParams(window.location.hash.slice(1));
    if (stated.has("token")) {
      sessionStorage.setItem(KEY, stated.get("token"));
      stated.delete("token");
      window.history.replaceState(null, "", `#${stated}`);
    }
  }

  get token() {
    return sessionStorage.getItem(KEY) ?? "";
  }

  set token(value) {
    sessionStorage.setItem(KEY, value.trim());
  }

  get = (path) => this.#ask(path, {});

  // signal: of an AbortController, to give up.
  post = (path, body, signal = null) =>
    this.#ask(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${this.token}` },
      body: JSON.stringify(body),
      signal,
    });

  async #ask(path, options) {
    let response;
    try {
      response = await fetch(`/api/${path}`, { cache: "no-store", ...options });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("the server does not answer; is cbabo serve still running?");
    }
    const content = await response.json().catch(() => ({}));
    if (!response.ok) throw Object.assign(new Error(content.error ?? `the server answered ${response.status}`), { status: response.status });
    return content;
  }
}
