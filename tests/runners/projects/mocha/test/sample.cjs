const assert = require("node:assert");

describe("a suite", () => {
  it("passes", () => console.log("on standard output"));
  it("fails", () => {
    console.error("on standard error");
    assert.strictEqual(1 + 1, 3);
  });
  it.skip("is skipped", () => {});
  it("is to do");
  it("überprüft 名前", () => {});
  it("is too slow", function (done) {
    this.timeout(20);
  });
  for (const value of [1, 2]) it(`value ${value}`, () => {});
});
describe("with a hook", () => {
  before(() => {
    throw new Error("no hook today");
  });
  it("never runs", () => {});
});
