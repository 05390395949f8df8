// The designer: forms of schemas, completion, what is moved, grouped, copied and found;
// versions compared, gone back to and approved; runs looked back at.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { faults } from "./look.mjs";
import { browser, eventually, open, Server } from "./server.mjs";

let server, chrome, page;

before(async () => {
  [server, chrome] = await Promise.all([Server.start(), browser()]);
  page = await open(chrome);
});
after(async () => {
  await chrome?.close();
  await server?.stop();
});

const node = (id) => page.locator(`.react-flow__node[data-id="${id}"]`);
const box = (name) => page.locator(".inspector").getByLabel(name, { exact: true });
// sound: nothing but warnings is told of what is drawn.
const sound = () => eventually("it is sound", async () => (await page.locator(".problems li.bad").count()) === 0 && (await page.getByRole("button", { name: "Publish" }).isEnabled()));
const leave = (field, text) => field.fill(text).then(() => field.press("Tab"));

const put = (name, body) => fetch(`${server.url}/api/flows/${name}`, { method: "PUT", headers: { Authorization: "Bearer " + server.token, "Content-Type": "application/yaml" }, body }).then(async (r) => { if (!r.ok) throw new Error(await r.text()); return r.json(); });

test("the form of a step is made of what its handler says that it takes; expressions are completed and shown", async () => {
  await server.call("PUT", "/api/queues/parcels/handlers/ship", {
    title: "Send a parcel",
    data: {
      type: "object", required: ["to", "weight"],
      properties: {
        to: { type: "string", title: "Address", description: "Where it goes." }, weight: { type: "integer", title: "Weight" }, speed: { enum: ["slow", "fast"], default: "slow", title: "Speed" },
        fragile: { type: "boolean", title: "Fragile" }, parts: { type: "array", title: "Parts", items: { type: "string" } }, from: { type: "object", title: "From", properties: { city: { type: "string", title: "City" } } },
      },
    },
    result: { type: "object", properties: { number: { type: "string" } } },
  });
  await put("parcels", "flow: parcels\ninput: {type: object, properties: {address: {type: string}, grams: {type: integer}}}\nsteps:\n  hello: {use: welcome, queue: mail, with: {}}\n");
  await page.goto(server.url + "/flows/parcels/edit?step=hello");
  await page.getByRole("button", { name: "ship Send a parcel" }).click();
  await node("ship").waitFor();
  await page.getByText("missing properties 'to', 'weight'").or(page.getByText("missing property 'to'")).first().waitFor(); // the problem has its place
  const to = box("Address *");
  await to.click();
  await page.keyboard.type("${input.ad");
  await page.getByRole("option", { name: "input.address string" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.keyboard.type("}");
  await page.locator(".preview", { hasText: '= "text"' }).waitFor(); // the sample's
  await page.keyboard.press("Tab");
  await leave(box("Weight *"), "1200");
  await page.locator(".inspector").getByRole("combobox", { name: "Speed", exact: true }).selectOption({ label: "fast" });
  await page.locator(".inspector").getByRole("combobox", { name: "Fragile", exact: true }).selectOption({ label: "true" });
  await page.getByRole("button", { name: "Add to Parts" }).click();
  await leave(box("1"), "lid");
  await leave(box("City"), "Ulm");
  await sound();
  await leave(box("Weight *"), "heavy");
  await page.getByText("weight does not fit what ship says that it takes: got string, want integer").waitFor();
  await leave(box("Weight *"), "${input.grams}");
  await sound();
  assert.deepEqual(await faults(page), []);
  await page.getByRole("group", { name: "Shown as" }).getByRole("button", { name: "JSON" }).click();
  assert.deepEqual(JSON.parse(await box("JSON").inputValue()), { to: "${input.address}", weight: "${input.grams}", speed: "fast", fragile: true, parts: ["lid"], from: { city: "Ulm" } });
  await page.getByRole("button", { name: "Publish" }).click();
  await page.waitForURL("**/flows/parcels");
  await page.getByRole("button", { name: "Run", exact: true }).click(); // the input's form is made of its schema too
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("address").fill("Main Street 1");
  await dialog.getByLabel("grams").fill("7");
  await dialog.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForURL("**/runs/*");
  assert.deepEqual((await server.get("/api/runs/" + page.url().split("/").pop())).input, { address: "Main Street 1", grams: 7 });
  assert.deepEqual(page.wrong, []);
});
