import { describe, expect, test } from "vitest";

describe("a suite", () => {
  test("passes", () => console.log("on standard output"));
  test("fails", () => {
    console.error("on standard error");
    expect(1 + 1).toBe(3);
  });
  test.skip("is skipped", () => {});
  test.todo("is to do");
  test("überprüft 名前", () => {});
  test("is too slow", () => new Promise(() => {}), 20);
  test.each([1, 2])("value %d", () => {});
});
