import assert from "node:assert";
import { describe, it, test } from "node:test";

test("passes", () => console.log("on standard output"));
test("fails", () => {
  console.error("on standard error");
  assert.strictEqual(1 + 1, 3);
});
test("is skipped", { skip: "not today" }, () => {});
test("is to do", { todo: "later" }, () => assert.fail("not yet"));
describe("a suite", () => {
  it("passes within", () => {});
  it("fails within", () => {
    throw new Error("thrown");
  });
});
test("überprüft 名前", () => {});
test("with parameters", async (t) => {
  for (const value of [1, 2]) await t.test(`value ${value}`, () => {});
});
test("is too slow", { timeout: 20 }, () => new Promise((resolve) => setTimeout(resolve, 2000)));
