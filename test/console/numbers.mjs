// The console's numbers, measured: node test/console/numbers.mjs [--jobs 1000000] [--seconds 600] [--only designer,pixel]
// It starts the real program and a real browser, and prints each figure beside what it
// is to be. It asserts nothing: figures depend on the machine, and on what else it does.
import { readdir, readFile } from "node:fs/promises";
import http from "node:http";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { browser, eventually, open, Server } from "./server.mjs";

const { values: flags } = parseArgs({ options: { jobs: { type: "string", default: "100000" }, seconds: { type: "string", default: "20" }, streams: { type: "string", default: "1000" }, only: { type: "string" } } });
const wantedJobs = Number(flags.jobs);
const updatesFor = Number(flags.seconds);
const streams = Number(flags.streams);

const rows = [];
function tell(what, got, wanted) {
  rows.push([what, got, wanted]);
  console.log(`${what}: ${got} (wanted: ${wanted})`);
}

const quantile = (all, q) => [...all].sort((a, b) => a - b)[Math.min(all.length - 1, Math.floor(all.length * q))];
const ms = (n) => `${n.toFixed(0)} ms`;

async function sizes() {
  const dir = new URL("../../console/dist/assets/", import.meta.url);
  const files = new Map();
  for (const name of await readdir(dir)) files.set(name, await readFile(new URL(name, dir)));
  const kB = (...names) => names.reduce((n, f) => n + gzipSync(files.get(f), { level: 9 }).length, 0) / 1000;
  tell("first screen, JavaScript", `${kB("app.js", "shared.js", "overview.js", "chart.js").toFixed(1)} kB gzip`, "≤ 60");
  tell("designer, JavaScript", `${kB("graph.js", "flows.js").toFixed(1)} kB gzip`, "≤ 130");
  tell("all that is embedded", `${([...files.values()].reduce((n, b) => n + b.length, 0) / 1024).toFixed(0)} KiB`, "≤ 1024");
}

// lease takes a job as a worker elsewhere does.
async function lease(s, queue, max = 1) {
  return (await s.post(`/api/queues/${queue}/lease`, { max, leaseSeconds: 120, wait: "5s" })).items;
}

async function search(s) {
  const began = performance.now();
  for (let at = 0; at < wantedJobs; at += 1000) {
    await s.post("/api/jobs/bulk", { items: Array.from({ length: Math.min(1000, wantedJobs - at) }, (_, i) => ({ queue: "many", name: "thing", data: { user: { id: at + i }, plan: i % 7 ? "free" : "pro" } })) });
  }
  console.log(`${wantedJobs} jobs added in ${((performance.now() - began) / 1000).toFixed(0)} s`);
  for (const [what, query] of [["payload filter that many match", () => "queue:many payload.plan:pro"], ["payload filter that one matches", () => `queue:many payload.user.id:${Math.floor(Math.random() * wantedJobs)}`]]) {
    const took = [];
    for (let n = 0; n < 40; n++) {
      const from = performance.now();
      await s.get("/api/jobs?limit=50&q=" + encodeURIComponent(query()));
      took.push(performance.now() - from);
    }
    tell(`${wantedJobs} jobs, ${what}, first page, p95`, ms(quantile(took, 0.95)), "≤ 300 ms");
  }
}

// pixel measures from the call that tells progress to the frame that shows it.
async function pixel(s, chrome) {
  const { jobId } = await s.post("/api/jobs", { queue: "pulled", name: "watched", data: {} });
  const [job] = await lease(s, "pulled");
  const page = await open(chrome);
  await page.goto(`${s.url}/jobs/${jobId}`);
  await page.locator(".progress").waitFor();
  await page.evaluate(() => {
    globalThis.seen = {};
    new MutationObserver(() => {
      const text = document.querySelector(".progress .row")?.textContent.match(/mark-\d+/)?.[0];
      if (text && !seen[text]) requestAnimationFrame(() => (seen[text] ??= Date.now()));
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  const took = [];
  for (let n = 0; n < 60; n++) {
    const from = Date.now();
    await s.post("/api/leases/progress", { items: [{ receipt: job.receipt, progress: { percent: n, message: `mark-${n}` } }] });
    const at = await eventually("it is shown", () => page.evaluate((k) => globalThis.seen[k], `mark-${n}`), 5);
    took.push(at - from);
    await sleep(300);
  }
  tell("a change of a job to its pixel, p95", ms(quantile(took, 0.95)), "≤ 250 ms");
  await page.context().close();
}

// updates lets many jobs of one page tell progress, and counts frames and memory.
async function updates(s, chrome) {
  const ids = 50;
  await s.post("/api/jobs/bulk", { items: Array.from({ length: ids }, () => ({ queue: "busy", name: "busy", data: {} })) });
  const leases = [];
  while (leases.length < ids) leases.push(...(await lease(s, "busy", 50)));
  const page = await open(chrome);
  await page.goto(s.url + "/jobs?q=" + encodeURIComponent("queue:busy"));
  await page.locator("table.jobs tbody tr").first().waitFor();
  const cdp = await page.context().newCDPSession(page);
  const heap = async () => {
    await cdp.send("HeapProfiler.collectGarbage");
    return (await cdp.send("Runtime.getHeapUsage")).usedSize / 2 ** 20;
  };
  let told = 0;
  let on = true;
  const teller = (async () => {
    for (let next = performance.now(), n = 0; on; n++) {
      await s.post("/api/leases/progress", { items: leases.map((l) => ({ receipt: l.receipt, progress: { percent: n % 100, message: `at ${n}` } })) });
      told += leases.length;
      next += (1000 * leases.length) / 1000; // 1,000 a second
      await sleep(Math.max(0, next - performance.now()));
    }
  })();
  teller.catch(() => (on = false)); // told below, or by what ended it all
  await sleep(3000);
  const [heapBefore, toldBefore] = [await heap(), told];
  const began = performance.now();
  const frames = await page.evaluate((seconds) => new Promise((done) => {
    let n = 0;
    const until = performance.now() + seconds * 1000;
    const frame = () => (n++, performance.now() < until ? requestAnimationFrame(frame) : done(n));
    requestAnimationFrame(frame);
  }), updatesFor);
  const seconds = (performance.now() - began) / 1000;
  const rate = (told - toldBefore) / seconds;
  on = false;
  await teller;
  const heapAfter = await heap();
  tell(`${rate.toFixed(0)} updates/s on one page for ${seconds.toFixed(0)} s, frames`, `${(frames / seconds).toFixed(0)}/s`, "≥ 50/s at 1,000/s");
  tell("the same, memory", `${heapBefore.toFixed(1)} → ${heapAfter.toFixed(1)} MiB`, "no growth");
  await page.context().close();
}

// scroll goes through a list of 10,000 rows, and counts frames and the rows that are drawn.
async function scroll(s, chrome) {
  for (let n = 0; n < 10; n++) await s.post("/api/jobs/bulk", { items: Array.from({ length: 1000 }, (_, i) => ({ queue: "long", name: "row" + (n * 1000 + i), data: {} })) });
  const page = await open(chrome);
  await page.goto(s.url + "/jobs?q=queue:long");
  const table = page.locator("table.jobs");
  await table.locator("tbody tr").first().waitFor();
  await eventually("all are loaded", async () => {
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    return (await table.getAttribute("aria-rowcount")) === "10001";
  }, 120);
  await page.evaluate(() => scrollTo(0, 0));
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  const worked = async () => (await cdp.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value;
  const before = await worked();
  const { frames, most, blank, seconds } = await page.evaluate(() => new Promise((done) => {
    let [frames, most, blank] = [0, 0, 0];
    const began = performance.now();
    const frame = (now) => {
      const ms = now - began;
      if (ms > 5000) return done({ frames, most, blank, seconds: ms / 1000 });
      frames++;
      scrollBy(0, 80); // about 5,000 px a second
      most = Math.max(most, document.querySelectorAll("table.jobs tbody tr[aria-rowindex]").length);
      const middle = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
      if (middle?.closest("tr.gap")) blank++;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }));
  tell("10,000 rows scrolled, frames", `${(frames / seconds).toFixed(0)}/s, ${blank} of ${frames} blank, at most ${most} rows drawn`, "≥ 50/s, none blank");
  tell("the same, work of the page for a frame", `${(((await worked()) - before) / frames * 1000).toFixed(1)} ms`, "≤ 16 ms");
  await page.context().close();
}

const memory = async (s) => Number((await readFile(`/proc/${s.process.pid}/status`, "utf8")).match(/VmRSS:\s+(\d+)/)[1]);

function stream(s, where) {
  return new Promise((done, failed) => {
    const r = http.get(s.url + where, { headers: { Authorization: "Bearer " + s.token, Accept: "text/event-stream" }, agent: false }, (answer) => {
      answer.on("error", () => {});
      answer.once("data", () => done({ answer, close: () => r.destroy() }));
      answer.resume();
    });
    r.on("error", failed);
  });
}

async function clients(s) {
  const { jobId } = await s.post("/api/jobs", { queue: "pulled", name: "watched", data: {} });
  const before = await memory(s);
  const open = [];
  for (let n = 0; n < streams; n += 50) open.push(...(await Promise.all(Array.from({ length: Math.min(50, streams - n) }, () => stream(s, `/api/jobs/${jobId}/stream`)))));
  await sleep(2000);
  tell(`${open.length} streams, memory of the server for each`, `${((await memory(s)) - before > 0 ? ((await memory(s)) - before) / open.length : 0).toFixed(0)} KiB`, "≤ 64 KiB");
  for (const c of open) c.close();
  await sleep(500);
}

async function restart(s, chrome) {
  const { jobId } = await s.post("/api/jobs", { queue: "media", name: "resize", data: { do: "steps", n: 600, pause: 50 } });
  const page = await open(chrome);
  await page.goto(`${s.url}/jobs/${jobId}`);
  await page.locator(".progress").getByText(/step \d+ of 600/).waitFor();
  await s.kill();
  await page.locator(".banner").first().waitFor();
  await s.run();
  const from = performance.now();
  await eventually("the page is live again", async () => (await page.locator(".banner").count()) === 0, 30);
  tell("server killed and begun again: the page is live after", ms(performance.now() - from), "≤ 5000 ms");
  await page.context().close();
  await s.post(`/api/jobs/${jobId}/cancel`, {});
}

async function designer(s, chrome) {
  const steps = Array.from({ length: 300 }, (_, n) => `  s${n}: {use: welcome, queue: mail${n < 10 ? "" : `, needs: s${n - 10 + (n % 3)}`}}`).join("\n");
  const r = await fetch(s.url + "/api/flows/large", { method: "PUT", headers: { Authorization: "Bearer " + s.token, "Content-Type": "application/yaml" }, body: `flow: large\nsteps:\n${steps}\n` });
  if (!r.ok) throw new Error(await r.text());
  const page = await open(chrome);
  await page.goto(s.url + "/flows");
  await page.getByRole("link", { name: "large", exact: true }).waitFor();
  const took = [];
  for (let n = 0; n < 5; n++) {
    await page.goto(s.url + "/flows");
    await page.getByRole("link", { name: "large", exact: true }).waitFor();
    took.push(await page.evaluate(() => new Promise((done) => {
      const from = performance.now();
      const look = new MutationObserver(() => {
        // Of a large flow what is seen is drawn, with its ways; the map shows all of it.
        if (document.querySelectorAll(".react-flow__node").length === 0 || document.querySelectorAll(".react-flow__edge").length === 0) return;
        if (document.querySelectorAll(".react-flow__minimap-node").length < 300) return;
        look.disconnect();
        requestAnimationFrame(() => done(performance.now() - from));
      });
      look.observe(document.body, { subtree: true, childList: true });
      [...document.querySelectorAll("main a")].find((a) => a.textContent === "large").click();
    })));
  }
  tell("a flow of 300 steps is ready after a click: what is seen, its ways, and the map of all; median of 5", ms(quantile(took, 0.5)), "≤ 700 ms");
  await page.context().close();
}

async function shutdown(s) {
  const { jobId } = await s.post("/api/jobs", { queue: "pulled", name: "watched", data: {} });
  for (let n = 0; n < 100; n++) await stream(s, `/api/jobs/${jobId}/stream`).then(({ answer }) => answer.on("error", () => {}));
  const from = performance.now();
  s.process.kill("SIGTERM");
  await s.ended;
  tell("end of the server with 100 streams open", ms(performance.now() - from), "≤ 1000 ms, without jobs that run");
}

const s = await Server.start();
const chrome = await browser();
try {
  // In this order; the last ends the server.
  for (const measure of [sizes, designer, pixel, updates, scroll, restart, clients, search, shutdown]) {
    if (!flags.only || flags.only.split(",").includes(measure.name)) await measure(s, chrome);
  }
  console.log("\n| figure | measured | wanted |\n|---|---|---|\n" + rows.map((r) => `| ${r.join(" | ")} |`).join("\n"));
} finally {
  await chrome.close();
  await s.stop();
}
