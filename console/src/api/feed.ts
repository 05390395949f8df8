import { useEffect, useRef, useState } from "react";
import { address, whoAmI } from "./client";
import { parse } from "./json";
import { Shared, type Told } from "./shared";

export type FeedState = "opening" | "live" | "down" | "over";

export interface Events {
  [name: string]: (data: any) => void;
}

const silence = 45_000; // the server says something each 15 s

// Feed follows a stream of server-sent events. It reconnects by itself, since a
// browser gives up for good on any answer but 200, and takes up where it was. Of the tabs
// of a browser that follow the same, one has the connection (shared.ts).
export class Feed {
  private source?: EventSource;
  private last = "";
  private heard = Date.now();
  private timer?: ReturnType<typeof setTimeout>;
  private watchdog: ReturnType<typeof setInterval>;
  private tries = 0;
  private over = false;
  private joined = false;
  private is: FeedState = "opening";
  private shared: Shared;

  constructor(private path: string, private query: Record<string, string | undefined>, private on: Events, private state: (s: FeedState) => void) {
    this.watchdog = setInterval(this.look, 5_000);
    for (const e of ["visibilitychange", "pageshow"]) document.addEventListener(e, this.look);
    addEventListener("online", this.look);
    this.shared = new Shared(JSON.stringify([path, query]), { lead: this.open, leave: this.shut, told: this.told, standing: () => ({ state: this.is, last: this.last }) });
    this.look();
  }

  private become(s: FeedState) {
    this.is = s;
    this.state(s);
    this.shared.tell({ state: s, last: this.last });
  }

  private open = () => {
    this.timer = undefined;
    if (this.over || document.hidden || !this.shared.leads) return;
    this.become(this.tries === 0 ? "opening" : "down");
    const s = new EventSource(address(this.path, { ...this.query, last_event_id: this.last || undefined }));
    this.source = s;
    this.heard = Date.now();
    s.onopen = () => {
      this.tries = 0;
      this.heard = Date.now();
      this.become("live");
    };
    s.onerror = () => this.again();
    for (const name of new Set([...Object.keys(this.on), "ping", "reset", "done"])) {
      s.addEventListener(name, (e) => {
        const m = e as MessageEvent<string>;
        this.shared.tell({ name, data: m.data, last: m.lastEventId });
        this.take(name, m.data, m.lastEventId);
      });
    }
  };

  private take(name: string, data: string, last: string) {
    this.heard = Date.now();
    if (last) this.last = last;
    if (name === "done") this.close("over");
    this.on[name]?.(parse(data));
  }

  // told is what the tab says that has the connection.
  private told = (m: Told) => {
    if (this.over || this.shared.leads) return;
    this.heard = Date.now();
    if (!this.joined) this.on.joined?.(undefined); // there is no snapshot for whoever comes later
    this.joined = true;
    if (m.last) this.last = m.last;
    if (m.name !== undefined) this.take(m.name, m.data ?? "", m.last ?? "");
    if (m.state && m.state !== this.is) {
      this.is = m.state as FeedState;
      this.state(this.is);
    }
  };

  private again() {
    this.source?.close();
    this.source = undefined;
    if (this.over || this.timer !== undefined) return;
    this.tries++;
    this.become("down");
    if (this.tries === 2) void whoAmI(); // perhaps the session is over
    const wait = Math.min(5_000, 400 * 2 ** Math.min(this.tries, 4)) * (0.5 + Math.random());
    this.timer = setTimeout(this.open, wait);
  }

  private shut = () => {
    this.source?.close();
    this.source = undefined;
    clearTimeout(this.timer);
    this.timer = undefined;
  };

  private look = () => {
    if (this.over) return;
    if (document.hidden) {
      // A hidden page holds no connection: a browser has six for a server.
      this.shut();
      this.shared.release();
      return;
    }
    const dumb = Date.now() - this.heard > silence;
    if (!this.shared.leads) {
      if (dumb) this.heard = Date.now(); // whoever has it sleeps: it is taken away, once in a while
      this.shared.want(dumb);
    } else if (!this.source && this.timer === undefined) this.open();
    else if (this.source && dumb) this.again();
  };

  close(state?: FeedState) {
    this.over = true;
    clearInterval(this.watchdog);
    this.shut();
    for (const e of ["visibilitychange", "pageshow"]) document.removeEventListener(e, this.look);
    removeEventListener("online", this.look);
    if (state) this.become(state);
    this.shared.close();
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
