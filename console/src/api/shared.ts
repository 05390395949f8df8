import { base } from "../router";

// Told is what the tab that has a connection tells the others: an event, or how things stand.
export interface Told {
  name?: string;
  data?: string;
  last?: string; // the id of the last event
  state?: string;
}

interface Part {
  lead: () => void; // this tab is to have the connection
  leave: () => void; // another one has it now
  told: (m: Told) => void;
  standing: () => Told;
}

// Shared lets one of the tabs of a browser that follow the same stream have its connection,
// and tell the others what it hears. Which one that is a lock says, which the browser frees
// when a tab goes: the next one takes over, and goes on after the last event that it was told.
// Where there are no locks (without TLS, beyond this machine) each tab leads.
export class Shared {
  leads = false;
  private channel?: BroadcastChannel;
  private free?: () => void; // gives the lock back
  private waits?: AbortController;
  private name: string;

  constructor(key: string, private part: Part) {
    this.name = `forebay ${base} ${key}`;
    if (!navigator.locks || typeof BroadcastChannel === "undefined") return;
    this.channel = new BroadcastChannel(this.name);
    this.channel.onmessage = (e: MessageEvent<Told | "who">) => {
      if (e.data !== "who") this.part.told(e.data);
      else if (this.leads) this.tell(this.part.standing());
    };
    this.channel.postMessage("who");
  }

  tell(m: Told) {
    if (this.leads) this.channel?.postMessage(m);
  }

  // want asks for the connection, once; take: also from one that has it and says nothing.
  want(take = false) {
    if (this.leads) return;
    if (!this.channel) return this.begin();
    if (this.waits && !take) return;
    this.waits?.abort();
    const waits = (this.waits = new AbortController());
    const held = () => new Promise<void>((free) => {
      if (this.waits !== waits) return free(); // it was given up meanwhile
      this.waits = undefined;
      this.free = free;
      this.begin();
    });
    navigator.locks.request(this.name, take ? { steal: true } : { signal: waits.signal }, held).catch(() => {
      // Given up, or taken away by another.
      if (this.leads && this.waits === undefined && this.free) this.end();
    });
  }

  private begin() {
    this.leads = true;
    this.part.lead();
  }

  private end() {
    this.free?.();
    this.free = undefined;
    this.leads = false;
    this.part.leave();
  }

  release() {
    this.waits?.abort();
    this.waits = undefined;
    if (this.leads) this.end();
  }

  close() {
    this.release();
    this.channel?.close();
  }
}
