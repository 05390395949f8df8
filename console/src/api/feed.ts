import { useEffect, useRef, useState } from "react";
import { address, whoAmI } from "./client";
import { parse } from "./json";

export type FeedState = "opening" | "live" | "down" | "over";

export interface Events {
  [name: string]: (data: any) => void;
}

const silence = 45_000; // the server says something each 15 s

// Feed follows a stream of server-sent events. It reconnects by itself, since a
// browser gives up for good on any answer but 200, and takes up where it was.
export class Feed {
  private source?: EventSource;
  private last = "";
  private heard = Date.now();
  private timer?: ReturnType<typeof setTimeout>;
  private watchdog: ReturnType<typeof setInterval>;
  private tries = 0;
  private over = false;

  constructor(private path: string, private query: Record<string, string | undefined>, private on: Events, private state: (s: FeedState) => void) {
    this.watchdog = setInterval(this.look, 5_000);
    for (const e of ["visibilitychange", "pageshow"]) document.addEventListener(e, this.look);
    addEventListener("online", this.look);
    this.open();
  }

  private open = () => {
    this.timer = undefined;
    if (this.over || document.hidden) return;
    this.state(this.tries === 0 ? "opening" : "down");
    const s = new EventSource(address(this.path, { ...this.query, last_event_id: this.last || undefined }));
    this.source = s;
    this.heard = Date.now();
    s.onopen = () => {
      this.tries = 0;
      this.heard = Date.now();
      this.state("live");
    };
    s.onerror = () => this.again();
    for (const name of new Set([...Object.keys(this.on), "ping", "reset", "done"])) {
      s.addEventListener(name, (e) => {
        this.heard = Date.now();
        const m = e as MessageEvent<string>;
        if (m.lastEventId) this.last = m.lastEventId;
        if (name === "done") this.close("over");
        this.on[name]?.(parse(m.data));
      });
    }
  };

  private again() {
    this.source?.close();
    this.source = undefined;
    if (this.over || this.timer !== undefined) return;
    this.tries++;
    this.state("down");
    if (this.tries === 2) void whoAmI(); // perhaps the session is over
    const wait = Math.min(5_000, 400 * 2 ** Math.min(this.tries, 4)) * (0.5 + Math.random());
    this.timer = setTimeout(this.open, wait);
  }

  private look = () => {
    if (this.over) return;
    if (document.hidden) {
      // A hidden page holds no connection: a browser has six for a server.
      this.source?.close();
      this.source = undefined;
      clearTimeout(this.timer);
      this.timer = undefined;
      return;
    }
    if (!this.source && this.timer === undefined) this.open();
    else if (this.source && Date.now() - this.heard > silence) this.again();
  };

  close(state?: FeedState) {
    this.over = true;
    clearInterval(this.watchdog);
    clearTimeout(this.timer);
    this.source?.close();
    for (const e of ["visibilitychange", "pageshow"]) document.removeEventListener(e, this.look);
    removeEventListener("online", this.look);
    if (state) this.state(state);
  }
}

// useFeed follows a stream for as long as it is shown. path null: none.
export function useFeed(path: string | null, query: Record<string, string | undefined>, on: Events): FeedState {
  const [state, setState] = useState<FeedState>("opening");
  const handlers = useRef(on);
  handlers.current = on;
  const key = path === null ? null : JSON.stringify([path, query]);
  useEffect(() => {
    if (path === null) return;
    const through: Events = {};
    for (const name of Object.keys(on)) through[name] = (d) => handlers.current[name]?.(d);
    const feed = new Feed(path, query, through, setState);
    return () => feed.close();
  }, [key]);
  return state;
}
