interface Part<Told, Says> {
  lead: () => void; // this tab is to have the connection
  leave: () => void; // another one has it now
  told: (m: Told) => void; // by the tab that has it
  said: (m: Says) => void; // by another tab
}

// Shared lets one of the tabs of a browser have the connection, and tell the others what it
// hears. Which one that is a lock says, which the browser frees when a tab goes: the next one
// takes over. Where there are no locks (without TLS, beyond this machine) each tab leads, and
// nobody hears of another.
export class Shared<Told, Says> {
  leads = false;
  private channel?: BroadcastChannel;
  private free?: () => void; // gives the lock back
  private waits?: AbortController;
  private name: string;

  constructor(key: string, private part: Part<Told, Says>) {
    this.name = `forebay ${key}`;
    if (!navigator.locks || typeof BroadcastChannel === "undefined") return;
    this.channel = new BroadcastChannel(this.name);
    this.channel.onmessage = (e: MessageEvent<{ told?: Told; says?: Says }>) => {
      if (e.data.told !== undefined) this.part.told(e.data.told);
      if (e.data.says !== undefined) this.part.said(e.data.says);
    };
  }

  tell(told: Told) {
    if (this.leads) this.channel?.postMessage({ told });
  }

  say(says: Says) {
    this.channel?.postMessage({ says });
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
}
