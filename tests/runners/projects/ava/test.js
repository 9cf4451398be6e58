import test from "ava";
test("passes", (t) => { console.log("on standard output"); t.pass(); });
test("fails", (t) => { console.error("on standard error"); t.is(1 + 1, 3, "arithmetic"); });
test("throws", () => { throw new Error("boom"); });
test.skip("is skipped", (t) => t.pass());
test.todo("is to do");
test.failing("is expected to fail", (t) => t.fail());
test("überprüft 名前 # 1", (t) => t.pass());
for (const value of [1, 2]) test(`value ${value}`, (t) => t.is(value, 1));
