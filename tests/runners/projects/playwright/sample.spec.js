const { test, expect } = require("@playwright/test");
test.describe("a suite", () => {
  test("passes", () => console.log("on standard output"));
  test("fails", () => { console.error("on standard error"); expect(1 + 1).toBe(3); });
  test.skip("is skipped", () => {});
  test.fixme("is to do", () => {});
  test("überprüft 名前", () => {});
  test("is too slow", async () => { test.setTimeout(200); await new Promise(() => {}); });
  test("is expected to fail", () => { test.fail(true, "known"); expect(1).toBe(2); });
  for (const value of [1, 2]) test(`value ${value}`, () => expect(value).toBe(1));
});
