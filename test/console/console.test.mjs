// The console in a real browser, against the real program with the embedded engine.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { faults, looks } from "./look.mjs";
import { seed } from "./seed.mjs";
import { browser, eventually, open, Server } from "./server.mjs";

const pictures = process.env.UPDATE_SCREENSHOTS === "1" ? new URL("../../docs/console/", import.meta.url).pathname : undefined;

let server, chrome, screens;

before(async () => {
  [server, chrome] = await Promise.all([Server.start(), browser()]);
  await seed(server);
  const [dead, running, done, bad] = await Promise.all([server.get("/api/dead?limit=1"), server.get("/api/jobs?q=queue:media&limit=1"), server.get("/api/jobs?q=state:completed&limit=1"), server.get("/api/bad?limit=1")]);
  screens = {
    overview: "/", jobs: "/jobs", job: "/jobs/" + running.items[0].jobId, "job-done": "/jobs/" + done.items[0].jobId, queues: "/queues", queue: "/queues/mail",
    dead: "/dead", "dead-letters": "/dead?tab=all", "dead-letter": "/dead/" + dead.items[0].seq, alerts: "/alerts", history: "/history?from=-1h", audit: "/audit", schedules: "/schedules", schedule: "/schedules/nightly", workers: "/workers",
    events: "/events", bad: "/bad", "bad-row": "/bad/" + bad.items[0].seq, keys: "/keys",
  };
});
after(async () => {
  await chrome?.close();
  await server?.stop();
});

// settled waits until a screen shows what it has.
async function settled(page) {
  await page.locator("main h1, .signin h1").first().waitFor();
  await page.locator(".loading").waitFor({ state: "detached" });
}

for (const [look, options] of Object.entries(looks)) {
  test(`every screen, ${look}: no error, no breach of its policy, nothing serious of axe`, async () => {
    const page = await open(chrome, options);
    for (const [name, where] of Object.entries(screens)) {
      await page.goto(server.url + where);
      await settled(page);
      assert.equal(await page.evaluate(() => document.documentElement.lang), options.locale.replace("-US", ""));
      const [wide, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= there, `${name} is ${wide} px wide on ${there}`);
      assert.deepEqual(await faults(page), [], name);
      assert.deepEqual(page.wrong, [], name);
    }
    await page.context().close();
  });
}

test("search into payloads, with completion; the address is the state", async () => {
  const page = await open(chrome);
  await page.goto(server.url + "/jobs");
  await settled(page);
  await page.keyboard.press("/");
  await page.keyboard.type("qu");
  await page.getByRole("option", { name: "queue:" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.keyboard.type("ma");
  await page.getByRole("option", { name: "mail" }).waitFor(); // the names of queues are asked for
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.keyboard.type("payload.user.id:105");
  await page.keyboard.press("Enter");
  await eventually("one row is left", async () => (await page.locator("table.jobs tbody tr").count()) === 1);
  assert.equal(new URL(page.url()).searchParams.get("q"), "queue:mail payload.user.id:105");
  await page.locator("table.jobs tbody a").click();
  await page.getByText("user5@example.com").first().waitFor();
  await page.goBack();
  await eventually("the search is there again", async () => (await page.locator("table.jobs tbody tr").count()) === 1);
  await page.goto(server.url + "/jobs?q=" + encodeURIComponent("stat:dead"));
  await page.getByRole("alert").getByText("column 1").waitFor(); // what is wrong, and where
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("a job that runs is shown live, and is cancelled", async () => {
  const page = await open(chrome);
  const { jobId } = await server.post("/api/jobs", { queue: "media", name: "resize", data: { do: "steps", n: 900, pause: 100 }, delay: "300ms" }); // so that it waits for longer than a moment
  await page.goto(server.url + "/jobs/" + jobId);
  const message = page.locator(".progress .row");
  await message.getByText(/step \d+ of 900/).waitFor();
  const first = await message.textContent();
  await eventually("the progress goes on without loading anew", async () => (await message.textContent()) !== first);
  await page.locator(".logs").getByText("step 3 is done").waitFor();
  // Another tab of this browser has no connection of its own, until the one that has it goes.
  const tab = await page.context().newPage();
  const streams = [];
  tab.on("request", (r) => r.url().includes("/stream") && streams.push(new URL(r.url()).searchParams.getAll("topic")));
  await tab.goto(page.url());
  const told = tab.locator(".progress .row");
  await told.getByText(/step \d+ of 900/).waitFor();
  const at = await told.textContent();
  await eventually("it goes on there too", async () => (await told.textContent()) !== at);
  assert.deepEqual(streams, []);
  // A third one shows a list: what it follows goes over the same connection.
  const list = await page.context().newPage();
  const opened = [];
  page.on("request", (r) => r.url().includes("/stream") && opened.push(new URL(r.url()).searchParams.getAll("topic").map((t) => t.split("?")[0])));
  list.on("request", (r) => r.url().includes("/stream") && streams.push(r.url()));
  await list.goto(server.url + "/jobs?q=" + encodeURIComponent(`queue:media state:active`));
  const doing = list.getByRole("row", { name: jobId }).locator(".doing");
  await doing.getByText(/step \d+ of 900/).waitFor();
  const was = await doing.textContent();
  await eventually("the list goes on too", async () => (await doing.textContent()) !== was);
  assert.deepEqual([streams, opened], [[], [["/api/jobs/" + jobId + "/stream", "/api/stream"]]]);
  await list.close();
  const logged = await tab.locator(".logs div").count();
  await page.close();
  await eventually("it takes over", () => streams.length === 1);
  assert.match(streams[0].join(), /^\/api\/jobs\/[^,]+\/stream\?last_event_id=[^,]+-\d+$/); // after the last event that it was told
  await eventually("it goes on", async () => (await tab.locator(".logs div").count()) > logged);
  const lines = await tab.locator(".logs div").allTextContents();
  assert.equal(new Set(lines.map((l) => l.match(/step (\d+)/)?.[1])).size, lines.length, "a line is there twice");
  await tab.getByRole("button", { name: "Cancel job" }).click();
  await tab.locator("h1 .state.cancelled").waitFor({ timeout: 20_000 });
  await tab.locator(".lane .run.cancelled").waitFor();
  // A slider goes through its life: before it began it waited, later its progress is as it was then.
  const slider = tab.getByRole("slider", { name: "A moment of its life" });
  await slider.focus();
  await slider.press("Home");
  await tab.locator(".life output").getByText(/Delayed/).waitFor();
  for (let n = 0; n < 4; n++) await slider.press("PageUp");
  await tab.locator(".life output").getByText(/Attempt 1 · step \d+ of 900/).waitFor();
  assert.equal(await tab.locator(".lane .at").count(), await tab.locator(".lane").count());
  assert.equal((await server.get("/api/jobs/" + jobId)).state, "cancelled");
  await tab.getByText(/^All that happened/).click();
  await tab.locator("table.events tbody tr[aria-rowindex]").first().getByText("cancelled", { exact: true }).waitFor();
  await page.context().close();
});

test("jobs are added, and all that match are acted on, after a dry run", async () => {
  const page = await open(chrome);
  await page.goto(server.url + "/jobs?q=" + encodeURIComponent("queue:bulk"));
  await settled(page);
  await page.getByRole("button", { name: "Add job" }).first().click();
  await page.getByLabel("Queue").fill("bulk");
  await page.getByLabel("Name", { exact: true }).fill("thing");
  await page.getByLabel("Data").fill('{"exact": 12345678901234567890}');
  await page.getByRole("dialog").getByRole("button", { name: "Add job" }).click();
  await page.locator(".json").getByText("12345678901234567890").waitFor(); // not rounded on the way there or back
  await server.post("/api/jobs/bulk", { items: Array.from({ length: 4 }, (_, n) => ({ queue: "bulk", name: "thing", data: { n } })) });
  await page.goto(server.url + "/jobs?q=" + encodeURIComponent("queue:bulk"));
  await settled(page);
  await page.getByRole("button", { name: "Cancel job…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("jobs are meant").waitFor();
  assert.match(await dialog.textContent(), /5\s*jobs are meant/);
  assert.ok(await dialog.getByRole("button", { name: "Cancel job" }).isDisabled(), "it goes without a confirmation");
  await dialog.getByLabel("Type 5 to confirm").fill("5");
  await dialog.getByRole("button", { name: "Cancel job" }).click();
  await dialog.getByText("Done: 5. Failed: 0.").waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await eventually("they are shown so", async () => (await page.locator("table.jobs .state.cancelled").count()) === 5);
  // And some by hand.
  await page.getByLabel(/^Select 0/).first().check();
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByText("Done: 1. Failed: 0.").waitFor();
  assert.equal((await server.get("/api/jobs?q=queue:bulk")).items.length, 4);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("the data of a job are filled in by a form of what its handler takes, beside the text; what is wrong is said at its field", async () => {
  await server.call("PUT", "/api/queues/parcels/handlers/ship", {
    title: "Send a parcel",
    data: { type: "object", required: ["to"], "x-enforce": true, properties: { to: { type: "string", title: "Address" }, from: { type: "object", title: "From", properties: { weight: { type: "integer", title: "Weight" } } }, speed: { enum: ["slow", "fast"], title: "Speed" } } },
  });
  const page = await open(chrome);
  await page.goto(server.url + "/jobs");
  await settled(page);
  await page.getByRole("button", { name: "Add job" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Queue").fill("parcels");
  await dialog.getByLabel("Name", { exact: true }).fill("ship");
  const text = dialog.getByLabel("Data", { exact: true });
  const weight = dialog.getByLabel("Weight", { exact: true });
  await dialog.getByLabel("Address *").fill("Main Street 1");
  await weight.fill("heavy");
  await weight.press("Tab");
  await dialog.getByRole("combobox", { name: "Speed", exact: true }).selectOption({ label: "fast" });
  await eventually("the text is in step", async () => (await text.inputValue()) === JSON.stringify({ to: "Main Street 1", from: { weight: "heavy" }, speed: "fast" }, null, 2));
  await dialog.getByRole("button", { name: "Add job" }).click();
  await dialog.locator(".member", { has: page.getByLabel("Weight", { exact: true }) }).last().getByRole("alert").getByText("got string, want integer").waitFor();
  assert.deepEqual(await faults(page), []);
  await text.fill('{"to": "Main Street 2", "from": {"weight": 12345678901234567890}}');
  await eventually("so is the form", async () => (await weight.inputValue()) === "12345678901234567890" && (await dialog.getByLabel("Address *").inputValue()) === "Main Street 2");
  await dialog.getByRole("button", { name: "Add job" }).click();
  await page.locator(".json").getByText("12345678901234567890").waitFor();
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("a dead letter is edited and replayed, another discarded with a reason", async () => {
  const page = await open(chrome);
  const before = await server.get("/api/dead");
  await page.goto(server.url + "/dead?tab=all");
  await page.getByRole("link", { name: /customer 3 was declined/ }).click();
  await page.getByRole("button", { name: "Edit and replay" }).click();
  await page.getByRole("dialog").getByLabel("Data").fill('{"to": "mended", "customer": 3}');
  await page.locator(".diff .plus").getByText("mended").waitFor();
  await page.getByRole("button", { name: "Replay with this data" }).click();
  await page.locator("h1 .state.completed").waitFor();
  await page.locator(".json").getByText('"mended"').first().waitFor();
  await page.goto(server.url + "/dead?tab=all");
  await page.getByRole("link", { name: /customer 5 was declined/ }).click();
  await page.getByRole("button", { name: "Discard…" }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("tested");
  await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
  await eventually("both are gone", async () => (await server.get("/api/dead")).items.length === before.items.length - 2);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("dead letters of one cause: a canary that is lost stops the replay, all are discarded with a reason", async () => {
  const page = await open(chrome);
  const there = (await server.get("/api/dead/groups")).items.find((g) => g.kind === "charge").count;
  await page.goto(server.url + "/dead");
  const row = page.getByRole("row", { name: /card of customer # was declined/ });
  await row.getByText(String(there), { exact: true }).waitFor();
  // When they came is drawn, and said.
  await page.getByRole("button", { name: "1h", exact: true }).click();
  const told = (await row.getByRole("img", { name: /^Arrivals over 1h/ }).getAttribute("aria-label")).match(/: ([\d ]+)\./)[1].split(" ").map(Number);
  assert.equal(told.length, 24);
  assert.equal(told.reduce((n, c) => n + c), there);
  await row.getByRole("button", { name: "Replay…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("dead letters are meant").waitFor();
  await dialog.getByLabel("How many").fill("1");
  await dialog.getByLabel("Per second at most").fill("50");
  await dialog.getByRole("button", { name: "Replay", exact: true }).click();
  // It is refused again, as its data are wrong: the others are not touched.
  await page.locator("h1 .state.dead").getByText("Stopped").waitFor({ timeout: 20_000 });
  await page.getByText("1 of 1 sent. Passed: 0. Lost: 1.").waitFor();
  assert.equal((await server.get("/api/dead/groups")).items.find((g) => g.kind === "charge").count, there, "one was sent again, and died again");
  await page.goBack();
  await row.getByRole("link").click();
  await page.getByRole("button", { name: "Discard…" }).click();
  await dialog.getByLabel("Reason").fill("closed accounts");
  assert.ok(await dialog.getByRole("button", { name: "Discard" }).isDisabled(), "it goes without a confirmation");
  await dialog.getByLabel(`Type ${there} to confirm`).fill(String(there));
  await dialog.getByRole("button", { name: "Discard" }).click();
  await page.locator("h1 .state.completed").waitFor({ timeout: 20_000 });
  assert.deepEqual((await server.get("/api/dead?limit=50")).items.filter((d) => d.message.kind === "charge"), []);
  await page.goto(server.url + "/dead?tab=actions");
  const said = page.getByRole("row", { name: /closed accounts/ });
  await said.getByText("Completed").waitFor();
  await said.getByText(`${there} / ${there}`).waitFor();
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("the history of a job and of messages is read; what was sent can be counted for a replay", async () => {
  const page = await open(chrome);
  const { items: [job] } = await server.get("/api/jobs?q=" + encodeURIComponent("queue:mail state:completed") + "&limit=1");
  await page.goto(server.url + "/jobs/" + job.jobId);
  await page.locator("dd", { hasText: "Show" }).first().locator("a").click();
  await page.waitForURL("**/history?job=*");
  await eventually("its life is told", async () => (await page.locator("tbody .state").allTextContents()).some((s) => s.includes("Completed")));
  await page.getByRole("button", { name: "Messages" }).click();
  await page.locator("tbody").getByText("signup").first().waitFor();
  await page.locator("tbody").getByRole("button", { name: "Show" }).first().click();
  await page.locator("tbody .json").getByText('"plan"').first().waitFor();
  await page.getByRole("button", { name: "Replay…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Only count" }).click();
  await page.locator("h1 .state.completed").waitFor();
  await page.locator(".json").getByText('"dryRun": true').first().waitFor();
  await page.goto(server.url + "/alerts");
  await page.getByText("failed for good").first().waitFor();
  // What came in is counted, what was rejected by its reason, which leads to the rows.
  await page.goto(server.url + "/events");
  await page.getByRole("row", { name: /^Accepted/ }).getByText("8", { exact: true }).waitFor();
  await page.getByRole("row", { name: /^Rejected/ }).first().getByRole("link").click();
  await page.waitForURL("**/bad?code=*");
  await page.locator("tbody tr").first().waitFor();
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("a queue is paused, limited and resumed", async () => {
  const page = await open(chrome);
  await page.goto(server.url + "/queues/exports");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.locator("h1 .tag").getByText("paused").waitFor();
  assert.equal((await server.get("/api/queues/exports")).limits.paused, true);
  await page.getByLabel("Most at once", { exact: true }).fill("3");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The limits hold.").waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await eventually("it hands out again, with its limit", async () => {
    const { limits } = await server.get("/api/queues/exports");
    return !limits.paused && limits.active === 3;
  });
  // How many of a queue this server works on at once: what it is now, and by a number or by itself.
  await page.goto(server.url + "/queues/mail");
  await page.getByText(/^0 of \d+ now/).waitFor();
  await page.getByLabel("At most", { exact: true }).fill("7");
  await page.getByRole("button", { name: "Set" }).click();
  await page.getByText("0 of 7 now").waitFor();
  await page.getByLabel("How many").selectOption("auto");
  await page.getByLabel("Up to").fill("20");
  await page.getByRole("button", { name: "Set" }).click();
  await eventually("it finds out by itself", async () => {
    const { concurrency } = await server.get("/api/queues/mail");
    return concurrency.auto && concurrency.max === 20;
  });
  // How long its handlers took is drawn: what the seed has sent there was handled.
  const heat = page.getByRole("img", { name: /handled; half of them ≤/ });
  await heat.waitFor();
  assert.ok(Number((await heat.getAttribute("aria-label")).match(/^(\d+) handled/)[1]) >= 14);
  assert.ok((await heat.locator("rect").count()) > 0);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("keys of the keyboard lead from screen to screen", async () => {
  const page = await open(chrome);
  await page.goto(server.url + "/");
  await settled(page);
  for (const [key, path] of [["j", "/jobs"], ["d", "/dead"], ["q", "/queues"]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await eventually("g " + key, () => new URL(page.url()).pathname === path);
    await settled(page);
  }
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await eventually("the first row is opened", () => /^\/queues\/.+/.test(new URL(page.url()).pathname));
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("dialog").count(), 0);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("what was chosen is remembered: language and theme", async () => {
  const page = await open(chrome);
  await page.goto(server.url + "/");
  await settled(page);
  await page.getByLabel("Language").selectOption("zh-CN");
  await page.getByRole("heading", { name: "概览" }).waitFor();
  await page.getByLabel("主题").selectOption("dark");
  await page.reload();
  await page.getByRole("heading", { name: "概览" }).waitFor();
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark");
  // What the server says of what is wrong is said in Chinese, its own words below.
  await page.goto(server.url + "/jobs?q=" + encodeURIComponent("stat:dead"));
  const wrong = page.getByRole("alert");
  await wrong.getByText("输入有误").waitFor();
  await wrong.getByText("过滤条件第 1 列有误").waitFor();
  await wrong.getByText("服务器原文").click();
  await wrong.locator("[lang=en]").getByText("the filter is wrong at column 1").waitFor();
  await page.context().close();
});

test("the server is killed and comes back under an open page", async () => {
  const page = await open(chrome);
  const { jobId } = await server.post("/api/jobs", { queue: "media", name: "resize", data: { do: "steps", n: 40, pause: 100 } });
  await page.goto(server.url + "/jobs/" + jobId);
  await page.locator(".progress").getByText(/step \d+ of 40/).waitFor();
  await server.kill();
  await page.locator(".banner").first().waitFor();
  await server.run();
  await eventually("the banners go", async () => (await page.locator(".banner").count()) === 0);
  await page.locator("h1 .state.completed").waitFor({ timeout: 30_000 });
  await page.locator(".logs").getByText("step 40 is done").waitFor();
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("with keys one signs in, sees what one may, and signs out", async () => {
  const s = await Server.start();
  try {
    const page = await open(chrome);
    const dialog = page.getByRole("dialog");
    const signIn = async (key) => {
      await page.getByLabel("Key").fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
    };
    const made = async () => {
      const secret = await dialog.locator(".command code").textContent();
      await dialog.getByRole("button", { name: "Close" }).last().click();
      return secret;
    };
    const addKey = async (name, scope, queues) => {
      await page.getByRole("button", { name: "Add key" }).click();
      await dialog.getByLabel("Name").fill(name);
      await dialog.getByLabel("What it may do").selectOption(scope);
      if (queues) await dialog.getByLabel("Queues").fill(queues);
      await dialog.getByRole("button", { name: "Add key" }).click();
      return made();
    };
    await page.goto(s.url + "/keys");
    const ops = await addKey("ops", "admin");
    // With the first key the server is open no longer: who made it is signed in with it.
    await page.getByText("Signed in as admin").waitFor();
    assert.equal((await fetch(s.url + "/api/queues", { headers: { Authorization: "Bearer " + ops } })).status, 200);
    assert.equal((await fetch(s.url + "/api/queues")).status, 401);
    const viewer = await addKey("eve", "view", "exports, img-*");
    const eve = page.getByRole("row", { name: /^eve/ });
    await eve.getByText("img-*").waitFor();
    await eve.getByRole("button", { name: "Rotate" }).click();
    await dialog.getByLabel("stays good for").selectOption("1h");
    await dialog.getByRole("button", { name: "Rotate" }).click();
    const fresh = await made();
    await eve.getByText("Two secrets are good").waitFor();
    assert.notEqual(fresh, viewer);
    for (const secret of [fresh, viewer]) assert.equal((await fetch(s.url + "/api/queues", { headers: { Authorization: "Bearer " + secret } })).status, 200);
    await s.post("/api/jobs", { queue: "exports", name: "export", data: {} });
    await s.post("/api/jobs", { queue: "secret", name: "hidden", data: {} });
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.goto(s.url + "/jobs");
    await signIn("not-a-key");
    await page.getByRole("alert").getByText("not known").waitFor();
    await signIn(viewer);
    await page.getByRole("link", { name: "export", exact: true }).waitFor();
    assert.equal(await page.getByRole("link", { name: "hidden" }).count(), 0, "a job of another queue is shown");
    assert.equal(await page.getByRole("button", { name: "Add job" }).count(), 0, "a viewer is offered to change something");
    const [cookie] = await page.context().cookies();
    assert.ok(cookie.httpOnly && cookie.sameSite === "Strict");
    assert.equal(await page.evaluate(() => fetch("/api/queues/exports/pause", { method: "POST" }).then((r) => r.status)), 403);
    await page.getByText("Signed in as viewer").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Key").waitFor();
    assert.deepEqual(page.wrong, []);
    await page.context().close();
  } finally {
    await s.stop();
  }
});

test("empty screens teach: they show the command that fills them", async () => {
  const s = await Server.start();
  try {
    const page = await open(chrome);
    for (const where of ["/", "/jobs", "/dead", "/schedules", "/events", "/bad", "/keys"]) {
      await page.goto(s.url + where);
      await settled(page);
      assert.match(await page.locator(".empty .command code").first().textContent(), /^(forebay|curl) /, where);
    }
    // And they say so truly: what is shown is run as it stands.
    await page.goto(s.url + "/");
    await page.locator(".empty .command code").waitFor();
    const [, body, url] = (await page.locator(".empty .command code").textContent()).match(/^curl -d '(.+)' (\S+)$/);
    assert.equal((await fetch(url, { method: "POST", body, headers: { "Content-Type": "application/x-www-form-urlencoded" } })).status, 202);
    await page.getByRole("link", { name: "events", exact: true }).waitFor();
    await longList(s, page);
    assert.deepEqual(page.wrong, []);
    await page.context().close();
  } finally {
    await s.stop();
  }
});

// longList scrolls through more rows than are drawn, by keys too, and keeps the view.
async function longList(s, page) {
  await s.post("/api/jobs/bulk", { items: Array.from({ length: 500 }, (_, n) => ({ queue: "long", name: "row" + n, data: {} })) });
  await page.goto(s.url + "/jobs?q=queue:long");
  const rows = page.locator("table.jobs tbody tr[aria-rowindex]");
  await rows.first().waitFor();
  assert.equal(await page.locator("table.jobs").getAttribute("aria-rowcount"), "-1"); // there are more than are known
  let most = 0;
  await eventually("the end is reached by scrolling alone", async () => {
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    most = Math.max(most, await rows.count());
    return (await page.locator("table.jobs").getAttribute("aria-rowcount")) === "501" && (await rows.last().getAttribute("aria-rowindex")) === "501";
  });
  assert.ok(most < 120, `${most} rows are drawn`);
  await page.getByText("Shown: 500", { exact: false }).waitFor();
  await rows.last().getByRole("link").focus();
  for (let n = 0; n < 30; n++) await page.keyboard.press("k");
  assert.equal(await page.evaluate(() => document.activeElement.closest("tr").ariaRowIndex), "471");
  await page.evaluate(() => scrollTo(0, 0));
  await eventually("the first rows are there again", async () => (await rows.first().getAttribute("aria-rowindex")) === "2");
  assert.equal(await page.evaluate(() => document.activeElement.closest("tr").ariaRowIndex), "471", "the row with the focus is gone");
  // The history is drawn so too; a row that is opened has its place.
  await page.goto(s.url + "/history?of=messages&queue=long&from=-1h");
  const told = page.locator("table.history tbody tr[aria-rowindex]");
  await told.first().waitFor();
  most = 0;
  await eventually("the end of the history is reached by scrolling alone", async () => {
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    most = Math.max(most, await told.count());
    return (await page.locator("table.history").getAttribute("aria-rowcount")) === "501" && (await told.last().getAttribute("aria-rowindex")) === "501";
  });
  assert.ok(most < 120, `${most} rows of the history are drawn`);
  await told.last().getByRole("button", { name: "Show" }).click();
  await page.locator("table.history .json").waitFor();
  await page.evaluate(() => scrollTo(0, 0));
  await eventually("its first rows are there again", async () => (await told.first().getAttribute("aria-rowindex")) === "2");
  await page.goto(s.url + "/jobs?q=queue:long");
  await page.getByRole("button", { name: "Save view" }).click();
  await page.getByRole("dialog").getByLabel("Name of the view").fill("the long one");
  await page.getByRole("dialog").getByLabel("for everybody").check();
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "Delete view" }).waitFor();
  await page.goto(s.url + "/jobs?q=state:dead");
  await page.getByLabel("Saved views").selectOption("the long one");
  await page.waitForURL((u) => u.searchParams.get("q") === "queue:long");
  await page.getByRole("button", { name: "Delete view" }).click();
  await eventually("it is deleted on the server", async () => (await s.get("/api/views")).items.length === 0);
}

// Only when it is asked for: the pictures of the documents.
if (pictures) {
  test("pictures of each screen in both themes", async () => {
    for (const theme of ["light", "dark"]) {
      for (const lang of ["en-US", "zh-CN"]) {
        const page = await open(chrome, { colorScheme: theme, locale: lang, viewport: { width: 1280, height: 800 } });
        const shown = lang === "en-US" ? screens : { overview: screens.overview, jobs: screens.jobs, dead: screens.dead };
        for (const [name, where] of Object.entries(shown)) {
          await page.goto(server.url + where);
          await settled(page);
          await page.waitForTimeout(name === "overview" ? 7000 : 600);
          await page.screenshot({ path: `${pictures}${name}-${theme}${lang === "en-US" ? "" : ".zh-CN"}.png` });
        }
        await page.context().close();
      }
    }
  });
}
