// Flows in the console: built by mouse and by keyboard, published, run and watched.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { faults, looks } from "./look.mjs";
import { seedFlows } from "./seed.mjs";
import { browser, eventually, open, Server } from "./server.mjs";

let server, chrome, stopped;

before(async () => {
  [server, chrome] = await Promise.all([Server.start(), browser()]);
  stopped = await seedFlows(server);
});
after(async () => {
  await chrome?.close();
  await server?.stop();
});

test("flows, a flow, its designer and a run are drawn in each look: no error, nothing serious of axe", async () => {
  for (const [look, options] of Object.entries(looks)) {
    const page = await open(chrome, options);
    for (const [where, drawn] of [["/flows", 0], ["/flows/checkout", 6], ["/flows/checkout/edit", 6], ["/runs/" + stopped, 6]]) {
      await page.goto(server.url + where);
      await page.locator("main h1").first().waitFor();
      if (drawn) await eventually(`${where} is drawn, ${look}`, async () => (await page.locator(".react-flow__node").count()) === drawn);
      const [wide, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= there, `${where} is ${wide} px wide on ${there}`);
      assert.deepEqual(await faults(page), [], where);
      assert.deepEqual(page.wrong, [], where);
    }
    await page.context().close();
  }
});

// publishAndWatch ends what both ways of building begin.
async function publishAndWatch(page, name, press) {
  await press(page.getByRole("button", { name: "Publish" }));
  await page.waitForURL("**/flows/" + name);
  const flow = await server.get("/api/flows/" + name);
  assert.deepEqual(flow.steps.map((s) => [s.id, s.needs ?? []]), [["welcome", []], ["resize", ["welcome"]]]);
  await press(page.getByRole("button", { name: "Run", exact: true }));
  await press(page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }));
  await page.waitForURL("**/runs/*");
  await page.locator("h1 .state.completed").waitFor(); // told by the stream: the page is not loaded anew
  assert.equal(await page.locator(".react-flow__node .state.completed").count(), 2);
  assert.equal((await server.get("/api/runs/" + page.url().split("/").pop())).state, "completed");
  assert.deepEqual(page.wrong, []);
}

test("a flow is built by mouse, undone and done again, published, run and watched", async () => {
  const page = await open(chrome);
  await page.goto(server.url + "/flows");
  await page.getByRole("button", { name: "New flow" }).click();
  await page.getByLabel("Name").fill("mouse");
  await page.getByRole("button", { name: "Draw it" }).click();
  await page.getByRole("button", { name: "welcome" }).dragTo(page.locator(".empty.graph"));
  await page.locator('.react-flow__node[data-id="welcome"]').waitFor();
  await page.getByRole("button", { name: "resize" }).dragTo(page.locator('.react-flow__node[data-id="welcome"]'));
  await page.locator('.react-flow__node[data-id="resize"]').waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.locator('.react-flow__node[data-id="resize"]').waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Redo" }).click();
  await page.locator('.react-flow__node[data-id="resize"]').waitFor();
  await publishAndWatch(page, "mouse", (b) => b.click());
  await page.context().close();
});

test("a flow is built by keyboard alone, published, run and watched", async () => {
  const page = await open(chrome);
  const press = async (b) => {
    await eventually("it can be pressed", () => b.isEnabled());
    await b.press("Enter");
  };
  await page.goto(server.url + "/flows/keys/edit");
  await press(page.getByRole("button", { name: "welcome" }));
  await page.locator('.react-flow__node[data-id="welcome"]').waitFor();
  await page.getByText("Click to add after welcome.").waitFor();
  await press(page.getByRole("button", { name: "resize" }).first());
  await page.locator('.react-flow__node[data-id="resize"]').waitFor();
  await page.getByRole("checkbox", { name: "welcome" }).and(page.locator(":checked")).waitFor();
  await publishAndWatch(page, "keys", press);
  await page.context().close();
});
